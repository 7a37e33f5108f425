"""Sentences that recommend a source to train on first, and a method, with the evidence.

Sentences on sources state the gain, its uncertainty, and the seeds or test dialogues that a
significant result would need. Another sentence names transfers that beat all references although
the baseline of their target has not learned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from tasktransfer.core.references import (
    METHODS,
    MOST_FREQUENT,
    PROMPTED,
    REFERENCES,
    TRANSFER,
    format_method_label,
)
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.choices import read_checked_targets
from tasktransfer.designs.transfer.dataset_section import is_foreign
from tasktransfer.designs.transfer.frames import METHODS as METHOD_COLUMNS
from tasktransfer.designs.transfer.report.learned import CollapsedRuns, select_unlearned_baselines
from tasktransfer.designs.transfer.runs import BASELINE, get_algorithm_label, is_transfer
from tasktransfer.errors import format_quantity
from tasktransfer.present.numbers import (
    DIFFERENCES,
    MOST_Q,
    SCORES,
    bound_interval,
    format_named_p,
    format_number,
    format_signed,
    format_value_with_interval,
    is_missing,
    join_names,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import build_frame
from tasktransfer.results.study import Study

FEW_TARGETS = 2
MOST_RUNS = 1000
"""Largest number of seeds, or factor of test dialogues, that is recommended. A difference that
needs more is called too small."""
ONE_RUN = (
    "With one run of each method, the variation between runs is unknown, so gains are not tested. "
    "Train each method with two or more seeds (for example seeds: 3)."
)
LEAST_RATIO = 1.5
"""Smallest ratio of training times that a sentence mentions."""
MOST_NAMED = 8
"""Maximum number of transfers in a sentence."""
PERFECT = 100 - 1e-9
"""Score of a method whose predictions are all correct."""
Row = Mapping[Any, Any]


def describe_first_sources(
    cells: pd.DataFrame,
    runs: pd.DataFrame,
    collapsed: pd.DataFrame | None = None,
    tested: pd.DataFrame | None = None,
) -> list[str]:
    """Return sentences on the best source per target and model, or none if targets are many.

    Args:
        cells: columns of ``columns.CELLS``; only cells with one source are used.
        runs: columns of ``columns.RUNS``; their seconds give the cost of another seed.
        collapsed: columns of ``columns.COLLAPSED``; None if no predictions are known.
        tested: cells whose q values correct for each other; None for ``cells``.
    """
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    if len(singles[["dataset", "target"]].drop_duplicates()) > FEW_TARGETS:
        return []
    one_label = CollapsedRuns(pd.DataFrame() if collapsed is None else collapsed)
    sentences: list[str] = []
    by_target = singles.groupby(["dataset", "target", "model"], sort=False)
    for (dataset, target, model), group in by_target:
        where = f"{dataset}/{target}"
        if singles["model"].nunique() > 1:
            where += f" with {model}"
        last = group.sort_values("delta").iloc[-1]
        best = {str(name): value for name, value in last.items()}
        sentences.append(f"For {where}, {_describe_best_source(best, group, one_label)}")
        if not (best["delta"] > 0 and _is_significant(best)):
            family = singles if tested is None else tested
            tests = int((family["dataset"] == dataset).sum())
            sentences += _describe_sufficient_runs(best, tests, _estimate_seconds(runs, best))
    return list(dict.fromkeys(sentences))  # ONE_RUN is reported once


def _describe_best_source(
    best: Mapping[str, Any], group: pd.DataFrame, one_label: CollapsedRuns
) -> str:
    """Describe the largest gain of a target and its significance."""
    source = str(best["source"])
    named = source if is_foreign(source) else f"{best['dataset']}/{source}"
    how = get_algorithm_label(str(best["algorithm"]))
    is_collapsed = one_label.describe(best)
    facts = [f"{format_number(best['delta'], '+.1f')} points{_format_interval(best)}"]
    if best["n_seeds"] > 1 and not is_collapsed:
        facts += filter(None, [_describe_chance(best)])
    effect = ", ".join(facts)
    if is_collapsed:
        effect += f"; {is_collapsed}"
    if best["delta"] > 0 and _is_significant(best):
        return f"train on {named} first ({how}): {effect}, {format_named_p('q', best['q'])}."
    count = group["source"].nunique()
    if best["n_seeds"] < 2:
        which = f"best of {count} sources" if count > 1 else "only source"
        found = f"the {which} is {named} ({how}): {effect}"
        return (
            f"{found}. The change is not tested for significance, because each method has only "
            "one run."
        )
    if count > 1:
        none = f"none of the {count} sources helps significantly. The best source is"
    else:
        none = "no source helps significantly. The only source is"
    return f"{none} {named} ({how}): {effect}."


def _is_significant(cell: Mapping[str, Any]) -> bool:
    return cell["n_seeds"] > 1 and bool(cell["significant"])


def _format_interval(cell: Mapping[str, Any]) -> str:
    low, high = bound_interval(cell["low"], cell["high"], DIFFERENCES)
    return (
        "" if math.isnan(low) else f" [{format_signed(low, '+.1f')}, {format_signed(high, '+.1f')}]"
    )


def _describe_chance(cell: Mapping[str, Any]) -> str:
    """Return a phrase on the probability that a cell's true difference is above 0, in percent.

    It comes from the t distribution of the cell's interval, under a flat prior, and is not
    corrected for the other sources. It is rounded to whole percent, because a few runs justify no
    decimals. Empty if the cell has no error or degrees of freedom.
    """
    error, degrees = cell["standard_error"], cell["degrees"]
    if not (error > 0 and degrees > 0):
        return ""
    from scipy.stats import t  # noqa: PLC0415  # slow to import

    chance = 100 * float(t.cdf(cell["delta"] / error, degrees))
    shown = "> 99" if chance > 99 else "< 1" if chance < 1 else f"{chance:.0f}"
    return f"chance of a gain {shown} %"


def _describe_sufficient_runs(cell: Mapping[str, Any], tests: int, seconds: float) -> Iterator[str]:
    """Yield a sentence on how many more seeds or test dialogues a significant gain would need.

    The gain is assumed to keep its present size, and to be the only real one of ``tests`` tested
    gains. One part of its standard error falls with seeds, the other with test dialogues.
    """
    if cell["n_seeds"] < 2:
        yield ONE_RUN
        return
    if not cell["delta"] > 0:
        yield "No source has a gain that more runs could make significant."
        return
    from scipy.stats import norm  # noqa: PLC0415

    needed = (cell["delta"] / float(norm.ppf(1 - MOST_Q / 2 / tests))) ** 2
    of_test = 0.0 if math.isnan(cell["test_error"]) else float(cell["test_error"]) ** 2
    of_seeds = max(float(cell["standard_error"]) ** 2 - of_test, 0.0)
    ways = []
    if needed > of_test:
        more = math.ceil(cell["n_seeds"] * of_seeds / (needed - of_test)) - int(cell["n_seeds"])
        hours = f" (about {more * seconds / 3600:.2g} more hours of training)" if seconds else ""
        ways += [f"{format_quantity(more, 'more seed')}{hours}"] if 0 < more < MOST_RUNS else []
    if needed > of_seeds and cell["dialogues"]:
        more = math.ceil((of_test / (needed - of_seeds) - 1) * cell["dialogues"])
        enough = 0 < more < MOST_RUNS * cell["dialogues"]
        ways += [f"{format_quantity(more, 'more test dialogue')} with labels"] if enough else []
    if ways:
        yield f"If the observed gain is real, {' or '.join(ways)} would make the gain significant."
    else:
        yield (
            "A significant gain would need several times as many seeds and several times as many "
            "test dialogues as the study has."
        )


def _estimate_seconds(runs: pd.DataFrame, cell: Mapping[str, Any]) -> float:
    """Estimate the training seconds of one more seed, for a transfer and its baseline."""
    own = runs[
        (runs["dataset"] == cell["dataset"])
        & (runs["model"] == cell["model"])
        & (runs["target"] == cell["target"])
    ]
    transfer = (own["algorithm"] == cell["algorithm"]) & (own["source"] == cell["source"])
    either = own[transfer | (own["algorithm"] == BASELINE)]
    return float(either.groupby(["algorithm", "source"])["seconds"].mean().sum())


def get_methods(frames: Frames) -> pd.DataFrame:
    """Return the frame of compared methods, which is empty in a study without one."""
    return frames.get("methods", build_frame([], METHOD_COLUMNS))


def select_own_targets(frames: Frames) -> pd.DataFrame:
    """Return the rows of compared methods for targets in the user's own files."""
    methods = select_transfer_targets(get_methods(frames), frames.study)
    own = [name for name in methods["dataset"].unique() if DATASETS[name].has_own_files]
    return methods[methods["dataset"].isin(own)]


