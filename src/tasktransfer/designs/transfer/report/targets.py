"""Blocks of the report by target: best source, all sources, state of the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup

from tasktransfer.core.references import COLLAPSED, LEARNED, REFERENCES
from tasktransfer.designs.transfer.references import LABELS
from tasktransfer.designs.transfer.report.first_source import FEW_TARGETS
from tasktransfer.designs.transfer.report.learned import compare_with_best_reference
from tasktransfer.designs.transfer.tables.names import fit_short_names, get_algorithm_label
from tasktransfer.present.columns import Row
from tasktransfer.present.html import create_environment, to_records
from tasktransfer.present.numbers import DIFFERENCES, bound_interval, format_number, format_p_value
from tasktransfer.present.sentences import format_with_interval
from tasktransfer.results.frames import Frames

_KEYS = ["dataset", "model", "target"]
_STATES = {LEARNED: "learned", COLLAPSED: "collapsed to one answer"}
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
    """A target with its sources, best first; ``facts`` is on its baseline and references."""

    short: str
    name: str
    where: str
    best: str
    state: str
    has_learned: bool
    facts: str
    rows: Sequence[EffectRow]

    @property
    def is_significant(self) -> bool:
        """True if any source has a significant effect."""
        return any(row.is_significant for row in self.rows)


def build_targets(frames: Frames) -> Markup | None:
    """Return the section's HTML, or None if no pair of tasks has a delta."""
    blocks = [*list_targets(frames)]
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
    )
    return Markup(html)  # the template escapes all values


def list_targets(frames: Frames) -> Iterator[TargetBlock]:
    """Yield a block per dataset, model and target, in the study's order."""
    cells = frames["cells"]
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    compared = compare_with_best_reference(frames)
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
                    yield _build_block(frames, rows, compared, shorts, where)


def _build_block(
    frames: Frames, rows: pd.DataFrame, compared: pd.DataFrame, shorts: dict[str, str], where: str
) -> TargetBlock:
    ordered = rows.sort_values("delta", ascending=False, kind="stable")
    limit = 2 * float(ordered["delta"].abs().max()) or 1.0
    listed = [_build_row(row, shorts, limit) for row in to_records(ordered)]
    best = listed[0]
    first = to_records(ordered)[0]
    untested = "not significant" if pd.notna(first["q"]) else "not tested"
    verdict = f"q {best.q}" if best.is_significant else untested
    place = [first[key] for key in _KEYS]
    state, facts = _describe_baseline(frames, compared, place, float(first["baseline_score"]))
    return TargetBlock(
        shorts[first["target"]],
        first["target"],
        where,
        f"{best.source} ({best.algorithm}) {best.effect}, {verdict}",
        _STATES.get(state, "not better than a simple reference") if state else "",
        state in ("", LEARNED),
        facts,
        listed,
    )


def _build_row(row: Row, shorts: dict[str, str], limit: float) -> EffectRow:
    parts = (row["dataset"], row["model"], row["algorithm"], row["source"], row["target"])
    size = format_with_interval(row["delta"], row["low"], row["high"], "+.1f", DIFFERENCES)
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
    """Return a row's interval on a scale from ``-limit`` to ``limit``, truncated at its ends."""

    def place(value: float) -> float:
        within = min(max(value, -limit), limit)
        return round((within / limit + 1) / 2 * WIDTH, 1)

    low, high = bound_interval(row["low"], row["high"], DIFFERENCES)
    known = not pd.isna(low)
    return IntervalBar(
        place(row["delta"]), place(low) if known else None, place(high) if known else None, place(0)
    )


def _describe_baseline(
    frames: Frames, compared: pd.DataFrame, place: Sequence[str], score: float
) -> tuple[str, str]:
    """Return the state of a target's baseline, and a sentence on it and its references."""
    text = f"Baseline {format_number(score, '.1f')}"
    table = frames.get("references")
    if table is None or table.empty:
        table = compared
    if table.empty:
        return "", f"{text}."
    dataset, model, target = place
    own = (table["dataset"] == dataset) & (table["model"] == model) & (table["target"] == target)
    if not own.any():
        return "", f"{text}."
    labels = {**LABELS, **REFERENCES}
    listed = table[own].sort_values("reference_score", ascending=False, kind="stable")
    named = [
        f"{labels[row['reference']]} {format_number(row['reference_score'], '.1f')}"
        for row in to_records(listed)
    ]
    return str(listed["state"].iloc[0]), f"{text}. References: {'; '.join(named)}."
