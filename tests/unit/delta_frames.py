"""Frames of deltas and cells with known numbers, for tests of the statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.statistics.cells import add_baseline_states
from tasktransfer.results.store import build_frame

Delta = Callable[[str, str, str, str, int], float | None]
"""model, algorithm, source, target, seed → delta; None: no run."""


def make_deltas(
    delta: Delta,
    *,
    tasks: Iterable[str] = "abcd",
    models: Iterable[str] = ("bert",),
    algorithms: Iterable[str] = ("multitask",),
    seeds: Iterable[int] = (0, 1),
    dataset: str = "DailyDialog",
) -> pd.DataFrame:
    """Return single-source deltas of every ordered pair, with the columns ``columns.DELTAS``."""
    tasks, algorithms, seeds = list(tasks), list(algorithms), list(seeds)
    names = [
        (model, algorithm, source, target, seed)
        for model in models
        for algorithm in algorithms
        for source in tasks
        for target in tasks
        for seed in seeds
        if source != target
    ]
    rows = []
    for name in names:
        model, algorithm, source, target, seed = name
        value = delta(*name)
        if value is not None:
            run = (dataset, model, algorithm, [source], source, 1, target, seed)
            digests = ("/".join(map(str, name)), f"{model}/{target}/{seed}")
            rows.append((*run, 50 + value, 50.0, value, 2 * value, *digests))
    return build_frame(rows, columns.DELTAS)


def make_cells(
    deltas: pd.DataFrame, instances: int = 0, instance_error: float = 0.0
) -> pd.DataFrame:
    """Return cells of deltas, with the columns ``columns.CELLS``.

    They are those that ``cells.cells`` computes for runs whose test instances, one per dialogue,
    add ``instance_error`` (points) to the standard error.
    """
    rows = []
    keys = ["dataset", "model", "algorithm", "source", "target"]
    for (dataset, model, algorithm, source, target), group in deltas.groupby(keys, sort=False):
        count = len(group)
        variance = float(group["delta"].var()) / count if count > 1 else 0.0
        error = (variance + instance_error**2) ** 0.5
        run = (dataset, model, algorithm, [source], source, 1, target)
        mean = float(group["delta"].mean())
        scores = (50 + mean, 50.0, mean, 2 * mean)
        nan, kind = float("nan"), "dialogue" if instances else ""
        # One seed without predictions says nothing of its error.
        of_test_set = instance_error if instances or count > 1 else nan
        degrees = instances - 1.0 if instances else nan
        drawn = (instances, instances, kind, error, of_test_set, degrees)
        interval = (nan, nan, nan, nan, None)
        rows.append(
            (*run, count, sorted(group["seed"]), count, *scores, *drawn, *interval, nan, False, "")
        )
    return add_baseline_states(build_frame(rows, columns.CELL_STATISTICS), None)
