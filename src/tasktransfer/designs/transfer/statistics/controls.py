"""What a transfer is worth beside its controls: deltas over each, and a verdict.

A delta over a control is the score of the transfer minus that of the control, both of the same seed
and target (and source, where the control has one), with the interval and test of ``cells``. So a
transfer and what it is compared with are paired by seed and test instance, as with the baseline.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.collect import Tables
from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.controls import CONTROLLED, CONTROLS
from tasktransfer.designs.transfer.statistics.cells import MARKED, cells

BEATS = "beats all controls"
EXPLAINED = "explained by a control"
HURTS = "hurts"
CANNOT_TELL = "cannot tell"
VERDICTS = (BEATS, EXPLAINED, HURTS, CANNOT_TELL)

MOST_OF_IT = 0.5
"""A control that gives at least this share of a transfer's delta over the baseline explains it."""

_CELL = columns.names("cells")[:7]
_OF_CONTROL = ("n_seeds", "delta", "low", "high", "q")


def controls(tables: Tables, root: Path, over_baseline: pd.DataFrame) -> pd.DataFrame:
    """The table ``controls``: a row for each single-source cell of ``CONTROLLED``.

    ``q`` over a control is Benjamini-Hochberg over all these cells of a dataset and that control.

    Args:
        tables: what ``collect`` gave.
        root: the results folder that the paths in the tables are relative to.
        over_baseline: the table ``cells``.

    Returns:
        Columns ``columns.CONTROLS``, in the order of the cells; no rows in a study without
        controls. Numbers over a control that is not there are NaN.
    """
    planned = _planned(tables)
    if not planned:
        return frame("controls", [])
    single = over_baseline["n_sources"] == 1
    own = over_baseline[single & (over_baseline["algorithm"] == CONTROLLED)]
    over = {name: _by_cell(over_control(tables, root, name)) for name in planned}
    rows = []
    for cell in own.to_dict("records"):
        key = _key(cell)
        each = {name: found[key] for name, found in over.items() if key in found}
        verdict, explained_by = verdict_of(cell, each, planned)
        rows.append(
            (
                *(cell[name] for name in _CELL),
                *(cell[name] for name in _OF_CONTROL),
                *_numbers(each),
                verdict,
                explained_by,
            )
        )
    return frame("controls", rows)


def over_control(tables: Tables, root: Path, control: str) -> pd.DataFrame:
    """The cells of ``CONTROLLED`` against a control in place of the baseline: columns of
    ``columns.CELLS``, in which ``baseline_score`` is the control's."""
    runs = tables.control_runs[tables.control_runs["algorithm"] == control]
    on = ["dataset", "model", "target", "seed"] + ["source"] * CONTROLS[control].of_source
    others = runs[[*on, "score", "digest"]].rename(
        columns={"score": "baseline_score", "digest": "baseline_digest"}
    )
    deltas = tables.deltas
    deltas = deltas[(deltas["n_sources"] == 1) & (deltas["algorithm"] == CONTROLLED)]
    paired = deltas.drop(columns=["baseline_score", "baseline_digest"]).merge(
        others, on=on, how="inner", validate="many_to_one"
    )
    paired["delta"] = paired["score"] - paired["baseline_score"]
    both = pd.concat([tables.runs, runs], ignore_index=True)
    return cells(
        dataclasses.replace(tables, runs=both, deltas=paired[columns.names("deltas")]), root
    )


def _planned(tables: Tables) -> list[str]:
    """The controls of the study, whether they are there or missing."""
    named = {*tables.control_runs["algorithm"], *tables.control_missing["algorithm"]}
    return [name for name in CONTROLS if name in named]


def _key(cell: Mapping[Any, Any]) -> tuple[str, ...]:
    return tuple(str(cell[name]) for name in ("dataset", "model", "source", "target"))


def _by_cell(frame: pd.DataFrame) -> dict[tuple[str, ...], dict[Any, Any]]:
    return {_key(row): row for row in frame.to_dict("records")}


def _numbers(each: Mapping[str, Mapping[Any, Any]]) -> list[Any]:
    nothing: dict[Any, Any] = {**dict.fromkeys(_OF_CONTROL, np.nan), "n_seeds": 0}
    return [each.get(control, nothing)[name] for control in CONTROLS for name in _OF_CONTROL]


def verdict_of(
    cell: Mapping[Any, Any], each: Mapping[str, Mapping[Any, Any]], planned: Iterable[str]
) -> tuple[str, str]:
    """What a cell shows.

    - ``hurts``: below the baseline, q ≤ 0.05.
    - ``beats all controls``: above the baseline and every planned control, each with q ≤ 0.05.
    - ``explained by a control``: a control is above the transfer (q ≤ 0.05); or the transfer is
      above the baseline (q ≤ 0.05) and not above a control that by itself gives half of its delta
      or more.
    - ``cannot tell``: everything else. A control that is missing, of which one seed is
      there, or that cannot be tested, is no evidence.

    Args:
        cell: ``delta`` and ``q`` over the baseline, ``n_seeds``.
        each: control → the same over it; without those that are missing.
        planned: the controls that the study has.

    Returns:
        The verdict, and the controls that explain it, joined by ``+``.
    """
    if cell["n_seeds"] < 2:
        return CANNOT_TELL, ""
    sure = {name: one for name, one in each.items() if one["n_seeds"] > 1 and one["q"] <= 1}
    gains = _is_sure(cell) and cell["delta"] > 0
    if _is_sure(cell) and cell["delta"] < 0:
        return HURTS, ""
    above = [name for name, one in sure.items() if _is_sure(one) and one["delta"] > 0]
    if gains and set(above) == set(planned):
        return BEATS, ""
    explaining = [
        name
        for name, one in sure.items()
        if (_is_sure(one) and one["delta"] < 0)
        or (gains and name not in above and one["delta"] <= (1 - MOST_OF_IT) * cell["delta"])
    ]
    return (EXPLAINED, "+".join(explaining)) if explaining else (CANNOT_TELL, "")


def _is_sure(one: Mapping[Any, Any]) -> bool:
    """NaN is not."""
    return bool(one["q"] <= MARKED)
