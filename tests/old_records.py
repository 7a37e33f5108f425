"""Records and rows of older schemas, which the package no longer writes.

In schema 2, trainings had one form (``stage``, ``test``, ``predictions``) and other nodes another.
In schema 3, a training had one selection, which its identity named.
"""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tasktransfer.core.former import Former
from tasktransfer.core.nodes import SHORT, Node, Stage
from tasktransfer.results.old_records import COST
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import read_record_rows, select_task_rows, write_table
from tasktransfer.results.schema import Record
from tasktransfer.results.study import Study

OF_PREDICTIONS = ["index", "task", "instance_id", "cluster", "prediction", "gold", "score"]
OF_ROWS = [
    *("task", "instance_id", "cluster", "prediction", "gold"),
    *("predicted_value", "gold_value", "score"),
]


def make_old(study: Study) -> None:
    """Convert all records of a finished study and their rows to schema 2.

    Trainings with several selections are skipped, because schema 2 has none.
    """
    for node in study.plan.nodes:
        path = Path(study.record(node))
        record = read_record(path)
        if isinstance(node, Stage) and node.also_selected:
            continue
        if record["rows"] is not None:
            record["rows"] = old_rows(path.parent, record)
        path.write_text(json.dumps(as_schema_2(record)))


def old_rows(folder: Path, record: Record) -> Any:
    """Replace rows by a file of the old form, and return its entry for the record."""
    assert record["rows"] is not None
    new = folder / record["rows"]["file"]
    table, stage = pq.read_table(new), record["node"]["kind"] == "stage"
    file = folder / ("predictions.parquet" if stage else "rows.parquet")
    footer = {"schema": "2", "stage" if stage else "node": record["node"]["digest"]}
    table = table.select(OF_PREDICTIONS if stage else OF_ROWS)
    if stage:
        names = ["dialogue_id" if name == "cluster" else name for name in table.schema.names]
        table = table.rename_columns(names)
    new.unlink()
    pq.write_table(table.replace_schema_metadata(footer), file)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"file": file.name, "rows": table.num_rows, "sha256": sha256}


def write_former(study: Study, folder: Path) -> int:
    """Write a finished study in the form of the release before schema 4.

    It has schema 3, former digests, and one training per selection. Returns the number of records.
    """
    former, written = Former(), 0
    for node in study.plan.nodes:
        views = [node]
        if isinstance(node, Stage):
            views = [replace(node, selection=s, also_selected=()) for s in node.selections]
        for view in views:
            _write_former(former, study, view, folder)
        written += len(views)
    return written


def _write_former(former: Former, study: Study, view: Node, folder: Path) -> None:
    record, digest = read_record(Path(study.record(view))), former.digest(view)
    path = folder / Path(view.path).with_name(
        view.path.rpartition("/")[2][:-SHORT] + digest[:SHORT]
    )
    path.mkdir(parents=True)
    rows = None if record["rows"] is None else read_record_rows(Path(study.record(view)))
    if isinstance(view, Stage):
        course, (tasks,) = record["training"], [view.select_on]
        own = [one for one in course["selections"] if tuple(one["select_on"]) == tasks]
        rounds = [{**one, "dev": {t: one["dev"][t] for t in tasks}} for one in course["rounds"]]
        record["training"] = {"rounds": rounds, "selections": own}  # type: ignore[typeddict-item]
        record["results"] = {t: record["results"][t] for t in view.tested}
        rows = select_task_rows(rows, view.tested[0]) if rows is not None and view.tested else None
        record["rows"] = None
    if rows is not None:
        dataset = record["node"]["dataset"]
        record["rows"] = write_table(path, rows, digest=digest, dataset=dataset)
    old = as_schema_3(record)
    old["node"] |= {"digest": digest, "identity": former.identity(view)}
    if isinstance(view, Stage):
        old["node"]["parents"] = [former.digest(parent) for parent in view.parents]
    (path / "metrics.json").write_text(json.dumps(old))


def as_schema_3(record: Record) -> dict[str, Any]:
    """Convert a record to schema 3, in which a training had one selection."""
    old: dict[str, Any] = copy.deepcopy({**record, "schema": 3})
    if old["node"]["kind"] == "stage":
        rounds = old["training"]["rounds"]
        (chosen,) = old["training"]["selections"]
        for one, score in zip(rounds, chosen["scores"], strict=True):
            one["selection_score"] = score
        best = {"best_round": chosen["round"], "dev_score": chosen["dev_score"]}
        old["training"] = {"rounds": rounds, **best}
        old["node"]["select_on"] = chosen["select_on"]
    return old


def as_schema_2(record: Record) -> dict[str, Any]:
    """Convert a record to schema 2."""
    old = as_schema_3(record)
    node, results = old.pop("node"), old.pop("results")
    old["provenance"].pop("cuts", None)
    if node["kind"] == "stage":
        del node["kind"]
        stage = {"kind": node.pop("step"), **node}
        test = {
            task: {("metrics" if key == "measures" else key): value for key, value in one.items()}
            for task, one in results.items()
        }
        cost = old["provenance"].pop("training")
        assert {*cost} <= {*COST}
        old["provenance"] |= cost
        predictions = old.pop("rows")
        return {
            **old | old.pop("training"),
            "schema": 2,
            "stage": stage,
            "test": test,
            "predictions": predictions,
        }
    sizes, report = old.pop("sizes"), old.pop("report", {})
    del old["data_revision"], old["few_sample"], old["provenance"]["recipe"]
    old["provenance"]["seconds"] = old["provenance"]["seconds"]["total"]
    derived = node["kind"] == "data"
    counts = {task: size.get("train", 0) for task, size in sizes.items()} if derived else {}
    return {
        **old,
        "schema": 2,
        "node": node,
        "instances": counts or {task: one["instances"] for task, one in results.items()},
        "measures": report if derived else {task: one["measures"] for task, one in results.items()},
    }
