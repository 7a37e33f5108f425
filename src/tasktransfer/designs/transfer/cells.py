"""Cells of the heatmap, as ``explain`` finds them."""

from __future__ import annotations

from collections.abc import Sequence

from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer import pairs
from tasktransfer.designs.transfer.config import transfer_config
from tasktransfer.designs.transfer.runs import BASELINE, is_transfer
from tasktransfer.present.columns import Row
from tasktransfer.present.declared import Cells, late
from tasktransfer.present.numbers import is_missing
from tasktransfer.results.study import Study


def name_cell(run: Run) -> dict[str, str] | None:
    """Return the names of the cell that a run belongs to; None for baselines and other runs."""
    if not is_transfer(run) or run.method == BASELINE:
        return None
    about = run.about
    return {
        "dataset": about["dataset"],
        "model": run.model,
        "algorithm": run.method,
        "source": "+".join(about["sources"]),
        "target": about["target"],
    }


def is_baseline(cell: Row, run: Run) -> bool:
    """Return whether a run is a baseline of a cell, of any seed."""
    names = (run.method, run.model, run.about.get("dataset"), run.about.get("target"))
    return names == (BASELINE, cell["model"], cell["dataset"], cell["target"])


def list_shorts(study: Study) -> dict[str, str]:
    """Return short names by task, for all tasks of the study's datasets."""
    return dict(pairs.shorts_of(transfer_config(study).datasets))


def describe_family(cells: Sequence[Row], cell: Row) -> list[str]:
    """Return the family of tests in which the q of a cell is adjusted."""
    several = cell["n_sources"] > 1
    family = [
        each
        for each in cells
        if each["dataset"] == cell["dataset"] and (each["n_sources"] > 1) == several
    ]
    tests = sum(not is_missing(each["q"]) for each in family)
    return [
        f"q: Benjamini-Hochberg over {tests} {'multi' if several else 'single'}-source cells of "
        f"{cell['dataset']}, all models and algorithms; "
        f"{sum(each['significant'] for each in family)} of them are significant"
    ]


CELLS = Cells(
    "cells",
    ("dataset", "model", "algorithm", "source", "target"),
    name_cell,
    is_baseline,
    "seeds",
    ("score", "baseline_score"),
    list_shorts,
    describe_family,
    late("designs.transfer.collect.columns", "describe_cells"),
)
