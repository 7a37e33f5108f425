"""Interval and test of a mean delta, from the variances of seeds and of dialogues.

A cell is the difference of two mean scores on one test set: the mean of S transfer runs minus the
mean of B baselines, each trained with its own seed. Both the seeds and the dialogues of the test
set are samples, and the estimated quantity is the expectation over both. They are crossed (every
seed answers every dialogue), so the variance is

    Var = V_seed + (V_dialogue - V_both)

    V_seed      variance of the two means over seeds, see below
    V_dialogue  variance of their difference over other dialogues (``stats.draws``)
    V_both      their common part: seeds that differ on the same dialogues increase both V_seed and
                V_dialogue. It is V_seed of the change that other dialogues cause in each training,
                averaged over dialogues.

This is the variance of the joint bootstrap without its two well-known faults. A naive bootstrap
with S seeds has the factor (S - 1)/S, which halves the variance for two seeds and reduces it by a
fifth for five, and it counts V_both more than once (Brennan 2007, "Unbiased estimates of variance
components with bootstrap procedures"; Owen and Eckles 2012, "Bootstrapping data arrays of
arbitrary order"). The resampling of seeds needs no random numbers: its variance has a closed form.

A difference uses the seeds that both sides have. Otherwise a difference would also reflect the
seeds, and runs that equal their baselines seed by seed would seem to differ if some are missing. A
study may have trained baselines of further seeds on purpose (``more_baselines``); only these count
in addition to the shared seeds. For m shared seeds and B baselines, V_seed is the sum of

    m s^2(t / m - b / B)      the pairs,                       m - 1 degrees of freedom
    (B - m) s^2(b) / B^2      baselines without a run,         B - 1 degrees of freedom

where s^2 is the variance over seeds. With B = m this is the variance of the mean of the paired
differences. For one pair the covariance is unknown, so all baselines count as baselines without a
run.

A variance estimated from five seeds is itself uncertain, so quantiles of the normal distribution
would be too small. Each part has a t distribution with its own degrees of freedom d (for dialogues
``Units.degrees``). With w its fraction of Var, and z and t the quantiles at level a,

    (half width of the interval at level 1 - a)^2
        = Var (z^2 + sum over parts of w^1.5 (t_d^2 - z^2))

and p is the a at which the interval begins to contain 0. For a single part this is exact (for
normal deviations). For several parts the power matters. Power 1 adds the parts' squared half
widths, and covers up to 96.6 % instead of 95 % with five seeds. Power 2 is close to Satterthwaite's
degrees of freedom, which cover 90 to 94 % with two or three seeds; p <= 0.001, which matters for
false-discovery control, is then up to 27 times too frequent. Power 1.5 covers 94 to 97 %
(docs/analysis.md has the simulated studies). ``compute_q_values`` controls that rate over many
tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from tasktransfer.stats.draws import Floats, Units

VERSION = 3
"""Version of the estimates; raise it if they or intervals change, to recompute cached rows."""

LEVEL = 0.95

_NOTHING = 1e-9
"""A standard error below this is rounding, in points."""

_SHARE_POWER = 1.5
"""Power that combines the degrees of freedom of several variances, see above."""


@dataclass(frozen=True, slots=True)
class Trainings:
    """Scores of training runs that differ only in their seeds.

    Args:
        seeds: the seeds.
        scores: scores, shape (seeds,), 0-100.
        resampled: scores on resampled test sets, shape (seeds, test sets), whose variance is that
            over test sets. None without predictions; then intervals are over seeds only.
    """

    seeds: tuple[int, ...]
    scores: Floats
    resampled: Floats | None = None

    @property
    def score_changes(self) -> Floats:
        """Change of each score on resampled test sets, shape (seeds, test sets).

        It is centred, because the mean over test sets is the bias of resampling.
        """
        assert self.resampled is not None
        moved: Floats = self.resampled - self.resampled.mean(axis=1, keepdims=True)
        return moved

    def select_seeds(self, seeds: Sequence[int]) -> Trainings:
        """Select the trainings with given seeds, in that order."""
        at = [self.seeds.index(seed) for seed in seeds]
        resampled = None if self.resampled is None else self.resampled[at]
        return Trainings(tuple(seeds), self.scores[at], resampled)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean delta with its variances.

    Args:
        delta: mean delta in points, over the seeds that both sides have; NaN without such seeds.
        parts: independent variances whose sum is the delta's variance, each with its degrees of
            freedom; empty if the variance is unknown.
        seeds: number of seeds that both sides have.
        of_test_set: the variance due to dialogues or instances; NaN if unknown.
    """

    delta: float
    parts: tuple[tuple[float, float], ...]
    seeds: int
    of_test_set: float = 0.0

    @property
    def standard_error(self) -> float:
        """Standard error of the mean delta in points, or NaN if it is unknown."""
        return float(sum(variance for variance, _ in self.parts)) ** 0.5 if self.parts else np.nan


@dataclass(frozen=True, slots=True)
class Confidence:
    """A 95 % interval, the two-sided p of no effect, and degrees of freedom; NaN if unknown.

    The degrees of freedom are those of the t distribution that gives this interval.
    """

    low: float
    high: float
    p: float
    degrees: float


