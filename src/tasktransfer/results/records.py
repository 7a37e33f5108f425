"""Building, validating, writing and reading records (``metrics.json``), one per node.

A record describes its node but no run: the plan says which runs end with a node. The schema is in
``schema``, and records of any other schema are rejected. Reading thousands of records needs neither
torch nor pandas.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Stage
from tasktransfer.core.validation import find_first_problem
from tasktransfer.data.prepared import get_instances_folder_name, has_generated_dialogues
from tasktransfer.errors import RecordError, describe_wrong_value
from tasktransfer.files import json_text, replace_file
from tasktransfer.results.artefacts import Artefact
from tasktransfer.results.contradictions import find_contradictions
from tasktransfer.results.schema import (
    PROJECTION,
    SCHEMA_VERSION,
    Provenance,
    Record,
    RowsFile,
    Selected,
    Sizes,
    TaskResult,
    TrainingResult,
    get_record_validator,
    rename_old_keys,
)
from tasktransfer.tasks.card import SPLITS

REMEDY = "Run the study again with snakemake, which sets the file aside and computes the node again"
"""Remedy for a damaged record or damaged rows (see ``damage``)."""

NOUNS: dict[type[Node], str] = {
    Data: "data",
    Stage: "stage",
    Fit: "fit",
    Evaluation: "evaluation",
}
"""Kind of node → its name in records, commands and JSON."""
PLURALS = {
    "data": "derived datasets",
    "stage": "training runs",
    "fit": "fits",
    "evaluation": "evaluations",
}
"""Name of a kind of node → readable plural."""


# --- building -----------------------------------------------------------------------------------


def build_node_record(
    node: Node,
    *,
    synthetic: bool,
    sizes: Mapping[str, Sizes],
    results: Mapping[str, TaskResult],
    rows: RowsFile | None,
    provenance: Provenance,
    training: TrainingResult | None = None,
    report: Mapping[str, Mapping[str, float]] | None = None,
    artefacts: Mapping[str, Artefact] | None = None,
) -> Record:
    """Build a node's record, which ``write_record`` validates.

    Args:
        node: node that provides kind, data and identity.
        synthetic: whether the dialogues are generated.
        sizes: task → instances per split.
        results: evaluated task → result.
        rows: the rows file beside the record; None if no task is evaluated.
        provenance: provenance of the numbers.
        training: the rounds, for a stage.
        report: counts from the recipe, for derived data.
        artefacts: the files that other nodes read.
    """
    data = node if isinstance(node, Data) else node.data
    record: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "node": describe_node(node),
        "synthetic": synthetic,
        "data_revision": data.revision,
        "few_sample": bool(data.settings.get("few_sample", False)),
        "sizes": dict(sizes),
        **({"training": training} if training else {}),
        "results": dict(results),
        **({"report": report} if report else {}),
        "rows": rows,
        **({"artefacts": dict(artefacts)} if artefacts else {}),
        "provenance": provenance,
    }
    return cast(Record, record)


def describe_node(node: Node) -> Any:
    """Return the section ``node`` of a record: kind, digest, label, dataset and identity.

    For a training, it also has model, family, tasks, seed and parents.
    """
    identity: dict[str, Any] = {
        "kind": NOUNS[type(node)],
        "digest": node.digest,
        "label": node.label,
        "dataset": node.name if isinstance(node, Data) else node.data.name,
        "identity": node.identity,
    }
    if not isinstance(node, Stage):
        return identity
    return identity | {
        "step": node.kind,
        "model": node.model.name,
        "family": node.model.family,
        "train_tasks": list(node.train_tasks),
        "seed": node.seed,
        "parents": [parent.digest for parent in node.parents],
    }


# --- parts --------------------------------------------------------------------------------------


class SelectedRound(NamedTuple):
    """Selected round of a training.

    ``number``: number of the round. ``dev_score``: its selection score. ``dev``: selecting task →
    measure → value on the dev split.
    """

    number: int
    dev_score: float
    dev: Mapping[str, Mapping[str, float]]


def get_selected_round(record: Record, select_on: Sequence[str]) -> SelectedRound:
    """Return the round that a training selected on the dev splits of given tasks.

    Raises:
        RecordError: the training has no selection on these tasks.
    """
    rounds = record["training"]["rounds"]
    selection = find_selection(record, select_on)
    best = rounds[selection["round"] - rounds[0]["round"]]
    dev = {task: best["dev"][task] for task in select_on if task in best["dev"]}
    return SelectedRound(best["round"], selection["dev_score"], dev)


def find_selection(record: Record, select_on: Sequence[str]) -> Selected:
    """Find a training's selection on the dev splits of given tasks.

    Raises:
        RecordError: the training has no selection on these tasks.
    """
    for selection in record["training"]["selections"]:
        if tuple(selection["select_on"]) == tuple(select_on):
            return selection
    raise RecordError(
        f"{record['node']['label']}: The best round was selected on "
        f"{', '.join('+'.join(tasks) for tasks in list_selections(record))}, but it must be "
        f"selected on {'+'.join(select_on)}."
    )


def list_selections(record: Record) -> list[tuple[str, ...]]:
    """Return the selecting tasks of each selected round in a training's record."""
    return [tuple(selection["select_on"]) for selection in record["training"]["selections"]]


def describe_unrecorded_selections(stage: Stage, record: Record) -> str | None:
    """Describe a stage's selections that are missing from its record, or return None."""
    return describe_missing_selections(stage, list_selections(record))


