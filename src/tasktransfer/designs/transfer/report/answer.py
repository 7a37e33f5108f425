"""The study's answer in sentences: which sources help which targets, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.baseline_check import (
    describe_skipped_targets,
    read_checked_targets,
)
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.frames import METHODS
from tasktransfer.designs.transfer.report.collapsed_runs import CollapsedRuns
from tasktransfer.designs.transfer.report.first_source import ONE_RUN, describe_first_sources
from tasktransfer.designs.transfer.report.learned import (
    compare_with_best_reference,
    describe_unlearned_baselines,
    select_learned_cells,
)
from tasktransfer.designs.transfer.report.longer_training import describe_longer_training
from tasktransfer.designs.transfer.report.method_advice import describe_methods
from tasktransfer.designs.transfer.report.without_transfer import describe_scores, has_transfer
from tasktransfer.designs.transfer.tables.names import fit_short_names, get_algorithm_label
from tasktransfer.present.numbers import DIFFERENCES
from tasktransfer.present.sentences import (
    MOST_Q,
    format_fraction,
    format_value_with_interval,
    is_significantly_negative,
    is_significantly_positive,
    join_names,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import build_frame

NOTHING = "No conclusion about transfer is possible"


def write_answer(frames: Frames) -> list[str]:
    """Write the sentences of the answer at the top of the report.

    The first ones recommend methods for the user's own dialogues. The others are about transfer:
    the best source, the mean effects, the significant cells, and baselines that did not learn.
    """
    cells = frames["cells"]
    advice = [*describe_methods(select_own_targets(frames))]
    one_label = CollapsedRuns(frames["collapsed"])
    compared = compare_with_best_reference(frames)
    checked = read_checked_targets(frames.study.config.results) or ()
    has_sources = has_transfer(frames["transfer_runs"], frames["missing_runs"])
    unlearned = [
        *describe_unlearned_baselines(compared, has_sources=has_sources, has_table=True),
        *describe_skipped_targets(checked),
    ]
    # No source is recommended for a target that no baseline has learned.
    first = describe_first_sources(
        select_learned_cells(cells, compared), frames["transfer_runs"], frames["collapsed"]
    )
    if not has_sources:
        return [*advice, *describe_scores(frames), *unlearned]
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    tested = singles[singles["q"].notna()]
    if tested.empty:
        nothing = [f"{NOTHING}. {ONE_RUN}" if len(singles) else f"{NOTHING}: no pair has a result."]
        return [*advice, *(first or nothing), *unlearned]
    averages = [*_describe_averages(frames["summary"], tested, one_label)]
    controlled = frames.get("control_summary", build_frame([], columns.CONTROL_SUMMARY))
    longer = describe_longer_training(controlled, frames["summary"])
    cells_found = [*_describe_significant_cells(tested, frames, one_label)]
    has_interval = frames["summary"]["joint_q"].notna().any()
    found = [*averages, *cells_found] if has_interval else [*cells_found, *averages]
    return [*advice, *first, *found, *unlearned, *longer]


def select_own_targets(frames: Frames) -> pd.DataFrame:
    """Return the rows of compared methods for targets in the user's own files."""
    methods = frames.get("methods", build_frame([], METHODS))
    own = [name for name in methods["dataset"].unique() if DATASETS[name].has_own_files]
    return methods[methods["dataset"].isin(own)]


def _describe_significant_cells(
    tested: pd.DataFrame, frames: Frames, one_label: CollapsedRuns
) -> Iterator[str]:
    better, worse = (
        tested[is_significantly_positive(tested, "delta")],
        tested[is_significantly_negative(tested, "delta")],
    )
    what = f"{len(tested)} combinations of source, target, model and algorithm"
    if better.empty and worse.empty:
        yield f"No transfer differs significantly from its baseline (q > 0.05 in all {what})."
        return
    found = pd.concat([better, worse])
    collapsed = sum(one_label.count(row) > 0 for row in found.to_dict("records"))
    yield (
        f"Of {what}, {_format_count(len(better))} significantly better than the baseline and "
        f"{_format_count(len(worse))} significantly worse (q ≤ 0.05)"
        f"{_describe_collapsed_share(collapsed)}."
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
    summary: pd.DataFrame, tested: pd.DataFrame, one_label: CollapsedRuns
) -> Iterator[str]:
    """Yield a sentence on each mean over all pairs that differs significantly from 0."""
    rows = summary[summary["joint_q"].notna()]
    significant = rows[rows["joint_q"] <= MOST_Q]
    if len(significant):
        named = [
            f"{get_algorithm_label(str(row['algorithm']))} with {row['model']} on {row['dataset']} "
            f"({_format_mean(row)} points)"
            for row in significant.to_dict("records")
        ]
        group = ["dataset", "model", "algorithm"]
        averaged = tested.merge(significant[group], on=group)
        collapsed = sum(one_label.count(row) > 0 for row in averaged.to_dict("records"))
        caution = (
            f"; {collapsed} of the {len(averaged)} averaged cells "
            f"{'has' if collapsed == 1 else 'have'} runs or baselines that predict one label only"
            if collapsed
            else ""
        )
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
            "Averaged over all pairs, no algorithm changes scores significantly (none of "
            f"{len(rows)} means at q ≤ 0.05)."
        )
