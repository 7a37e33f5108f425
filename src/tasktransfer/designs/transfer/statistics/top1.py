"""Top-1 that is not its own judge: the source chosen on dev, or on the other seeds.

The paper's top-1 is the largest mean delta of a target's sources, and 0 (the baseline) is among
the candidates. It grows with the noise and with the number of sources, also where none helps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.statistics.select_sources import dev_deltas
from tasktransfer.designs.transfer.statistics.single_source import by_dataset
from tasktransfer.stats import chosen
from tasktransfer.stats.resampling import Floats
from tasktransfer.tables.metadata import Order


def top1(deltas: pd.DataFrame, runs: pd.DataFrame, order: Order | None = None) -> pd.DataFrame:
    """One row per dataset, model and algorithm.

    Args:
        deltas: columns of ``columns.DELTAS``; runs of several sources are left alone.
        runs: columns of ``columns.RUNS``, whose dev scores choose.
        order: of the rows (``Metadata.order``).

    Returns:
        Columns of ``columns.TOP1``. Each value is a mean over targets; a target counts with the
        seeds that all of its sources have. Deltas are paired by seed. Nothing is told of seeds that
        only the baseline has.
    """
    if deltas.empty:
        return frame("top1", [])
    dev = dev_deltas(deltas, runs)["delta"]
    both = deltas.assign(dev_delta=dev)
    rows: list[tuple[Any, ...]] = []
    for dataset, _, groups in by_dataset(both, order):
        for (model, algorithm), group in groups.items():
            targets = [_arrays(of_target) for _, of_target in group.groupby("target", sort=False)]
            targets = [(test, dev) for test, dev in targets if test.shape[1]]
            if targets:
                rows.append((dataset, model, algorithm, *_row(targets)))
    return frame("top1", rows)


def _arrays(rows: pd.DataFrame) -> tuple[Floats, Floats]:
    """Test and dev deltas of a target, (sources, seeds that all sources have)."""
    test, dev = (
        rows.pivot(index="source", columns="seed", values=value).to_numpy(np.float64)
        for value in ("delta", "dev_delta")
    )
    whole = ~np.isnan(test).any(axis=0) & ~np.isnan(dev).any(axis=0)
    return test[:, whole], dev[:, whole]


def _row(targets: list[tuple[Floats, Floats]]) -> tuple[Any, ...]:
    seeds = np.array([test.shape[1] for test, _ in targets])
    best = float(np.mean([max(0.0, test.mean(axis=1).max()) for test, _ in targets]))
    by_dev = float(np.mean([chosen.chosen_by(test, dev).mean() for test, dev in targets]))
    if seeds.min() < 2:
        unknown = (np.nan, np.nan)
        return len(targets), int(seeds.min()), best, by_dev, *unknown, np.nan, *unknown
    held_out = float(np.mean([chosen.held_out(test).mean() for test, _ in targets]))
    of_dev = np.array([chosen.chosen_variance(test, dev) for test, dev in targets])
    of_held_out = np.array([chosen.heldout_variance(test) for test, _ in targets])
    around_dev = chosen.half_width(of_dev, seeds)
    around_held_out = chosen.half_width(of_held_out, seeds)
    return (
        *(len(targets), int(seeds.min()), best),
        *(by_dev, by_dev - around_dev, by_dev + around_dev),
        *(held_out, held_out - around_held_out, held_out + around_held_out),
    )
