"""Collapsed runs, which give the same answer to almost every instance. They are only counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from tasktransfer.core.digests import compute_digest
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.errors import RecordError
from tasktransfer.results.frames import Frames, list_names
from tasktransfer.results.rows import read_columns, select_task_rows
from tasktransfer.results.schema import RowsFile
from tasktransfer.results.store import build_frame
from tasktransfer.stats.answers import LEAST_SHARE, find_most_frequent

_VERSION = 2
"""Version of the computation. Increase it when a code change changes a row."""

_CELL = list_names(columns.COLLAPSED)[:7]
_RUN = ("seed", "predictions", "predictions_rows", "predictions_sha256")


class _Run(NamedTuple):
    """A run with predictions; ``file`` is relative to the results folder."""

    seed: int
    file: str
    rows: int
    sha256: str


def make_collapsed(frames: Frames) -> pd.DataFrame:
    """Return the frame ``collapsed``; unchanged rows of the earlier frame are reused."""
    runs = pd.concat([frames["transfer_runs"], frames["control_runs"]], ignore_index=True)
    return collapsed(runs, Path(frames.study.config.results), frames.earlier.get("collapsed"))


def collapsed(runs: pd.DataFrame, root: Path, previous: pd.DataFrame | None = None) -> pd.DataFrame:
    """Compute the table ``collapsed``: one row per baseline, cell and control with predictions.

    Args:
        runs: columns of ``columns.RUNS``.
        root: the results folder that the paths in the tables are relative to.
        previous: an earlier result; its rows are reused if the predictions are unchanged.

    Returns:
        Columns ``columns.COLLAPSED``.

    Raises:
        RecordError: a predictions file is not the one that was collected; names it.
    """
    runs = runs[runs["predictions"].notna()]
    earlier = _index_rows(previous)
    cells: dict[tuple[Any, ...], list[_Run]] = defaultdict(list)
    for *names, seed, file, rows, sha256 in runs[[*_CELL, *_RUN]].itertuples(
        index=False, name=None
    ):
        names[3] = tuple(names[3])  # of the sources
        cells[tuple(names)].append(_Run(int(seed), file, int(rows), sha256))
    table: list[tuple[Any, ...]] = []
    for cell, members in cells.items():
        members.sort(key=lambda run: run.seed)
        # A file may contain the answers to several targets.
        inputs = compute_digest([_VERSION, cell[-1], [[run.seed, run.sha256] for run in members]])
        numbers = earlier.get(inputs) or _compute_row(members, root, cell[-1])
        table.append((*cell[:3], list(cell[3]), *cell[4:], *numbers, inputs))
    return build_frame(table, columns.COLLAPSED)


def _index_rows(previous: pd.DataFrame | None) -> dict[str, tuple[Any, ...]]:
    if previous is None or list(previous.columns) != list_names(columns.COLLAPSED):
        return {}
    plain = previous.astype(object).where(previous.notna(), None)
    numbers = list_names(columns.COLLAPSED)[7:-1]
    rows = plain[["inputs", *numbers]].itertuples(index=False, name=None)
    return {inputs: tuple(row) for inputs, *row in rows}


def _compute_row(runs: Sequence[_Run], root: Path, target: str) -> tuple[Any, ...]:
    seeds: list[int] = []
    shares: list[float] = []
    answer = None
    for run in runs:
        text, share = _read_frequent_answer(run, root, target)
        shares.append(share)
        if share >= LEAST_SHARE:
            seeds.append(run.seed)
            answer = text if answer is None else answer
    return len(runs), len(seeds), seeds, answer, max(shares)


def _read_frequent_answer(run: _Run, root: Path, target: str) -> tuple[str, float]:
    """Return a run's most frequent answer (parts joined by ", ") and its test-set fraction."""
    path = root / run.file
    expected: RowsFile = {"file": path.name, "rows": run.rows, "sha256": run.sha256}
    try:
        table = select_task_rows(read_columns(path, expected, ["prediction", "task"]), target)
    except RecordError as error:
        remedy = "run `tasktransfer collect` again"
        raise RecordError(f"{error} (changed since it was collected; {remedy})") from error
    return find_most_frequent(table["prediction"])
