"""Ranking of the sources of a target by evidence from other targets, per algorithm.

A selector ranks the sources if it is significantly better than random on the transfers to other
targets. Otherwise no difference between sources is significant, and the recommendation says so.
Sources that share labels with the target then come first, by convention. GainPrediction gains are
predicted from other targets, with the error on held-out targets as their interval. No score of a
transfer to the target itself is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasktransfer.datasets import DATASETS, get_task, resolve_task
from tasktransfer.errors import format_quantity
from tasktransfer.present.columns import format_table
from tasktransfer.present.numbers import format_interval, format_p_value
from tasktransfer.selection.declared import RANDOM
from tasktransfer.selection.evidence import (
    add_source_mean,
    collect_dev_gains,
    compute_selector_regret,
    count_shared_labels,
    leave_out_target,
    list_selectors,
    list_targets,
    pair_values_with_gains,
    select_targets,
)
from tasktransfer.selection.expected_gain import FEWEST_TARGETS, GainPrediction, fit_expected_gain
from tasktransfer.selection.inputs import SelectorInput
from tasktransfer.selection.methods import SELECTORS
from tasktransfer.selection.nodes import PROBE
from tasktransfer.selection.regret import LEADING, LEVEL

Task = tuple[str, str]
"""Dataset and name of a task."""
Values = Mapping[str, Mapping[str, float]]
"""Values by selector and source."""

UNPROVEN = ("source_mean", "logme", "hscore", "leep", "nleep", "embedding", "roe", "tfidf")
"""Selectors whose values predict gains if none is significantly better than random; the first with
values is used. ``size`` and ``kind`` are not among them, because they ignore what tasks contain."""


@dataclass(frozen=True)
class Question:
    """A target with its candidate sources. Sources from other datasets are ``Dataset/task``."""

    dataset: str
    target: str
    sources: tuple[str, ...]

    @property
    def source_tasks(self) -> dict[str, Task]:
        """Dataset of each source, and the source's name in it."""
        return {source: resolve_task(self.dataset, source) for source in self.sources}

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the target task."""
        return tuple(get_task(self.dataset, self.target).labels)


@dataclass(frozen=True, slots=True)
class RankedSource:
    """A source with its expected gain in points, None if unknown, and the interval of that gain."""

    source: str
    value: float | None
    expected_gain: float | None
    low: float | None
    high: float | None
    shared_labels: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """Sources of a target for one algorithm, best first.

    Attributes:
        targets: number of other targets that are the evidence; 0 without evidence.
        unlearned: number of other targets that are left out, because their baselines have not
            learned.
        similar: whether the evidence is limited to targets that share labels with the target.
        ranked_by: selector of the values; None if no selector has values.
        better_than_random: selectors that are significantly better than random, best first.
        smallest_q: selector with the smallest q against random, and that q; None if not tested.
        prediction: errors of the expected gains on held-out targets; None without a prediction.
    """

    algorithm: str
    targets: int
    unlearned: int
    seeds: int
    similar: bool
    ranked_by: str | None
    better_than_random: tuple[str, ...]
    smallest_q: tuple[str, float] | None
    prediction: GainPrediction | None
    sources: tuple[RankedSource, ...]

    @property
    def is_significant(self) -> bool:
        """True if the selector of the ranking is significantly better than random ranking."""
        return self.ranked_by in self.better_than_random


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Rankings of a target's sources with the origin of their evidence, and what to run next."""

    target: str
    evidence: str
    notes: tuple[str, ...]
    rankings: tuple[Ranking, ...]
    next_steps: tuple[str, ...]


def recommend_sources(
    question: Question,
    values: Values,
    evidence: pd.DataFrame,
    origin: str,
    algorithms: Sequence[str],
    notes: Sequence[str] = (),
) -> Recommendation:
    """Rank the sources of a target for each algorithm.

    Args:
        values: values of selectors that need no evidence.
        evidence: see ``selection.evidence``; transfers to the target are left out here.
        origin: origin of the evidence, to follow "evidence:".
        algorithms: algorithms of the study.
        notes: further notes on the target.
    """
    others = leave_out_target(evidence, question.dataset, question.target)
    rankings = tuple(
        _rank_sources(question, values, others[others["algorithm"] == name], name)
        for name in algorithms
    )
    return Recommendation(
        target=f"{question.dataset}/{question.target}",
        evidence=origin,
        notes=(*notes, *_describe_similar_targets(question, others)),
        rankings=rankings,
        next_steps=tuple(_list_next_steps(question, rankings)),
    )


