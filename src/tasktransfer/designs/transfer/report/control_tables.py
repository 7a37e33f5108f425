"""What transfers are worth beside their controls, the honest top-1, and runs of one answer."""

from __future__ import annotations

import pandas as pd

from tasktransfer.designs.transfer.collect.results import Results
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.statistics.controls import VERDICTS
from tasktransfer.designs.transfer.statistics.one_answer import collapsed_cells
from tasktransfer.designs.transfer.tables.names import algorithm_label
from tasktransfer.tables.html import (
    Column,
    HtmlTable,
    build,
    interval,
    long_text,
    number,
    probability,
    text,
)
from tasktransfer.tables.numbers import counted

FOLD = 40
"""Longer tables are closed until a reader opens them."""


def _label(name: str) -> str:
    return CONTROLS[name].label if name in CONTROLS else algorithm_label(name)


_GROUP = (
    text("dataset", "Dataset"),
    text("model", "Model"),
    text("algorithm", "Algorithm", _label),
)


def control_tables(results: Results) -> list[HtmlTable]:
    """Every table that has rows."""
    statistics = results.statistics
    tables = [
        _top1(statistics.top1),
        _controls(statistics.controls, len(results.tables.control_missing)),
        _collapsed(statistics.one_answer),
        _collapsed_runs(statistics.one_answer),
    ]
    return [table for table in tables if table.count]


def _top1(frame: pd.DataFrame) -> HtmlTable:
    return build(
        "top1",
        "Top-1, with and without luck",
        "Mean delta over targets of the best source of each, in points, 0 where no source looks "
        "better than the baseline. Paper: the source is chosen by the test scores that are "
        "reported, so that luck counts as effect. Dev: chosen by dev scores. Held out: chosen by "
        "the test scores of the other seeds. Intervals are 95 %.",
        frame,
        (
            *_GROUP,
            number("n_targets", "Targets", "d"),
            number("n_seeds", "Seeds", "d"),
            number("top1", "Paper", "+.2f"),
            number("top1_dev", "Dev", "+.2f"),
            interval("top1_dev_low", "top1_dev_high", "interval", "+.2f"),
            number("top1_heldout", "Held out", "+.2f"),
            interval("top1_heldout_low", "top1_heldout_high", "interval", "+.2f"),
        ),
        keys=3,
    )


def _controls(frame: pd.DataFrame, missing: int) -> HtmlTable:
    """A row per cell, its verdict beside it."""
    counts = frame["verdict"].value_counts()
    told = "; ".join(f"{counts[name]:,} {name}" for name in VERDICTS if name in counts)
    gone = f"; {counted(missing, 'run')} of controls missing" if missing else ""
    ruled_out = ". ".join(f"{one.label}: rules out {one.rules_out}" for one in CONTROLS.values())
    return build(
        "controls",
        "Is it the source's task?",
        "Deltas of pre-train → fine-tune over the baseline and over each control, in points, "
        f"with q. {ruled_out}. A transfer beats all controls if it is above the baseline and each "
        "of them with q ≤ 0.05; it is explained by a control that gives at least half of its "
        "delta and that it is not above, or that is above it.",
        frame,
        (
            text("dataset", "Dataset"),
            text("model", "Model"),
            text("source", "Source"),
            text("target", "Target"),
            number("n_seeds", "Seeds", "d"),
            number("delta", "Δ over baseline", "+.2f"),
            probability("q", "q"),
            *(column for name in CONTROLS for column in _over(name)),
            text("verdict", "Verdict"),
            text("explained_by", "Explained by", _joined),
        ),
        keys=4,
        folded=len(frame) > FOLD,
        note=f"{told}{gone}.",
    )


def _over(control: str) -> tuple[Column, ...]:
    label = CONTROLS[control].label
    return (
        number(f"{control}_delta", f"Δ over {label.lower()}", "+.2f"),
        interval(f"{control}_low", f"{control}_high", "interval", "+.2f"),
        probability(f"{control}_q", "q"),
    )


def _joined(names: str) -> str:
    return ", ".join(_label(name) for name in names.split("+") if name)


def _collapsed(frame: pd.DataFrame) -> HtmlTable:
    cells = collapsed_cells(frame)
    return build(
        "collapsed",
        "Runs that give one answer",
        "At least 99 % of a collapsed run's predictions are one and the same. Its score says how "
        "frequent that answer is. Collapsed runs are in all numbers.",
        cells,
        (
            *_GROUP,
            text("source", "Source", lambda joined: joined.replace("+", " + ")),
            text("target", "Target"),
            number("collapsed", "Collapsed", ",d"),
            number("runs", "Runs", ",d"),
        ),
        keys=5,
        folded=len(cells) > FOLD,
    )


def _collapsed_runs(frame: pd.DataFrame) -> HtmlTable:
    runs = frame[frame["collapsed"].astype(bool)]
    return build(
        "collapsed-runs",
        "Each of these runs",
        "The answer that it gives, and its share of the predictions.",
        runs,
        (
            *_GROUP,
            text("source", "Source", lambda joined: joined.replace("+", " + ")),
            text("target", "Target"),
            number("seed", "Seed", "d"),
            long_text("answer", "Answer"),
            number("share", "Share", ".1%"),
        ),
        keys=6,
        folded=True,
    )
