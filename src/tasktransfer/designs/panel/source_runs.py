"""Provenance of printed tables: predicates (row, run) for runs that a row is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasktransfer.core.nodes import Stage
from tasktransfer.core.runs import Run, add_ancestors
from tasktransfer.designs.panel.names import (
    BROUGHT,
    CONTROLS,
    OWN_MINUS_OTHERS,
    PROMPTED,
    has_domain_models,
)
from tasktransfer.present.numbers import is_missing


def is_correlation_source(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run contributes to a correlation.

    Among the experts, only those that rate the row's sets contribute.
    """
    return run.method == row["method"] and run.about.get("domain") in row["experts"].split("+")


def is_difference_source(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run contributes to a difference of two raters.

    Controls, the user's own raters and prompted models have no seed. They contribute to the rows of
    every seed.
    """
    raters = row["experts"].split("+") if has_domain_models(run.method) else [""]
    if run.method not in (row["method"], row["against"]) or run.about.get("domain") not in raters:
        return False
    once = run.method in CONTROLS or run.model in (BROUGHT, PROMPTED)
    return once or row["seed"] in ("mean", str(run.seed))


def is_expert_source(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run contributes to an expert's correlation or difference from others."""
    expert = row["expert"] in (OWN_MINUS_OTHERS, run.about.get("domain"))
    return run.method == row["method"] and expert


def is_training_source(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run uses a training of the row's kind."""
    used = add_ancestors(run.result_nodes)
    return any(isinstance(node, Stage) and node.kind == row["kind"] for node in used)


def is_never_source(row: Mapping[str, Any], run: Run) -> bool:
    """Return False, for tables that are computed from data instead of runs."""
    return False


def is_transfer_source(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run contributes to a correlation before or after few-shot transfer.

    Before transfer, only the run of the first seed contributes.
    """
    if row["percent"] == 0:
        first = is_missing(row["seed"]) or run.seed == int(row["seed"])
        return run.method == row["method"] and run.about.get("domain") == "" and first
    about = run.about
    return (
        about.get("of") == row["method"]
        and about.get("percent") == row["percent"]
        and about.get("by") == row["by"]
        and about.get("set") in row["members"].split("+")
    )
