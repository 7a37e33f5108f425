"""Damages and edits of records for the contract's tests; no other module edits records.

An edited record still passes all checks, unless it is meant to be damaged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.core.fidelity import Fidelity
from tasktransfer.core.nodes import Node, Stage
from tasktransfer.results.damage import Artefacts, find_damage
from tasktransfer.results.records import NOUNS, describe_node
from tasktransfer.results.rows import Row, write_rows
from tasktransfer.results.state import RECORD, ROWS
from tasktransfer.results.study import Study


def nodes_of(study: Study, kind: str) -> list[Node]:
    """Return the study's nodes of a kind: stage, fit, data or evaluation."""
    return [node for node in study.plan.nodes if NOUNS[type(node)] == kind]


def read(study: Study, node: Node) -> dict[str, Any]:
    """Return the JSON of a node's record."""
    record: dict[str, Any] = json.loads(Path(study.get_record_path(node)).read_text())
    return record


def write(study: Study, node: Node, record: dict[str, Any]) -> None:
    Path(study.get_record_path(node)).write_text(json.dumps(record))
    problem = problem_of(study, node)
    assert problem is None, problem


def problem_of(study: Study, node: Node, content: Artefacts = "young") -> str | None:
    """Return the problem found in a node's folder."""
    return find_damage(Path(study.get_node_folder(node)), node.digest, content)


# --- damage -------------------------------------------------------------------------------------


def cut_off(study: Study, node: Node) -> None:
    """Truncate the record in its middle."""
    file = Path(study.get_record_path(node))
    text = file.read_text()
    file.write_text(text[: len(text) // 2])


def other_rows(study: Study, node: Node) -> None:
    """Replace the file of predictions or rows by another valid one."""
    file = rows_of(study, node)
    table = pq.read_table(file)
    answers = table["prediction"].combine_chunks()
    turned = answers.take(pa.array(range(len(answers) - 1, -1, -1)))
    place = table.schema.get_field_index("prediction")
    field = table.schema.field(place)
    pq.write_table(table.set_column(place, field, turned), file, compression="gzip")


def folder_of(study: Study, node: Node) -> Path:
    return Path(study.get_node_folder(node))


def has_rows(study: Study, node: Node) -> bool:
    return rows_of(study, node).exists()


def rows_of(study: Study, node: Node) -> Path:
    return Path(study.get_node_folder(node), ROWS)


def other_file(study: Study, node: Node) -> None:
    """Change one byte of a file beside the record."""
    folder = Path(study.get_node_folder(node))
    name = next(name for name in read(study, node)["artefacts"] if (folder / name).stat().st_size)
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(bytes(content))


DAMAGES = {"cut off": cut_off, "other rows": other_rows, "other file": other_file}
REASONS = {"cut off": "not valid JSON", "other rows": "SHA-256", "other file": "SHA-256"}


def remove(study: Study, node: Node) -> None:
    """Restore the state before the node was started."""
    folder = Path(study.get_node_folder(node))
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    folder.rmdir()


def fail(study: Study, node: Node, error: str) -> None:
    """Produce the state after the node's job ended with an error."""
    end(study, node, f"working\nerror: {error}\n")


def end(study: Study, node: Node, log: str) -> None:
    """Produce the state after the node's job ended with this log and without a record."""
    folder = Path(study.get_node_folder(node))
    folder.mkdir(parents=True, exist_ok=True)
    for name in (RECORD, ROWS):
        (folder / name).unlink(missing_ok=True)
    (folder / ("train.log" if isinstance(node, Stage) else "job.log")).write_text(log)


# --- incompatible records -------------------------------------------------------------------------


def computed_on_a_model(study: Study, kind: str) -> list[Node]:
    """Return the nodes of a kind whose records contain machine and precision."""
    return [n for n in nodes_of(study, kind) if "host" in read(study, n)["provenance"]]


def in_precision(study: Study, node: Node, precision: str) -> None:
    record = read(study, node)
    record["provenance"]["host"]["precision"] = precision
    write(study, node, record)


def called_real(study: Study, node: Node) -> None:
    """Mark the record's dialogues as real."""
    record = read(study, node)
    assert record["synthetic"] is True
    record["synthetic"] = False
    write(study, node, record)


LIKE_NONE = Fidelity(backbone_dropout=False, multi_label="softmax")
OTHERWISE: dict[str, Callable[[Stage], Stage]] = {
    "data revision": lambda stage: replace(stage, data=replace(stage.data, revision="other")),
    "weights": lambda stage: replace(stage, model=replace(stage.model, weights="other")),
    "fidelity": lambda stage: replace(stage, training=replace(stage.training, fidelity=LIKE_NONE)),
    "recipe": lambda stage: replace(stage, recipe=stage.recipe + 1),
}
"""Property that must be equal → function that returns a stage differing only in it."""


def of_another(study: Study, stage: Stage, thing: str) -> Stage:
    """Write another stage's record into a stage's folder, and return the other stage."""
    other = OTHERWISE[thing](stage)
    assert other.digest != stage.digest
    record = read(study, stage)
    record["node"] = describe_node(other)
    record["data_revision"] = other.data.revision
    record["provenance"]["recipe"] = other.recipe
    Path(study.get_record_path(stage)).write_text(json.dumps(record))
    return other


# --- other test scores ----------------------------------------------------------------------------


def exchange_tests(study: Study, kind: str) -> int:
    """Exchange the test scores of trainings, fits or evaluations of the same tasks.

    Returns the number of nodes with exchanged scores.
    """
    groups: dict[Any, list[Node]] = {}
    for node in nodes_of(study, kind):
        record = read(study, node)
        if tested := _tested(node, record):
            groups.setdefault(json.dumps(tested), []).append(node)
    count = 0
    for nodes in groups.values():
        told = [(read(study, node), _rows(study, node)) for node in nodes]
        for node, (record, rows) in zip(nodes, reversed(told), strict=True):
            count += read(study, node) != record
            _take_tests(study, node, record, rows)
    return count


def _tested(node: Node, record: dict[str, Any]) -> Any:
    results = record["results"]
    if isinstance(node, Stage) or not results:
        return sorted(results)
    settings = node.identity["settings"]  # other settings define another measure
    names = {name for result in results.values() for name in result["measures"]}
    return [sorted(results)[0], sorted(names), settings]


def _rows(study: Study, node: Node) -> list[dict[str, Any]]:
    file = rows_of(study, node)
    return pq.read_table(file).to_pylist() if file.exists() else []


def _take_tests(
    study: Study, node: Node, other: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    record, folder = read(study, node), Path(study.get_node_folder(node))
    record["results"] = other["results"]
    if rows:
        answers = [Row(**row) for row in rows]
        dataset = record["node"]["dataset"]
        record["rows"] = write_rows(folder, answers, digest=node.digest, dataset=dataset)
    write(study, node, record)
