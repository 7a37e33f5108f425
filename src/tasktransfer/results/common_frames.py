"""Frames of every design: runs, scores, resources, training rounds, missing results, problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Stage
from tasktransfer.core.runs import Run, add_ancestors
from tasktransfer.errors import format_quantity
from tasktransfer.results.collect import NO_RECORD, Collected
from tasktransfer.results.costs import compute_hours, describe_hardware
from tasktransfer.results.frames import (
    COMMON,
    FLAG,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    Columns,
    Frame,
    Frames,
)
from tasktransfer.results.node_folders import read_node_state
from tasktransfer.results.records import NOUNS, find_selection, get_selected_round
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD
from tasktransfer.results.store import Metadata
from tasktransfer.tasks.card import SPLITS

Values = tuple[Any, ...]

MISSING = "missing"
"""Key of the fact that counts planned nodes without a record. Absent if there are none."""

RESOURCES: Columns = (
    ("kind", TEXT, "kind of node: stage (a training run), fit, evaluation or data (derived)"),
    ("label", TEXT, "name of the node in its study"),
    ("model", TEXT, "trained model; null if there is none"),
    ("seed", WHOLE, "random seed; null if the node has none"),
    ("path", TEXT, "folder of the node, relative to the results folder"),
    ("hours", NUMBER, "wall time, hours"),
    ("rounds", WHOLE, "number of training rounds, without the untrained model"),
    ("tokens", WHOLE, "number of tokens processed in training"),
    ("samples_per_second", NUMBER, "training samples per second"),
    ("peak_memory_mb", NUMBER, "peak memory of a training run, MiB"),
    ("peak_gpu_memory_mb", NUMBER, "peak GPU memory of a training, MiB; null without a GPU"),
    ("parameters", WHOLE, "number of parameters of the model; null if unknown"),
    ("trained_parameters", WHOLE, "number of trained parameters; null if unknown"),
    ("hardware", TEXT, "GPU, or CPU with its number of threads; null if unknown"),
    ("precision", TEXT, "floating-point precision; null if unknown"),
    ("commit", TEXT, "commit of the code that created the record"),
    ("recipe", WHOLE, "version of the code that created the record"),
)

ROUNDS: Columns = (
    ("label", TEXT, "name of the training in its study"),
    ("model", TEXT, "trained model"),
    ("seed", WHOLE, "random seed"),
    ("path", TEXT, "folder of the training, relative to the results folder"),
    ("round", WHOLE, "epoch or evaluation step; 0 is the untrained model"),
    ("loss", NUMBER, "training loss, mean over the training's tasks; null for round 0"),
    ("dev_score", NUMBER, "score on dev that selects the round, in the measure's own unit"),
    ("selected", FLAG, "true for the round with the best score on dev"),
)

_Limit = tuple[tuple[str, ...], int]
"""Path of a key, and its value."""

_SECTIONS = {"asked": "prompted"}
"""Section of an identity → section of the config, if their names differ."""


def build_common_columns(about: Sequence[str]) -> dict[str, Columns]:
    """Map each frame in ``frames.COMMON`` to its columns.

    Args:
        about: keys of ``Run.about`` that identify a run.
    """
    run: Columns = (
        ("method", TEXT, "evaluated method"),
        ("model", TEXT, "name of the model in the config"),
        ("seed", WHOLE, "random seed"),
        *((key, TEXT, f"{key} of the run; null if it has none") for key in about),
    )
    return {
        "runs": (
            *run,
            ("records", TEXTS, "paths of its records in the results folder"),
            ("hours", NUMBER, "wall time of all nodes that it uses and that have a record"),
        ),
        "scores": (
            *run,
            ("measured_task", TEXT, "evaluated task, which may differ from the run's task"),
            ("split", TEXT, "split; for dev, the value is that of the selected round"),
            ("measure", TEXT, "measure, or score for the task's own score (0-100)"),
            ("value", NUMBER, "value in the measure's own unit"),
            ("instances", WHOLE, "number of evaluated instances"),
            ("path", TEXT, "folder of the node, relative to the results folder"),
        ),
        "resources": RESOURCES,
        "training_rounds": ROUNDS,
        "missing": (
            *run,
            ("variant", TEXT, "selector, learner, recipe or other variant; null if there is none"),
            ("path", TEXT, "expected path of its record, relative to the results folder"),
            ("state", TEXT, "waiting, running, failed, interrupted or damaged"),
            ("reason", TEXT, "reason why it has no result, in one line"),
            ("node", TEXT, "folder of its first unfinished node"),
            ("error", TEXT, "last line of the error, or the damage; null if there is none"),
            ("remedy", TEXT, "how to get the result"),
        ),
        "problems": (
            ("path", TEXT, "path of the record, relative to the results folder"),
            ("error", TEXT, "reason why it was left out"),
        ),
    }


def build_common_frames(about: Sequence[str]) -> tuple[Frame, ...]:
    """Return the declarations of all frames in ``frames.COMMON``.

    Args:
        about: keys of ``Run.about`` that identify a run.
    """
    make = {
        "runs": _make_run_rows,
        "scores": _make_score_rows,
        "resources": _make_resource_rows,
        "training_rounds": _make_round_rows,
        "missing": _make_missing_rows,
        "problems": _make_problem_rows,
    }
    columns = build_common_columns(about)
    return tuple(Frame(name, columns[name], partial(make[name], about)) for name in COMMON)


def _list_run_values(run: Run, about: Sequence[str]) -> Values:
    values = (run.about.get(key) for key in about)
    return run.method, run.model, run.seed, *(_to_text(value) for value in values)


def _make_run_rows(about: Sequence[str], frames: Frames) -> Iterator[Values]:
    collected = frames.collected
    for run in collected.runs:
        yield *_list_run_values(run, about), *_summarise_records(collected, run)


def _make_score_rows(about: Sequence[str], frames: Frames) -> Iterator[Values]:
    collected = frames.collected
    for run in collected.runs:
        for node in run.result_nodes:
            for row in _make_node_scores(collected, node):
                yield *_list_run_values(run, about), *row


def _make_resource_rows(about: Sequence[str], frames: Frames) -> Iterator[Values]:
    collected = frames.collected
    nodes = (node for node in collected.study.plan.nodes if collected.has_record(node))
    return (_make_resource_row(collected, node) for node in nodes)


def _make_round_rows(about: Sequence[str], frames: Frames) -> Iterator[Values]:
    """Yield one row per round of each finished training."""
    collected = frames.collected
    for node in collected.study.plan.nodes:
        if isinstance(node, Stage) and collected.has_record(node):
            yield from _list_rounds(collected.record(node), node)


def _list_rounds(record: Record, node: Stage) -> Iterator[Values]:
    course = record["training"]
    selection = find_selection(record, node.select_on)
    for entry, score in zip(course["rounds"], selection["scores"], strict=True):
        losses = entry["train_loss"].values()
        loss = sum(losses) / len(losses) if losses else None
        names = (node.label, node.model.name, node.seed, node.path)
        yield *names, entry["round"], loss, score, entry["round"] == selection["round"]


def _make_missing_rows(about: Sequence[str], frames: Frames) -> Iterator[Values]:
    """Yield one row per planned result without a usable record."""
    collected = frames.collected
    for hole in collected.missing:
        path = f"{hole.wanted.path}/{RECORD}"
        state = (path, hole.state, hole.reason, hole.node.path, hole.error, hole.remedy)
        yield *_list_run_values(hole.run, about), hole.run.variant or None, *state
    for node in collected.unlisted_nodes:
        yield _make_missing_node_row(collected, node, about)


def _make_problem_rows(about: Sequence[str], frames: Frames) -> Iterable[Values]:
    return frames.collected.problems


def _make_missing_node_row(collected: Collected, node: Node, about: Sequence[str]) -> Values:
    """Return the row in ``missing`` for a node without a record that is no run's result."""
    state, error = read_node_state(collected.study, node)
    dataset = node.name if isinstance(node, Data) else node.data.name
    return (
        NOUNS[type(node)],
        node.model.name if isinstance(node, Stage) else None,
        node.seed if isinstance(node, Stage | Fit) else None,
        *(dataset if key == "dataset" else None for key in about),
        node.learner if isinstance(node, Fit) else node.recipe if isinstance(node, Data) else None,
        *(f"{node.path}/{RECORD}", state, error or NO_RECORD),
        *(node.path, error, "run snakemake again"),
    )


