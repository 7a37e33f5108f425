"""Report tables that compare transfers with controls, top-1 sources and reference scores."""

from __future__ import annotations

import pandas as pd

from tasktransfer.core.references import REFERENCES
from tasktransfer.designs.transfer.collect.results import Results
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.statistics.controls import VERDICTS
from tasktransfer.designs.transfer.tables.names import get_algorithm_label
from tasktransfer.designs.transfer.tables.reference import LABELS
from tasktransfer.present.columns import interval, number, text
from tasktransfer.present.html import HtmlTable, build_table

MOST_CELLS = 200
"""Maximum number of printed rows of the table of cells; the Parquet file has all rows."""

_GROUP = (
    text("dataset", "Dataset"),
    text("model", "Model"),
    text("algorithm", "Algorithm", get_algorithm_label),
)
_PLACE = ["dataset", "model", "algorithm", "source", "target"]


def control_tables(results: Results) -> list[HtmlTable]:
    """Return every table that has rows."""
    statistics = results.statistics
    tables = [
        *_list_reference_tables(results),
        _build_top1_table(statistics.top1),
        *_list_control_summaries(results),
        _build_verdict_table(statistics.controls),
        _build_cell_table(statistics.controls),
        _build_collapsed_table(statistics.collapsed),
    ]
    return [table for table in tables if table.count]


def _list_reference_tables(results: Results) -> list[HtmlTable]:
    """Return the table of references: with intervals if they are part of the study."""
    if results.references is not None:
        return [_build_comparison_table(results.references)]
    return [_build_reference_table(results)] if results.reference is not None else []


def _build_comparison_table(frame: pd.DataFrame) -> HtmlTable:
    """Build the table of references: one row per baseline and reference."""
    return build_table(
        "references",
        "Baselines and simple references",
        "Scores on the same test instances, 0-100. A reference trains no language model. Δ is the "
        "baseline's mean score over seeds minus the reference's, in points, with its 95 % interval "
        "over dialogues and seeds; q is adjusted over all rows of a dataset. Learned: the mean is "
        "above every reference. Not better: it is at most that of the best reference. Collapsed: "
        "at least half of the runs give one answer to 99 % of the test split. Nothing is tuned.",
        frame.assign(mark=frame["is_best"].map({True: "best", False: ""})),
        (
            text("dataset", "Dataset"),
            text("model", "Model"),
            text("target", "Task"),
            text("reference", "Reference", REFERENCES.__getitem__),
            number("reference_score", "Score of it", ".1f"),
            text("mark", "Of the references"),
            number("score", "Baseline", ".1f"),
            number("n_seeds", "Seeds", "d"),
            number("delta", "Δ", "+.1f"),
            interval("low", "high", "interval", "+.1f"),
            number("q", "q", ".3f"),
            text("state", "State"),
        ),
        keys=4,
    )


def _build_reference_table(results: Results) -> HtmlTable:
    """Build the table of references: per task its reference scores, then each model's baseline."""
    assert results.reference is not None
    keys = ["dataset", "target"]
    scored = results.reference[results.reference["target"].isin(results.tables.runs["target"])]
    wide = scored.pivot(index=keys, columns="reference", values="score")
    names = [name for name in LABELS if name in wide]
    runs = results.tables.runs
    alone = runs[runs["algorithm"] == BASELINE]
    means = alone.groupby([*keys, "model"])["score"].mean().unstack("model")
    models = results.metadata.order_names("model", means.columns)
    renamed = {model: f"baseline {model}" for model in models}
    rows = wide[names].join(means.rename(columns=renamed)).reset_index()
    shown = {**{name: LABELS[name] for name in names}, **{key: key for key in renamed.values()}}
    return build_table(
        "reference",
        "Reference scores",
        "Scores of simple predictors, 0-100: the most frequent training answer; answers sampled "
        "with their training frequencies (mean of 20 samples); TF-IDF with logistic regression, "
        "not tuned. Next to them is the mean score of each model's baselines.",
        rows,
        (
            text("dataset", "Dataset"),
            text("target", "Task"),
            *(number(key, label, ".1f") for key, label in shown.items()),
        ),
        keys=2,
    )