def select_transfer_targets(table: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return the rows of a table that are about targets, without tasks that are only sources.

    Targets whose transfers were skipped by ``check_baselines`` are kept. All rows are returned if
    the study's config has no transfers.

    Args:
        table: a table with the columns dataset and target, which may be empty.
    """
    if table.empty:
        return table
    checked = read_checked_targets(study.config.results) or ()
    places = {(row["dataset"], row["target"]) for row in checked}
    runs = (run.about for run in study.plan.runs if is_transfer(run) and run.method != BASELINE)
    places |= {(about["dataset"], about["target"]) for about in runs}
    if not places:
        return table
    is_target = [place in places for place in zip(table["dataset"], table["target"], strict=True)]
    return table[is_target]


def describe_methods(methods: pd.DataFrame) -> Iterator[str]:
    """Yield one sentence per target on the recommended method.

    Args:
        methods: columns of ``frames.METHODS``.
    """
    for (dataset, target), group in methods.groupby(["dataset", "target"], sort=False):
        rows = group.to_dict("records")
        yield f"For {dataset}/{target}, {_describe_target(rows)}"


def _describe_target(rows: list[dict[Any, Any]]) -> str:
    best = next(row for row in rows if row["is_best"])
    chosen = next((row for row in rows if row["recommended"]), None)
    has_models = len({row["model"] for row in rows if not is_missing(row["model"])}) > 1
    if chosen is None:
        return (
            f"no method is recommended, because {_format_method(best, has_models)} has the highest "
            f"score ({_format_score(best)}) and could not be tested. Train each method with "
            "two or more seeds (for example seeds: 3), and evaluate all methods on the same test "
            "instances."
        )
    if best["delta"] > 0 and best["q"] <= MOST_Q:
        return (
            f"{_format_method(best, has_models)} has the highest score ({_format_score(best)}). It "
            "is not recommended, because the baseline has collapsed (at least half of its runs "
            "predict a single label) and might reach the same score with longer training. The "
            f"recommended method among the others is {_format_method(chosen, has_models)} "
            f"({_format_score(chosen)})."
        )
    if chosen["method"] == MOST_FREQUENT and chosen["score"] >= PERFECT:
        return (
            "the most frequent answer is correct for all test instances, so this test split cannot "
            "distinguish methods. Use a test split that also has other answers."
        )
    if chosen is best and chosen["method"] == MOST_FREQUENT:
        return (
            "no method has a higher score than the most frequent answer "
            f"({_format_score(chosen)}). Label more dialogues, or train for longer."
        )
    if chosen["method"] == MOST_FREQUENT:
        return (
            "no method is significantly better than the most frequent answer "
            f"({_format_score(chosen)}). The best method is {_format_method(best, has_models)} "
            f"({_format_delta(best)}). Label more dialogues, or train for longer."
        )
    advice = f"use {_format_method(chosen, has_models)} (score {_format_score(chosen)}). "
    if chosen is not best:
        size = format_quantity(max(int(row["train_size"]) for row in rows), "training instance")
        cost = _compare_cost(best, chosen)
        name = _format_method(best, has_models)
        return (
            f"{advice}The method with the highest score, {name}, is not significantly better with "
            f"{size} "
            f"({_format_delta(best)}){cost}."
        )
    others = [row for row in rows if row is not chosen]
    next_best = max(others, key=lambda row: row["score"])
    next_name = _format_method(next_best, has_models)
    verdict = (
        "is significantly worse"
        if next_best["q"] <= MOST_Q
        else "is not significantly worse, but not simpler"
        if not is_missing(next_best["q"])
        else "could not be tested"
    )
    return (
        f"{advice}The next best method is {next_name}, which {verdict} "
        f"({_format_delta(next_best)})."
    )


def _format_method(row: Row, has_models: bool) -> str:
    """Describe a method in words, with its model if the study has several."""
    method = str(row["method"])
    if method == MOST_FREQUENT:
        return f"the {METHODS[method]}"
    if method == TRANSFER:
        algorithm, _, source = str(row["variant"]).partition(":")
        words = f"transfer from {source} ({algorithm})"
        return f"{words} with {row['model']}" if has_models else words
    if method == PROMPTED:
        return f"{row['model']} with {row['variant']}"
    words = format_method_label(method)
    if is_missing(row["model"]) or not has_models:
        return words
    return f"{words} ({row['model']})"


def _format_score(row: Row) -> str:
    return format_value_with_interval(row["score"], row["low"], row["high"], ".1f", SCORES)


def _format_delta(row: Row) -> str:
    ends = row["delta_low"], row["delta_high"]
    delta = format_value_with_interval(row["delta"], *ends, "+.1f", DIFFERENCES)
    return f"{delta} points"


def _compare_cost(row: Row, chosen: Row) -> str:
    """Compare training times by their ratio, or return "" if it is unknown or about 1."""
    spent, least = float(row["seconds"]), float(chosen["seconds"])
    if not (math.isfinite(spent) and least > 0) or spent < LEAST_RATIO * least:
        return ""
    ratio = spent / least
    times = f"{ratio:.1f}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"
    return f" and takes {times} times as long to train"


def describe_better_transfers(methods: pd.DataFrame, compared: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on transfers that beat all references although the baseline does not.

    Args:
        methods: columns of ``frames.METHODS``.
        compared: result of ``compare_with_best_reference``.
    """
    named = []
    for place in select_unlearned_baselines(compared).to_dict("records"):
        is_own = (methods["dataset"] == place["dataset"]) & (methods["target"] == place["target"])
        rows = methods[is_own]
        chosen = rows[rows["recommended"] & (rows["method"] == TRANSFER)]
        references = rows[rows["method"].isin(REFERENCES)]
        is_worse = (references["delta"] < 0) & (references["q"] <= MOST_Q)
        if chosen.empty or references.empty or not is_worse.all():
            continue
        if chosen["model"].iloc[0] == place["model"]:
            named.append(_describe_better_transfer(chosen.to_dict("records")[0], references))
    if named:
        yield (
            "A transfer is nevertheless significantly better than every simple reference for "
            f"{join_names(named, MOST_NAMED)}. A baseline that is trained for longer might reach "
            "the same score."
        )


def _describe_better_transfer(chosen: Mapping[Any, Any], references: pd.DataFrame) -> str:
    """Describe a transfer, and its gain over the best of a target's references."""
    algorithm, _, source = str(chosen["variant"]).partition(":")
    best = max(references.to_dict("records"), key=lambda row: row["score"])
    gain = format_value_with_interval(
        *(-best["delta"], -best["delta_high"], -best["delta_low"]), "+.1f", DIFFERENCES
    )
    return (
        f"{chosen['dataset']}/{chosen['target']} (from {source}, {get_algorithm_label(algorithm)}: "
        f"{gain} points over the best reference, {REFERENCES[best['method']]})"
    )
