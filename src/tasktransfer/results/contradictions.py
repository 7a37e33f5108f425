"""Contradictions between the parts of a record whose types are valid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from tasktransfer.core.identity import compute_digest
from tasktransfer.results.schema import Record, Selected, TrainingResult

_REPEATED_KEYS = ("dataset", "train_tasks", "seed")
"""Keys of a node's description that its identity repeats."""


def is_stage(record: Record) -> bool:
    """Return whether the record belongs to a training."""
    return record["node"]["kind"] == "stage"


def find_contradictions(record: Record) -> Iterator[str]:
    """Find disagreements between the parts of a record whose types are valid."""
    if is_stage(record) != ("training" in record):
        problem = "missing" if is_stage(record) else "not allowed, because the node is not a stage"
        yield f"training: The key is {problem}"
    if "training" in record:
        yield from _find_round_problems(record["training"])
    yield from _find_range_problems(record)
    yield from _find_node_problems(record)
    yield from _find_identity_problems(record)
    yield from _find_row_problems(record)


def _find_round_problems(training: TrainingResult) -> Iterator[str]:
    rounds = training["rounds"]
    numbers = [entry["round"] for entry in rounds]
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        yield f"training.rounds: The numbers of the rounds are not consecutive: {numbers}"
    elif numbers[0] > 1:
        yield (
            f"training.rounds: The first round has number {numbers[0]}, expected 1, or 0 for the "
            "untrained model"
        )
    else:
        for index, entry in enumerate(training["selections"]):
            yield from _find_selection_problems(f"training.selections[{index}]", entry, numbers)


def _find_selection_problems(
    key: str, selection: Selected, numbers: Sequence[int]
) -> Iterator[str]:
    best, scores = selection["round"], selection["scores"]
    if len(scores) != len(numbers):
        yield f"{key}.scores: There are {len(scores)} scores for {len(numbers)} rounds"
    elif best not in numbers:
        yield f"{key}.round: The value is {best}, but the rounds are {numbers[0]} to {numbers[-1]}"
    elif scores[best - numbers[0]] != selection["dev_score"]:
        recorded, of_round = selection["dev_score"], scores[best - numbers[0]]
        yield f"{key}.dev_score: The value is {recorded}, but the round has score {of_round}"


def _find_range_problems(record: Record) -> Iterator[str]:
    from tasktransfer.metrics.measures import find_invalid_value  # noqa: PLC0415  # numpy slows starts

    rounds = record["training"]["rounds"] if "training" in record else []
    for number, round in enumerate(rounds):
        for task, measures in round["dev"].items():
            if problem := find_invalid_value(measures):
                yield f"training.rounds[{number}].dev.{task}: {problem}"
    for task, result in record["results"].items():
        if problem := find_invalid_value(result["measures"]):
            yield f"results.{task}.measures: {problem}"
        if result["score"] is None and is_stage(record):
            yield f"results.{task}.score: The value is null, but a training must have a number"


def _find_node_problems(record: Record) -> Iterator[str]:
    node = record["node"]
    digest = compute_digest(node["identity"])
    if digest != node["digest"]:
        yield f"node.digest: The value is {node['digest']}, but node.identity has digest {digest}"
    trained = node["train_tasks"] if node["kind"] == "stage" else []
    unsized = [task for task in trained if task not in record["sizes"]]
    if unsized:
        yield f"sizes: There are no sizes for {', '.join(unsized)} in node.train_tasks"


def _find_identity_problems(record: Record) -> Iterator[str]:
    """Yield disagreements between a record and its node's identity."""
    node, identity = cast(dict[str, Any], record["node"]), record["node"]["identity"]
    repeated = {f"node.{key}": node[key] for key in _REPEATED_KEYS if key in node}
    repeated["data_revision"] = record["data_revision"]
    repeated["few_sample"] = record["few_sample"]
    repeated["provenance.recipe"] = record["provenance"]["recipe"]
    for key, value in repeated.items():
        name = key.rpartition(".")[2]
        if name == "recipe" and node["kind"] != "stage":
            continue
        if name in identity and identity[name] != value:
            yield f"{key}: The value is {value!r}, but node.identity.{name} is {identity[name]!r}"
    if node["kind"] != "stage":
        return
    model = identity.get("model")
    family = model.get("family", node["family"]) if isinstance(model, dict) else node["family"]
    if family != node["family"]:
        yield (
            f"node.family: The value is {node['family']!r}, but node.identity.model has {family!r}"
        )
    parent = identity.get("parent")
    if parent is not None and node["parents"] != [parent]:
        yield (
            f"node.parents: The value is {node['parents']}, but node.identity.parent is {parent!r}"
        )


def _find_row_problems(record: Record) -> Iterator[str]:
    """Yield disagreements between a training's rows and its test instances.

    Other nodes may have more rows, for controls.
    """
    rows, judged = record["rows"], record["results"]
    if rows is None or not is_stage(record):
        return
    instances = sum(result["instances"] for result in judged.values())
    if rows["rows"] != instances:
        yield f"rows.rows: The value is {rows['rows']}, but results has {instances} instances"
    unsized = [task for task in judged if task not in record["sizes"]]
    if unsized:
        yield f"sizes: There are no sizes for {', '.join(unsized)} in results"
