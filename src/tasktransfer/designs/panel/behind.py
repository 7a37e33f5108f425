"""Which runs are behind a row of a printed table: (row, run) → whether it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasktransfer.core.ancestors import with_ancestors
from tasktransfer.core.nodes import Stage
from tasktransfer.core.runs import Run
from tasktransfer.designs.panel.names import CONTROLS, FANS, OWN_MINUS_OTHERS
from tasktransfer.tables.numbers import absent


def of_raters(row: Mapping[str, Any], run: Run) -> bool:
    """Whether a run is behind a correlation: of experts, those that rate the row's sets."""
    return run.method == row["method"] and run.about.get("domain") in row["experts"].split("+")


def of_either(row: Mapping[str, Any], run: Run) -> bool:
    """Whether a run is behind a difference of two raters; a cosine has no seed, and is the same
    beside every one."""
    raters = row["experts"].split("+") if run.method in FANS else [""]
    if run.method not in (row["method"], row["against"]) or run.about.get("domain") not in raters:
        return False
    return row["seed"] in ("mean", str(run.seed)) or run.method in CONTROLS


def of_expert(row: Mapping[str, Any], run: Run) -> bool:
    """Whether a run is behind an expert's correlation, or behind its distance to the others'."""
    expert = row["expert"] in (OWN_MINUS_OTHERS, run.about.get("domain"))
    return run.method == row["method"] and expert


def uses(row: Mapping[str, Any], run: Run) -> bool:
    """Whether a run uses trainings of a kind."""
    used = with_ancestors(run.results_in)
    return any(isinstance(node, Stage) and node.kind == row["kind"] for node in used)


def none(row: Mapping[str, Any], run: Run) -> bool:
    """Of what is counted before anything is trained."""
    return False


def of_transfer(row: Mapping[str, Any], run: Run) -> bool:
    """Whether a run is behind a correlation after transfer, or before it (the first seed's)."""
    if row["percent"] == 0:
        first = absent(row["seed"]) or run.seed == int(row["seed"])
        return run.method == row["method"] and run.about.get("domain") == "" and first
    about = run.about
    return (
        about.get("of") == row["method"]
        and about.get("percent") == row["percent"]
        and about.get("by") == row["by"]
        and about.get("set") in row["members"].split("+")
    )
