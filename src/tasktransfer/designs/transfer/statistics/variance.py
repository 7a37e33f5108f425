"""Where the spread of the deltas comes from: the source, the target, the two together, the seed.

The model is that of crossed random effects::

    delta[s, t, k] = mean + source[s] + target[t] + both[s, t] + seed[s, t, k]

Its components are found by the method of moments. Half the mean squared difference of two deltas
estimates the sum of the components that the two do not share:

- same source and target, other seed: seed
- same source, other target: target + both + seed
- same target, other source: source + both + seed
- neither the same: source + target + both + seed

Four equations give the four components (Koch, 1967). They hold whichever runs are there, so the
empty diagonal and missing runs do no harm. Two deltas of one seed are left out of the last three
means: those of one target share their baseline run, those of one source (pretrain_finetune) share
the source model, and what they share would count as target or as source. A task's effect as a
source and as a target are taken as independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.statistics.single_source import by_dataset
from tasktransfer.tables.metadata import Order

COMPONENTS = ("source", "target", "source x target", "seed")


def variance(deltas: pd.DataFrame, order: Order | None = None) -> pd.DataFrame:
    """Four rows, one per component, for each dataset, model and algorithm.

    Args:
        deltas: columns of ``columns.DELTAS``; runs of several sources are left alone.
        order: of the rows (``Metadata.order``).

    Returns:
        Columns of ``columns.VARIANCE``. Estimates below 0 are cut at 0; the shares of the known
        components sum to 1 (NaN where all are 0). With one seed, ``seed`` is unknown and is part
        of ``source x target``. Where no two runs tell the source's part from the target's (all of
        one source or one target), the first three are unknown.
    """
    rows = [
        (dataset, *key, *line)
        for dataset, _, groups in by_dataset(deltas, order)
        for key, group in groups.items()
        for line in _components(group)
    ]
    return frame("variance", rows)


def _components(group: pd.DataFrame) -> list[tuple[str, float, float]]:
    """(component, variance, share) of one group."""
    variances = np.maximum(_moments(group), 0.0)  # NaN stays NaN
    total = float(np.nansum(variances))
    shares = variances / total if total > 0 else np.full(len(variances), np.nan)
    return list(zip(COMPONENTS, variances.tolist(), shares.tolist(), strict=True))


def _moments(group: pd.DataFrame) -> tuple[float, float, float, float]:
    """Source, target, both and seed, before they are cut at 0; NaN: unknown."""
    several = group["seed"].nunique() > 1
    same_cell = _differences(group, ["source", "target"])
    same_source, same_target, any_two = (
        _differences(group, keys) - (_differences(group, [*keys, "seed"]) if several else _NONE)
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
    """Pairs of deltas: how many, and the sum of their squared differences."""

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


def _differences(group: pd.DataFrame, same: Sequence[str]) -> _Differences:
    """Of all pairs of deltas that have the same value in the given columns."""
    # Around the mean, so that the difference of the two sums below keeps its digits.
    deltas = group["delta"] - group["delta"].mean()
    places = group.groupby(list(same)).ngroup() if same else np.zeros(len(group), dtype=np.int64)
    count = np.bincount(places)
    total = np.bincount(places, weights=deltas)
    squares = np.bincount(places, weights=deltas**2)
    return _Differences(
        pairs=int((count * (count - 1) // 2).sum()),
        squares=float((count * squares - total**2).sum()),
    )
