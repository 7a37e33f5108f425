"""Evaluate selectors on a matrix of finished transfers from any source.

A CSV file has one row per run: ``model``, ``source``, ``target``, ``seed``, ``score``, and one
column per selector with its value for that pair. Values may differ between seeds and may be empty.
``dataset`` and ``algorithm`` are optional and split the file as ``model`` does. Rows without a
source are the targets' baselines.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasktransfer.errors import ConfigError, DataError, format_location, format_missing_columns
from tasktransfer.files.csv_file import CsvFile, open_csv
from tasktransfer.files.progress import show_progress
from tasktransfer.results.store import build_frame
from tasktransfer.selection.declared import REGRET
from tasktransfer.selection.judging import RANDOM, SOURCE_MEAN, Judgement, Mean, judge_selectors
from tasktransfer.selection.measures import KS
from tasktransfer.selection.regret import GROUP
from tasktransfer.stats.draws import Floats

MAX_ROWS = 500_000
NO_NUMBER = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""Cell texts, in lower case, that mean a missing number."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NEEDED = ("model", "source", "target", "seed", "score")
NOTHING = Mean(np.nan)
TOGETHER = "all"
"""Value of ``dataset`` in rows over all datasets together."""


@dataclass(frozen=True)
class Matrix:
    """Finished transfers of one dataset, model and algorithm.

    ``scores`` and ``gains`` (None without baselines): (targets, sources, seeds), 0-100.
    ``values``: (targets, sources, seeds) by selector. ``seconds``: time to compute them.
    """

    key: tuple[str, str, str]
    scores: Floats
    values: Mapping[str, Floats]
    gains: Floats | None = None
    seconds: Mapping[str, float] | None = None


def compute_file_regret(path: Path, ks: tuple[int, ...] = ()) -> tuple[pd.DataFrame, list[str]]:
    """Compute the regret table of a CSV file, with notes on how the file was read.

    Args:
        ks: numbers of sources to try. Empty for ``KS``. 1 is always included, because selectors
            are compared by it.

    Raises:
        DataError: the file cannot be read, or is not a matrix of transfers.
        ConfigError: a number is above the number of sources.
    """
    table, notes = read_matrix(path)
    matrices = list(_build_matrices(table, path))
    most = max(matrix.scores.shape[1] for matrix in matrices)
    for k in ks:
        if k > most:
            raise ConfigError(
                f"--k {k}: The matrix {path} has only {most} sources. Choose numbers from 1 to "
                f"{most}."
            )
    return compute_regret(matrices, tuple(sorted({1, *(ks or KS)}))), notes


def compute_regret(matrices: Sequence[Matrix], ks: tuple[int, ...]) -> pd.DataFrame:
    """Compute the columns ``selection.declared.REGRET`` for each matrix."""
    every = show_progress(matrices, "judging selectors")
    return build_frame([row for matrix in every for row in _build_regret_rows(matrix, ks)], REGRET)


def read_matrix(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the rows of a file, with scores on the scale 0-100, and notes on the file.

    Raises:
        DataError: as ``compute_file_regret``.
    """
    file = open_csv(path)
    _check_columns(path, file.columns)
    table = _read_table(file)
    for name in ("dataset", "algorithm"):
        if name not in table:
            table[name] = ""
    for name in ("model", "target", "seed", "score"):
        missing = table[name].isna() | (table[name] == "")
        if missing.any():
            where = format_location(path, int(table.index[missing][0]))
            raise DataError(
                f"{where}: The column {name} is empty. Add the missing values, or remove the row."
            )
    keys = [*GROUP, "source", "target", "seed"]
    if table.duplicated(keys).any():
        second = table[table.duplicated(keys)]
        source, target, seed = second.iloc[0][["source", "target", "seed"]].tolist()
        raise DataError(
            f"{format_location(path, int(second.index[0]))}: The line contains a second score of "
            f"{source!r} → {target!r} for seed {seed:.0f}. Remove one of the two lines."
        )
    notes = list(file.notes[1:])
    if table["score"].between(0, 1).all():
        table["score"] *= 100
        notes.append(
            f"{path}: All scores lie between 0 and 1, so they are read as fractions and reported "
            "as points of 100."
        )
    return table, notes


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        raise DataError(
            f"{path}: {format_missing_columns(missing)} A matrix needs {', '.join(NEEDED)} and a "
            "column for each selector. Rename your columns, or add the missing columns."
        )
    taken = [name for name in (RANDOM, SOURCE_MEAN) if name in columns]
    if taken:
        raise DataError(
            f"{path}: The column {taken[0]} has the name of a selector that is computed from the "
            "scores. Rename the column."
        )


