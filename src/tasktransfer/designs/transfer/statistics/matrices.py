"""Structure of transfer matrices: agreement, asymmetry and variance components.

The paper's central claim is that trends are specific to a model (sections 6.1 and 7). The frame
``agreement`` measures it: the rank correlation of two models' transfer matrices, and the highest
value that their noise allows. The frame ``asymmetry`` has the difference between the two directions
of a pair of tasks, and ``variance`` the variance that sources, targets and seeds explain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.statistics.deltas import (
    average_over_seeds,
    build_cube,
    group_by_dataset,
    select_fresh_deltas,
    select_single_source,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Order, build_frame
from tasktransfer.stats.bootstrap import Estimate, compute_confidences, compute_q_values
from tasktransfer.stats.correlation import compute_matrix_correlation, compute_spearman
from tasktransfer.stats.draws import Floats, create_generator

# --- agreement of models and of algorithms ---


MOST_SPLITS = 40


def make_agreement(frames: Frames) -> pd.DataFrame:
    """Return the frame ``agreement``, which compares the transfer matrices of a study."""
    return compute_agreement(frames.compute_once(select_fresh_deltas), frames.metadata.order)


def compute_agreement(deltas: pd.DataFrame, order: Order | None = None) -> pd.DataFrame:
    """Compare transfer matrices of mean deltas between models and between algorithms.

    Args:
        deltas: columns of ``columns.DELTAS``; multi-source runs are ignored.
        order: order of the rows (``Metadata.order``).

    Returns:
        Columns of ``columns.AGREEMENT``: one row for every two models that share an algorithm, and
        for every two algorithms that share a model. NaN if a number cannot be computed. Two
        algorithms of a model are compared with the same baseline runs, whose noise raises their
        ``correlation``; two models share no baselines. ``disjoint`` avoids this bias. It splits the
        common seeds into two halves and correlates one item's deltas on one half with the other
        item's on the other half. It is the mean over splits and both directions. ``reliability`` is
        this value for a matrix with itself (the geometric mean for the two matrices): trends differ
        if ``disjoint`` is well below it.
    """
    rows: list[tuple[Any, ...]] = []
    for dataset, tasks, groups in group_by_dataset(deltas, order):
        seeds = sorted({int(seed) for group in groups.values() for seed in group["seed"].unique()})
        cubes = {key: build_cube(group, tasks, seeds) for key, group in groups.items()}
        rows += [
            (dataset, *names, *_compare_matrices(cubes[a], cubes[b], dataset, *names))
            for names, a, b in _list_comparisons(list(groups))
        ]
    return build_frame(rows, columns.AGREEMENT)


def summarise_agreement(agreement: pd.DataFrame) -> pd.DataFrame:
    """Summarise the agreement between models and between algorithms, one row per dataset.

    Args:
        agreement: columns of ``columns.AGREEMENT``.

    Returns:
        One row per dataset and ``between`` (model, algorithm). ``comparisons``: number of pairs of
        matrices with a correlation; ``correlation``, ``lowest`` and ``highest``: its mean, minimum
        and maximum over them; ``disjoint`` and ``reliability``: means; ``agreeing``: number of
        correlations above 0 with p <= 0.05.
    """
    compared = agreement[agreement["correlation"].notna()]
    marked = compared.assign(agreeing=(compared["p"] <= 0.05) & (compared["correlation"] > 0))
    return (
        marked.groupby(["dataset", "between"], sort=False)
        .agg(
            comparisons=("correlation", "size"),
            correlation=("correlation", "mean"),
            lowest=("correlation", "min"),
            highest=("correlation", "max"),
            disjoint=("disjoint", "mean"),
            reliability=("reliability", "mean"),
            agreeing=("agreeing", "sum"),
        )
        .reset_index()
    )


_Key = tuple[str, str]
"""Model and algorithm."""


def _list_comparisons(
    keys: Sequence[_Key],
) -> Iterator[tuple[tuple[str, str, str, str], _Key, _Key]]:
    """Yield the pairs of transfer matrices that are compared, models first."""
    for between, compared in (("model", 0), ("algorithm", 1)):
        for a, b in itertools.combinations(keys, 2):
            if a[1 - compared] == b[1 - compared]:
                yield (between, a[1 - compared], a[compared], b[compared]), a, b


def _compare_matrices(a: Floats, b: Floats, *names: str) -> tuple[Any, ...]:
    """Compare two transfer matrices from their deltas (sources × targets × seeds)."""
    correlation = compute_matrix_correlation(average_over_seeds(a), average_over_seeds(b), *names)
    return *astuple(correlation), *_compare_halves(a, b, *names)


def _compare_halves(a: Floats, b: Floats, *names: str) -> tuple[float, float]:
    """Compare the matrices of disjoint seed halves, and compute their reliability."""
    # Use only what both groups have, so that the two numbers cover the same cells and seeds.
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = np.where(both, a, np.nan), np.where(both, b, np.nan)
    used = np.flatnonzero(both.any(axis=(0, 1)))
    disjoint, own_a, own_b = [], [], []
    for first, second in _split_seeds(used, create_generator(*names, a, b)):
        a1, a2 = average_over_seeds(a[..., first]), average_over_seeds(a[..., second])
        b1, b2 = average_over_seeds(b[..., first]), average_over_seeds(b[..., second])
        disjoint += [compute_spearman(a1, b2), compute_spearman(a2, b1)]
        own_a.append(compute_spearman(a1, a2))
        own_b.append(compute_spearman(b1, b2))
    reliability = math.sqrt(
        max(0.0, _average_without_nan(own_a)) * max(0.0, _average_without_nan(own_b))
    )
    return _average_without_nan(disjoint), reliability if own_a else math.nan


def _split_seeds(
    seeds: np.ndarray[Any, np.dtype[np.int64]], random: np.random.Generator
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield divisions of the seeds into halves: all divisions, or 40 random ones.

    Nothing is yielded for one seed.
    """
    half = len(seeds) // 2
    if half == 0:
        return
    if math.comb(len(seeds), half) <= MOST_SPLITS:
        firsts = [set(first) for first in itertools.combinations(seeds.tolist(), half)]
    else:
        firsts = [set(random.permutation(seeds)[:half].tolist()) for _ in range(MOST_SPLITS)]
    for first in firsts:
        yield sorted(first), [seed for seed in seeds.tolist() if seed not in first]


