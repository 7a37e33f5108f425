"""Performance of each algorithm over all pairs of tasks, with confidence intervals.

Interquartile mean, mean rank and the stratified bootstrap of their intervals follow Agarwal et al.
(2021), "Deep reinforcement learning at the edge of the statistical precipice". Their probability of
improvement compares every run of one algorithm with every run of another. Here each run has a
baseline with its own seed, and we count the fraction of these deltas that are above 0.

The bootstrap resamples seeds with replacement within each target (the stratum). It does not
resample tasks, because they are the benchmark and not a sample. So an interval accounts for
other seeds on the same tasks. All sources of a target, and all algorithms of a model, use the same
resamples, because their deltas for one seed share a baseline run and are correlated.

A resample of n seeds varies less than n new seeds would, by sqrt((n - 1) / n), and few strata with
few seeds estimate their spread poorly. So the percentiles' distances from the estimate are
multiplied by sqrt(n / (n - 1)) * t / 1.96. The degrees of freedom of t are the sum over targets of
their number of seeds minus one. With one seed there is no interval. Noise pulls mean ranks towards
the middle, and resampling does so again, so the interval of a rank is made symmetric. In simulated
studies with 4 or 10 tasks and 2 to 5 seeds, the intervals of mean, interquartile mean and fraction
above 0 covered the true value in 95 to 99 of 100 cases. Those of ranks covered it in 84 to 95 (the
rank without noise).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.statistics.by_dialogue import (
    DialogueScores,
    compute_joint_interval,
    make_dialogue_scores,
)
from tasktransfer.designs.transfer.statistics.deltas import (
    build_cube,
    group_by_dataset,
    select_fresh_deltas,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Order, build_frame
from tasktransfer.stats.bootstrap import compute_q_values
from tasktransfer.stats.draws import Floats, create_generator

RESAMPLES = 2000
MOST_VALUES = 2_000_000
"""Maximum number of values in memory while resampling: 16 MB."""
_ROUNDING_ERROR = 1e-9
"""Sum of squares, in squared points, below which a difference is rounding error."""


@dataclass(frozen=True)
class _Deltas:
    """One algorithm's deltas: one row per pair of tasks, its seeds' values first, then NaN."""

    values: Floats
    counts: NDArray[np.int64]
    pairs: NDArray[np.int64]
    """Source and target of each row, as indices in the tasks."""
    seeds: int


@dataclass(frozen=True)
class _Draws:
    """Statistics of resamples, one value per resample; ``cells`` (resamples × pairs) are means."""

    mean: Floats
    iqm: Floats
    positive: Floats
    cells: Floats


def make_summary(frames: Frames) -> pd.DataFrame:
    """Return the frame ``summary``: mean deltas by dataset, model and algorithm."""
    deltas = frames.compute_once(select_fresh_deltas)
    return compute_summary(deltas, frames.metadata.order, frames.compute_once(make_dialogue_scores))


def compute_summary(
    deltas: pd.DataFrame,
    order: Order | None = None,
    dialogues: Mapping[tuple[str, str], DialogueScores] = MappingProxyType({}),
) -> pd.DataFrame:
    """Compute the summary: one row per dataset, model and algorithm.

    Args:
        deltas: columns of ``columns.DELTAS``; multi-source runs are ignored.
        order: order of the rows (``Metadata.order``).
        dialogues: result of ``compute_dialogue_scores``; without it there is no joint interval.

    Returns:
        Columns of ``columns.SUMMARY``. ``mean`` weights every pair of tasks equally, as in Table 2;
        ``iqm`` and ``positive`` weight every delta equally. Ranks compare the cells' mean deltas
        among the model's algorithms, over the pairs that all of them have.
    """
    rows: list[tuple[Any, ...]] = []
    for dataset, tasks, groups in group_by_dataset(deltas, order):
        for model in dict.fromkeys(model for model, _ in groups):
            own = {name: group for (other, name), group in groups.items() if other == model}
            rows += _summarise_model(dataset, model, tasks, own, dialogues)
    table = build_frame(rows, columns.SUMMARY)
    table["joint_q"] = compute_q_values(table["joint_p"])
    return table


def _summarise_model(
    dataset: str,
    model: str,
    tasks: Sequence[str],
    groups: Mapping[str, pd.DataFrame],
    dialogues: Mapping[tuple[str, str], DialogueScores],
) -> list[tuple[Any, ...]]:
    packed = {name: _pack_deltas(group, tasks) for name, group in groups.items()}
    most = max(method.values.shape[1] for method in packed.values())
    drawn = create_generator(dataset, model).random((RESAMPLES, len(tasks), most))
    draws = {name: _resample_seeds(method, drawn) for name, method in packed.items()}
    ranks = _rank_algorithms(packed, draws)
    rows = []
    for name, method in packed.items():
        widening = _compute_widening(method)
        rank, rank_draws, n_ranked = ranks[name]
        flat = method.values[~np.isnan(method.values)]
        cells, resampled = _compute_cell_means(method), draws[name]
        joint = compute_joint_interval(groups[name], dialogues)
        rows.append(
            (
                *(dataset, model, name, len(method.pairs), method.seeds),
                *_compute_interval(float(cells.mean()), resampled.mean, widening),
                *(joint.low, joint.high),
                *_compute_interval(float(_compute_iqm(flat)), resampled.iqm, widening),
                *_compute_interval(
                    float(_score_wins(flat).mean()),
                    resampled.positive,
                    widening,
                    least=0.0,
                    most=1.0,
                ),
                *_compute_interval(
                    rank, rank_draws, widening, least=1.0, most=float(len(packed)), symmetric=True
                ),
                n_ranked,
                _correlate_runs_with_baselines(groups[name]),
                *(joint.p, math.nan),
            )
        )
    return rows


def _pack_deltas(group: pd.DataFrame, tasks: Sequence[str]) -> _Deltas:
    seeds = sorted(group["seed"].unique())
    square = build_cube(group, tasks, seeds)
    pairs = np.argwhere(~np.isnan(square).all(axis=2))
    values = square[pairs[:, 0], pairs[:, 1]]
    # A stable sort by "is missing" moves gaps to the end and keeps the order of the seeds.
    values = np.take_along_axis(values, np.argsort(np.isnan(values), axis=1, kind="stable"), axis=1)
    counts = (~np.isnan(values)).sum(axis=1)
    return _Deltas(values[:, : counts.max()], counts, pairs, len(seeds))


def _resample_seeds(one: _Deltas, drawn: Floats) -> _Draws:
    """Compute the statistics on resamples of the seeds.

    ``drawn`` has the uniform random numbers in [0, 1) that select the seeds, of shape (resamples,
    targets, seeds). All algorithms get the same numbers, so they share the resamples.
    """
    size = max(1, MOST_VALUES // one.values.size)
    parts = [_compute_statistics(one, drawn[at : at + size]) for at in range(0, len(drawn), size)]
    return _Draws(
        mean=np.concatenate([part.mean for part in parts]),
        iqm=np.concatenate([part.iqm for part in parts]),
        positive=np.concatenate([part.positive for part in parts]),
        cells=np.concatenate([part.cells for part in parts]),
    )


def _compute_statistics(one: _Deltas, drawn: Floats) -> _Draws:
    slots = one.values.shape[1]
    which = (drawn[:, one.pairs[:, 1], :slots] * one.counts[:, None]).astype(np.int64)
    values = one.values[np.arange(len(one.pairs))[:, None], which]
    there = np.arange(slots) < one.counts[:, None]
    cells = np.where(there, values, 0.0).sum(axis=2) / one.counts
    flat = values[:, there]
    return _Draws(
        mean=cells.mean(axis=1),
        iqm=_compute_iqm(flat),
        positive=_score_wins(flat).mean(axis=1),
        cells=cells,
    )


def _compute_iqm(values: Floats) -> Floats:
    """Return the interquartile mean along the last axis.

    A quarter of the values, rounded down, is left out at each end.
    """
    result: Floats = stats.trim_mean(values, 0.25, axis=-1)
    return result


def _score_wins(values: Floats) -> Floats:
    result: Floats = (values > 0) + 0.5 * (values == 0)
    return result


def _compute_cell_means(one: _Deltas) -> Floats:
    result: Floats = np.nansum(one.values, axis=1) / one.counts
    return result


def _correlate_runs_with_baselines(group: pd.DataFrame) -> float:
    """Return the correlation between scores of runs and of their baselines over seeds.

    NaN with one seed. The higher it is, the more pairing by seed reduces the variance of a delta.
    """
    cells = group.groupby(["source", "target"], sort=False)
    run, baseline = (
        group[name] - cells[name].transform("mean") for name in ("score", "baseline_score")
    )
    spread = math.sqrt(float((run**2).sum() * (baseline**2).sum()))
    return float((run * baseline).sum()) / spread if spread > _ROUNDING_ERROR else math.nan


def _rank_algorithms(
    packed: Mapping[str, _Deltas], draws: Mapping[str, _Draws]
) -> dict[str, tuple[float, Floats, int]]:
    """Map each algorithm to its mean rank, resampled mean ranks and number of ranked cells."""
    listed = [
        {(int(s), int(t)): i for i, (s, t) in enumerate(method.pairs)} for method in packed.values()
    ]
    shared = [pair for pair in listed[0] if all(pair in other for other in listed)]
    if not shared:
        none = np.full(RESAMPLES, np.nan)
        return dict.fromkeys(packed, (math.nan, none, 0))
    at = [[rows[pair] for pair in shared] for rows in listed]
    means = np.stack(
        [_compute_cell_means(method)[i] for method, i in zip(packed.values(), at, strict=True)]
    )
    drawn = np.stack([method.cells[:, i] for method, i in zip(draws.values(), at, strict=True)])
    ranks = _compute_mean_ranks(means[:, None])[:, 0]
    resampled = _compute_mean_ranks(drawn)
    return {
        name: (float(rank), line, len(shared))
        for name, rank, line in zip(packed, ranks, resampled, strict=True)
    }


def _compute_mean_ranks(means: Floats) -> Floats:
    """Compute mean ranks over cells from mean scores (algorithms × resamples × cells).

    The highest delta has rank 1, and ties share their mean rank. Counting is fast enough for a few
    algorithms.
    """
    better = [(means > mean).sum(axis=0) + 0.5 * (means == mean).sum(axis=0) for mean in means]
    result: Floats = np.stack(better).mean(axis=2) + 0.5
    return result


def _compute_widening(one: _Deltas) -> float:
    """Return the factor by which an interval is widened for few seeds, or NaN for one seed."""
    seeds = float(one.counts.mean())
    by_target = [
        one.counts[one.pairs[:, 1] == target].max() for target in np.unique(one.pairs[:, 1])
    ]
    degrees = sum(count - 1 for count in by_target)
    if degrees == 0:
        return math.nan
    return math.sqrt(seeds / (seeds - 1)) * float(stats.t.ppf(0.975, degrees)) / 1.96


def _compute_interval(
    estimate: float,
    draws: Floats,
    widening: float,
    least: float = -math.inf,
    most: float = math.inf,
    symmetric: bool = False,
) -> tuple[float, float, float]:
    """Return the estimate with the ends of its interval, which always contains it."""
    if math.isnan(widening) or math.isnan(estimate):
        return estimate, math.nan, math.nan
    low, high = (float(end) for end in np.quantile(draws, [0.025, 0.975]))
    below, above = max(0.0, estimate - low), max(0.0, high - estimate)
    if symmetric:
        below = above = max(below, above)
    low, high = estimate - widening * below, estimate + widening * above
    return estimate, max(low, least), min(high, most)
