"""What is not in the numbers: planned runs without one, and records that were left out."""

from __future__ import annotations

import pandas as pd

from tasktransfer.designs.transfer.collect.results import Tables
from tasktransfer.designs.transfer.tables.names import algorithm_label
from tasktransfer.tables.columns import long_text, number, text
from tasktransfer.tables.html import HtmlTable, build
from tasktransfer.tables.metadata import in_order

FOLD = 40
"""Longer lists are closed until a reader opens them."""

STATES = {
    "failed": "The training ended in an error; its last line is given.",
    "damaged": "There is a record that cannot be used.",
    "interrupted": "The training was stopped before it was done.",
    "baseline missing": "The run is there, and the baseline that it is compared with is not.",
    "running": "Being trained when the tables were collected.",
    "waiting": "Planned, and not started.",
}
"""State of a missing run → what it means; what wants a reader's attention comes first."""


def troubles(tables: Tables) -> list[str]:
    """What a reader has to know before reading on, in lines; none if everything is there."""
    lines = []
    missing = _missing(tables)
    if len(missing):
        counts = missing["state"].value_counts()
        parts = [f"{counts[state]:,} {state}" for state in in_order(counts.index, [*STATES])]
        runs = "run has" if len(missing) == 1 else "runs have"
        lines.append(f"{len(missing):,} planned {runs} no number: {', '.join(parts)}.")
    if len(tables.problems):
        records = "record was" if len(tables.problems) == 1 else "records were"
        lines.append(f"{len(tables.problems):,} damaged {records} left out.")
    return lines


def holes(tables: Tables) -> list[HtmlTable]:
    """One table per state, what wants a reader's attention first, and one of damaged records."""
    missing = _missing(tables)
    states = in_order(missing["state"], [*STATES])
    lists = [_state(missing[missing["state"] == state], state) for state in states]
    return [*lists, *([_problems(tables.problems)] if len(tables.problems) else [])]


def _missing(tables: Tables) -> pd.DataFrame:
    """Runs of algorithms, then those of controls."""
    return pd.concat([tables.missing, tables.control_missing], ignore_index=True)


def _state(frame: pd.DataFrame, state: str) -> HtmlTable:
    return build(
        f"missing-{state.replace(' ', '-')}",
        state.capitalize(),
        STATES.get(state, ""),
        frame,
        (
            text("dataset", "Dataset"),
            text("model", "Model"),
            text("algorithm", "Algorithm", algorithm_label),
            text("source", "Source", lambda joined: joined.replace("+", " + ")),
            text("target", "Target"),
            number("seed", "Seed", "d"),
            long_text("reason", "Why"),
            long_text("stage", "Training"),
        ),
        keys=6,
        folded=len(frame) > FOLD,
    )


def _problems(frame: pd.DataFrame) -> HtmlTable:
    return build(
        "problems",
        "Records that were left out",
        "Damaged or contradictory records. None of their numbers is used.",
        frame,
        (long_text("path", "Record"), long_text("error", "What is wrong with it")),
        folded=len(frame) > FOLD,
    )
