"""Table 2 of the paper: average, top-1 and bottom-1 transfer (sections 3.3 and 6.1).

Only single-source runs are used. A *cell* is one (source, target, seed) whose transfer run and
baseline are both finished. A study over tasks T with n seeds expects |T|(|T|-1)n cells for each
model and algorithm. Numbers that are computed from fewer cells are marked.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.frames import MEAN
from tasktransfer.designs.transfer.published import (
    Correspondence,
    add_published_values,
    describe_compared_columns,
    explain_no_comparison,
    find_correspondence,
    has_published_values,
    list_difference_notes,
)
from tasktransfer.designs.transfer.runs import BASELINE, get_algorithm_label
from tasktransfer.present.numbers import (
    INCOMPLETE,
    OTHERWISE,
    add_sigma,
    format_delta,
    format_score,
)
from tasktransfer.present.printed import Entry, Layout, group_blocks
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata, Order, sort_rows

GROUP = ["dataset", "model", "algorithm"]
_PAIR = [*GROUP, "source", "target"]
_CELL = [*_PAIR, "seed"]

AGGREGATES = (
    "average_score",
    "average_sigma",
    "average_delta",
    "average_delta_sigma",
    "top1_score",
    "top1_delta",
    "bottom1_score",
    "bottom1_delta",
)


def compute_aggregates(
    deltas: pd.DataFrame, missing: pd.DataFrame, order: Order | None = None
) -> pd.DataFrame:
    """Compute the aggregates: one row per dataset, model and algorithm.

    Args:
        deltas: columns of ``columns.DELTAS``; multi-source rows are ignored.
        missing: columns of ``columns.MISSING``: the expected runs that are missing.
        order: order of the rows (``Metadata.order``); other names follow in order of appearance.

    Returns:
        dataset, model, algorithm, then (scores 0-100, deltas in points of score):

            - average_score, average_delta: mean over ordered pairs of the pair's mean over seeds.
            - average_sigma, average_delta_sigma: sample standard deviation (ddof = 1), over seeds,
              of the average over pairs within one seed; NaN with one seed. The paper does not
              define its sigma; this is ours.
            - top1_score: per target the maximum over sources of max(baseline, score), averaged over
              targets; top1_delta: per target max(0, maximum over sources of delta), averaged.
            - bottom1_score, bottom1_delta: per target the minimum over sources, averaged. For top-1
              and bottom-1, scores are averaged over seeds *before* the best or worst source is
              chosen, so that a lucky seed does not decide the choice.
            - n_pairs: ordered pairs of tasks expected; n_cells, n_expected: cells present and
              expected; n_seeds: seeds present; complete: whether all expected cells are present.
    """
    cells = _select_finished_pairs(deltas)
    counts = sort_rows(_count_cells(cells, missing), {key: key for key in GROUP}, order or {})
    if cells.empty:
        return counts.reindex(columns=[*GROUP, *AGGREGATES, *_COUNTS])
    pairs = cells.groupby(_PAIR, sort=False)[["score", "baseline_score", "delta"]].mean()
    per_seed = cells.groupby([*GROUP, "seed"], sort=False)[["score", "delta"]].mean()
    averages = pairs.groupby(GROUP, sort=False)[["score", "delta"]].mean()
    sigmas = per_seed.groupby(GROUP, sort=False)[["score", "delta"]].std(ddof=1)
    extremes = _compute_extremes(pairs).groupby(GROUP, sort=False).mean()
    values = extremes.assign(
        average_score=averages["score"],
        average_sigma=sigmas["score"],
        average_delta=averages["delta"],
        average_delta_sigma=sigmas["delta"],
    )
    joined = counts.merge(values.reset_index(), on=GROUP, how="left")
    return joined[[*GROUP, *AGGREGATES, *_COUNTS]]


_COUNTS = ["n_pairs", "n_cells", "n_expected", "n_seeds", "complete"]


def _select_finished_pairs(deltas: pd.DataFrame) -> pd.DataFrame:
    return deltas[(deltas["n_sources"] == 1) & deltas["delta"].notna()]


def _compute_extremes(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the scores and deltas of the best and the worst source, by group and target."""
    with_baseline = pairs.assign(or_baseline=pairs[["score", "baseline_score"]].max(axis=1))
    targets = with_baseline.groupby([*GROUP, "target"], sort=False)
    return pd.DataFrame(
        {
            "top1_score": targets["or_baseline"].max(),
            "top1_delta": targets["delta"].max().clip(lower=0),
            "bottom1_score": targets["score"].min(),
            "bottom1_delta": targets["delta"].min(),
        }
    )


