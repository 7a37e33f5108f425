"""Runs that answer the same whatever they are asked.

A score of such a run says how frequent one answer is, not what was learnt, and a delta of two of
them is 0 for no reason of transfer. They are counted and listed, never left out: that a training
collapses is a result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.collect import Tables
from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.results.predictions import answers, read_columns, rows_of
from tasktransfer.results.records import PredictionsFile

COLLAPSED = 0.99
"""A run is collapsed if at least this share of its predictions is one answer."""

_READ = ("predictions", "predictions_rows", "predictions_sha256", "test_size")
_KEPT = ("answer", "share")


def one_answer(tables: Tables, root: Path, previous: pd.DataFrame | None = None) -> pd.DataFrame:
    """The table ``one_answer``: a row for every run and control that left predictions.

    Args:
        tables: what ``collect`` gave.
        root: the results folder that the paths in the tables are relative to.
        previous: an earlier result; rows of the same predictions are taken over.

    Returns:
        Columns ``columns.ONE_ANSWER``, runs in the order of the tables and then controls.

    Raises:
        RecordError: a predictions file is not the one that was collected; names it.
    """
    known = _known(previous)
    runs = pd.concat([tables.runs, tables.control_runs], ignore_index=True)
    runs = runs[runs["has_predictions"].astype(bool)]
    names = columns.names("one_answer")
    keys = names[: names.index("answer")]
    rows = []
    for row in runs.to_dict("records"):
        name = (row["predictions_sha256"], row["target"])
        if name not in known:
            known[name] = _most_frequent(row, root)
        answer, share = known[name]
        sha256 = row["predictions_sha256"]
        rows.append((*(row[key] for key in keys), answer, share, share >= COLLAPSED, sha256))
    return frame("one_answer", rows)


def collapsed_cells(table: pd.DataFrame) -> pd.DataFrame:
    """The cells, baselines and controls with a collapsed run: names, ``runs`` and ``collapsed``
    (how many of these), those with most first."""
    names = [*columns.names("cells")[:3], "source", "target"]
    groups = table.groupby(names, sort=False)["collapsed"].agg(["size", "sum"]).reset_index()
    counted = groups.rename(columns={"size": "runs", "sum": "collapsed"})
    some = counted[counted["collapsed"] > 0]
    return some.sort_values("collapsed", ascending=False, kind="stable").reset_index(drop=True)


def _known(previous: pd.DataFrame | None) -> dict[tuple[str, str], tuple[str, float]]:
    if previous is None or list(previous.columns) != columns.names("one_answer"):
        return {}
    wanted = previous[["predictions_sha256", "target", *_KEPT]]
    return {
        (sha256, target): (answer, share)
        for sha256, target, answer, share in wanted.itertuples(index=False, name=None)
    }


def _most_frequent(row: dict[Any, Any], root: Path) -> tuple[str, float]:
    """The most frequent answer of a run's predictions, and its share of them."""
    path = root / row["predictions"]
    expected: PredictionsFile = {
        "file": path.name,
        "rows": int(row["predictions_rows"]),
        "sha256": row["predictions_sha256"],
    }
    table = read_columns(path, expected, ["task", "prediction"])
    coded = answers(rows_of(table, row["target"])["prediction"])
    counts: dict[bytes, tuple[int, int]] = {}
    codes = np.ascontiguousarray(coded.codes)
    for place in range(len(coded)):
        name = codes[coded.starts[place] : coded.starts[place + 1]].tobytes()
        first, count = counts.get(name, (place, 0))
        counts[name] = (first, count + 1)
    first, count = max(counts.values(), key=lambda one: one[1])
    return " + ".join(coded.of(first)), count / len(coded)
