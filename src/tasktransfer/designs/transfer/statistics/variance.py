"""Variance components of the deltas: source, target, their interaction, and seed.

The model is that of crossed random effects::

    delta[s, t, k] = mean + source[s] + target[t] + both[s, t] + seed[s, t, k]

Its components are estimated by the method of moments. Half the mean squared difference of two
deltas estimates the sum of the components that the two do not share:

- same source and target, other seed: seed
- same source, other target: target + both + seed
- same target, other source: source + both + seed
- other source and other target: source + target + both + seed

Four equations give the four components (Koch, 1967). They hold for any set of runs, so the empty
diagonal and missing runs do no harm. Pairs of deltas with one seed are left out of the last three
means. Deltas of one target share their baseline run, and deltas of one source (pretrain_finetune)
share the source model; this would count as target or as source. A task's effects as a source and
as a target are assumed to be independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.statistics.race import select_fresh_deltas
from tasktransfer.designs.transfer.statistics.single_source import group_by_dataset
from tasktransfer.results.frames import Frames
from tasktransfer.results.metadata import Order
from tasktransfer.results.store import build_frame


def make_variance(frames: Frames) -> pd.DataFrame:
    """Return the frame ``variance``."""
    return compute_variance(frames.compute_once(select_fresh_deltas), frames.metadata.order)


def compute_variance(deltas: pd.DataFrame, order: Order | None = None) -> pd.DataFrame:
    """Estimate four components, one row each, for each dataset, model and algorithm.

    Args:
        deltas: columns of ``columns.DELTAS``; multi-source runs are ignored.
        order: order of the rows (``Metadata.order``).

    Returns:
        Columns of ``columns.VARIANCE``. Estimates below 0 are set to 0. The fractions of the known
        components sum to 1 (NaN if all are 0). With one seed, ``seed`` is unknown and is part of
        ``source x target``. With only one source or one target, the first three components cannot
        be separated and are unknown.
    """
    rows = [
        (dataset, *key, *line)
        for dataset, _, groups in group_by_dataset(deltas, order)
        for key, group in groups.items()
        for line in _compute_components(group)
    ]
    return build_frame(rows, columns.VARIANCE)


def _compute_components(group: pd.DataFrame) -> list[tuple[str, float, float]]:
    """Return (component, variance, fraction) for one group."""
    variances = np.maximum(_estimate_components(group), 0.0)  # NaN stays NaN
    total = float(np.nansum(variances))
    shares = variances / total if total > 0 else np.full(len(variances), np.nan)
    return list(zip(columns.COMPONENTS, variances.tolist(), shares.tolist(), strict=True))


def _estimate_components(group: pd.DataFrame) -> tuple[float, float, float, float]:
    """Estimate the variances of source, target, both and seed.

    An estimate may be below 0, and is NaN if it is unknown.
    """
    several = group["seed"].nunique() > 1
    same_cell = _sum_differences(group, ["source", "target"])
    same_source, same_target, any_two = (
        _sum_differences(group, keys)
        - (_sum_differences(group, [*keys, "seed"]) if several else _NONE)
        for keys in (["source"], ["target"], [])
    )
    seed = same_cell.half_mean
    only_source = (same_source - same_cell).half_mean
    only_target = (same_target - same_cell).half_mean
    neither = (any_two - same_source - same_target + same_cell).half_mean
    return (
        neither - only_source,
        neither - only_target,
        only_source + only_target - neither - (seed if several else 0.0),
        seed,
    )


@dataclass(frozen=True, slots=True)
class _Differences:
    """Sum of squared differences over pairs of deltas, and the number of these pairs."""

    pairs: int
    squares: float

    def __add__(self, other: _Differences) -> _Differences:
        return _Differences(self.pairs + other.pairs, self.squares + other.squares)

    def __sub__(self, other: _Differences) -> _Differences:
        return _Differences(self.pairs - other.pairs, self.squares - other.squares)

    @property
    def half_mean(self) -> float:
        return self.squares / self.pairs / 2 if self.pairs else math.nan


_NONE = _Differences(0, 0.0)


def _sum_differences(group: pd.DataFrame, same: Sequence[str]) -> _Differences:
    """Sum the squared differences over all pairs of deltas that agree in the columns ``same``."""
    # Centre the values, so that the difference of the two sums below keeps its precision.
    deltas = group["delta"] - group["delta"].mean()
    places = group.groupby(list(same)).ngroup() if same else np.zeros(len(group), dtype=np.int64)
    count = np.bincount(places)
    total = np.bincount(places, weights=deltas)
    squares = np.bincount(places, weights=deltas**2)
    return _Differences(
        pairs=int((count * (count - 1) // 2).sum()),
        squares=float((count * squares - total**2).sum()),
    )
