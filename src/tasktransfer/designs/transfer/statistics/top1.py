"""Top-1 without the luck of the draw: the source chosen on dev, or on the other seeds.

The paper's top-1 takes, per target, the source with the best mean on the test scores that it then
reports. Two others beside it (``stats.chosen``):

``top1_dev``      the source is chosen by dev scores, over all seeds. Dev and test of one training
                  move together, so that a little luck remains
``top1_heldout``  the source is chosen by the test scores of the other seeds, and judged by this
                  seed; the mean over seeds. Without effect its expectation is 0
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.statistics.select_sources import dev_deltas
from tasktransfer.designs.transfer.statistics.single_source import by_dataset, cube, single_source
from tasktransfer.stats.chosen import chosen_by, half_width, heldout, mean_over_seeds
from tasktransfer.stats.resampling import Floats, generator
from tasktransfer.tables.metadata import Order


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
        *mean_over_seeds(chosen_by(dev.mean(axis=2), test)),
        *_by_noise(test, key),
    )


def _by_noise(values: Floats, key: tuple[str, str, str]) -> tuple[float, float, float]:
    """Mean of the held-out values and its interval."""
    if values.shape[2] < 2:
        return np.nan, np.nan, np.nan
    mean, half = float(heldout(values).mean()), half_width(values, generator("top1", *key))
    if half == 0:  # the baseline is chosen in every study of noise, too
        half = np.nan
    return mean, mean - half, mean + half