def _count_cells(cells: pd.DataFrame, missing: pd.DataFrame) -> pd.DataFrame:
    """Count finished and expected cells per group, including groups without finished cells."""
    absent = missing[(missing["n_sources"] == 1) & (missing["algorithm"] != BASELINE)]
    both = pd.concat(
        [cells[_CELL].assign(present=True), absent[_CELL].assign(present=False)],
        ignore_index=True,
    ).drop_duplicates(_CELL)
    groups = both.groupby(GROUP, sort=False)
    counts = pd.DataFrame({"n_cells": groups["present"].sum(), "n_expected": groups.size()})
    counts["n_pairs"] = both.drop_duplicates(_PAIR).groupby(GROUP, sort=False).size()
    counts["n_seeds"] = both[both["present"]].groupby(GROUP, sort=False)["seed"].nunique()
    counts["n_seeds"] = counts["n_seeds"].fillna(0).astype("int64")
    counts["complete"] = counts["n_cells"] == counts["n_expected"]
    return counts.reset_index()


MEASURES = ("average_score", "average_delta", "top1_score", "top1_delta")
"""Measures that the paper prints as well."""
ALSO = {
    "average_sigma": "the paper's Table 2; it does not define its sigma",
    "bottom1_score": "the paper's section 6.1, only for T5 on DailyDialog",
}
"""Meanings of the published columns that are not compared."""
COLUMNS = {
    "dataset": "dataset",
    "model": "model, as the study names it",
    "algorithm": "transfer algorithm",
    "average_score": "mean score over ordered pairs of tasks, 0-100",
    "average_sigma": "sample standard deviation over seeds of the average within one seed",
    "average_delta": "mean delta over ordered pairs of tasks, points",
    "average_delta_sigma": "sample standard deviation over seeds of the average delta",
    "top1_score": "per target the best of baseline and sources, mean over targets, 0-100",
    "top1_delta": "per target the best delta, at least 0, mean over targets, points",
    "bottom1_score": "per target the worst source's score, mean over targets, 0-100",
    "bottom1_delta": "per target the worst source's delta, mean over targets, points",
    "n_pairs": "planned ordered pairs of tasks",
    "n_cells": "finished runs, one per source, target and seed",
    "n_expected": "planned runs",
    "n_seeds": "seeds of the finished runs",
    "complete": "n_cells == n_expected",
    **describe_compared_columns(MEASURES, "Table 2", ALSO),
}
"""Meanings of the columns; ``published_`` and ``difference_`` exist if a row is comparable."""
ASKED_COLUMNS = {
    "average_low": "prompted models: lower end of the 95 % interval of the score",
    "average_high": "prompted models: upper end of the interval",
    "spread": "prompted models: best minus worst prompt wording, points",
    "unreadable": "prompted models: answers that match no choice or cannot be parsed, %",
    "seen": "whether the model saw the test dialogues in its training, according to the config",
}
"""Meanings of the columns that exist only in studies with prompted models."""
ASKED = "prompted"
NOTED = 5.0
"""Percentage of unreadable answers above which a row states it."""

_HEAD = (
    "Dataset",
    "Model",
    "Algorithm",
    "",
    "Average\nscore (σ)",
    "Average\nΔ (σ)",
    "Top-1\nscore",
    "Top-1\nΔ",
    "Bottom-1\nscore",
    "Bottom-1\nΔ",
    "Runs",
)


def compute_table2(frames: Frames) -> pd.DataFrame | None:
    """Compute aggregate single-source transfer, next to the paper's values.

    Returns:
        One row per dataset, model and algorithm, columns as in ``COLUMNS``
        (``compute_aggregates`` defines the numbers); None if no single-source transfer is finished
        or planned.
    """
    order = frames.metadata.order
    frame = compute_aggregates(frames["deltas"], frames["missing_runs"], order)
    prompted = _build_prompted_rows(frames.get("prompted"))
    if frame.empty:
        return prompted
    trained = add_published_values(
        frame,
        published.read_table2(),
        MEASURES,
        GROUP,
        find_correspondence(frames),
        also=list(ALSO),
        differs=_describe_pair_difference,
    )
    return trained if prompted is None else pd.concat([trained, prompted], ignore_index=True)


