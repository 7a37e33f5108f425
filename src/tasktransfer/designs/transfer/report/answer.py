"""Sentences of the report: the study's answer, and what limits it.

The answer says which sources help which targets, and by how much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.algorithms import LONGER_BASELINE
from tasktransfer.designs.transfer.choices import (
    describe_skipped_targets,
    read_checked_targets,
)
from tasktransfer.designs.transfer.frames import MEAN
from tasktransfer.designs.transfer.report.advice import (
    ONE_RUN,
    describe_better_transfers,
    describe_first_sources,
    describe_methods,
    get_methods,
    select_own_targets,
    select_transfer_targets,
)
from tasktransfer.designs.transfer.report.learned import (
    CollapsedRuns,
    compare_with_best_reference,
    describe_better_baselines,
    describe_unlearned_baselines,
    select_learned_cells,
)
from tasktransfer.designs.transfer.runs import BASELINE, fit_short_names, get_algorithm_label
from tasktransfer.errors import format_quantity
from tasktransfer.present.numbers import (
    DIFFERENCES,
    MOST_Q,
    SCORES,
    format_fraction,
    format_value_with_interval,
    is_significantly_negative,
    is_significantly_positive,
    join_names,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import build_frame

NOTHING = "No conclusion about transfer is possible"
MOST_SCORES = 8
"""Maximum number of scores in a sentence."""
LONGER_ALGORITHM = "multitask_finetune"
"""Algorithm that trains on the target in both of its steps."""
LEAST_FRACTION = 0.5
"""Minimum fraction of cells that cannot become significant for a sentence about seeds."""


def write_answer(frames: Frames) -> list[str]:
    """Write the sentences of the answer at the top of the report.

    A study with sources begins with the baselines that have not learned, if there are any: nothing
    is said about transfer to their targets. Then come recommended methods for the user's own
    dialogues, the best source, the mean effects and the significant cells.
    """
    advice = [*describe_methods(select_own_targets(frames))]
    compared = select_transfer_targets(compare_with_best_reference(frames), frames.study)
    checked = read_checked_targets(frames.study.config.results) or ()
    has_sources = has_transfer(frames["transfer_runs"], frames["missing_runs"])
    unlearned = [
        *describe_unlearned_baselines(compared, has_sources=has_sources, has_table=True),
        *describe_better_transfers(get_methods(frames), compared),
        *describe_skipped_targets(checked),
    ]
    better = [*describe_better_baselines(compared)]
    if not has_sources:
        return [*advice, *describe_scores(frames), *unlearned, *better]
    found = [*advice, *_describe_transfer(frames, compared), *better]
    return [" ".join([*unlearned, *found[:1]]), *found[1:]]


def _describe_transfer(frames: Frames, compared: pd.DataFrame) -> list[str]:
    """Return sentences on transfer to the targets whose baselines have learned.

    Args:
        compared: result of ``compare_with_best_reference``.
    """
    cells = frames["cells"]
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    learned = select_learned_cells(singles, compared)
    if learned.empty:
        # The sentence on baselines that have not learned gives the reason.
        return [] if len(singles) else [f"{NOTHING}: no pair has a result."]
    first = describe_first_sources(learned, frames["transfer_runs"], frames["collapsed"], singles)
    tested = learned[learned["q"].notna()]
    if tested.empty:
        return first or [f"{NOTHING}. {ONE_RUN}"]
    one_label = CollapsedRuns(frames["collapsed"])
    averages = [*_describe_averages(frames["summary"], singles, compared, one_label)]
    cells_found = [
        *_describe_significant_cells(tested, frames, one_label, len(singles) - len(learned))
    ]
    has_interval = frames["summary"]["joint_q"].notna().any()
    found = [*averages, *cells_found] if has_interval else [*cells_found, *averages]
    controlled = frames.get("control_summary", build_frame([], columns.CONTROL_SUMMARY))
    return [*first, *found, *describe_longer_training(controlled, frames["summary"], tested)]


def _describe_significant_cells(
    tested: pd.DataFrame, frames: Frames, one_label: CollapsedRuns, n_unlearned: int
) -> Iterator[str]:
    """Yield the number of significant cells, and the largest gain and loss.

    Args:
        tested: cells with q whose targets have baselines that have learned.
        n_unlearned: number of cells that are left out, because their target's baseline has not
            learned.
    """
    better, worse = (
        tested[is_significantly_positive(tested, "delta")],
        tested[is_significantly_negative(tested, "delta")],
    )
    count = len(tested)
    what = "of source, target, model and algorithm"
    others = f"{n_unlearned} are" if n_unlearned > 1 else "combination is"
    whose = "their" if n_unlearned > 1 else "its"
    rest = (
        f" Another {others} not counted, because the baseline of {whose} target has not learned."
        if n_unlearned
        else ""
    )
    if better.empty and worse.empty:
        which = "the only combination" if count == 1 else f"all {count} combinations"
        yield (
            "No transfer differs significantly from its baseline (q > 0.05 in "
            f"{which} {what}).{rest}"
        )
        return
    found = pd.concat([better, worse])
    collapsed = sum(one_label.count(row) > 0 for row in found.to_dict("records"))
    yield (
        f"Of {format_quantity(count, 'combination')} {what}, {_format_count(len(better))} "
        "significantly better than the baseline and "
        f"{_format_count(len(worse))} significantly worse (q ≤ 0.05)"
        f"{_describe_collapsed_share(collapsed)}.{rest}"
    )
    names = fit_short_names(
        list(dict.fromkeys([*tested["source"], *tested["target"]])), frames.metadata.shorts
    )
    for rows, word in ((better, "gain"), (worse, "loss")):
        if rows.empty:
            continue
        row = rows.iloc[int(rows["delta"].abs().argmax())]
        size = format_value_with_interval(
            row["delta"], row["low"], row["high"], "+.1f", DIFFERENCES
        )
        is_collapsed = one_label.describe({str(key): value for key, value in row.items()})
        yield (
            f"The largest significant {word} is {names[row['source']]} → {names[row['target']]} "
            f"({row['dataset']}, {row['model']}, {get_algorithm_label(str(row['algorithm']))}): "
            f"{size} points{f'; {is_collapsed}' if is_collapsed else ''}."
        )


def _format_count(rows: int) -> str:
    """Format a number with its verb: ``none is``, ``1 is`` or ``3 are``."""
    return f"{rows or 'none'} {'is' if rows < 2 else 'are'}"


def _describe_collapsed_share(count: int) -> str:
    """Return a clause on the cells whose runs predict a single label, or "" for no cell."""
    if not count:
        return ""
    verb = "has" if count == 1 else "have"
    return f"; {count} of these cells {verb} runs or baselines that predict one label only"


def _format_mean(row: Mapping[Any, Any]) -> str:
    ends = row["joint_low"], row["joint_high"]
    return format_value_with_interval(row["mean"], *ends, "+.2f", DIFFERENCES)


def _describe_averages(
    summary: pd.DataFrame, cells: pd.DataFrame, compared: pd.DataFrame, one_label: CollapsedRuns
) -> Iterator[str]:
    """Yield a sentence on the means over all pairs that differ significantly from 0.

    Args:
        summary: columns of ``columns.SUMMARY``.
        cells: columns of ``columns.CELLS``; cells with one source.
        compared: result of ``compare_with_best_reference``.
    """
    rows = summary[summary["joint_q"].notna()]
    significant = rows[rows["joint_q"] <= MOST_Q]
    if len(significant):
        named = [
            f"{get_algorithm_label(str(row['algorithm']))} with {row['model']} on {row['dataset']} "
            f"({_format_mean(row)} points)"
            for row in significant.to_dict("records")
        ]
        group = ["dataset", "model", "algorithm"]
        averaged = cells[cells["q"].notna()].merge(significant[group], on=group)
        caution = _describe_cautions(averaged, compared, one_label)
        yield (
            f"Averaged over all pairs, {format_fraction(len(significant), len(rows), 'means')} "
            f"{'differs' if len(significant) == 1 else 'differ'} significantly from 0 (q ≤ 0.05): "
            f"{join_names(named)}{caution}."
        )
    elif rows.empty:
        yield (
            "For scores averaged over all pairs, no interval over seeds and dialogues together "
            "can be computed, because this requires the same two or more seeds for every pair. "
            "The table of algorithms below has means with intervals over seeds only."
        )
    else:
        yield (
            "Averaged over all pairs, no algorithm changes scores significantly "
            f"({f'none of {len(rows)} means at q ≤ 0.05' if len(rows) > 1 else 'q > 0.05'})."
        )


def _describe_cautions(
    averaged: pd.DataFrame, compared: pd.DataFrame, one_label: CollapsedRuns
) -> str:
    """Return clauses on averaged cells that show little about transfer, or "" if there are none."""
    counts = {
        "runs or baselines that predict one label only": sum(
            one_label.count(row) > 0 for row in averaged.to_dict("records")
        ),
        "a target whose baseline has not learned": len(averaged)
        - len(select_learned_cells(averaged, compared)),
    }
    return "".join(
        f"; {count} of the {len(averaged)} averaged cells {'has' if count == 1 else 'have'} {what}"
        for what, count in counts.items()
        if count
    )


def has_transfer(runs: pd.DataFrame, missing: pd.DataFrame) -> bool:
    """Return whether a study plans runs with sources.

    Args:
        runs: columns of ``columns.RUNS``.
        missing: columns of ``columns.MISSING``.
    """
    return any(bool((frame["n_sources"] > 0).any()) for frame in (runs, missing))


def describe_scores(frames: Frames) -> Iterator[str]:
    """Yield sentences with the mean scores of baselines and prompted models."""
    baselines = [*_list_baseline_scores(frames["transfer_runs"])]
    if baselines:
        yield f"Mean scores of the baselines (0-100): {join_names(baselines, MOST_SCORES)}."
    prompted = [*_list_prompted_scores(frames["prompted"])] if "prompted" in frames else []
    if prompted:
        yield f"Mean scores of the prompted models (0-100): {join_names(prompted, MOST_SCORES)}."
    yield "The study has no transfer, so it does not show which task to train on first."


def _list_baseline_scores(runs: pd.DataFrame) -> Iterator[str]:
    scored = runs[(runs["algorithm"] == BASELINE) & runs["score"].notna()]
    for (dataset, target, model), group in scored.groupby(
        ["dataset", "target", "model"], sort=False
    ):
        seeds = format_quantity(group["seed"].nunique(), "seed")
        yield f"{dataset}/{target} with {model} {group['score'].mean():.1f} ({seeds})"


def _list_prompted_scores(prompted: pd.DataFrame) -> Iterator[str]:
    if prompted.empty:
        return
    means = prompted[(prompted["target"] == MEAN) & prompted["score"].notna()]
    for row in means.to_dict("records"):
        shots, tasks = (
            format_quantity(int(row[key]), name)
            for key, name in (("shots", "shot"), ("n_targets", "task"))
        )
        score = format_value_with_interval(row["score"], row["low"], row["high"], ".1f", SCORES)
        yield f"{row['dataset']} with {row['model']} and {shots} {score} ({tasks})"


def describe_longer_training(
    controlled: pd.DataFrame, means: pd.DataFrame, cells: pd.DataFrame
) -> Iterator[str]:
    """Yield the mean effect in comparison with ``longer_baseline``, or a warning if it is unknown.

    The warning is for studies in which a cell has a significant gain over the baseline, or in which
    the interval of the mean gain is above 0.

    Args:
        controlled: columns of ``columns.CONTROL_SUMMARY``; no rows if the study has no controls.
        means: columns of ``columns.SUMMARY``.
        cells: columns of ``columns.CELLS``.
    """
    label = get_algorithm_label(LONGER_ALGORITHM)
    of_algorithm = controlled[controlled["algorithm"] == LONGER_ALGORITHM]
    over_longer = of_algorithm[of_algorithm["control"] == LONGER_BASELINE]
    table = over_longer[over_longer["low"].notna()]
    for row in table.to_dict("records"):
        size = format_value_with_interval(row["mean"], row["low"], row["high"], "+.2f", DIFFERENCES)
        is_significant = row["q"] <= MOST_Q
        yield (
            f"{label} trains on its target about twice as long as the baseline. Over a baseline "
            f"trained for twice the updates (longer_baseline), its mean effect with {row['model']} "
            f"on {row['dataset']} is {size} points over {row['n_pairs']} pairs, "
            f"{'significantly different' if is_significant else 'not significantly different'} "
            "from 0."
        )
    if len(table):
        return
    mean = means[(means["algorithm"] == LONGER_ALGORITHM) & (means["mean"] > 0)]
    own = cells[cells["algorithm"] == LONGER_ALGORITHM]
    if (mean["joint_low"] > 0).any() or is_significantly_positive(own, "delta").any():
        yield (
            f"{label} trains on its target about twice as long as the baseline, so its gains may "
            "come from longer training only. To test this, add a baseline that is trained equally "
            "long (controls: [longer_baseline])."
        )


def describe_seed_limit(cells: pd.DataFrame) -> str:
    """Return a sentence on cells with too few seeds for any change to be significant.

    A single cell has q ≤ 0.05 if its p is at most 0.05 divided by the number of tests. At the
    cell's standard error, this may need more than 100 points. Empty if that holds for fewer than
    half of the cells, or if a cell is significant.

    Args:
        cells: columns of ``columns.CELLS``.
    """
    tested = cells[(cells["n_sources"] == 1) & cells["q"].notna()]
    if tested.empty or tested["significant"].any():
        return ""
    tests = tested.groupby("dataset")["q"].transform("size")
    from scipy.stats import t  # noqa: PLC0415  # slow to import

    quantile = t.ppf(1 - MOST_Q / 2 / tests.to_numpy(float), tested["degrees"])
    needed = quantile * tested["standard_error"].to_numpy(float)
    count = int((np.nan_to_num(needed) > 100).sum())
    if count < LEAST_FRACTION * len(tested):
        return ""
    seeds = sorted({int(number) for number in tested["n_seeds"]})
    words = {2: "two", 3: "three"}
    which = (
        f"{words.get(seeds[0], seeds[0])} seeds"
        if len(seeds) == 1
        else f"{seeds[0]} to {seeds[-1]} seeds"
    )
    return (
        f"With {which}, {count} of {len(tested)} cells would need a change of more than 100 points "
        f"to be significant (q ≤ {MOST_Q}). The mean change over all pairs of tasks can be "
        "significant even if it is smaller."
    )