def describe_missing_selections(stage: Stage, made: Collection[tuple[str, ...]]) -> str | None:
    """Describe a stage's selections that are missing from ``made``, or return None.

    Args:
        made: tasks of each selection that the training made.
    """
    lacks = [
        "+".join(selection.tasks) for selection in stage.selections if selection.tasks not in made
    ]
    return f"no round was selected on {', '.join(lacks)}" if lacks else None


def list_parts(record: Record) -> list[str]:
    """Return the files and folders that a node always writes in addition to record and rows.

    A fit writes one folder of classifiers per task, derived data a cache of instances. A training's
    weights may be deleted later, so they are not listed.
    """
    return _list_node_files(record["node"], record["sizes"])


def list_written_parts(node: Mapping[str, Any], tasks: Iterable[str]) -> list[str]:
    """Return the files and folders of a newly computed node, including optional ones.

    Args:
        node: the node's description (``describe_node``).
        tasks: the node's tasks.
    """
    return [*_list_node_files(node, tasks), *([PROJECTION] if node["kind"] == "fit" else [])]


def _list_node_files(node: Mapping[str, Any], tasks: Iterable[str]) -> list[str]:
    if node["kind"] == "fit":
        return [str(task) for task in node["identity"]["tasks"]]
    if node["kind"] == "data":
        splits = (f"{task}-{split}.arrow" for task in tasks for split in SPLITS)
        return [*splits, "dialogues.arrow", "manifest.json"]
    return []


def select_comparable_parts(record: Record) -> dict[str, Any]:
    """Return the parts of a record that must agree between two computations of a node.

    It leaves out provenance, the seconds of each round, and the kept files, since one study may
    keep its weights and another may not.
    """
    left_out = ("provenance", "artefacts")
    kept: dict[str, Any] = {key: value for key, value in record.items() if key not in left_out}
    if "training" in kept:
        rounds = [
            {key: value for key, value in entry.items() if key != "seconds"}
            for entry in record["training"]["rounds"]
        ]
        kept["training"] = {**record["training"], "rounds": rounds}
    return kept


# --- files --------------------------------------------------------------------------------------


def write_record(path: Path, record: Record) -> None:
    """Validate a record and write it atomically.

    Raises:
        RecordError: a key is missing, unknown, of the wrong type, NaN or infinite, or the record
            contradicts itself. In this case nothing is written.
    """
    _validate(path, record)
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with replace_file(path) as part, part.open("w", encoding="utf-8") as stream:
        stream.write(text)


def read_record(path: Path) -> Record:
    """Read and validate a record.

    Raises:
        RecordError: the file is missing, is not valid JSON (truncated), has another schema version,
            has a missing, unknown, mistyped, NaN or infinite value, or contradicts itself. The
            message names file, key and value.
    """
    try:
        return parse_record(path, json_text.read_bytes(path))
    except OSError as error:
        raise RecordError(
            f"{path}: The record cannot be read ({error.strerror}). Check the permissions of the "
            "file."
        ) from error
    except ValueError as error:
        raise RecordError(
            f"{path}: The file is not a record ({error}), so it is damaged. {REMEDY}."
        ) from error
    except RecordError as error:
        stop = "" if str(error).endswith((".", "?")) else "."
        raise RecordError(f"{error}{stop} {REMEDY}.") from error


def parse_record(path: Path, content: bytes) -> Record:
    """Parse and validate a record from the bytes of its file.

    Raises:
        RecordError: as ``read_record``, but without the remedy.
    """
    try:
        value = json_text.loads(content)
    except ValueError as error:
        raise RecordError(f"{path}: The record is not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise RecordError(f"{path}: {describe_wrong_value(value, 'an object')}")
    schema = value.get("schema")
    if schema != SCHEMA_VERSION or isinstance(schema, bool):
        raise RecordError(
            f"{path}: The record has schema {schema!r} instead of {SCHEMA_VERSION}, because "
            "another version of tasktransfer wrote it"
        )
    rename_old_keys(value)
    _validate(path, value)
    return cast(Record, value)


def build_record_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a record.

    Only ``read_record`` checks what the schema cannot express: that sums, digests, best rounds and
    scores agree with the rest of the record.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **get_record_validator().json_schema(),
        "title": "tasktransfer record",
    }


# --- checks -------------------------------------------------------------------------------------


def _validate(path: Path, value: Any) -> None:
    """Check the types of a record, then the consistency between its parts."""
    try:
        problem = find_first_problem(get_record_validator(), value) or next(
            find_contradictions(value), None
        )
    except RecursionError:  # the node's identity may have any depth
        problem = "The record is nested too deeply"
    if problem:
        raise RecordError(f"{path}: {problem}")


if __name__ == "__main__":
    print(json.dumps(build_record_schema(), indent=2))


# --- prepared data ------------------------------------------------------------------------------

Says = Callable[[Path], bool | None]


def correct_synthetic_flag(
    record: Record, results: Path, says: Says = has_generated_dialogues
) -> Record:
    """Return a record with ``synthetic`` corrected from its prepared data, if these exist.

    Older trainings recorded a generated world as real if it was given as a folder. ``says`` may be
    a cached ``has_generated_dialogues``.
    """
    dataset, revision = record["node"]["dataset"], record["data_revision"]
    folder = get_instances_folder_name(results, dataset, revision, few_sample=record["few_sample"])
    synthetic = says(Path(folder))
    if synthetic is None or synthetic == record["synthetic"]:
        return record
    return {**record, "synthetic": synthetic}