def _build_top1_table(frame: pd.DataFrame) -> HtmlTable:
    return build_table(
        "top1",
        "The best source of each target",
        "Mean over targets, points. Top-1 follows the paper: the largest mean Δ of a target's "
        "sources, at least 0. It is above 0 even if no source has any effect. Chosen on dev: the "
        "Δ of the source with the best dev scores; its 95 % interval covers other seeds on the "
        "same test sets. Held out: for each seed and half of the dialogues, the Δ of the source "
        "that is best for the other seeds on the other half; its 95 % interval covers other seeds "
        "and dialogues.",
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


def _list_control_summaries(results: Results) -> list[HtmlTable]:
    """Return the table of mean differences from controls, if the study has controls."""
    if results.control_summary is None:
        return []
    table = build_table(
        "control-summary",
        "Average effects over controls",
        "Score of the transfer minus score of the control, mean over pairs, points, with its 95 % "
        "interval over seeds and dialogues; q is adjusted over all rows. longer_baseline trains on "
        "the target alone for twice the baseline's updates, about as long as multitask → fine-tune "
        "does.",
        results.control_summary.assign(
            named=results.control_summary["control"].str.replace("_", " ")
        ),
        (
            *_GROUP,
            text("named", "Control"),
            number("n_pairs", "Pairs", "d"),
            number("n_seeds", "Seeds", "d"),
            number("mean", "Δ", "+.2f"),
            interval("low", "high", "interval", "+.2f"),
            number("q", "q", ".3f"),
        ),
        keys=4,
    )
    return [table]


def _build_verdict_table(frame: pd.DataFrame) -> HtmlTable:
    cells = frame.drop_duplicates(_PLACE)
    counts = cells.groupby(_PLACE[:3], sort=False)["verdict"].value_counts().unstack(fill_value=0)
    rows = counts.reindex(columns=[*VERDICTS], fill_value=0).reset_index()
    return build_table(
        "control-verdicts",
        "Does the source explain the gain?",
        "Counts of single-source cells by the outcome of their controls. Beats all controls: above "
        "the baseline and above each control with q ≤ 0.05. Explained by a control: above the "
        "baseline with q ≤ 0.05, and a control, which has no information from the source, gives "
        "at least half of that gain (the 95 % interval of Δ over the control ends below half of "
        "the cell's Δ). Hurts: below the baseline with q ≤ 0.05. Cannot tell: the gain is not "
        "significant, neither of the first two holds, or a control is missing. Not judged: one "
        "seed, or no test.",
        rows,
        (*_GROUP, *(number(name, name.capitalize(), ".0f") for name in VERDICTS)),
        keys=3,
    )


def _build_cell_table(frame: pd.DataFrame) -> HtmlTable:
    """Build the table of cells: one row per cell, one delta column per control."""
    named = [name for name in CONTROLS if name in set(frame["control"])]
    wide = frame.drop_duplicates(_PLACE)[[*_PLACE, "verdict"]]
    for name in named:
        part = frame[frame["control"] == name].set_index(_PLACE)[["delta", "q"]]
        wide = wide.join(part.rename(columns={"delta": name, "q": f"{name} q"}), on=_PLACE)
    ranks = wide["verdict"].map({verdict: rank for rank, verdict in enumerate(VERDICTS)})
    wide = wide.assign(rank=ranks).sort_values("rank", kind="stable")
    top = wide.head(MOST_CELLS)
    return build_table(
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
        note=f"{len(top)} of {len(wide):,} cells; tables/controls.parquet lists all."
        if len(top) < len(wide)
        else "",
    )


def _build_collapsed_table(frame: pd.DataFrame) -> HtmlTable:
    listed = frame[frame["n_collapsed"] > 0]
    spelled = listed["seeds"].map(lambda seeds: ", ".join(map(str, seeds)))
    return build_table(
        "collapsed",
        "Collapsed runs",
        "Runs that give the same answer to at least 99 % of the test set. Every number on this "
        "page includes them.",
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