def _average_without_nan(values: Sequence[float]) -> float:
    finite = [value for value in values if not math.isnan(value)]
    return sum(finite) / len(finite) if finite else math.nan


# --- asymmetry of pairs ---


_CELL = ["dataset", "model", "algorithm", "source", "target"]


def make_asymmetry(frames: Frames) -> pd.DataFrame:
    """Return the frame ``asymmetry``, which compares both directions of a pair of tasks."""
    deltas = frames.compute_once(select_fresh_deltas)
    return compute_asymmetry(frames["cells"], deltas, frames.metadata.order)


def compute_asymmetry(
    cells: pd.DataFrame, deltas: pd.DataFrame, order: Order | None = None
) -> pd.DataFrame:
    """Compare the delta of a → b with the delta of b → a, for each pair of tasks that has both.

    The two are not independent: with pretrain_finetune, a → b starts from the baseline of b → a. So
    they are paired by seed, each run with the baseline of its seed. The variance has three parts:
    that of the mean difference over seeds, with n - 1 degrees of freedom, and for each of the two
    cells that of resampled dialogues, because their test sets differ. Interval and p are computed
    from the three parts, as ``bootstrap`` does for a cell.

    Args:
        cells: columns of ``columns.CELLS``; multi-source cells are ignored.
        deltas: columns of ``columns.DELTAS`` of the same study.
        order: order of the rows (``Metadata.order``).

    Returns:
        Columns of ``columns.ASYMMETRY``. Deltas are means over the seeds that both directions
        have. With one common seed, interval and p apply to that seed's runs only, as in the cells,
        and q is NaN. Interval and p are NaN if a cell has no standard error, or has more seeds than
        the common one.
    """
    pairs = _compare_directions(cells, _group_by_seed(deltas), order)
    sure = compute_confidences([difference for _, difference in pairs])
    rows = [
        (
            *names,
            difference.delta,
            difference.seeds,
            confidence.low,
            confidence.high,
            confidence.p,
            math.nan,
        )
        for (names, difference), confidence in zip(pairs, sure, strict=True)
    ]
    result = build_frame(rows, columns.ASYMMETRY)
    several = result["p"].where(result["n_seeds"] > 1)
    result["q"] = several.groupby(result["dataset"], sort=False).transform(compute_q_values)
    return result


_Pair = tuple[tuple[Any, ...], Estimate]
"""Columns up to b_to_a, and the difference."""

_BySeed = Mapping[int, float]


