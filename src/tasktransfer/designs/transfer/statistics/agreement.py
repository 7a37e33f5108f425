"""Agreement of models and of algorithms on transfer.

The paper's central claim is that trends are specific to a model (sections 6.1 and 7). This module
measures it: the rank correlation of two models' transfer matrices, and the highest value that their
noise allows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.statistics.race import select_fresh_deltas
from tasktransfer.designs.transfer.statistics.single_source import (
    average_over_seeds,
    build_cube,
    group_by_dataset,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.metadata import Order
from tasktransfer.results.store import build_frame
from tasktransfer.stats.correlation import compute_matrix_correlation, compute_spearman
from tasktransfer.stats.draws import Floats, create_generator

MOST_SPLITS = 40


def make_agreement(frames: Frames) -> pd.DataFrame:
    """Return the frame ``agreement``."""
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
    """Summarise the agreement of models and of algorithms, in one row per dataset and type.

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
    """Yield (between, held, a, b) and the keys of the two matrices, models first."""
    for between, compared in (("model", 0), ("algorithm", 1)):
        for a, b in itertools.combinations(keys, 2):
            if a[1 - compared] == b[1 - compared]:
                yield (between, a[1 - compared], a[compared], b[compared]), a, b


def _compare_matrices(a: Floats, b: Floats, *names: str) -> tuple[Any, ...]:
    """Compute the numbers of a row from two groups' deltas (sources × targets × seeds)."""
    correlation = compute_matrix_correlation(average_over_seeds(a), average_over_seeds(b), *names)
    return *astuple(correlation), *_compare_halves(a, b, *names)


def _compare_halves(a: Floats, b: Floats, *names: str) -> tuple[float, float]:
    """Compute ``disjoint`` and ``reliability`` of two groups (sources × targets × seeds)."""
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
    """Yield splits of the seeds into halves: all splits, or 40 random ones if there are more.

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