def _build_prompted_rows(prompted: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return one row per prompted model and number of shots, its mean over a dataset's tasks.

    These rows involve no transfer, so they have neither a delta nor a best source.
    """
    if prompted is None:
        return None
    means = prompted[prompted["target"] == MEAN]
    rows = means.assign(
        algorithm=[f"{ASKED}, {shots} shots" for shots in means["shots"]],
        average_score=means["score"],
        average_low=means["low"],
        average_high=means["high"],
        n_pairs=0,
        n_cells=means["n_targets"] * means["n_seeds"],
        n_expected=means["n_expected"] * means["n_seeds_planned"],
    )
    rows = rows.assign(complete=rows["n_cells"] == rows["n_expected"])
    absent = dict.fromkeys([name for name in AGGREGATES if name != "average_score"], np.nan)
    names = [*GROUP, *AGGREGATES, "n_pairs", "n_cells", "n_expected", "n_seeds", "complete"]
    return rows.assign(**absent)[[*names, *ASKED_COLUMNS]]


def _describe_pair_difference(row: Mapping[str, Any]) -> str:
    """Describe how the averaged pairs differ from the paper's, or return "" if they are equal."""
    tasks = int((published.read_table1()["dataset"] == row["dataset"]).sum())
    pairs = tasks * (tasks - 1)
    if row["n_pairs"] == pairs:
        return ""
    return f"{row['dataset']}: {row['n_pairs']} of the paper's {pairs} ordered pairs of tasks"


def describe_table(
    frame: pd.DataFrame, metadata: Metadata, comparable: Correspondence
) -> list[str]:
    """Return notes on definitions, incomplete rows and comparability."""
    return [
        "Average is the mean over all ordered (source, target) pairs. Top-1 and bottom-1 are the "
        "means over targets for the best and for the worst source, which are selected after "
        "averaging over seeds. If no source helps, top-1 uses the baseline. Δ is the difference "
        "from the baseline of the same model, target and seed. σ is the sample standard "
        "deviation of the seeds' averages (number of seeds: at most "
        f"{max(frame['n_seeds'], default=0)}). Runs are given as finished/planned, with one run "
        "per source, target and seed.",
        ""
        if frame["complete"].all()
        else f"{INCOMPLETE} The row is computed from fewer runs than planned.",
        f"{ASKED[0].upper()}{ASKED[1:]}: a language model that is prompted, not fine-tuned. The "
        "score of a prompted model is the mean over tasks, prompt wordings and few-shot seeds. "
        "Brackets contain the 95 % interval over dialogues and seeds, and half the difference "
        "between wordings follows ±. The word after “seen” states, according to the config, "
        "whether the model saw the test dialogues in its training. Answers that match no choice or "
        "cannot be parsed are unreadable and count as wrong. The percentage of unreadable answers "
        f"is stated if it is above {NOTED:.0f} %. A prompted model has one run per task and seed."
        if "seen" in frame
        else "",
        "Published values are from the paper's Table 2, which does not define its σ and has no "
        "bottom-1."
        if has_published_values(frame)
        else explain_no_comparison(frame, comparable),
        *list_difference_notes(frame, comparable),
    ]


def lay_out_table(frame: pd.DataFrame, metadata: Metadata) -> Layout:
    """Lay out one line per row, followed by the paper's values and their differences."""
    entries = [(str(row["dataset"]), _build_entry(row)) for row in frame.to_dict("records")]
    whole = Layout(_HEAD, 4, group_blocks(entries))
    beside = any(len(entry) > 1 for _, entry in entries)
    return whole if beside else whole.drop_columns(_HEAD.index(""))


def _build_entry(row: Mapping[Hashable, Any]) -> Entry:
    mark = "" if row["complete"] else INCOMPLETE
    if not pd.isna(row.get("seen")):
        unread = f", {row['unreadable']:.0f} % unreadable" if row["unreadable"] > NOTED else ""
        how = f"{row['algorithm']} (seen: {row['seen']}{unread}){mark}"
        interval = f"[{format_score(row['average_low'])}, {format_score(row['average_high'])}]"
        half = format_score(row["spread"] / 2)
        score = f"{format_score(row['average_score'])} {interval} ±{half}"
        if pd.isna(row["average_score"]):
            score = format_score(row["average_score"])
        cells = f"{row['n_cells']}/{row['n_expected']}{mark}"
        named = (str(row["dataset"]), str(row["model"]), how, "ours")
        return ((*named, score, *[""] * 5, cells),)
    ours = (
        str(row["dataset"]),
        str(row["model"]),
        get_algorithm_label(str(row["algorithm"])) + mark,
        "ours",
        add_sigma(format_score(row["average_score"]), row["average_sigma"]),
        add_sigma(format_delta(row["average_delta"]), row["average_delta_sigma"]),
        format_score(row["top1_score"]),
        format_delta(row["top1_delta"]),
        format_score(row["bottom1_score"]),
        format_delta(row["bottom1_delta"]),
        f"{row['n_cells']}/{row['n_expected']}{mark}",
    )
    if row.get("differs_average_score"):
        return ours, (*("", "", "", "published"), *(OTHERWISE for _ in MEASURES), "", "", "")
    if pd.isna(row.get("published_average_score")):
        return (ours,)
    paper = (
        *("", "", "", "published"),
        add_sigma(format_score(row["published_average_score"]), row["published_average_sigma"]),
        format_delta(row["published_average_delta"]),
        format_score(row["published_top1_score"]),
        format_delta(row["published_top1_delta"]),
        ""
        if pd.isna(row["published_bottom1_score"])
        else format_score(row["published_bottom1_score"]),
        *("", ""),
    )
    if f"difference_{MEASURES[0]}" not in row:
        return ours, paper
    off = (format_delta(row[f"difference_{measure}"]) for measure in MEASURES)
    return ours, paper, ("", "", "", "difference", *off, "", "", "")
