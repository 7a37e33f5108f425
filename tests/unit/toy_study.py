"""A finished study of the toy design with records of every kind of node, without computation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import yaml

from constructed_records import make_provenance
from finished_stages import finish
from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Stage
from tasktransfer.designs import open_study
from tasktransfer.results.artefacts import compute_checksums
from tasktransfer.results.records import build_node_record, list_parts, write_record
from tasktransfer.results.rows import Row, write_rows
from tasktransfer.results.schema import Provenance, Record, TaskResult
from tasktransfer.results.study import Study

DESIGN = Path(__file__).resolve().parents[1] / "toy_design.py"
STUDY: dict[str, Any] = {
    "study": "toy",
    "design": "toy",
    "plugins": [str(DESIGN)],
    "data": {"tiny_world": {"dialogues": 120}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    "seeds": 2,
}


def opened(name: str = "study.yaml", **keys: Any) -> Study:
    Path(name).write_text(yaml.safe_dump(STUDY | keys))
    return open_study(name)


def finish_all(study: Study) -> None:
    for node in study.plan.nodes:
        finish_node(study, node)


def finish_node(study: Study, node: Node, *, value: float = 0.25) -> Path:
    """Write the files of a node's job, and return its folder."""
    if isinstance(node, Stage):
        return finish(study, node, measured=True)
    folder = Path(study.get_node_folder(node))
    folder.mkdir(parents=True, exist_ok=True)
    record = _record(study, node, value)
    for part in list_parts(record):
        if isinstance(node, Fit):
            (folder / part).mkdir()
            (folder / part / "weights").write_text(part)
        else:
            (folder / part).write_text(part)
    if not isinstance(node, Data):
        rows = [Row(0, task, "1", ("a",), ("b",), 0.0, "dialogue 1") for task in _tasks(node)]
        record["rows"] = write_rows(folder, rows, digest=node.digest, dataset=node.data.name)
    if left := compute_checksums(folder, list_parts(record)):
        record["artefacts"] = left
    (folder / "job.log").write_text("made\n")
    write_record(folder / "metrics.json", record)
    return folder


def _tasks(node: Data | Fit | Evaluation) -> tuple[str, ...]:
    if isinstance(node, Data):
        return ("topic_classification",)
    return node.tasks if isinstance(node, Fit) else (node.task,)


def _record(study: Study, node: Data | Fit | Evaluation, value: float) -> Record:
    results: dict[str, TaskResult] = {}
    for task in () if isinstance(node, Data) else _tasks(node):
        results[task] = {"measures": {"spearman": value}, "score": None, "instances": 1}
    made = make_provenance(recipe=1, config_digest=study.config.digest, study=study.config.study)
    del made["training"]
    return build_node_record(
        node,
        synthetic=True,
        sizes={task: {"test": 1} for task in _tasks(node)},
        results=results,
        rows=None,
        provenance=cast(Provenance, made),
    )