def _read_table(file: CsvFile) -> pd.DataFrame:
    """Read a file as a frame with texts in name columns and numbers in other columns."""
    lines = array("q")
    values: dict[str, list[str] | array[float]] = {
        name: [] if name in (*GROUP, "source", "target") else array("d") for name in file.columns
    }
    for line, cells in file.rows():
        if len(lines) == MAX_ROWS:
            where = format_location(file.path, line)
            raise DataError(
                f"{where}: The file has more than {MAX_ROWS:,} rows. Write one file per model."
            )
        lines.append(line)
        for (name, column), cell in zip(values.items(), cells, strict=True):
            if isinstance(column, list):
                column.append(sys.intern(cell))
            else:
                column.append(_read_number(file, line, name, cell))
    return pd.DataFrame(values, index=pd.Index(lines))


def _read_number(file: CsvFile, line: int, name: str, cell: str) -> float:
    """Parse the number in a cell, or return NaN if the cell is empty or marked as missing."""
    if cell.strip().lower() in NO_NUMBER:
        return math.nan
    if _NUMBER.fullmatch(cell.strip()) is None or not math.isfinite(float(cell)):
        raise DataError(
            f"{format_location(file.path, line)}, column {name}: The value {cell!r:.60} is not a "
            f"number ({file.dialect}). Only the columns model, source, target, dataset and "
            "algorithm may contain text. Remove the column, or leave the cell empty."
        )
    return float(cell)


def _build_matrices(table: pd.DataFrame, path: Path) -> Iterator[Matrix]:
    selectors = [str(one) for one in table if one not in (*GROUP, *NEEDED)]
    if not len(table):
        raise DataError(f"{path}: The matrix has no rows. Add rows with scores.")
    for names, group in table.groupby(list(GROUP), sort=False):
        dataset, model, algorithm = map(str, names)
        alone = group["source"] == ""
        runs, baselines = group[~alone], group[alone]
        sources, targets = (list(runs[name].unique()) for name in ("source", "target"))
        if len(sources) < 2:
            raise DataError(
                f"{path}: The model {model} has fewer than two sources, but a selection needs at "
                "least two. Add sources."
            )
        axes = (targets, sources, sorted(runs["seed"].unique()))
        scores = build_cube(runs, "score", axes)
        gains = None
        if len(baselines):
            of = baselines.pivot_table("score", "target", "seed").reindex(targets, columns=axes[2])
            gains = scores - of.to_numpy()[:, None, :]
        key = dataset, model, algorithm
        yield Matrix(key, scores, {name: build_cube(runs, name, axes) for name in selectors}, gains)


def build_cube(
    runs: pd.DataFrame, column: str, axes: tuple[list[str], list[str], list[int]]
) -> Floats:
    """Return a column as an array (targets, sources, seeds), with NaN for missing rows.

    Rows with a target, source or seed that is not in ``axes`` are left out.
    """
    targets, sources, seeds = axes
    cube = np.full((len(targets), len(sources), len(seeds)), np.nan)
    places = np.stack(
        [
            pd.Index(names).get_indexer(pd.Index(runs[name]))
            for name, names in (("target", targets), ("source", sources), ("seed", seeds))
        ]
    )
    is_inside = (places >= 0).all(axis=0)
    cube[tuple(places[:, is_inside])] = runs[column].to_numpy(float)[is_inside]
    return cube


def join_matrices(several: Sequence[Matrix]) -> Matrix:
    """Join the matrices of several datasets into one, with all targets and sources.

    A pair with a target and a source from different matrices has no score.
    """
    seeds = min(one.scores.shape[2] for one in several)
    names = [n for n in several[0].values if all(n in one.values for one in several)]

    def blocks(cubes: Sequence[Floats]) -> Floats:
        rows, columns = (sum(block.shape[axis] for block in cubes) for axis in (0, 1))
        whole = np.full((rows, columns, seeds), np.nan)
        row = column = 0
        for block in cubes:
            whole[row : row + block.shape[0], column : column + block.shape[1]] = block[..., :seeds]
            row, column = row + block.shape[0], column + block.shape[1]
        return whole

    targets = [one.scores.shape[0] for one in several]
    seconds = {
        name: float(
            np.average([(one.seconds or {}).get(name, np.nan) for one in several], weights=targets)
        )
        for name in names
    }
    return Matrix(
        (TOGETHER, *several[0].key[1:]),
        blocks([one.scores for one in several]),
        {name: blocks([one.values[name] for one in several]) for name in names},
        None,
        seconds,
    )


def _build_regret_rows(matrix: Matrix, ks: tuple[int, ...]) -> Iterator[tuple[object, ...]]:
    seeds = matrix.scores.shape[2]
    for one in judge_selectors(matrix.scores, matrix.values, ks, matrix.gains):
        yield (
            *(*matrix.key, one.selector, one.measure),
            *(one.mean.value, one.mean.low, one.mean.high, one.floor, one.floor_random),
            *(number for name in (RANDOM, SOURCE_MEAN) for number in _unpack_difference(one, name)),
            *(one.targets, seeds, one.missing),
            (matrix.seconds or {}).get(one.selector, np.nan),
        )


def _unpack_difference(one: Judgement, reference: str) -> tuple[float, ...]:
    difference = one.to.get(reference, NOTHING)
    return (
        difference.value,
        difference.low,
        difference.high,
        difference.p,
        one.q.get(reference, np.nan),
    )