def estimate_delta(
    transfer: Trainings,
    baseline: Trainings,
    units: Units | None = None,
    *,
    more_baselines: bool = False,
) -> Estimate:
    """Estimate a cell's mean delta and its variances, over the seeds of both sides.

    Args:
        transfer, baseline: trainings; both or neither have resampled scores, on the same resamples.
        units: resampled units; None without resampled scores.
        more_baselines: true to include baselines of seeds without a run, if they were trained to
            make the baseline more precise. Never because runs are missing.

    Returns:
        The estimate. Without a shared seed, delta is NaN, ``seeds`` is 0, ``parts`` is empty, and
        its ``Confidence`` is NaN. With one seed the standard error covers only the test set, not
        the variation between trainings. It is NaN with one seed and no predictions, and with fewer
        than two dialogues.

    Scores change in steps of about 100 / instances. If seeds agree exactly, this is due to
    rounding, so their variance is at least that of rounding.
    """
    shared = [seed for seed in transfer.seeds if seed in set(baseline.seeds)]
    if not shared:
        return Estimate(np.nan, (), 0, np.nan)
    transfer = transfer.select_seeds(shared)
    unpaired = [seed for seed in baseline.seeds if seed not in shared] if more_baselines else []
    baseline = baseline.select_seeds([*shared, *unpaired])
    delta = float(transfer.scores.mean() - baseline.scores.mean())
    parts = [
        (float(variance), degrees)
        for variance, degrees in _compute_seed_parts(transfer.scores, baseline.scores)
    ]
    seeds = len(shared)
    if units is None:
        unknown = np.nan if seeds < 2 else 0.0
        return Estimate(delta, tuple(parts) if seeds > 1 else (), seeds, unknown)
    assert transfer.resampled is not None
    assert baseline.resampled is not None
    drawn = transfer.resampled.mean(axis=0) - baseline.resampled.mean(axis=0)
    of_units = float(drawn.var(ddof=1))
    both = _compute_seed_parts(transfer.score_changes, baseline.score_changes)
    in_both = float(sum(variance.sum() for variance, _ in both)) / (len(drawn) - 1)
    if parts and of_units > 0:
        step = 100 / units.instances
        parts[0] = (max(parts[0][0], step**2 / 12 / seeds), parts[0][1])
    # Not max(), which would turn an unknown variance into 0.
    of_test_set = float(np.maximum(0.0, of_units - in_both))
    parts.append((of_test_set, units.degrees))
    return Estimate(delta, tuple(parts), seeds, of_test_set)


def _compute_seed_parts(transfer: Floats, baseline: Floats) -> list[tuple[Floats, float]]:
    """Return the components of V_seed with their degrees of freedom.

    Values have shape (seeds, ...), and the baselines begin with those of the runs' seeds. One seed
    has no variance, so its part is left out.
    """
    runs, baselines = len(transfer), len(baseline)
    paired = runs if runs > 1 else 0
    parts = []
    if paired:
        both = transfer / runs - baseline[:runs] / baselines
        parts.append((runs * both.var(axis=0, ddof=1), float(runs - 1)))
    if baselines > max(1, paired):
        variance = (baselines - paired) / baselines**2 * baseline.var(axis=0, ddof=1)
        parts.append((variance, float(baselines - 1)))
    return parts


def compute_confidence(estimated: Estimate) -> Confidence:
    """Compute interval and test of one mean delta (see ``compute_confidences``)."""
    return compute_confidences([estimated])[0]


def compute_mean_confidence(
    trainings: Trainings, units: Units | None, *, least: float = 0.0, most: float = 100.0
) -> Confidence:
    """Compute the interval and test of one mean score (see ``compute_mean_confidences``)."""
    return compute_mean_confidences([(trainings, units)], least=least, most=most)[0]


def compute_mean_confidences(
    several: Sequence[tuple[Trainings, Units | None]], *, least: float = 0.0, most: float = 100.0
) -> list[Confidence]:
    """Compute each mean score's interval and its test against 0.

    A score near an end of its scale varies more towards the middle than towards the end. So the
    interval is computed on the score's logit, and lies within the scale. For correlations, from
    -100 to 100, this is Fisher's z. A scale that is open at one end, and a score at an end, have
    the plain interval, clipped to the scale.

    Args:
        several: trainings and units of each score, see ``estimate_delta``.
        least, most: ends of the scores' scale.
    """
    estimates = [_estimate_mean(*of) for of in several]
    sure = compute_confidences(estimates)
    if np.isinf([least, most]).any():
        return [_clip_confidence(one, least, most) for one in sure]
    width = most - least
    # Relative to the logit of 0, so that the test is of 0. If 0 is an end, the plain test is used.
    tests_zero = least < 0 < most
    origin = float(special.logit(-least / width)) if tests_zero else 0.0
    inside = [
        index
        for index, (one, confidence) in enumerate(zip(estimates, sure, strict=True))
        if least < one.delta < most and not np.isnan(confidence.low)
    ]
    logits = []
    for one in (estimates[index] for index in inside):
        slope = width / ((one.delta - least) * (most - one.delta))
        parts = tuple((slope**2 * variance, degrees) for variance, degrees in one.parts)
        away = float(special.logit((one.delta - least) / width)) - origin
        logits.append(replace(one, delta=away, parts=parts))
    found = [_clip_confidence(one, least, most) for one in sure]
    for index, of_logit in zip(inside, compute_confidences(logits), strict=True):
        ends = special.expit([of_logit.low + origin, of_logit.high + origin])
        low, high = (least + width * ends).tolist()
        p = of_logit.p if tests_zero else sure[index].p
        found[index] = replace(sure[index], low=low, high=high, p=p)
    return found


