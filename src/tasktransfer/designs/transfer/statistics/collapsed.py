"""Runs that give one and the same answer whatever they are asked. They are counted, not dropped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.core.digests import digest_of
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.collect import Tables
from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.errors import RecordError
from tasktransfer.results.predictions import read_columns, rows_of
from tasktransfer.results.records import PredictionsFile

LEAST_SHARE = 0.99
"""The share of one answer from which on a run is collapsed."""

_VERSION = 2
"""Raise this when a change in the code changes a row."""

_CELL = columns.names("collapsed")[:7]


def collapsed(tables: Tables, root: Path, previous: pd.DataFrame | None = None) -> pd.DataFrame:
    """The table ``collapsed``: a row for each baseline, cell and control with predictions.

    Args:
        tables: what ``collect`` gave.
        root: the results folder that the paths in the tables are relative to.
        previous: an earlier result; its rows are taken over where the predictions are the same.

    Returns:
        Columns ``columns.COLLAPSED``.

    Raises:
        RecordError: a predictions file is not the one that was collected; names it.
    """
    runs = pd.concat([tables.runs, tables.control_runs], ignore_index=True)
    runs = runs[runs["predictions"].notna()]
    earlier = _rows_by_inputs(previous)
    by_cell = [name for name in _CELL if name != "sources"]
    rows: list[tuple[Any, ...]] = []
    for _, unsorted in runs.groupby(by_cell, sort=False):
        members = unsorted.sort_values("seed")
        names = tuple(members.iloc[0][name] for name in _CELL)
        inputs = digest_of([_VERSION, list(members["seed"]), list(members["predictions_sha256"])])
        rows.append((*names, *(earlier.get(inputs) or _numbers(members, root)), inputs))
    return frame("collapsed", rows)


def _rows_by_inputs(previous: pd.DataFrame | None) -> dict[str, tuple[Any, ...]]:
    if previous is None or list(previous.columns) != columns.names("collapsed"):
        return {}
    plain = previous.astype(object).where(previous.notna(), None)
    numbers = columns.names("collapsed")[7:-1]
    rows = plain[["inputs", *numbers]].itertuples(index=False, name=None)
    return {inputs: tuple(row) for inputs, *row in rows}


def _numbers(runs: pd.DataFrame, root: Path) -> tuple[Any, ...]:
    seeds: list[int] = []
    shares: list[float] = []
    answer = None
    wanted = ["seed", "target", "predictions", "predictions_rows", "predictions_sha256"]
    for seed, *run in runs[wanted].itertuples(index=False, name=None):
        text, share = _most_frequent(root, *run)
        shares.append(share)
        if share >= LEAST_SHARE:
            seeds.append(int(seed))
            answer = text if answer is None else answer
    return len(runs), len(seeds), seeds, answer, max(shares)


def _most_frequent(root: Path, target: str, file: str, rows: int, sha256: str) -> tuple[str, float]:
    """A run's most frequent answer, its parts joined by ", ", and its share of the test set."""
    path = root / file
    expected: PredictionsFile = {
        "file": path.name,
        "rows": int(rows),
        "sha256": sha256,
    }
    try:
        table = rows_of(read_columns(path, expected, ["prediction", "task"]), target)
    except RecordError as error:
        raise RecordError(f"{error} (it was right when it was collected: collect again)") from error
    return most_frequent(table["prediction"].to_pylist())


def most_frequent(predictions: Sequence[Sequence[str]]) -> tuple[str, float]:
    """The most frequent answer, its parts joined by ", ", and its share, 0-1; the first of several
    that are equally frequent."""
    spelled = pd.Series([", ".join(parts) for parts in predictions])
    counts = spelled.value_counts(sort=False)
    return str(counts.idxmax()), float(counts.max() / np.float64(len(spelled)))
