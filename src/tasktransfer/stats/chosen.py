"""What the best of several is worth: chosen on some numbers, judged by others.

The largest of several noisy means is too large: with nine sources, the baseline as the tenth
candidate and five seeds, 0.69 of a run's standard deviation over seeds when no source has any
effect. A value is honest if what it is measured on had no part in the choice.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import stats

from tasktransfer.stats.resampling import Floats, generator

LEVEL = 0.95
MOST_FLIPS = 512


def held_out(deltas: Floats) -> Floats:
    """The delta, seed by seed, of the candidate that has the best mean on the other seeds.

    Args:
        deltas: (..., candidates, seeds), two seeds at least. Doing nothing is a candidate of its
            own, with delta 0, and wins where no candidate's mean is above 0.

    Returns:
        (..., seeds).
    """
    with_nothing = _with_nothing(deltas)
    others = with_nothing.sum(axis=-1, keepdims=True) - with_nothing
    picked = others.argmax(axis=-2)
    result: Floats = np.take_along_axis(with_nothing, picked[..., None, :], axis=-2)[..., 0, :]
    return result


def chosen_by(deltas: Floats, by: Floats) -> Floats:
    """The deltas of the candidate that has the best mean of other numbers; 0 where none of these
    means is above 0.

    Args:
        deltas, by: (..., candidates, seeds).

    Returns:
        (..., seeds).
    """
    picked = _with_nothing(by).mean(axis=-1).argmax(axis=-1)
    values = _with_nothing(deltas)
    result: Floats = np.take_along_axis(values, picked[..., None, None], axis=-2)[..., 0, :]
    return result


def _with_nothing(deltas: Floats) -> Floats:
    """0 first, so that a tie is nothing's."""
    return np.concatenate([np.zeros_like(deltas[..., :1, :]), deltas], axis=-2)


def heldout_variance(deltas: Floats) -> float:
    """Variance of the mean over seeds of ``held_out``, for one target, (candidates, seeds).

    The values of two seeds are not independent, since each has chosen for the other: their spread
    over seeds gives intervals that hold the truth in 87 of 100 studies. So the choice is made again
    on data of the same spread: the deviations of each seed from the means, with a sign drawn for
    the whole seed (a wild bootstrap). With up to nine seeds all signs are gone through.
    """
    return _variance(deltas, None)


def chosen_variance(deltas: Floats, by: Floats) -> float:
    """Variance of the mean over seeds of ``chosen_by``, as in ``heldout_variance``; a seed has one
    sign for both."""
    return _variance(deltas, by)


def _variance(deltas: Floats, by: Floats | None) -> float:
    seeds = deltas.shape[-1]
    signs = _signs(seeds)[:, None, :]
    again = _redrawn(deltas, signs)
    values = held_out(again) if by is None else chosen_by(again, _redrawn(by, signs))
    return float(values.mean(axis=-1).var())


def _redrawn(values: Floats, signs: Floats) -> Floats:
    """(draws, candidates, seeds)."""
    seeds = values.shape[-1]
    mean = values.mean(axis=-1, keepdims=True)
    # Deviations from a mean of n are too small by this factor.
    result: Floats = mean + (values - mean) * np.sqrt(seeds / (seeds - 1)) * signs
    return result


def _signs(seeds: int) -> Floats:
    """(draws, seeds) of 1 and -1."""
    if 2**seeds <= MOST_FLIPS:
        return np.array(list(itertools.product([1.0, -1.0], repeat=seeds)))
    half = generator("signs", str(seeds)).choice([1.0, -1.0], size=(MOST_FLIPS // 2, seeds))
    return np.concatenate([half, -half])


def half_width(variances: Floats, seeds: Floats) -> float:
    """Half of the 95 % interval of a mean over independent targets.

    Args:
        variances: (targets,) of each target's value.
        seeds: (targets,) behind each.
    """
    degrees = float((seeds - 1).sum())
    error = float(np.sqrt(variances.sum())) / len(variances)
    return float(stats.t.ppf((1 + LEVEL) / 2, degrees)) * error
