"""Blocks of the report by target: best source, all sources, state of the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup

from tasktransfer.core.references import MOST_FREQUENT, TRANSFER, format_method_label
from tasktransfer.designs.transfer.report.advice import FEW_TARGETS
from tasktransfer.designs.transfer.report.learned import BaselineState, describe_baseline
from tasktransfer.designs.transfer.runs import fit_short_names, get_algorithm_label
from tasktransfer.present.columns import Row
from tasktransfer.present.html import create_environment, to_records
from tasktransfer.present.numbers import (
    DIFFERENCES,
    LEAST,
    SCORES,
    bound_interval,
    format_named_p,
    format_p_value,
    format_value_with_interval,
    is_missing,
)
from tasktransfer.results.frames import Frames

_KEYS = ["dataset", "model", "target"]
WIDTH, HEIGHT = 240.0, 14.0
"""Size of a drawn interval, in pixels."""


@dataclass(frozen=True, slots=True)
class IntervalBar:
    """An effect with its interval as x coordinates, in pixels; ``low`` is None without one."""

    value: float
    low: float | None
    high: float | None
    zero: float


@dataclass(frozen=True, slots=True)
class EffectRow:
    """A source's effect: texts, interval bar, and the URL fragment that links to its cell."""

    source: str
    name: str
    algorithm: str
    effect: str
    q: str
    seeds: int
    is_significant: bool
    link: str
    bar: IntervalBar


@dataclass(frozen=True, slots=True)
class TargetBlock:
    """A target with its sources, best first.

    ``best`` is the highest change, ``advice`` is on a baseline that has not learned, and ``chosen``
    is on the source that is best on dev.
    """

    short: str
    name: str
    where: str
    best: str
    advice: str
    baseline: BaselineState
    chosen: str
    rows: Sequence[EffectRow]

    @property
    def is_significant(self) -> bool:
        """True if any source has a significant effect on the target."""
        return any(row.is_significant for row in self.rows)


def render_targets(frames: Frames) -> Markup | None:
    """Return the section on targets as HTML, or None if no pair of tasks has a delta."""
    blocks = [*build_target_blocks(frames)]
    if not blocks:
        return None
    template = create_environment(Path(__file__).parent).get_template("targets.html.j2")
    names = {block.name for block in blocks}
    html = template.render(
        blocks=blocks,
        opened=len(names) <= FEW_TARGETS,
        width=WIDTH,
        height=HEIGHT,
        several=any(len({row.algorithm for row in block.rows}) > 1 for block in blocks),
        has_top1=len(frames["top1"]) > 0,
    )
    return Markup(html)  # the template escapes all values


def build_target_blocks(frames: Frames) -> Iterator[TargetBlock]:
    """Yield a block per dataset, model and target, in the order of the study."""
    cells = frames["cells"]
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    several = singles["model"].nunique() > 1
    order = frames.metadata.order_names
    for dataset in order("dataset", singles["dataset"]):
        own = singles[singles["dataset"] == dataset]
        tasks = order("task", [*own["target"], *own["source"]])
        shorts = fit_short_names(tasks, frames.metadata.shorts)
        for target in order("task", own["target"]):
            for model in order("model", own["model"]):
                rows = own[(own["target"] == target) & (own["model"] == model)]
                if len(rows):
                    where = f"{dataset}, {model}" if several else dataset
                    yield _build_block(frames, rows, shorts, where)


def _build_block(
    frames: Frames, rows: pd.DataFrame, shorts: dict[str, str], where: str
) -> TargetBlock:
    ordered = rows.sort_values("delta", ascending=False, kind="stable")
    limit = 2 * float(ordered["delta"].abs().max()) or 1.0
    records = to_records(ordered)
    listed = [_build_row(row, shorts, limit) for row in records]
    first = records[0]
    place = [first[key] for key in _KEYS]
    baseline = describe_baseline(frames, place, float(first["baseline_score"]))
    transfer = _find_dev_choice(frames, place)
    advice = ""
    if not baseline.has_learned:
        advice = f"No source is recommended, because the baseline {baseline.state}"
        if transfer is not None and transfer["recommended"]:
            advice = f"A transfer is the recommended method, although the baseline {baseline.state}"
    return TargetBlock(
        shorts[first["target"]],
        first["target"],
        where,
        _describe_highest(first, listed[0], ordered["delta"]),
        advice,
        baseline,
        "" if transfer is None else _describe_dev_choice(frames, transfer, shorts),
        listed,
    )