def _summarise_records(collected: Collected, run: Run) -> Values:
    used = [node for node in add_ancestors(run.result_nodes) if collected.has_record(node)]
    records = [f"{node.path}/{RECORD}" for node in run.result_nodes]
    return records, sum(compute_hours(collected.record(node)) for node in used)


def _make_node_scores(collected: Collected, node: Node) -> Iterator[Values]:
    """Yield the measures of a run's node, including dev measures for a training."""
    record = collected.record(node)
    split = node.split if isinstance(node, Evaluation) else "test"
    for task, result in record["results"].items():
        if isinstance(node, Stage) and task not in node.tested:
            continue  # tested with a round of another run
        measures = dict(result["measures"])
        if result["score"] is not None:
            measures["score"] = result["score"]
        for measure, value in measures.items():
            yield task, split, measure, value, result["instances"], node.path
    if isinstance(node, Stage):
        for task, measured in get_selected_round(record, node.select_on).dev.items():
            size = record["sizes"][task]["dev"]
            for measure, value in measured.items():
                yield task, "dev", measure, value, size, node.path


def _make_resource_row(collected: Collected, node: Node) -> Values:
    record = collected.record(node)
    provenance = record["provenance"]
    cost: Mapping[str, Any] = provenance.get("training") or {}
    counts: Mapping[str, Any] = cost.get("parameters") or {}
    host = provenance.get("host")
    rounds = None
    if isinstance(node, Stage):
        rounds = sum(entry["round"] > 0 for entry in record["training"]["rounds"])
    return (
        record["node"]["kind"],
        node.label,
        node.model.name if isinstance(node, Stage) else None,
        node.seed if isinstance(node, Stage | Fit) else None,
        node.path,
        compute_hours(record),
        rounds,
        *(cost.get(key) for key in ("tokens", "samples_per_second")),
        *(cost.get(key) for key in ("peak_memory_mb", "peak_gpu_memory_mb")),
        *(counts.get(key) for key in ("all", "trained")),
        describe_hardware(record) if host else None,
        host["precision"] if host else None,
        provenance["commit"],
        provenance["recipe"],
    )


