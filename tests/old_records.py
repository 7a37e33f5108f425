"""Records of schema 1, as they were written before records described stages alone.

A record named the one run that it gave the score of. Nothing in the package writes them any more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tasktransfer.designs.transfer.runs import TransferRun, transfer_runs
from tasktransfer.results.records import Record, read_record
from tasktransfer.results.study import Study


def make_old(study: Study) -> None:
    """Every record of a finished transfer study as schema 1."""
    runs = {run.scored.digest: run for run in reversed(transfer_runs(study.plan))}
    for stage in study.plan.stages:
        path = Path(study.record(stage))
        path.write_text(json.dumps(as_schema_1(read_record(path), runs.get(stage.digest))))


def as_schema_1(record: Record, run: TransferRun | None) -> dict[str, Any]:
    """What schema 1 said of a stage, and of a run that it gives the score of."""
    old: dict[str, Any] = {**record, "schema": 1, "run": run and run.identity}
    stage = dict(record["stage"])
    old["stage"] = {**stage, "parent": next(iter(record["stage"]["parents"]), None)}
    del old["stage"]["parents"]
    old["score"] = record["test"][run.target]["score"] if run else None
    old["best_epoch"] = old.pop("best_round")
    epochs = [dict(one) for one in old.pop("rounds")]
    old["epochs"] = [{"epoch": epoch.pop("round"), **epoch} for epoch in epochs]
    return old
