"""Single-source deltas: groups, square arrays, and the seeds of a race that are unbiased.

A *group* is one dataset, model and algorithm. Its transfer matrix has one row per source and one
column per target, with NaN on the diagonal and for missing runs.

In a race, a kept pair was selected by its scores on earlier seeds. Its mean over these seeds is
biased upwards, and no interval over them is valid. So the cells of a raced study use the seeds
after the last selection, and a pair that left the race has no interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.choices import (
    NAMES,
    NO_INTERVAL,
    Cell,
    Race,
    count_continuing_sources,
    read_race,
)
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Order, build_frame, order_names
from tasktransfer.results.study import Study
from tasktransfer.selection.choose import select_dev_deltas
from tasktransfer.stats.draws import Floats

# --- groups and arrays ---


GROUP = ["dataset", "model", "algorithm"]


def select_single_source(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of single-source transfers that have a delta."""
    return frame[(frame["n_sources"] == 1) & frame["delta"].notna()]


def list_distinct(values: pd.Series, key: str, order: Order | None) -> list[str]:
    """Return the distinct names in a column, in the study's order (other names alphabetically)."""
    return order_names(sorted(values.unique()), (order or {}).get(key, ()))


def group_by_dataset(
    frame: pd.DataFrame, order: Order | None
) -> Iterator[tuple[str, list[str], dict[tuple[str, str], pd.DataFrame]]]:
    """Yield each dataset with its ordered tasks and its rows by (model, algorithm)."""
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
    """Return a group's deltas as an array (sources, targets, seeds), with NaN for missing ones."""
    result = np.full((len(tasks), len(tasks), len(seeds)), np.nan)
    positions = (
        _locate_values(rows["source"], tasks),
        _locate_values(rows["target"], tasks),
        _locate_values(rows["seed"], seeds),
    )
    result[positions] = rows["delta"].to_numpy()
    return result


def build_matrix(rows: pd.DataFrame, tasks: Sequence[str], column: str) -> Floats:
    """Return a column as a matrix (sources, targets), with NaN for missing pairs.

    Pairs with other tasks are left out.
    """
    result = np.full((len(tasks), len(tasks)), np.nan)
    source, target = _locate_values(rows["source"], tasks), _locate_values(rows["target"], tasks)
    placed = (source >= 0) & (target >= 0)
    result[source[placed], target[placed]] = rows[column].to_numpy()[placed]
    return result


def _locate_values(values: pd.Series, names: Sequence[Any]) -> NDArray[np.intp]:
    """Return the index of each value in ``names``, or -1 for an absent value."""
    positions: NDArray[np.intp] = pd.Index(names).get_indexer(pd.Index(values))
    return positions


def average_over_seeds(values: Floats) -> Floats:
    """Return the mean over the last axis, ignoring NaN values."""
    there = ~np.isnan(values)
    total: Floats = np.where(there, values, 0.0).sum(axis=-1)
    count = there.sum(axis=-1)
    result: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return result


# --- races ---


def make_race(frames: Frames) -> pd.DataFrame:
    """Return the frame ``race``, one row per racing pair."""
    race = read_study_race(frames.study)
    assert race is not None
    return compute_race_table(frames["deltas"], race)


def read_study_race(study: Study) -> Race | None:
    """Return the current state of a study's race, or None for a study without a race."""
    config = get_transfer_config(study)
    return read_race(config.racing, config.seeds, config.results)


def select_fresh_deltas(frames: Frames) -> pd.DataFrame:
    """Return the deltas for statistics, without the seeds on which a race selected pairs."""
    race = read_study_race(frames.study)
    return frames["deltas"] if race is None else drop_selection_seeds(frames["deltas"], race)


