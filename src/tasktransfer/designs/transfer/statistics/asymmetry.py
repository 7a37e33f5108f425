"""Asymmetry of transfer: the difference between the two directions of a pair of tasks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.statistics.race import select_fresh_deltas
from tasktransfer.designs.transfer.statistics.single_source import (
    group_by_dataset,
    select_single_source,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.metadata import Order
from tasktransfer.results.store import build_frame
from tasktransfer.stats.bootstrap import Estimate, compute_confidences, compute_q_values
from tasktransfer.stats.draws import Floats

_CELL = ["dataset", "model", "algorithm", "source", "target"]


def make_asymmetry(frames: Frames) -> pd.DataFrame:
    """Return the frame ``asymmetry``."""
    deltas = frames.compute_once(select_fresh_deltas)
    return compute_asymmetry(frames["cells"], deltas, frames.metadata.order)


def compute_asymmetry(
    cells: pd.DataFrame, deltas: pd.DataFrame, order: Order | None = None
) -> pd.DataFrame:
    """Compare the delta of a → b with the delta of b → a, for each pair of tasks that has both.

    The two are not independent: with pretrain_finetune, a → b starts from the baseline of b → a. So
    they are paired by seed, each run with the baseline of its seed. The variance has three parts:
    that of the mean difference over seeds, with n - 1 degrees of freedom, and for each of the two
    cells that of resampled dialogues, because their test sets differ. Interval and p are computed
    from the three parts, as ``bootstrap`` does for a cell.

    Args:
        cells: columns of ``columns.CELLS``; multi-source cells are ignored.
        deltas: columns of ``columns.DELTAS`` of the same study.
        order: order of the rows (``Metadata.order``).

    Returns:
        Columns of ``columns.ASYMMETRY``. Deltas are means over the seeds that both directions
        have. With one common seed, interval and p apply to that seed's runs only, as in the cells,
        and there is no q. They are NaN if a cell has no standard error, or has more seeds than the
        common one.
    """
    pairs = _compare_directions(cells, _group_by_seed(deltas), order)
    sure = compute_confidences([difference for _, difference in pairs])
    rows = [
        (
            *names,
            difference.delta,
            difference.seeds,
            confidence.low,
            confidence.high,
            confidence.p,
            math.nan,
        )
        for (names, difference), confidence in zip(pairs, sure, strict=True)
    ]
    result = build_frame(rows, columns.ASYMMETRY)
    several = result["p"].where(result["n_seeds"] > 1)
    result["q"] = several.groupby(result["dataset"], sort=False).transform(compute_q_values)
    return result


_Pair = tuple[tuple[Any, ...], Estimate]
"""Columns up to b_to_a, and the difference."""

_BySeed = Mapping[int, float]


def _group_by_seed(deltas: pd.DataFrame) -> dict[tuple[str, ...], dict[int, float]]:
    """Map (dataset, model, algorithm, source, target) to a mapping from seed to delta."""
    series: dict[tuple[str, ...], dict[int, float]] = {}
    columns = select_single_source(deltas)[[*_CELL, "seed", "delta"]]
    for *key, seed, delta in columns.itertuples(index=False, name=None):
        series.setdefault(tuple(key), {})[seed] = delta
    return series


def _compare_directions(
    cells: pd.DataFrame, series: Mapping[tuple[str, ...], _BySeed], order: Order | None
) -> list[_Pair]:
    result = []
    for dataset, tasks, groups in group_by_dataset(cells, order):
        for (model, algorithm), group in groups.items():
            key = (dataset, model, algorithm)
            by_pair = {(str(row.source), str(row.target)): row for row in group.itertuples()}
            for a, b in itertools.combinations(tasks, 2):
                there, back = series.get((*key, a, b)), series.get((*key, b, a))
                if (a, b) in by_pair and (b, a) in by_pair and there and back:
                    both = by_pair[a, b], by_pair[b, a]
                    result.append(_estimate_difference((*key, a, b), *both, there, back))
    return result


def _estimate_difference(
    names: tuple[str, ...], there: Any, back: Any, to_b: _BySeed, to_a: _BySeed
) -> _Pair:
    seeds = sorted(set(to_b) & set(to_a))
    if not seeds:
        unknown = Estimate(math.nan, (), 0)
        return (*names, there.delta, back.delta), unknown
    left = np.array([to_b[seed] for seed in seeds])
    right = np.array([to_a[seed] for seed in seeds])
    both, alone = (there, back), len(to_b) == len(to_a) == 1
    parts = (
        (_compute_seed_variance(left - right, alone=alone), _compute_seed_degrees(len(seeds))),
        *((cell.test_error**2, _get_test_degrees(cell)) for cell in both),
    )
    means = float(left.mean()), float(right.mean())
    return (*names, *means), Estimate(means[0] - means[1], parts, len(seeds))


def _get_test_degrees(cell: Any) -> float:
    """Return the degrees of freedom of a cell's test error, or 1 if that error is always 0."""
    return 1.0 if math.isnan(cell.test_degrees) else float(cell.test_degrees)


def _compute_seed_degrees(count: int) -> float:
    return float(max(1, count - 1))


def _compute_seed_variance(differences: Floats, *, alone: bool) -> float:
    """Return the variance over seeds of the mean of paired differences.

    One difference does not show it, so it is NaN. It is 0 if ``alone``, that is, if neither cell
    has another seed, because the cells then leave out the variance over seeds, too.
    """
    if len(differences) > 1:
        return float(differences.var(ddof=1)) / len(differences)
    return 0.0 if alone else math.nan
