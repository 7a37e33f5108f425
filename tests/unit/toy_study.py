"""A finished study of the toy design: every kind of node with its record, and nothing computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from finished_stages import finish

from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Stage
from tasktransfer.designs import open_study
from tasktransfer.results.artefacts import checksums
from tasktransfer.results.node_records import (
    NodeRecord,
    Row,
    node_identity,
    parts_of,
    write_node_record,
    write_rows,
)
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
    """Leave what a node's job would; gives its folder."""
    if isinstance(node, Stage):
        return finish(study, node)
    folder = Path(study.folder(node))
    folder.mkdir(parents=True, exist_ok=True)
    record = _record(study, node, value)
    for part in parts_of(record):
        if isinstance(node, Fit):
            (folder / part).mkdir()
            (folder / part / "weights").write_text(part)
        else:
            (folder / part).write_text(part)
    if not isinstance(node, Data):
        rows = [Row(task, "1", "dialogue 1", ("a",), ("b",), score=0.0) for task in _tasks(node)]
        record["rows"] = write_rows(folder, rows, node.digest)
    if left := checksums(folder, parts_of(record)):
        record["artefacts"] = left
    (folder / "job.log").write_text("made\n")
    write_node_record(folder, record)
    return folder


def _tasks(node: Data | Fit | Evaluation) -> tuple[str, ...]:
    if isinstance(node, Data):
        return ("topic_classification",)
    return node.tasks if isinstance(node, Fit) else (node.task,)


def _record(study: Study, node: Data | Fit | Evaluation, value: float) -> NodeRecord:
    measures = {} if isinstance(node, Data) else {"spearman": value}
    return {
        "schema": 2,
        "node": node_identity(node),
        "synthetic": True,
        "instances": dict.fromkeys(_tasks(node), 1),
        "measures": {task: measures for task in _tasks(node) if measures},
        "rows": None,
        "provenance": {
            "tasktransfer": "0.1.0",
            "versions": {"python": "3.11"},
            "commit": None,
            "dirty": None,
            "config_digest": study.config.digest,
            "study": study.config.study,
            "started": "2024-01-02T03:04:05Z",
            "seconds": 2.0,
            "notes": [],
        },
    }