def choose_continuing_pairs(
    deltas: pd.DataFrame, runs: pd.DataFrame, race: Race, share: float
) -> list[dict[str, str]]:
    """Return the pairs that continue after the current round, as written to the selection file.

    Args:
        deltas: columns of ``columns.DELTAS``.
        runs: columns of ``columns.RUNS``.
        race: the race before this selection.
        share: fraction of each target's sources that continue.
    """
    single = deltas[deltas["n_sources"] == 1]
    dev = select_dev_deltas(single, runs)
    means: dict[Cell, float] = {}
    for names, rows in dev.groupby(list(NAMES), sort=False):
        if set(rows["seed"]) >= set(race.current_seeds):
            means[_build_cell(names)] = float(rows["delta"].mean())
    of_target: dict[tuple[str, ...], int] = {}
    for cell in means:
        key = (*cell[:3], cell[4])
        of_target[key] = of_target.get(key, 0) + 1
    counts = {cell: of_target[*cell[:3], cell[4]] for cell in means}
    return [
        dict(zip(NAMES, cell, strict=True))
        for cell in select_continuing_pairs(means, share, counts)
    ]


def select_continuing_pairs(
    dev: Mapping[Cell, float], share: float, sources: Mapping[Cell, int]
) -> list[Cell]:
    """Return the pairs that continue to the next round, best first.

    Each target keeps the given fraction of its sources, rounded, and at least one. Ties are in the
    order of names.

    Args:
        dev: mean dev scores of the pairs that are still in the race.
        sources: for each of these pairs, the number of its target's sources still in the race.
    """
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in sorted(dev, key=lambda pair: (-round(dev[pair], 9), pair)):
        groups.setdefault((*cell[:3], cell[4]), []).append(cell)
    return [
        cell
        for group in groups.values()
        for cell in group[: count_continuing_sources(sources[group[0]], share)]
    ]


def compute_race_table(deltas: pd.DataFrame, race: Race) -> pd.DataFrame:
    """Compute the table ``race``: one row per pair.

    ``deltas`` has the columns of ``columns.DELTAS``. Multi-source runs are ignored.
    """
    single = deltas[deltas["n_sources"] == 1]
    rows: list[tuple[Any, ...]] = []
    for names, group in single.groupby(list(NAMES), sort=False):
        cell = _build_cell(names)
        left = find_last_round(race, cell)
        chosen = race.seeds[(left or len(race.kept)) - 1] if race.kept else ()
        fresh = race.fresh_seeds if left is None else ()
        means = [
            float(group.loc[group["seed"].isin(seeds), "delta"].mean()) if seeds else np.nan
            for seeds in (chosen, fresh)
        ]
        rows.append((*cell, left, list(chosen), list(fresh), *means))
    return build_frame(rows, columns.RACE)


def drop_selection_seeds(deltas: pd.DataFrame, race: Race) -> pd.DataFrame:
    """Return deltas without selection seeds, for pairs in a race's last round.

    Deltas of pairs that left, and of several sources, are unchanged.
    """
    if not race.kept:
        return deltas
    names = deltas[list(NAMES)].itertuples(index=False, name=None)
    kept = [find_last_round(race, _build_cell(cell)) is None for cell in names]
    stale = (
        ~deltas["seed"].isin(race.fresh_seeds).to_numpy() & (deltas["n_sources"] == 1).to_numpy()
    )
    fresh: pd.DataFrame = deltas[~(stale & np.array(kept, bool))]
    return fresh


def drop_intervals(cells: pd.DataFrame, race: Race) -> pd.DataFrame:
    """Return the cells without intervals and tests for pairs that left the race."""
    names = cells[list(NAMES)].itertuples(index=False, name=None)
    left = np.array([find_last_round(race, _build_cell(cell)) is not None for cell in names], bool)
    left &= (cells["n_sources"] == 1).to_numpy()
    numbers = ["low", "high", "p", "q"]
    changed = cells.copy()
    changed.loc[left, numbers] = np.nan
    changed.loc[left, "significant"] = False
    changed.loc[left, "no_interval"] = NO_INTERVAL
    return changed


def find_last_round(race: Race, cell: Cell) -> int | None:
    """Return the round after which a pair left the race, or None if it is still in it."""
    rounds = enumerate(race.kept, start=1)
    return next((number for number, kept in rounds if cell not in kept), None)


def _build_cell(names: Any) -> Cell:
    dataset, model, algorithm, source, target = map(str, names)
    return dataset, model, algorithm, source, target
