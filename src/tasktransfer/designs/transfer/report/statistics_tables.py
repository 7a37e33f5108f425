"""Report tables of the statistics."""

from __future__ import annotations

import pandas as pd

from tasktransfer.core.quantities import format_quantity
from tasktransfer.designs.transfer.collect.results import Statistics
from tasktransfer.designs.transfer.statistics.agreement import agreement_overall
from tasktransfer.designs.transfer.tables.names import get_algorithm_label
from tasktransfer.present.columns import Row, interval, number, probability, text
from tasktransfer.present.html import HtmlTable, build_table, to_records
from tasktransfer.present.numbers import format_score

TOP = 20
"""Maximum number of printed rows of long tables; the Parquet files have all rows."""

_GROUP = (
    text("dataset", "Dataset"),
    text("model", "Model"),
    text("algorithm", "Algorithm", get_algorithm_label),
)


_PAIRS = "at least three pairs of a source and a target, with numbers that are not all equal"
"""Requirement of a rank correlation (``correlation.compute_spearman``)."""


def statistics_tables(statistics: Statistics) -> list[HtmlTable]:
    """Return every table that has rows."""
    tables = [
        _build_summary_table(statistics.summary),
        _build_variance_table(statistics.variance),
        _build_overall_agreement_table(agreement_overall(statistics.agreement)),
        _build_agreement_table(statistics.agreement),
        _build_asymmetry_table(statistics.asymmetry),
        _build_overlap_effect_table(statistics.overlap_effect),
        _build_overlap_table(statistics.overlap),
    ]
    return [table for table in tables if table.count]


def agreement_lines(agreement: pd.DataFrame) -> list[str]:
    """Return sentences on the paper's central claim that transfer trends are specific to a model.

    There is one sentence per dataset for models, and one for algorithms.
    """
    return [_describe_agreement(row) for row in to_records(agreement_overall(agreement))]


def _describe_agreement(row: Row) -> str:
    mean, low, high = (format_score(row[key]) for key in ("correlation", "lowest", "highest"))
    count, agreeing = row["comparisons"], row["agreeing"]
    return (
        f"{row['dataset']}: the transfer matrices of two {row['between']}s have a mean rank "
        f"correlation of {mean} ({format_quantity(count, 'comparison')}, {low} to "
        f"{high}; {agreeing} above 0 with p ≤ 0.05)."
    )


def _build_summary_table(frame: pd.DataFrame) -> HtmlTable:
    return build_table(
        "summary",
        "Comparison of the algorithms",
        "Over all single-source cells of a dataset. A cell is a source, target, model and "
        "algorithm with the runs of all its seeds. Δ is the score minus that of the baseline with "
        "the same model, target and seed, in points. IQM: interquartile mean of the deltas. "
        "Above 0: fraction of the deltas. Rank: mean rank among the algorithms of the model, 1 is "
        "best. Pairing: correlation over seeds of a run and the baseline of its seed. Intervals "
        "are 95 %, over seeds on the same test dialogues unless the column says otherwise. A dash "
        "marks a number that cannot be computed, for example from one seed.",
        frame,
        (
            *_GROUP,
            number("n_cells", "Cells", ",d"),
            number("n_seeds", "Seeds", "d"),
            number("mean", "Mean Δ", "+.2f"),
            interval("joint_low", "joint_high", "interval, seeds and dialogues", "+.2f"),
            interval("mean_low", "mean_high", "seeds alone", "+.2f"),
            number("iqm", "IQM of Δ", "+.2f"),
            interval("iqm_low", "iqm_high", "interval", "+.2f"),
            number("positive", "Above 0", ".2f"),
            interval("positive_low", "positive_high", "interval", ".2f"),
            number("rank", "Rank", ".2f"),
            interval("rank_low", "rank_high", "interval", ".2f"),
            number("pairing", "Pairing", "+.2f"),
        ),
        keys=3,
    )


def _build_variance_table(frame: pd.DataFrame) -> HtmlTable:
    """Build the table of variance components: one row per group, one column per component."""
    components = list(dict.fromkeys(frame["component"]))
    keys = ["dataset", "model", "algorithm"]
    wide = frame.drop_duplicates(keys)[keys]
    for component in components:
        part = frame[frame["component"] == component].set_index(keys)["share"]
        wide = wide.join(part.rename(component), on=keys)
    return build_table(
        "variance",
        "Variance components of delta",
        "Fractions of the variance of the delta: between sources, between targets, between pairs "
        "beyond both (interaction), and between seeds (noise). A dash marks a component that this "
        "study cannot estimate.",
        wide,
        (*_GROUP, *(number(name, name.replace(" x ", " × "), ".0%") for name in components)),
        keys=3,
        needs="several sources and several targets, or several seeds, whose deltas differ",
    )


