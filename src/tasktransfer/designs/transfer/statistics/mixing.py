"""Weights that a bandit gave to several sources, over the rounds of each training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.algorithms import BANDITS
from tasktransfer.designs.transfer.runs import transfer_runs
from tasktransfer.results.collect import gather
from tasktransfer.results.metadata import Metadata
from tasktransfer.results.store import Columns, build_frame, write_frame
from tasktransfer.results.study import Study

MIXING: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("model", pa.string(), "model, by its name in the study"),
    ("algorithm", pa.string(), "transfer algorithm"),
    ("target", pa.string(), "target task"),
    ("seed", pa.int64(), "seed"),
    ("round", pa.int64(), "round of the training, from 1"),
    ("source", pa.string(), "one of the sources"),
    ("weight", pa.float64(), "mean sampling probability of the source over the round's updates"),
)


def mixes(run: Run) -> bool:
    """Return whether the run has a bandit with several sources to choose from."""
    return run.method in BANDITS and len(run.about["sources"]) > 1


def write_mixing(study: Study, metadata: Metadata) -> None:
    """Write ``tables/mixing.parquet`` from the records."""
    runs = [run for run in transfer_runs(study.plan) if mixes(run)]
    frame = build_frame(_collect_weights(study, runs), MIXING)
    write_frame(Path(study.tables, "mixing.parquet"), frame, MIXING, metadata)


def _collect_weights(study: Study, runs: list[Run]) -> Iterator[tuple[Any, ...]]:
    collected = gather(study, runs)
    for run in collected.runs:
        record = collected.record(run.stages[-1])
        names = (run.about["dataset"], run.model, run.method, run.about["target"], run.seed)
        for of_round in record["training"]["rounds"]:
            for source, weight in of_round.get("mixing", {}).items():
                yield (*names, of_round["round"], source, weight)
