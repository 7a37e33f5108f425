"""Single-source deltas of a study, in groups and as square arrays.

A *group* is one dataset, model and algorithm. Its transfer matrix has one row per source and one
column per target, with NaN on the diagonal and for missing runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasktransfer.results.metadata import Order, order_names
from tasktransfer.stats.draws import Floats

GROUP = ["dataset", "model", "algorithm"]


def select_single_source(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of deltas or cells that have one source and a delta."""
    return frame[(frame["n_sources"] == 1) & frame["delta"].notna()]


def list_distinct(values: pd.Series, key: str, order: Order | None) -> list[str]:
    """Return the distinct names in a column: in the study's order, then others alphabetically."""
    return order_names(sorted(values.unique()), (order or {}).get(key, ()))


def group_by_dataset(
    frame: pd.DataFrame, order: Order | None
) -> Iterator[tuple[str, list[str], dict[tuple[str, str], pd.DataFrame]]]:
    """Yield each dataset's name, its tasks in order, and its rows by (model, algorithm)."""
    singles = select_single_source(frame)
    for dataset in list_distinct(singles["dataset"], "dataset", order):
        rows = singles[singles["dataset"] == dataset]
        tasks = list_distinct(pd.concat([rows["target"], rows["source"]]), "task", order)
        groups = dict(iter(rows.groupby(["model", "algorithm"], sort=False)))
        models = list_distinct(rows["model"], "model", order)
        algorithms = list_distinct(rows["algorithm"], "algorithm", order)
        keys = [(model, name) for model in models for name in algorithms if (model, name) in groups]
        yield dataset, tasks, {key: groups[key] for key in keys}


def build_cube(rows: pd.DataFrame, tasks: Sequence[str], seeds: Sequence[int]) -> Floats:
    """Return the deltas of one group as an array, sources × targets × seeds, NaN if missing."""
    result = np.full((len(tasks), len(tasks), len(seeds)), np.nan)
    positions = (
        _locate_values(rows["source"], tasks),
        _locate_values(rows["target"], tasks),
        _locate_values(rows["seed"], seeds),
    )
    result[positions] = rows["delta"].to_numpy()
    return result


def build_matrix(rows: pd.DataFrame, tasks: Sequence[str], column: str) -> Floats:
    """Return a column of distinct pairs as an array, sources × targets, NaN if missing.

    Pairs with other tasks are left out.
    """
    result = np.full((len(tasks), len(tasks)), np.nan)
    source, target = _locate_values(rows["source"], tasks), _locate_values(rows["target"], tasks)
    placed = (source >= 0) & (target >= 0)
    result[source[placed], target[placed]] = rows[column].to_numpy()[placed]
    return result


def _locate_values(values: pd.Series, names: Sequence[Any]) -> NDArray[np.intp]:
    """Return the index of each value in ``names``, or -1 if it is absent."""
    positions: NDArray[np.intp] = pd.Index(names).get_indexer(pd.Index(values))
    return positions


def average_over_seeds(values: Floats) -> Floats:
    """Return the mean over the last axis, ignoring NaN, or NaN if all values are missing."""
    there = ~np.isnan(values)
    total: Floats = np.where(there, values, 0.0).sum(axis=-1)
    count = there.sum(axis=-1)
    result: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return result
