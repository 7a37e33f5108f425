"""What is not in the numbers: planned runs without one, and records that were left out."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tasktransfer.tables.columns import Column, long_text, number, text
from tasktransfer.tables.html import HtmlTable, build
from tasktransfer.tables.metadata import in_order

FOLD = 40
"""Longer lists are closed until a reader opens them."""

STATES = {
    "failed": "The job ended in an error; its last line is given.",
    "damaged": "There is a record that cannot be used.",
    "interrupted": "The job was stopped before it was done.",
    "baseline missing": "The run is there, and the baseline that it is compared with is not.",
    "running": "Being made when the tables were collected.",
    "waiting": "Planned, and not started.",
}
"""State of a missing run → what it means; what wants a reader's attention comes first."""

NOT_NAMES = ("path", "state", "reason", "node", "stage", "error", "remedy", "seed")
"""Columns of the common table of missing runs that do not name a run."""


def troubles(missing: pd.DataFrame, problems: pd.DataFrame, nodes: str = "") -> list[str]:
    """Return what a reader has to know before reading on, in lines; none if everything is there.

    Args:
        nodes: the planned nodes without a record, by kind, as ``Collected.describe_missing`` has
            them.
    """
    lines = []
    if len(missing):
        names = [str(name) for name in missing if name not in NOT_NAMES and name != "sources"]
        runs = missing.drop_duplicates([*names, "seed"])
        counts = runs["state"].value_counts()
        parts = [f"{counts[state]:,} {state}" for state in in_order(counts.index, [*STATES])]
        what = "run has" if len(runs) == 1 else "runs have"
        lines.append(f"{len(runs):,} planned {what} no number: {', '.join(parts)}.")
    if nodes:
        lines.append(f"Without a record: {nodes}.")
    if len(problems):
        records = "record was" if len(problems) == 1 else "records were"
        lines.append(f"{len(problems):,} damaged {records} left out.")
    return lines


def common_columns(missing: pd.DataFrame) -> list[Column]:
    """The columns of the table that is collected for every design."""
    names = [str(name) for name in missing if name not in NOT_NAMES]
    return [
        *(text(name, name.replace("_", " ").capitalize()) for name in names),
        number("seed", "Seed", "d"),
        long_text("reason", "Why"),
        long_text("remedy", "What to do"),
        long_text("node", "Node"),
    ]


def holes(
    missing: pd.DataFrame, problems: pd.DataFrame, columns: Sequence[Column], keys: int
) -> list[HtmlTable]:
    """One table per state, what wants a reader's attention first, and one of damaged records.

    Args:
        columns: what is told of a missing run; the first ``keys`` of them name it.
    """
    lists = [
        build(
            f"missing-{state.replace(' ', '-')}",
            state.capitalize(),
            STATES.get(state, ""),
            rows,
            columns,
            keys=keys,
            folded=len(rows) > FOLD,
        )
        for state in in_order(missing["state"], [*STATES])
        if len(rows := missing[missing["state"] == state])
    ]
    return [*lists, *([_problems(problems)] if len(problems) else [])]


def _problems(frame: pd.DataFrame) -> HtmlTable:
    return build(
        "problems",
        "Records that were left out",
        "Damaged or contradictory records. None of their numbers is used.",
        frame,
        (long_text("path", "Record"), long_text("error", "What is wrong with it")),
        folded=len(frame) > FOLD,
    )