def _to_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    parts: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return "+".join(map(str, parts))


def build_metadata(
    collected: Collected,
    *,
    order: Mapping[str, Sequence[str]] | None = None,
    facts: Mapping[str, str] | None = None,
    substitutes: Mapping[str, str] | None = None,
    cuts: str = "",
    planned: Collection[tuple[str, int]] = (),
    shorts: Mapping[str, str] | None = None,
) -> Metadata:
    """Return the metadata of the study's tables.

    Args:
        collected: the study's records, which say whether dialogues are synthetic or subsampled.
        order: kind of name → names in the study's order.
        facts: further facts for captions.
        substitutes: input of the paper → its substitute; None to take them from the records.
        cuts: limits that are not in the identity of any record.
        planned: limits of records that are sizes of the study's own data.
        shorts: task → short name.
    """
    config, synthetic = collected.study.config, collected.synthetic
    named = collected.substitutes if substitutes is None else substitutes
    generated = any(synthetic.values())
    limits = describe_record_limits(collected.records.values(), planned)
    return Metadata(
        config.study,
        config.digest,
        generated,
        len(collected.records),
        shorts=shorts or {},
        order=order or {},
        real=sorted(name for name, is_synthetic in synthetic.items() if not is_synthetic)
        if generated
        else [],
        facts={
            **{f"substitute: {name}": text for name, text in named.items()},
            **_build_labs_mark(collected),
            **_build_one_run_mark(collected),
            **({MISSING: missing} if (missing := collected.describe_missing()) else {}),
            **(facts or {}),
        },
        cuts=", ".join(filter(None, (limits, cuts))),
    )


def _build_labs_mark(collected: Collected) -> dict[str, str]:
    """Return a mark for titles if several labs created the records, otherwise an empty mapping."""
    makers = Counter(
        record["provenance"].get("made_by") or "this results folder"
        for record in collected.records.values()
    )
    listed = ", ".join(f"{name} ({format_quantity(n, 'record')})" for name, n in makers.items())
    return (
        {f"mark: {len(makers)} LABS": f"records contributed by {listed}"} if len(makers) > 1 else {}
    )


def _build_one_run_mark(collected: Collected) -> dict[str, str]:
    """Return a mark for titles if the study trains with one seed, otherwise an empty mapping."""
    seeds = {run.seed for run in collected.runs if run.stages}
    if not seeds or len(seeds) > 1:
        return {}
    text = "one run per method (one seed), so variation between seeds is unknown"
    return {"mark: ONE RUN": text}


# --- limits ---


def describe_record_limits(
    records: Iterable[Record], planned: Collection[tuple[str, int]] = ()
) -> str:
    """Describe the limits that any record was computed with, such as ``limit_test 1200``.

    If a key has several values, the section of the config is added to its name.

    Args:
        records: the records.
        planned: keys with values that are sizes of the study's own data and not limits.
    """
    limits = _merge_equal_limits(
        (tuple(key.split(".")), limit)
        for record in records
        for key, limit in record["provenance"].get("cuts", {}).items()
        if (key.rpartition(".")[2], limit) not in planned
    )
    values = Counter(key for key, _ in {(path[-1], limit) for path, limit in limits})
    named = {
        (path[-1], ".".join(path[-2:] if values[path[-1]] > 1 else path[-1:]), limit)
        for path, limit in limits
    }
    order = {f"limit_{split}": number for number, split in enumerate(SPLITS)}
    ordered = sorted(named, key=lambda limit: (order.get(limit[0], len(order)), limit))
    return ", ".join(f"{name} {limit}" for _, name, limit in ordered)


def _merge_equal_limits(limits: Iterable[_Limit]) -> set[_Limit]:
    """Merge limits with equal key and value into one key path, preferably in ``training``.

    References repeat the limits of the trainings under keys of their own.
    """
    named: dict[tuple[str, int], tuple[str, ...]] = {}
    for path, limit in sorted(limits, key=lambda item: (item[0][-2:-1] != ("training",), item)):
        shown = tuple(_SECTIONS.get(part, part) for part in path)
        named.setdefault((path[-1], limit), shown)
    return {(path, limit) for (_, limit), path in named.items()}