def _build_overall_agreement_table(frame: pd.DataFrame) -> HtmlTable:
    return build_table(
        "agreement-overall",
        "Agreement of models and of algorithms",
        "Mean over the comparisons of Spearman's rank correlation of two transfer matrices: 1 "
        "means that the same pairs of tasks transfer well, 0 that the matrices are unrelated. "
        "Disjoint seeds: the correlation between disjoint halves of the seeds, which share no "
        "noise. Attainable: the value of that correlation if both had the same trends, given the "
        "noise of the seeds. Agreeing: comparisons above 0 with p ≤ 0.05.",
        frame,
        (
            text("dataset", "Dataset"),
            text("between", "Between"),
            number("correlation", "Mean correlation", ".2f"),
            interval("lowest", "highest", "lowest to highest", ".2f"),
            number("disjoint", "Disjoint seeds", ".2f"),
            number("reliability", "Attainable", ".2f"),
            number("agreeing", "Agreeing", "d"),
            number("comparisons", "Comparisons", "d"),
        ),
        keys=2,
    )


def _build_agreement_table(frame: pd.DataFrame) -> HtmlTable:
    return build_table(
        "agreement",
        "Agreement by pair of models or algorithms",
        "Spearman's rank correlation of their transfer matrices, with a 95 % interval (bootstrap "
        "over tasks) and p of no agreement (task labels permuted).",
        frame,
        (
            text("dataset", "Dataset"),
            text("between", "Between"),
            text("a", "One", get_algorithm_label),
            text("b", "Other", get_algorithm_label),
            text("held", "Both with", get_algorithm_label),
            number("n_pairs", "Pairs", "d"),
            number("correlation", "Correlation", ".2f"),
            interval("low", "high", "interval", ".2f"),
            probability("p", "p"),
            number("disjoint", "Disjoint seeds", ".2f"),
            number("reliability", "Attainable", ".2f"),
        ),
        keys=5,
        folded=True,
        needs=_PAIRS,
    )


def _build_asymmetry_table(frame: pd.DataFrame) -> HtmlTable:
    size = frame["difference"].abs()
    compared = frame[size.notna()].assign(size=size[size.notna()])
    top = compared.sort_values("size", ascending=False, kind="stable").head(TOP)
    return build_table(
        "asymmetry",
        "Asymmetric pairs of tasks",
        "Pairs of tasks whose two directions differ most, in points. q: p adjusted for all pairs "
        "of the dataset.",
        top,
        (
            *_GROUP,
            text("task_a", "A"),
            text("task_b", "B"),
            number("a_to_b", "Δ A → B", "+.2f"),
            number("b_to_a", "Δ B → A", "+.2f"),
            number("difference", "Difference", "+.2f"),
            interval("low", "high", "interval", "+.2f"),
            probability("p", "p"),
            probability("q", "q"),
        ),
        keys=5,
        note=_note_omitted_rows(len(top), len(frame), "asymmetry"),
    )


def _build_overlap_effect_table(frame: pd.DataFrame) -> HtmlTable:
    return build_table(
        "overlap-effect",
        "Does shared data explain transfer?",
        "Spearman's rank correlation, over pairs of tasks, of the amount of shared data and the "
        "delta, with a 95 % interval (bootstrap over tasks) and p of no relation (task labels "
        "permuted).",
        frame,
        (
            *_GROUP,
            text("basis", "Shared"),
            number("n_pairs", "Pairs", "d"),
            number("correlation", "Correlation", ".2f"),
            interval("low", "high", "interval", ".2f"),
            probability("p", "p"),
        ),
        keys=4,
        needs=_PAIRS,
    )


def _build_overlap_table(frame: pd.DataFrame) -> HtmlTable:
    top = frame.sort_values("share", ascending=False, kind="stable").head(TOP)
    return build_table(
        "overlap",
        "Data shared by tasks",
        "Amount of the target's data that the source also contains.",
        top,
        (
            text("dataset", "Dataset"),
            text("source", "Source"),
            text("target", "Target"),
            text("basis", "Shared"),
            number("shared", "Shared", ",d"),
            number("of", "Of", ",d"),
            number("share", "Share", ".0%"),
        ),
        keys=4,
        folded=True,
        note=_note_omitted_rows(len(top), len(frame), "overlap"),
    )


def _note_omitted_rows(shown: int, rows: int, table: str) -> str:
    """Return a note on the rows that are not printed; empty if all are."""
    return f"{shown} of {rows:,} rows; tables/{table}.parquet lists all." if shown < rows else ""