def select_evidence(question: Question, others: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """Return transfers for comparing selectors, and whether only similar targets are included.

    Targets whose baselines have not learned their task are left out. Targets that share labels with
    the question's target are used alone if there are enough of them.

    Args:
        question: target and sources.
        others: evidence without the question's target. ``source_mean`` averages over all targets
            whose baselines have learned.
    """
    learned = add_source_mean(_select_learned(others))
    similar = _list_similar_targets(question, learned)
    is_limited = len(similar) >= FEWEST_TARGETS
    return (select_targets(learned, similar) if is_limited else learned), is_limited


def _select_learned(evidence: pd.DataFrame) -> pd.DataFrame:
    """Return the evidence on targets whose baselines have learned their task."""
    return evidence[evidence["learned"].astype(bool)]


def list_useful_selectors(
    question: Question, evidence: pd.DataFrame, algorithms: Sequence[str]
) -> tuple[str, ...]:
    """Return the selectors whose values may change the ranking.

    They are better than random for an algorithm, or predict gains if there is no evidence.
    """
    others = leave_out_target(evidence, question.dataset, question.target)
    used, _ = select_evidence(question, others)
    names: list[str] = []
    for name in algorithms:
        rows = used[used["algorithm"] == name]
        is_enough = len(list_targets(rows)) >= FEWEST_TARGETS
        names += _list_better_than_random(compute_selector_regret(rows)) if is_enough else UNPROVEN
    return tuple(dict.fromkeys(names))


def _list_similar_targets(question: Question, evidence: pd.DataFrame) -> list[Task]:
    return [task for task in list_targets(evidence) if _count_labels_in_common(question, task)]


def _count_labels_in_common(question: Question, task: Task) -> int:
    known = DATASETS.get(task[0])
    if known is None or task[1] not in known.tasks:  # a task of another study's own dataset
        return 0
    return count_shared_labels(question.labels, get_task(*task).labels)


def _rank_sources(
    question: Question, values: Values, others: pd.DataFrame, algorithm: str
) -> Ranking:
    """Rank the sources with one algorithm, by transfers to other targets."""
    values = {**values, **_compute_transfer_values(question, _select_learned(others))}
    rows, similar = select_evidence(question, others)
    targets = len(list_targets(rows))
    regret = compute_selector_regret(rows) if targets >= FEWEST_TARGETS else pd.DataFrame()
    better = _list_better_than_random(regret)
    ranked_by = next((name for name in (*better, *UNPROVEN) if values.get(name)), None)
    found = values[ranked_by] if ranked_by else {}
    array = np.array([found.get(source, math.nan) for source in question.sources])
    expected = None
    if ranked_by in list_selectors(rows) and len(rows):
        expected = fit_expected_gain(*pair_values_with_gains(rows, ranked_by))
    gains, low, high = (
        expected.predict_gains(array) if expected else [np.full(len(array), np.nan)] * 3
    )
    sources = [
        RankedSource(
            source=source,
            value=_convert_nan(array[n]),
            expected_gain=_convert_nan(gains[n]),
            low=_convert_nan(low[n]),
            high=_convert_nan(high[n]),
            shared_labels=_count_labels_in_common(question, question.source_tasks[source]),
        )
        for n, source in enumerate(question.sources)
    ]
    return Ranking(
        algorithm=algorithm,
        targets=targets,
        unlearned=len(list_targets(others)) - len(list_targets(_select_learned(others))),
        seeds=rows["seed"].nunique(),
        similar=similar,
        ranked_by=ranked_by,
        better_than_random=tuple(better),
        smallest_q=_find_smallest_q(regret),
        prediction=expected,
        sources=tuple(_sort_sources(sources, by_labels=ranked_by not in better)),
    )


def _sort_sources(sources: Sequence[RankedSource], by_labels: bool) -> list[RankedSource]:
    """Sort sources by value, or by shared labels if no selector is better than random."""

    def order(one: RankedSource) -> tuple[float, bool, float, str]:
        value = -math.inf if one.value is None else one.value
        return -one.shared_labels if by_labels else 0, one.value is None, -value, one.source

    return sorted(sources, key=order)


def _compute_transfer_values(question: Question, rows: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the values of selectors that only need dev gains on other targets."""
    gains = {s: collect_dev_gains(rows, *home) for s, home in question.source_tasks.items()}
    if not any(len(of) for of in gains.values()):
        return {}
    tasks = (*question.sources, question.target)
    kinds = {task: str(get_task(question.dataset, task).kind) for task in tasks}
    inputs = SelectorInput(question.target, question.sources, kinds, transfers=gains)
    return {
        name: {s: v for s, v in selector.values(inputs).items() if v is not None}
        for name, selector in SELECTORS.items()
        if "transfers" in selector.reads and selector.values is not None
    }


def _list_better_than_random(regret: pd.DataFrame) -> list[str]:
    """Return the selectors with significantly lower regret than random ranking, best first."""
    if regret.empty:
        return []
    rows = regret[(regret[f"to_{RANDOM}_q"] <= LEVEL) & (regret[f"to_{RANDOM}"] < 0)]
    return [str(name) for name in rows["value"].sort_values().index]


def _find_smallest_q(regret: pd.DataFrame) -> tuple[str, float] | None:
    if regret.empty:
        return None
    q = regret.loc[regret[f"to_{RANDOM}"] < 0, f"to_{RANDOM}_q"].dropna()
    return (str(q.idxmin()), float(q.min())) if len(q) else None


def _convert_nan(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _describe_similar_targets(question: Question, others: pd.DataFrame) -> Iterator[str]:
    """Yield notes on targets that share labels with the target."""
    for is_learned, note in (
        (True, "similar targets, which share labels"),
        (False, "similar targets that do not count, because their baselines have not learned"),
    ):
        rows = others[others["learned"].astype(bool) == is_learned]
        if similar := _list_similar_targets(question, rows):
            yield f"{note}: {', '.join('/'.join(task) for task in similar)}"


def _list_next_steps(question: Question, rankings: Sequence[Ranking]) -> Iterator[str]:
    if not any(ranking.is_significant for ranking in rankings):
        yield (
            "the cheapest measurement trains one epoch of each transfer: set "
            f"selectors: [{PROBE}] with targets: [{question.dataset}/{question.target}], and run "
            "the study with `tasktransfer run`"
        )
    first = [one.source for one in rankings[0].sources[:3]] if rankings else question.sources[:3]
    named = ", ".join("/".join(question.source_tasks[one]) for one in first)
    yield (
        f"train the first {len(first)} in full: set sources: [{named}] and targets: "
        f"[{question.dataset}/{question.target}], and run the study with `tasktransfer run`"
    )


def as_text(recommendation: Recommendation, label: Callable[[str], str] = str) -> str:
    """Format a recommendation as text.

    Args:
        label: function from an algorithm to its label.
    """
    lines = [
        f"target {recommendation.target}",
        f"evidence: {recommendation.evidence}",
        *recommendation.notes,
    ]
    if any(ranking.targets for ranking in recommendation.rankings):
        lines.append("transfers to the target itself are left out: none of their scores is read")
    for ranking in recommendation.rankings:
        lines += ["", *_format_ranking(ranking, label(ranking.algorithm))]
    return "\n".join([*lines, "", *(f"next: {line}" for line in recommendation.next_steps), ""])


def _format_ranking(ranking: Ranking, label: str) -> list[str]:
    lines = [f"{label}: {_describe_evidence(ranking)}", ""]
    lines += format_table([_format_row(one) for one in ranking.sources], left=("source",))
    expected = ranking.prediction
    if expected is not None:
        lines += [
            "",
            f"expected gain on test, in points, predicted from {ranking.ranked_by}. On held-out "
            f"targets the root mean squared error is {expected.error:.2f} points "
            f"({expected.constant_error:.2f} when predicting the mean gain); "
            f"{100 * expected.covered:.0f} % of gains are inside their 95 % intervals.",
        ]
    return lines


def _describe_evidence(ranking: Ranking) -> str:
    then = f", then those with a higher {ranking.ranked_by}" if ranking.ranked_by else ""
    order = f"The order is not evidence: sources that share labels with the target come first{then}"
    if not ranking.targets:
        known = "no transfer to another target is known"
        if ranking.unlearned:
            known = "no baseline of another target has learned its task"
        return f"no evidence, because {known}. {order}."
    where = format_quantity(ranking.targets, "other target")
    where += " with similar labels" if ranking.similar else ""
    if ranking.unlearned:
        where += (
            f" (another {ranking.unlearned} left out, because their baselines have not learned)"
        )
    if ranking.targets < FEWEST_TARGETS:
        return f"too little evidence, with {where}: the sources cannot be compared. {order}."
    if ranking.is_significant:
        return (
            f"ranked by {ranking.ranked_by}. According to {LEADING} on {where}, it is "
            "significantly better than random."
        )
    closest = ranking.smallest_q
    tested = f" (smallest q: {format_p_value(closest[1])}, {closest[0]})" if closest else ""
    return (
        f"no significant difference between the sources. According to {LEADING} on {where}, no "
        f"selector is significantly better than random{tested}. {order}."
    )


def _format_row(one: RankedSource) -> dict[str, str]:
    interval = "–"
    if one.low is not None and one.high is not None:
        interval = format_interval(one.low, one.high, "+.1f")
    return {
        "source": one.source,
        "shared labels": str(one.shared_labels),
        "value": "–" if one.value is None else f"{one.value:.4g}",
        "expected gain": "–" if one.expected_gain is None else f"{one.expected_gain:+.1f}",
        "95 % interval": interval,
    }