def _estimate_mean(trainings: Trainings, units: Units | None) -> Estimate:
    resampled = trainings.resampled
    nowhere = None if resampled is None else np.zeros_like(resampled)
    nothing = Trainings(trainings.seeds, np.zeros_like(trainings.scores), nowhere)
    return estimate_delta(trainings, nothing, units)


def _clip_confidence(confidence: Confidence, least: float, most: float) -> Confidence:
    low, high = np.clip([confidence.low, confidence.high], least, most).tolist()
    return replace(confidence, low=low, high=high)


def compute_confidences(estimates: Sequence[Estimate]) -> list[Confidence]:
    """Compute interval and test of each mean delta.

    A standard error of 0 (every seed has the same delta, and no instance matters) does not mean
    certainty. For equal runs with delta 0, the interval is [0, 0] and p is 1. For another delta
    there is no interval, and p is that of the sign test over seeds, 2 / 2^seeds.
    """
    regular = [one for one in estimates if one.standard_error >= _NOTHING]
    sure = iter(_compute_regular_confidences(regular) if regular else ())
    return [
        next(sure) if one.standard_error >= _NOTHING else _build_degenerate_confidence(one)
        for one in estimates
    ]


def _compute_regular_confidences(estimates: Sequence[Estimate]) -> list[Confidence]:
    delta = np.array([one.delta for one in estimates])
    error = np.array([one.standard_error for one in estimates])
    widest = max(len(one.parts) for one in estimates)
    padded = [(*one.parts, *[(0.0, 1.0)] * (widest - len(one.parts))) for one in estimates]
    variances, degrees = np.moveaxis(np.array(padded), 2, 0)
    shares = (variances / error[:, None] ** 2) ** _SHARE_POWER

    def compute_half_width(level: npt.ArrayLike) -> Floats:
        """Compute the half width of an interval in standard errors, given its error probability."""
        tail = np.asarray(level, np.float64)[..., None] / 2
        normal = special.ndtri(tail) ** 2
        more = special.stdtrit(degrees, tail) ** 2 - normal
        squared = normal[..., 0] + (shares * more).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(squared, 0)), np.float64)

    at_level = compute_half_width(1 - LEVEL)
    # At least e^-300, where squared quantiles with one degree of freedom are still finite.
    size, away, tail = len(estimates), np.abs(delta) / error, (1 - LEVEL) / 2
    p = np.exp(
        _find_falling_root(lambda x: compute_half_width(np.exp(x)) - away, -300.0, 0.0, size)
    )
    like = np.exp(
        _find_falling_root(lambda x: -special.stdtrit(np.exp(x), tail) - at_level, 0.0, 14.0, size)
    )
    p[np.isnan(at_level)] = np.nan
    return [
        Confidence(*map(float, row))
        for row in zip(delta - at_level * error, delta + at_level * error, p, like, strict=True)
    ]


def _find_falling_root(
    function: Callable[[Floats], Floats], low: float, high: float, size: int
) -> Floats:
    """Find the root of each element of a decreasing function by bisection.

    If there is no root between ``low`` and ``high``, the closer end is returned.
    """
    left, right = np.full(size, low), np.full(size, high)
    for _ in range(60):
        middle = (left + right) / 2
        above = function(middle) > 0
        left, right = np.where(above, middle, left), np.where(above, right, middle)
    return right


def _build_degenerate_confidence(estimated: Estimate) -> Confidence:
    if not np.isfinite(estimated.standard_error):
        return Confidence(np.nan, np.nan, np.nan, np.nan)
    if abs(estimated.delta) < _NOTHING:
        return Confidence(0.0, 0.0, 1.0, np.nan)
    return Confidence(np.nan, np.nan, min(1.0, 2.0 / 2**estimated.seeds), np.nan)


def compute_q_values(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Compute Benjamini-Hochberg q-values from p-values. NaN does not count as a test.

    The procedure is proven to control its rate for independent tests and for positively dependent
    one-sided tests (Benjamini and Yekutieli 2001). Two-sided tests that share baselines and test
    sets are neither; in simulated heatmaps the rate is controlled (docs/analysis.md).
    """
    from scipy.stats import false_discovery_control  # noqa: PLC0415  # slow to import

    values = np.asarray(p, np.float64)
    q = np.full(values.shape, np.nan)
    tested = np.isfinite(values)
    if tested.any():
        q[tested] = false_discovery_control(values[tested], method="bh")
    return q