def _group_by_seed(deltas: pd.DataFrame) -> dict[tuple[str, ...], dict[int, float]]:
    """Map each (dataset, model, algorithm, source, target) to its deltas by seed."""
    series: dict[tuple[str, ...], dict[int, float]] = {}
    columns = select_single_source(deltas)[[*_CELL, "seed", "delta"]]
    for *key, seed, delta in columns.itertuples(index=False, name=None):
        series.setdefault(tuple(key), {})[seed] = delta
    return series


def _compare_directions(
    cells: pd.DataFrame, series: Mapping[tuple[str, ...], _BySeed], order: Order | None
) -> list[_Pair]:
    result = []
    for dataset, tasks, groups in group_by_dataset(cells, order):
        for (model, algorithm), group in groups.items():
            key = (dataset, model, algorithm)
            by_pair = {(str(row.source), str(row.target)): row for row in group.itertuples()}
            for a, b in itertools.combinations(tasks, 2):
                there, back = series.get((*key, a, b)), series.get((*key, b, a))
                if (a, b) in by_pair and (b, a) in by_pair and there and back:
                    both = by_pair[a, b], by_pair[b, a]
                    result.append(_estimate_difference((*key, a, b), *both, there, back))
    return result


def _estimate_difference(
    names: tuple[str, ...], there: Any, back: Any, to_b: _BySeed, to_a: _BySeed
) -> _Pair:
    seeds = sorted(set(to_b) & set(to_a))
    if not seeds:
        unknown = Estimate(math.nan, (), 0)
        return (*names, there.delta, back.delta), unknown
    left = np.array([to_b[seed] for seed in seeds])
    right = np.array([to_a[seed] for seed in seeds])
    both, alone = (there, back), len(to_b) == len(to_a) == 1
    parts = (
        (_compute_seed_variance(left - right, alone=alone), _compute_seed_degrees(len(seeds))),
        *((cell.test_error**2, _get_test_degrees(cell)) for cell in both),
    )
    means = float(left.mean()), float(right.mean())
    return (*names, *means), Estimate(means[0] - means[1], parts, len(seeds))


def _get_test_degrees(cell: Any) -> float:
    """Return the degrees of freedom of a cell's test error, or 1 if the error is always 0."""
    return 1.0 if math.isnan(cell.test_degrees) else float(cell.test_degrees)


def _compute_seed_degrees(count: int) -> float:
    return float(max(1, count - 1))


def _compute_seed_variance(differences: Floats, *, alone: bool) -> float:
    """Return the variance over seeds of the mean of paired differences.

    One difference does not show it, so it is NaN. It is 0 if ``alone``, that is, if neither cell
    has another seed, because the cells then leave out the variance over seeds, too.
    """
    if len(differences) > 1:
        return float(differences.var(ddof=1)) / len(differences)
    return 0.0 if alone else math.nan


# --- variance components ---


def make_variance(frames: Frames) -> pd.DataFrame:
    """Return the frame ``variance``, the variance components of deltas."""
    return compute_variance(frames.compute_once(select_fresh_deltas), frames.metadata.order)


def compute_variance(deltas: pd.DataFrame, order: Order | None = None) -> pd.DataFrame:
    """Estimate four variance components for each dataset, model and algorithm.

    The model has crossed random effects::

        delta[s, t, k] = mean + source[s] + target[t] + both[s, t] + seed[s, t, k]

    Its components are estimated by the method of moments. Half the mean squared difference of two
    deltas estimates the sum of the components that the two do not share:

    - same source and target, other seed: seed
    - same source, other target: target + both + seed
    - same target, other source: source + both + seed
    - other source and other target: source + target + both + seed

    Four equations give the four components (Koch, 1967). They hold for any set of runs, also with
    missing runs. Pairs of deltas with one seed are left out of the last three means. Deltas of one
    target share their baseline run, and deltas of one source (pretrain_finetune) share the source
    model; this would count as target or as source. A task's effects as a source and as a target are
    assumed to be independent.

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
    """Return the variance components of a group, as (component, variance, fraction)."""
    variances = np.maximum(_estimate_components(group), 0.0)  # NaN stays NaN
    total = float(np.nansum(variances))
    shares = variances / total if total > 0 else np.full(len(variances), np.nan)
    return list(zip(columns.COMPONENTS, variances.tolist(), shares.tolist(), strict=True))


def _estimate_components(group: pd.DataFrame) -> tuple[float, float, float, float]:
    """Estimate the variances of source, target, their interaction and seed.

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
    """Sum the squared differences between deltas that agree in the columns ``same``."""
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
