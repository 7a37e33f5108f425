"""Other test sets: of whole dialogues, never of single instances of one.

The instances of a dialogue share its words, its speakers and the mistakes that they invite, so that
a dialogue, and not an instance, is what another sample of dialogues would bring anew. A *unit* is
what is drawn whole: a dialogue, or an instance where nobody knows the dialogues.

How much a score varies with the units is told by leaving each of them out in turn
(``jackknifed_scores``). For a mean over equally large units that is the closed form exactly, and
nothing in it is drawn at random: 1,000 random draws put an error of 2 to 5 % on the standard errors
of all cells of a test set alike. Where units differ in size it is widened by what the large ones
hide, and its t distribution has fewer degrees of freedom (``Units.degrees``; Bell and McCaffrey
2002, "Bias reduction in standard errors for linear regression with multi-stage samples"; MacKinnon,
Nielsen and Webb 2023, "Fast and reliable jackknife and bootstrap methods for cluster-robust
inference").

Percentiles and ranks need random draws (``unit_weights``). Of n units, n - 1 are drawn, with
replacement. The variance over such draws is that of a mean over n units without the factor
(n - 1) / n that n draws would have (Rao and Wu 1988, "Resampling inference with complex survey
data"); of 40 dialogues that is 2.5 %.

What is computed anew is the official score (macro-F1 and so on), from summed tallies. A dialogue's
instances are summed once, so that a test set costs as much as there are dialogues.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tasktransfer.core.digests import digest_of

VERSION = 3
"""Raise this when a change in the code changes a number: rows made before are then made anew."""

RESAMPLES = 1000
"""How many times a test set is drawn, where percentiles or ranks are asked for."""

_DRAWN_AT_ONCE = 1 << 22

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.float32]
Unit = Literal["dialogue", "instance"]


@dataclass(frozen=True)
class Units:
    """What is drawn of a test set. ``of_instance``: the unit of each of its n instances, (n,),
    numbered from 0 in the order of their first instances. ``names``: of the dialogues, in that
    order; empty where they have none."""

    of_instance: npt.NDArray[np.int64]
    kind: Unit
    names: tuple[str, ...] = ()

    @property
    def instances(self) -> int:
        """How many instances there are."""
        return len(self.of_instance)

    @cached_property
    def count(self) -> int:
        """How many units there are."""
        return int(self.of_instance.max(initial=-1)) + 1

    @cached_property
    def degrees(self) -> float:
        """Degrees of freedom of the variance of a score over these units: their number less 1 where
        all have as many instances, and fewer the more a few of them weigh (Bell and McCaffrey's for
        the jackknife, under independent instances); at least 1."""
        if self.count < 2:
            return 1.0
        shares = np.bincount(self.of_instance) / self.instances
        odds = shares / (1 - shares)
        squares, fourths = (odds**2).sum(), (odds**4).sum()
        found = float(odds.sum() ** 2 / (squares + squares**2 - fourths))
        return max(1.0, round(found, 9))

    @cached_property
    def digest(self) -> str:
        """Which instances are drawn together."""
        content = np.ascontiguousarray(self.of_instance, np.int64).tobytes()
        return hashlib.sha256(self.kind.encode() + content).hexdigest()

    def summed(self, tally: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A tally (..., instances, columns) summed over each unit, (..., units, columns)."""
        if self.count == self.instances:
            return tally
        order, starts = self._order
        return np.add.reduceat(tally[..., order, :], starts, axis=-2)

    @cached_property
    def _order(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Instances by unit, and where each unit begins in that."""
        order = np.argsort(self.of_instance, kind="stable")
        return order, np.searchsorted(self.of_instance[order], np.arange(self.count))


def dialogues(ids: Sequence[str]) -> Units:
    """Units of a test set whose instances are of these dialogues, one id an instance."""
    numbers: dict[str, int] = {}
    of_instance = [numbers.setdefault(name, len(numbers)) for name in ids]
    return Units(np.array(of_instance, np.int64), "dialogue", tuple(numbers))


def single_instances(count: int) -> Units:
    """Units of a test set whose dialogues nobody knows."""
    return Units(np.arange(count), "instance")


def jackknifed_scores(
    tally: npt.NDArray[Any], score: Callable[[npt.NDArray[Any]], npt.ArrayLike]
) -> Floats:
    """The scores without each unit in turn, (..., units), spread out so that their variance over
    units (``ddof=1``), and their covariances, are those of the scores over other test sets.

    Args:
        tally: (..., units, columns), what each unit adds to the sums that a score is made of
            (``Units.summed``); of one run or of several.
        score: sums (..., units, columns) to scores (..., units).

    Returns:
        NaN where there are fewer than two units: one dialogue does not tell how dialogues differ.
    """
    *runs, units, _ = tally.shape
    if units < 2:
        return np.full((*runs, 2), np.nan)
    each = np.asarray(tally, np.float64)
    scores = np.asarray(score(each.sum(axis=-2, keepdims=True) - each), np.float64)
    mean = scores.mean(axis=-1, keepdims=True)
    spread: Floats = mean + (units - 1) / units**0.5 * (scores - mean)
    return spread


def unit_weights(dataset: str, target: str, units: int) -> Weights:
    """How often each unit is drawn, (RESAMPLES, units); each row sums to units - 1.

    Seeded by its arguments: every run on a test set, today and tomorrow, meets the same draws. No
    unit or one: all weights are 0, and nothing can be told from them.
    """
    weights = np.zeros((RESAMPLES, units), np.float32)
    if units < 2:
        return weights
    seed = digest_of([VERSION, dataset, target, units])
    chance = np.random.Generator(np.random.PCG64(int(seed[:32], 16)))
    step = max(1, _DRAWN_AT_ONCE // units)
    for begin in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - begin)
        drawn = chance.integers(0, units, (rows, units - 1), dtype=np.int32)
        drawn += np.arange(rows, dtype=np.int32)[:, None] * np.int32(units)
        counts = np.bincount(drawn.ravel(), minlength=rows * units)
        weights[begin : begin + rows] = counts.reshape(rows, units)
    return weights


def resampled_scores(
    tally: npt.NDArray[Any], weights: Weights, score: Callable[[npt.NDArray[Any]], npt.ArrayLike]
) -> Floats:
    """The score on each resampled test set, (..., resamples).

    Args:
        tally: (..., units, columns), what each unit adds to the sums that a score is made of
            (``Units.summed``); of one run or of several.
        weights: see ``unit_weights``.
        score: sums (..., resamples, columns) to scores (..., resamples).

    Returns:
        NaN where there are fewer than two units: one dialogue does not tell how dialogues differ.
    """
    *runs, units, columns = tally.shape
    if units < 2:
        return np.full((*runs, len(weights)), np.nan)
    # One product for all runs. Counts stay exact in 32 bits; a sum of shares has seven digits.
    by_unit = np.moveaxis(tally, -2, 0).reshape(units, -1).astype(np.float32)
    sums = np.moveaxis((weights @ by_unit).reshape(len(weights), *runs, columns), 0, -2)
    return np.asarray(score(sums), np.float64)