def _build_row(row: Row, shorts: dict[str, str], limit: float) -> EffectRow:
    parts = (row["dataset"], row["model"], row["algorithm"], row["source"], row["target"])
    size = format_value_with_interval(row["delta"], row["low"], row["high"], "+.1f", DIFFERENCES)
    return EffectRow(
        shorts[row["source"]],
        row["source"],
        get_algorithm_label(str(row["algorithm"])),
        size,
        format_p_value(row["q"]),
        int(row["n_seeds"]),
        bool(row["significant"]) and row["n_seeds"] > 1,
        "cell/" + "/".join(quote(str(part), safe="") for part in parts),
        _build_bar(row, limit),
    )


def _build_bar(row: Row, limit: float) -> IntervalBar:
    """Return a row's interval as a bar, truncated at the scale from ``-limit`` to ``limit``."""

    def place(value: float) -> float:
        within = min(max(value, -limit), limit)
        return round((within / limit + 1) / 2 * WIDTH, 1)

    low, high = bound_interval(row["low"], row["high"], DIFFERENCES)
    known = not pd.isna(low)
    return IntervalBar(
        place(row["delta"]), place(low) if known else None, place(high) if known else None, place(0)
    )


def describe_verdict(row: Row) -> str:
    """Return a cell's verdict, such as ``not significant, q = 0.535``."""
    if row["n_seeds"] < 2 or is_missing(row["q"]):
        return "not tested"
    verdict = "significant" if row["significant"] else "not significant"
    return f"{verdict}, {format_named_p('q', row['q'])}"


def _describe_highest(row: Row, effect: EffectRow, deltas: pd.Series[float]) -> str:
    """Return a phrase on the largest change among a target's sources.

    It names no source if the highest changes are a tie at 0.
    """
    if bool((deltas.abs() < LEAST).all()):
        return "No source changes the score"
    if abs(row["delta"]) < LEAST and int((deltas.abs() < LEAST).sum()) > 1:
        return "No source raises the score"
    how = f"{effect.source} ({effect.algorithm})"
    return f"The highest change is {effect.effect} points with {how}, {describe_verdict(row)}"


def _find_dev_choice(frames: Frames, place: Sequence[str]) -> Row | None:
    """Return the row of the transfer with the best dev score in the table ``methods``, if any.

    Args:
        place: dataset, model and target.
    """
    methods = frames.get("methods")
    if methods is None or methods.empty:
        return None
    dataset, model, target = place
    own = methods[(methods["dataset"] == dataset) & (methods["target"] == target)]
    chosen = own[(own["method"] == TRANSFER) & (own["model"] == model)]
    return None if chosen.empty else to_records(chosen)[0]


def _describe_dev_choice(frames: Frames, row: Row, shorts: dict[str, str]) -> str:
    """Return a sentence on the source with the best dev score.

    Its test score has no selection bias from the test split.

    Args:
        row: result of ``_find_dev_choice``.
    """
    algorithm, _, source = str(row["variant"]).partition(":")
    score = format_value_with_interval(row["score"], row["low"], row["high"], ".1f", SCORES)
    transfer = f"{shorts.get(source, source)} ({get_algorithm_label(algorithm)})"
    sentence = (
        f"The source with the best dev score is {transfer}, which has a test score of {score}"
    )
    methods = frames["methods"]
    is_own = (methods["dataset"] == row["dataset"]) & (methods["target"] == row["target"])
    recommended = to_records(methods[is_own & methods["recommended"]])
    if row["recommended"] or not recommended:
        return f"{sentence}{' and is the recommended method' if row['recommended'] else ''}."
    ends = row["delta_low"], row["delta_high"]
    size = format_value_with_interval(row["delta"], *ends, "+.1f", DIFFERENCES)
    tested = "not tested" if is_missing(row["q"]) else format_named_p("q", row["q"])
    method = recommended[0]["method"]
    article = "the " if method == MOST_FREQUENT else ""
    other = f"{article}{format_method_label(method)}"
    return (
        f"{sentence}. The score of {transfer} minus the score of {other}, the method that the "
        f"table “Methods” recommends, is {size} points ({tested})."
    )
