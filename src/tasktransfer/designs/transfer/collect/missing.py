"""What is not there, and why: waiting, running, failed, interrupted, damaged, or no baseline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.collect.loading import Problem
from tasktransfer.designs.transfer.collect.planned import (
    Expected,
    RunKey,
    identity,
)
from tasktransfer.designs.transfer.collect.rows import Row
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.results.finished import state_in
from tasktransfer.results.state import RECORD

NO_RECORD = "no record"
DAMAGED = "damaged record, see problems"
NO_BASELINE = "its baseline is missing"

WAITING, RUNNING, FAILED, INTERRUPTED, BROKEN, ALONE = STATES = (
    "waiting",
    "running",
    "failed",
    "interrupted",
    "damaged",
    "baseline missing",
)
"""The values of the column ``state``."""

DONE = "done"
"""The state of a training whose record is there with nothing wrong."""


_VERBS = {RUNNING: "is ", BROKEN: "is ", INTERRUPTED: "was "}


@dataclass(frozen=True, slots=True)
class Hole:
    """Why a run has no usable record. ``stage`` is the training to look at: the first of the
    run's trainings that is not done."""

    reason: str
    state: str
    stage: str | None = None
    error: str | None = None


class Holes:
    """Looks at the folders of trainings; each once, as many runs share a parent."""

    def __init__(self, root: Path, problems: Iterable[Problem]) -> None:
        self.root = root
        problems = list(problems)
        self.by_path = {problem.path: problem.error for problem in problems}
        self.by_key = {problem.key: problem.error for problem in problems if problem.key}
        self.state = cache(self._state)

    def of(self, plan: Expected) -> Hole:
        """Why a planned run has no usable record."""
        problem = self.by_path.get(plan.record) or self.by_key.get(plan.key)
        if problem:
            return Hole(DAMAGED, BROKEN, _folder(plan.record), problem)
        chain = plan.stages or ((_folder(plan.record),) if plan.record else ())
        for folder in chain:
            state, error = self.state(folder)
            if state != DONE:
                mine = folder == chain[-1]
                return Hole(_reason(state, error, None if mine else folder), state, folder, error)
        return Hole(NO_RECORD, WAITING)

    def _state(self, folder: str) -> tuple[str, str | None]:
        problem = self.by_path.get(f"{folder}/{RECORD}")
        if problem:
            return BROKEN, problem
        try:
            return state_in(self.root / folder)
        except OSError as error:
            return INTERRUPTED, f"{self.root / folder} cannot be looked at: {error.strerror}"


def _folder(record: str) -> str | None:
    return record.removesuffix(f"/{RECORD}") or None


def _reason(state: str, error: str | None, parent: str | None) -> str:
    """One line for people; ``parent`` is the folder of the stage before, where that is not done."""
    said = f"{state}: {error}" if error else state
    if parent is None:
        return NO_RECORD if state == WAITING else said
    if state == WAITING:
        return NO_RECORD
    label = parent.rpartition("/")[0].rpartition("/")[2]
    return f"its parent {label} {_VERBS.get(state, '')}{said}"


def missing(
    wanted: Sequence[Expected], runs: pd.DataFrame, deltas: pd.DataFrame, holes: Holes
) -> pd.DataFrame:
    """The table ``missing``: expected runs without a usable record, then transfer runs without a
    baseline."""
    present = set(runs[list(columns.KEYS)].itertuples(index=False, name=None))
    absent = {plan.key: (plan, holes.of(plan)) for plan in wanted if plan.key not in present}
    rows = [
        (
            *identity(plan.dataset, plan.model, plan.algorithm, plan.sources),
            *(plan.target, plan.seed, plan.record or None),
            *(hole.reason, hole.state, hole.stage, hole.error),
        )
        for plan, hole in absent.values()
    ]
    return frame("missing", [*rows, *_orphans(runs, deltas, absent)])


def _orphans(
    runs: pd.DataFrame, deltas: pd.DataFrame, absent: dict[RunKey, tuple[Expected, Hole]]
) -> list[Row]:
    """Transfer runs that are there and have nothing to be compared with."""
    paths = dict(zip(runs["digest"], runs["path"], strict=True))
    rows: list[Row] = []
    keys = columns.names("missing")[:8]
    orphans = deltas[deltas["baseline_score"].isna()]
    for *key, digest in orphans[[*keys, "digest"]].itertuples(index=False, name=None):
        dataset, model, *_, target, seed = key
        plan_and_hole = absent.get((dataset, model, BASELINE, "", target, seed))
        hole = plan_and_hole[1] if plan_and_hole else Hole(NO_RECORD, WAITING)
        rows.append((*key, paths[digest], NO_BASELINE, ALONE, hole.stage, _error(hole)))
    return rows


def _error(hole: Hole) -> str | None:
    return None if hole.state == WAITING else f"the baseline: {hole.reason}"
