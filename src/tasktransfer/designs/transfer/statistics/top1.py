"""Top-1 transfer without the luck of the draw.

The paper's top-1 takes, per target, the source with the best mean on the test scores that it then
reports. A maximum of noisy means lies above every true mean: with nine sources, five seeds and no
effect at all it is 0.69 of the standard deviation of one run. Two others beside it:

``top1_dev``      the source is chosen by dev scores, over all seeds. Dev and test of one training
                  move together, so that a little luck remains
``top1_heldout``  the source is chosen by the test scores of the other seeds, and judged by this
                  seed; the mean over seeds. Without effect its expectation is 0

Both take the baseline, a delta of 0, where no source looks better, as the paper's does.

Intervals. With dev scores one source is chosen for all seeds: Student's t over the seeds of the
mean over targets. Held-out values of two seeds share the seeds that chose, and so are positively
correlated (0.13 with nine sources and five seeds): t over seeds would hold the truth in 90 of 100
studies only. So the width is that of studies of noise alone, in which 95 % of the held-out means
lie. They are made in two ways, and the narrower is taken:

- the deltas of a target and seed are multiplied by a random sign, all sources together since they
  share their baseline. Exact without effect, if noise is symmetric; effects make it wider
- normal noise with the covariance that the sources' deltas have over seeds, widened as Student's t
  is. Effects leave it as it is; with few seeds it is too wide

Noise of a source that all its targets share makes both too narrow: they hold 0 in 92 of 100 studies
if half a run's deviation is shared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.statistics.select_sources import dev_deltas
from tasktransfer.designs.transfer.statistics.single_source import by_dataset, cube, single_source
from tasktransfer.stats.resampling import Floats, generator
from tasktransfer.tables.metadata import Order

STUDIES = 1000
"""Of noise alone, in each of the two ways."""

LEVEL = 0.95


def top1(deltas: pd.DataFrame, runs: pd.DataFrame, order: Order | None = None) -> pd.DataFrame:
    """One row per dataset, model and algorithm.

    Args:
        deltas: columns of ``columns.DELTAS``; runs of several sources are left alone.
        runs: columns of ``columns.RUNS``, which have the dev scores.
        order: of the rows (``Metadata.order``).

    Returns:
        Columns of ``columns.TOP1``. Pairs that lack a seed which others of the group have are no
        candidates: ``n_pairs`` are left.
    """
    if single_source(deltas).empty:
        return frame("top1", [])
    on_dev = dev_deltas(deltas, runs)
    dev_groups = {
        (dataset, *key): rows
        for dataset, _, groups in by_dataset(on_dev, order)
        for key, rows in groups.items()
    }
    rows: list[tuple[Any, ...]] = []
    for dataset, tasks, groups in by_dataset(deltas, order):
        for (model, algorithm), group in groups.items():
            seeds = sorted(group["seed"].unique())
            key = (dataset, model, algorithm)
            test, dev = (cube(one, tasks, seeds) for one in (group, dev_groups[key]))
            whole = np.asarray(~np.isnan(test).any(axis=2, keepdims=True), np.bool_)
            targets = whole.any(axis=(0, 2))
            test, dev = (np.where(whole, values, np.nan)[:, targets] for values in (test, dev))
            rows.append((*key, *_numbers(test, dev, key)))
    return frame("top1", rows)


def _numbers(test: Floats, dev: Floats, key: tuple[str, str, str]) -> tuple[Any, ...]:
    _, targets, seeds = test.shape
    pairs = int((~np.isnan(test[:, :, 0])).sum())
    if targets == 0:
        return 0, 0, seeds, *[np.nan] * 7
    best = np.nanmax(test.mean(axis=2), axis=0).clip(min=0).mean()
    return (
        *(targets, pairs, seeds, float(best)),
        *_by_seeds(chosen_by(dev.mean(axis=2), test)),
        *_by_noise(test, key),
    )


def chosen_by(means: Floats, values: Floats) -> Floats:
    """The values of the sources whose mean is best, 0 where none is above 0.

    Args:
        means: (..., sources, targets), NaN where there is no pair.
        values: (..., sources, targets, seeds).

    Returns:
        (..., targets, seeds)
    """
    ranked = np.where(np.isnan(means), -np.inf, means)
    which = ranked.argmax(axis=-2)[..., None, :]
    best = np.take_along_axis(ranked, which, axis=-2)[..., 0, :]
    taken = np.take_along_axis(values, which[..., None], axis=-3)[..., 0, :, :]
    result: Floats = np.where(best[..., None] > 0, taken, 0.0)
    return result


def heldout(values: Floats) -> Floats:
    """Deltas of the sources that the other seeds choose.

    Args:
        values: (..., sources, targets, seeds), two seeds or more.

    Returns:
        (..., targets, seeds)
    """
    seeds, total = values.shape[-1], values.sum(axis=-1)
    each = [
        chosen_by((total - values[..., seed]) / (seeds - 1), values[..., [seed]])
        for seed in range(seeds)
    ]
    result: Floats = np.concatenate(each, axis=-1)
    return result


def _by_seeds(values: Floats) -> tuple[float, float, float]:
    """Mean of (targets, seeds) and its interval by Student's t over seeds; NaN with one seed."""
    each = values.mean(axis=0)
    mean = float(each.mean())
    if len(each) < 2:
        return mean, np.nan, np.nan
    error = float(each.std(ddof=1)) / len(each) ** 0.5
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(each) - 1)) * error
    return mean, mean - half, mean + half


def _by_noise(values: Floats, key: tuple[str, str, str]) -> tuple[float, float, float]:
    """Mean of the held-out values and its interval, see the head of this module."""
    if values.shape[2] < 2:
        return np.nan, np.nan, np.nan
    mean, half = float(heldout(values).mean()), half_width(values, generator("top1", *key))
    return mean, mean - half, mean + half


def half_width(values: Floats, chance: np.random.Generator, studies: int = STUDIES) -> float:
    """How far the mean of held-out values strays from 0 in 95 % of studies of noise alone.

    Args:
        values: (sources, targets, seeds), NaN where there is no pair.
        studies: how many are drawn in each way.
    """
    _, targets, seeds = values.shape
    signs = chance.choice((-1.0, 1.0), (studies, 1, targets, seeds))
    flipped = np.abs(heldout(values * signs).mean(axis=(1, 2)))
    residuals = (values - values.mean(axis=2, keepdims=True)).transpose(1, 0, 2)
    normal = chance.standard_normal((studies, targets, seeds, seeds)) / (seeds - 1) ** 0.5
    noise = (residuals @ normal).transpose(0, 2, 1, 3)
    drawn = np.abs(heldout(noise).mean(axis=(1, 2)))
    tail = (1 + LEVEL) / 2
    widening = float(stats.t.ppf(tail, targets * (seeds - 1)) / stats.norm.ppf(tail))
    return min(float(np.quantile(flipped, LEVEL)), widening * float(np.quantile(drawn, LEVEL)))
