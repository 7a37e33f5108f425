"""Planned runs without a result, and records that were left out."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tasktransfer.present.columns import (
    Column,
    make_long_text_column,
    make_number_column,
    make_text_column,
)
from tasktransfer.present.html import HtmlTable, build_table
from tasktransfer.results.metadata import order_names

FOLD = 40
"""Number of rows above which a list is collapsed."""

STATES = {
    "failed": "The job ended with an error; the table shows its last line.",
    "damaged": "The record exists but cannot be used.",
    "interrupted": "The job was stopped before it finished.",
    "baseline missing": ("The run has a result, but its baseline does not have one."),
    "running": "The job was running when the tables were collected.",
    "waiting": (
        "The job of the run has not started. Run the workflow again to train these runs. A study "
        "of merged records is complete without these runs, and its numbers are computed from the "
        "other runs."
    ),
}
"""State of a missing run → its meaning; states that need attention come first."""

NOT_NAMES = ("path", "state", "reason", "node", "stage", "error", "remedy", "seed")
"""Columns of the common table of missing runs that do not name a run."""


def format_warnings(missing: pd.DataFrame, problems: pd.DataFrame, nodes: str = "") -> list[str]:
    """Return warnings on missing results for the top of a page, one per line.

    Args:
        missing: planned runs without a result.
        problems: damaged records.
        nodes: planned nodes without a record, by kind (``Collected.describe_missing``).
    """
    lines = []
    if len(missing):
        names = [str(name) for name in missing if name not in NOT_NAMES and name != "sources"]
        runs = missing.drop_duplicates([*names, "seed"])
        parts = [
            _describe_state(runs[runs["state"] == state], state)
            for state in order_names(runs["state"], [*STATES])
        ]
        what = "run has" if len(runs) == 1 else "runs have"
        lines.append(f"{len(runs):,} planned {what} no result: {', '.join(parts)}.")
    if nodes:
        needs = " A run may need several records." if len(missing) else ""
        lines.append(f"No record exists for {nodes}.{needs}")
    if len(problems):
        records = "record was" if len(problems) == 1 else "records were"
        lines.append(f"{len(problems):,} damaged {records} left out.")
    return lines


def _describe_state(runs: pd.DataFrame, state: str) -> str:
    """Describe the runs in a state with their methods, e.g. ``17 waiting (prompted)``."""
    count = f"{len(runs):,} {state}"
    methods = [*runs["method"].dropna().unique()] if "method" in runs else []
    named = [str(method).replace("_", " ") for method in methods]
    return f"{count} ({', '.join(named)})" if named else count


def is_only_waiting(missing: pd.DataFrame, problems: pd.DataFrame) -> bool:
    """Return whether all missing runs are only waiting, and no record is damaged.

    A study of merged records, whose missing runs were never planned to be trained, is an example.
    """
    return not len(problems) and bool((missing["state"] == "waiting").all())


def build_common_columns(missing: pd.DataFrame) -> list[Column]:
    """Return those columns of the table of missing results that contain a value."""
    filled = missing.columns[missing.notna().any()]
    names = [str(name) for name in filled if name not in NOT_NAMES]
    return [
        *(make_text_column(name, name.replace("_", " ").capitalize()) for name in names),
        make_number_column("seed", "Seed", "d"),
        make_long_text_column("reason", "Reason"),
        make_long_text_column("remedy", "Remedy"),
        make_long_text_column("node", "Node"),
    ]


def build_missing_tables(
    missing: pd.DataFrame, problems: pd.DataFrame, columns: Sequence[Column], keys: int
) -> list[HtmlTable]:
    """Return a table of missing results per state, most urgent first, and one of damaged records.

    Args:
        missing: planned runs without a result.
        problems: damaged records.
        columns: columns of the tables of missing runs.
        keys: number of the first columns that name a run.
    """
    lists = [
        build_table(
            f"missing-{state.replace(' ', '-')}",
            state.capitalize(),
            STATES.get(state, ""),
            rows,
            columns,
            keys=keys,
            folded=len(rows) > FOLD,
        )
        for state in order_names(missing["state"], [*STATES])
        if len(rows := missing[missing["state"] == state])
    ]
    return [*lists, *([_build_problem_table(problems)] if len(problems) else [])]


def _build_problem_table(frame: pd.DataFrame) -> HtmlTable:
    return build_table(
        "problems",
        "Excluded records",
        "Damaged or contradictory records. None of their numbers is used.",
        frame,
        (make_long_text_column("path", "Record"), make_long_text_column("error", "Problem")),
        folded=len(frame) > FOLD,
    )
