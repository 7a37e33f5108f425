"""Weights that a bandit gave to several sources, over the rounds of each training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.algorithms import BANDITS
from tasktransfer.results.frames import Frames


def uses_bandit(run: Run) -> bool:
    """Return whether a bandit mixes several sources in the run."""
    return run.method in BANDITS and len(run.about["sources"]) > 1


def make_mixing(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``mixing``: the weights in each round of a training."""
    collected = frames.collected
    for run in collected.runs:
        if not uses_bandit(run):
            continue
        record = collected.record(run.stages[-1])
        names = (run.about["dataset"], run.model, run.method, run.about["target"], run.seed)
        for entry in record["training"]["rounds"]:
            for source, weight in entry.get("mixing", {}).items():
                yield (*names, entry["round"], source, weight)
