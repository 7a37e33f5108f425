"""Resampled test sets, with dialogues as clusters.

The instances of a dialogue share its words, its speakers and the errors that they cause. So the
unit of another sample is a dialogue, not an instance. A *unit* is resampled as a whole: a dialogue,
or an instance if the dialogues are unknown.

The variance of a score over units is estimated by leaving each unit out in turn
(``compute_jackknife_scores``). For a mean over equally large units this is exactly the closed form,
and it needs no random numbers; 1,000 random resamples would add an error of 2 to 5 % to the
standard errors of all cells of a test set. If units differ in size, the estimate is larger, and its
t distribution has fewer degrees of freedom (``Units.degrees``; Bell and McCaffrey 2002, "Bias
reduction in standard errors for linear regression with multi-stage samples"; MacKinnon, Nielsen and
Webb 2023, "Fast and reliable jackknife and bootstrap methods for cluster-robust inference").

Percentiles and ranks need random resamples (``sample_unit_weights``). Of n units, n - 1 are sampled
with replacement. The variance over such resamples is that of a mean over n units, without the
factor (n - 1) / n of samples of size n (Rao and Wu 1988, "Resampling inference with complex survey
data"); for 40 dialogues that is 2.5 %.

The official score (macro-F1 and so on) is recomputed from summed tallies. A dialogue's instances
are summed only once, so the cost depends on the number of dialogues.

Random numbers depend only on content (``create_generator``): the same inputs give the same numbers,
whatever else a study contains and in whatever order it is read. So a new record does not change
intervals to which it does not contribute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tasktransfer.core.identity import compute_digest

VERSION = 3
"""Version of the computed numbers; raise it if they change, so that cached rows are recomputed."""

RESAMPLES = 1000
"""Number of random resamples of a test set, for percentiles and ranks."""

_DRAWN_AT_ONCE = 1 << 22

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.float32]
Unit = Literal["dialogue", "instance"]


@dataclass(frozen=True)
class Units:
    """Resampled units of a test set.

    Args:
        of_instance: unit of each of the n instances, shape (n,), numbered from 0 in the order of
            first occurrence.
        kind: kind of the units.
        names: names of the dialogues, in the same order; empty if they have none.
    """

    of_instance: npt.NDArray[np.int64]
    kind: Unit
    names: tuple[str, ...] = ()

    @property
    def instances(self) -> int:
        """Number of instances in the test set."""
        return len(self.of_instance)

    @cached_property
    def count(self) -> int:
        """Number of units that are resampled."""
        return int(self.of_instance.max(initial=-1)) + 1

    @cached_property
    def degrees(self) -> float:
        """Degrees of freedom of a score's variance over these units.

        They are the number of units minus 1 if all units have the same size, and fewer if some are
        much larger (Bell and McCaffrey's for the jackknife, with independent instances). They are
        at least 1.
        """
        if self.count < 2:
            return 1.0
        shares = np.bincount(self.of_instance) / self.instances
        odds = shares / (1 - shares)
        squares, fourths = (odds**2).sum(), (odds**4).sum()
        found = float(odds.sum() ** 2 / (squares + squares**2 - fourths))
        return max(1.0, round(found, 9))

    @cached_property
    def digest(self) -> str:
        """Digest of the assignment of instances to units."""
        content = np.ascontiguousarray(self.of_instance, np.int64).tobytes()
        return hashlib.sha256(self.kind.encode() + content).hexdigest()

    def sum_tally(self, tally: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum a tally over each unit, from (..., instances, columns) to (..., units, columns)."""
        if self.count == self.instances:
            return tally
        order, starts = self._order
        return np.add.reduceat(tally[..., order, :], starts, axis=-2)

    @cached_property
    def _order(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Order of the instances by unit, and the index at which each unit begins."""
        order = np.argsort(self.of_instance, kind="stable")
        return order, np.searchsorted(self.of_instance[order], np.arange(self.count))


def build_dialogue_units(ids: Sequence[str]) -> Units:
    """Group instances into units by dialogue ID."""
    numbers: dict[str, int] = {}
    of_instance = [numbers.setdefault(name, len(numbers)) for name in ids]
    return Units(np.array(of_instance, np.int64), "dialogue", tuple(numbers))


def build_instance_units(count: int) -> Units:
    """Make each instance a unit, for test sets with unknown dialogues."""
    return Units(np.arange(count), "instance")


def compute_jackknife_scores(
    tally: npt.NDArray[Any], score: Callable[[npt.NDArray[Any]], npt.ArrayLike]
) -> Floats:
    """Compute scores with each unit left out, scaled to the variance over test sets.

    The variance over units (``ddof=1``) and the covariances of the result estimate those of the
    scores over other test sets.

    Args:
        tally: contribution of each unit to the sums of a score (``Units.sum_tally``), shape (...,
            units, columns), for one or several runs.
        score: function from sums (..., units, columns) to scores (..., units).

    Returns:
        Scaled scores, shape (..., units); NaN with fewer than two units, which have no variance.
    """
    *runs, units, _ = tally.shape
    if units < 2:
        return np.full((*runs, 2), np.nan)
    each = np.asarray(tally, np.float64)
    scores = np.asarray(score(each.sum(axis=-2, keepdims=True) - each), np.float64)
    mean = scores.mean(axis=-1, keepdims=True)
    spread: Floats = mean + (units - 1) / units**0.5 * (scores - mean)
    return spread


def sample_unit_weights(dataset: str, target: str, units: int) -> Weights:
    """Sample how often each unit is drawn, shape (RESAMPLES, units).

    Each row sums to units - 1. The random generator is seeded by the arguments, so every run on a
    test set has the same resamples. With fewer than two units, all weights are 0.
    """
    weights = np.zeros((RESAMPLES, units), np.float32)
    if units < 2:
        return weights
    seed = compute_digest([VERSION, dataset, target, units])
    chance = np.random.Generator(np.random.PCG64(int(seed[:32], 16)))
    step = max(1, _DRAWN_AT_ONCE // units)
    for begin in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - begin)
        drawn = chance.integers(0, units, (rows, units - 1), dtype=np.int32)
        drawn += np.arange(rows, dtype=np.int32)[:, None] * np.int32(units)
        counts = np.bincount(drawn.ravel(), minlength=rows * units)
        weights[begin : begin + rows] = counts.reshape(rows, units)
    return weights


def resample_scores(
    tally: npt.NDArray[Any], weights: Weights, score: Callable[[npt.NDArray[Any]], npt.ArrayLike]
) -> Floats:
    """Compute the score on each resampled test set.

    Args:
        tally: contribution of each unit to the sums of a score (``Units.sum_tally``), shape (...,
            units, columns), for one or several runs.
        weights: see ``sample_unit_weights``.
        score: function from sums (..., resamples, columns) to scores (..., resamples).

    Returns:
        Scores, shape (..., resamples); NaN with fewer than two units, which have no variance.
    """
    *runs, units, columns = tally.shape
    if units < 2:
        return np.full((*runs, len(weights)), np.nan)
    # One product for all runs. In 32 bits, counts are exact and sums of fractions have 7 digits.
    by_unit = np.moveaxis(tally, -2, 0).reshape(units, -1).astype(np.float32)
    sums = np.moveaxis((weights @ by_unit).reshape(len(weights), *runs, columns), 0, -2)
    return np.asarray(score(sums), np.float64)


def create_generator(*parts: str | Floats) -> np.random.Generator:
    """Create a generator whose seed is derived from names and arrays."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            content = part.encode()
        else:
            content = repr(part.shape).encode() + np.ascontiguousarray(part + 0.0).tobytes()
        digest.update(len(content).to_bytes(8, "little") + content)
    return np.random.default_rng(int.from_bytes(digest.digest()[:16], "little"))
