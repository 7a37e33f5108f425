"""Runs that rows of the printed tables are computed from, for ``explain``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tasktransfer.core.nodes import Fit
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.runs import BASELINE, NO_MODEL, is_reference, is_transfer
from tasktransfer.designs.transfer.statistics.overlap import TEST_INSTANCES

Row = Mapping[str, Any]


def is_source_run(table: str, row: Row, run: Run) -> bool:
    """Return whether a row of a table is computed from a run, or from a baseline of its pair."""
    if run.about.get("dataset") != row["dataset"]:
        return False
    return _PREDICATES.get(table, _is_in_group)(row, run)


def keep_used_baselines(table: str, row: Row, runs: Sequence[Run]) -> Sequence[Run]:
    """Leave out baselines that a row does not use.

    A delta uses the baseline of its own model, target and seed. Test instances are counted in the
    first baseline of each task. Other tables use every baseline.
    """
    if table in ("reference", "references", "collapsed"):
        return runs
    if table == "overlap":
        return list({run.about["target"]: run for run in reversed(runs)}.values())
    pairs = {_name_pair(run) for run in runs if run.method != BASELINE}
    return [run for run in runs if run.method != BASELINE or _name_pair(run) in pairs]


def _name_pair(run: Run) -> tuple[str, str, int]:
    return run.model, run.about["target"], run.seed


def _list_sources(run: Run) -> Sequence[str]:
    sources: Sequence[str] = run.about.get("sources", ())
    return sources


def _is_in_group(row: Row, run: Run) -> bool:
    """Return whether a run is a baseline or has a single source and the row's algorithm."""
    return (
        run.model == row["model"]
        and run.method in (row["algorithm"], BASELINE)
        and len(_list_sources(run)) <= 1
    )


def _is_in_pair(row: Row, run: Run) -> bool:
    used = {*_list_sources(run), run.about["target"]}
    return _is_in_group(row, run) and used <= {row["task_a"], row["task_b"]}


def _is_in_comparison(row: Row, run: Run) -> bool:
    """Return whether a run is in a transfer matrix of a comparison, or in any of its dataset."""
    if not is_transfer(run) or len(_list_sources(run)) > 1:
        return False
    if "held" not in row:
        return True
    compared, held = (
        (run.model, run.method) if row["between"] == "model" else (run.method, run.model)
    )
    compared_names = (row["a"], row["b"], *([BASELINE] if row["between"] != "model" else ()))
    held_names = (row["held"], *([BASELINE] if row["between"] == "model" else ()))
    return compared in compared_names and held in held_names


def _is_in_control(row: Row, run: Run) -> bool:
    """Return whether a run is the control of a row, a run of its algorithm, or a baseline."""
    if run.model != row["model"] or len(_list_sources(run)) > 1:
        return False
    if "control" in row:
        return run.method in (row["algorithm"], row["control"])
    if run.method not in (row["algorithm"], BASELINE, *CONTROLS):
        return False
    used = {*_list_sources(run), run.about["target"]}
    return "source" not in row or (
        run.about["target"] == row["target"] and used <= {row["source"], row["target"]}
    )


def _is_in_cell(row: Row, run: Run) -> bool:
    own = (run.model, run.method, "+".join(_list_sources(run)), run.about.get("target"))
    return own == (row["model"], row["algorithm"], row["source"] or "", row["target"])


def _is_baseline(row: Row, run: Run) -> bool:
    own = (run.method, run.model, run.about.get("target"))
    return own == (BASELINE, row["model"], row["target"])


def _is_compared_with_reference(row: Row, run: Run) -> bool:
    """Return whether a run is a baseline of a row's task, or the fit of its reference."""
    if not is_reference(run):
        return _is_baseline(row, run)
    tasks = run.outcome.tasks if isinstance(run.outcome, Fit) else (row["target"],)
    return (
        run.about.get("reference") == row["reference"]
        and run.model in (row["model"], NO_MODEL)
        and row["target"] in tasks
    )


def _shares_instances(row: Row, run: Run) -> bool:
    is_used = run.about.get("target") in (row["source"], row["target"])
    return run.method == BASELINE and is_used and row["basis"] == TEST_INSTANCES


_PREDICATES: Mapping[str, Callable[[Row, Run], bool]] = {
    "asymmetry": _is_in_pair,
    "agreement": _is_in_comparison,
    "agreement_overall": _is_in_comparison,
    "control_summary": _is_in_control,
    "control_verdicts": _is_in_control,
    "controls": _is_in_control,
    "collapsed": _is_in_cell,
    "references": _is_compared_with_reference,
    "reference": _is_baseline,
    "overlap": _shares_instances,
}
"""Table → (row, run of the row's dataset) → whether the row uses the run."""
