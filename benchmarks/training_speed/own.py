"""Measure this trainer, run like ``tasktransfer train``: read, load, train, dev, test, record.

A short stage warms up and measures the start-up; the measured stage follows in the same process.
Its times come from its record and therefore include all of the trainer's work: batching, clipping
and step of an update, the metrics, and dev after every epoch.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.training_speed.cases import BATCH, Measured, Work
from tasktransfer.core.nodes import Stage
from tasktransfer.designs import open_study
from tasktransfer.results.state import RECORD
from tasktransfer.training.attempt import train_if_needed
from tasktransfer.training.job import Job


def run(work: Work, started: float) -> Measured:
    """Measure one case."""
    # Imports torch, which the trainer would do next.
    from benchmarks.training_speed.clock import FirstUpdate, read_memory

    first = FirstUpdate(started)
    first.watch()
    _train_stage(work, "warm_up")
    record = _train_stage(work, "measured")
    made = record["provenance"]
    clock, sizes = made["seconds"], record["sizes"][work["task"]]
    epochs = work["measured"]["epochs"]
    own, gpu = read_memory()
    return Measured(
        start_up=first.required_seconds,
        train=clock["train"],
        train_samples=made["training"]["samples"],
        updates=epochs * sizes["train"] // BATCH,
        dev=clock["dev"],
        dev_samples=epochs * sizes["dev"],
        test=clock["test"],
        test_samples=sizes["test"],
        memory_mb=own,
        gpu_memory_mb=gpu,
        device=made["host"]["device"],
        precision=made["host"]["precision"],
        score=next(iter(record["results"].values()))["score"],
    )


def _train_stage(work: Work, part: str) -> dict[str, Any]:
    """Train like ``tasktransfer train``, and return the record."""
    study = open_study(work["config"], work["limits"][part])
    stage = study.get_node(work["nodes"][part])
    assert isinstance(stage, Stage)
    if work["contestant"] == "tasktransfer_float32":
        stage = replace(stage, training=replace(stage.training, precision="float32"))
    out = Path(work["scratch"]) / part
    job = Job(
        stage=stage,
        encoded=Path(work["encoded"]),
        base=work["checkpoint"],
        revision=None,
        out=out,
        save_checkpoint=False,
        threads=work["threads"],
        study=study.config.study,
        config_digest=study.config.digest,
    )
    train_if_needed(job)
    record: dict[str, Any] = json.loads((out / RECORD).read_bytes())
    shutil.rmtree(out)
    return record
