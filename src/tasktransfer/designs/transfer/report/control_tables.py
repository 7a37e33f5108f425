"""What a transfer is held against, as the report prints it: controls, top-1, references."""

from __future__ import annotations

import pandas as pd

from tasktransfer.designs.transfer.collect.results import Results
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.statistics.controls import VERDICTS
from tasktransfer.designs.transfer.tables.names import algorithm_label
from tasktransfer.designs.transfer.tables.reference import LABELS
from tasktransfer.tables.columns import interval, number, text
from tasktransfer.tables.html import HtmlTable, build

MOST_CELLS = 200
"""Rows of the table of cells that are shown; the Parquet file has all."""

_GROUP = (
    text("dataset", "Dataset"),
    text("model", "Model"),
    text("algorithm", "Algorithm", algorithm_label),
)
_PLACE = ["dataset", "model", "algorithm", "source", "target"]


def control_tables(results: Results) -> list[HtmlTable]:
    """Every table that has rows."""
    statistics = results.statistics
    tables = [
        *([_reference(results)] if results.reference is not None else []),
        _top1(statistics.top1),
        _verdicts(statistics.controls),
        _cells(statistics.controls),
        _collapsed(statistics.collapsed),
    ]
    return [table for table in tables if table.count]


def _reference(results: Results) -> HtmlTable:
    """One row per task: its references, then each model's baseline."""
    assert results.reference is not None
    keys = ["dataset", "target"]
    scored = results.reference[results.reference["target"].isin(results.tables.runs["target"])]
    wide = scored.pivot(index=keys, columns="reference", values="score")
    names = [name for name in LABELS if name in wide]
    runs = results.tables.runs
    alone = runs[runs["algorithm"] == BASELINE]
    means = alone.groupby([*keys, "model"])["score"].mean().unstack("model")
    models = results.metadata.ordered("model", means.columns)
    renamed = {model: f"baseline {model}" for model in models}
    rows = wide[names].join(means.rename(columns=renamed)).reset_index()
    shown = {**{name: LABELS[name] for name in names}, **{key: key for key in renamed.values()}}
    return build(
        "reference",
        "What a score has to beat",
        "Scores without a model, 0-100: the most frequent answer of training; answers drawn as "
        "frequently as training has them (mean of 20 draws); TF-IDF with logistic regression, not "
        "tuned. Beside them the mean score of each model's baselines.",
        rows,
        (
            text("dataset", "Dataset"),
            text("target", "Task"),
            *(number(key, label, ".1f") for key, label in shown.items()),
        ),
        keys=2,
    )


def _top1(frame: pd.DataFrame) -> HtmlTable:
    return build(
        "top1",
        "The best source of each target",
        "Mean over targets, points. Top-1 is the paper's: the largest mean Δ of a target's "
        "sources, at least 0; it is above 0 also where no source has any effect. Chosen on "
        "dev: the Δ of the source with the best dev scores; its 95 % interval speaks of other "
        "seeds on the same test sets. Held out: of each seed and half of the dialogues, the Δ of "
        "the source that is best for the other seeds on the other half; its 95 % interval speaks "
        "of other seeds and dialogues.",
        frame,
        (
            *_GROUP,
            number("n_targets", "Targets", "d"),
            number("n_seeds", "Seeds", "d"),
            number("top1", "Top-1", "+.2f"),
            number("top1_dev", "Chosen on dev", "+.2f"),
            interval("top1_dev_low", "top1_dev_high", "interval", "+.2f"),
            number("top1_heldout", "Held out", "+.2f"),
            interval("top1_heldout_low", "top1_heldout_high", "interval", "+.2f"),
        ),
        keys=3,
    )


def _verdicts(frame: pd.DataFrame) -> HtmlTable:
    cells = frame.drop_duplicates(_PLACE)
    counts = cells.groupby(_PLACE[:3], sort=False)["verdict"].value_counts().unstack(fill_value=0)
    rows = counts.reindex(columns=[*VERDICTS], fill_value=0).reset_index()
    return build(
        "control-verdicts",
        "Does the source explain the gain?",
        "Single-source cells by what the controls say. Beats all controls: above the baseline and "
        "above each control with q ≤ 0.05. Explained by a control: above the baseline with q ≤ "
        "0.05, and some control, which has nothing of the source, surely gives half of that or "
        "more (the 95 % interval of Δ over it ends below half of the cell's Δ). Hurts: below the "
        "baseline with q ≤ 0.05. Cannot tell: no sure gain, or neither of these, or a control is "
        "missing. Not judged: one seed, or no test.",
        rows,
        (*_GROUP, *(number(name, name.capitalize(), ".0f") for name in VERDICTS)),
        keys=3,
    )


def _cells(frame: pd.DataFrame) -> HtmlTable:
    """One row per cell, its delta over each control side by side."""
    named = [name for name in CONTROLS if name in set(frame["control"])]
    wide = frame.drop_duplicates(_PLACE)[[*_PLACE, "verdict"]]
    for name in named:
        part = frame[frame["control"] == name].set_index(_PLACE)[["delta", "q"]]
        wide = wide.join(part.rename(columns={"delta": name, "q": f"{name} q"}), on=_PLACE)
    ranks = wide["verdict"].map({verdict: rank for rank, verdict in enumerate(VERDICTS)})
    wide = wide.assign(rank=ranks).sort_values("rank", kind="stable")
    top = wide.head(MOST_CELLS)
    return build(
        "controls",
        "Cells and their controls",
        "Δ over each control in points, with q: p adjusted for all single-source cells of the "
        "dataset over the same control.",
        top,
        (
            *_GROUP,
            text("source", "Source"),
            text("target", "Target"),
            text("verdict", "Verdict"),
            *(
                column
                for name in named
                for column in (
                    number(name, f"Δ over {name.replace('_', ' ')}", "+.2f"),
                    number(f"{name} q", "q", ".3f"),
                )
            ),
        ),
        keys=5,
        folded=True,
        note=f"{len(top)} of {len(wide):,} cells; tables/controls.parquet has all."
        if len(top) < len(wide)
        else "",
    )


def _collapsed(frame: pd.DataFrame) -> HtmlTable:
    listed = frame[frame["n_collapsed"] > 0]
    spelled = listed["seeds"].map(lambda seeds: ", ".join(map(str, seeds)))
    return build(
        "collapsed",
        "Runs that give one answer",
        "Runs whose predictions are one answer for 99 % of the test set or more. They are in every "
        "number of this page.",
        listed.assign(seeds=spelled),
        (
            *_GROUP,
            text("source", "Source"),
            text("target", "Target"),
            number("n_collapsed", "Collapsed", "d"),
            number("n_runs", "Runs", "d"),
            text("seeds", "Seeds"),
            text("answer", "Answer"),
        ),
        keys=5,
    )
