"""The answer as a picture: a forest plot of effects with their intervals.

A study of many targets shows the mean effect of each algorithm, and below it, in grey, its mean
effect over each control. A study of one or two targets shows the effect of each source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tasktransfer.designs.transfer.report.first_source import FEW_TARGETS
from tasktransfer.designs.transfer.tables.names import (
    explain_short_names,
    fit_short_names,
    get_algorithm_label,
)
from tasktransfer.present.columns import Row
from tasktransfer.present.html import to_records
from tasktransfer.present.kit.forest import GREY, draw_forests, finish_forests
from tasktransfer.present.kit.panels import make_line_entry
from tasktransfer.present.kit.series import Estimate, draw_zero_line
from tasktransfer.present.kit.style import LABEL_POINTS, Look, get_series_look
from tasktransfer.present.numbers import DIFFERENCES, format_named_p, is_missing
from tasktransfer.present.sentences import MOST_Q, format_value_with_interval
from tasktransfer.results.frames import Frames

MOST_SOURCES = 30
"""Maximum number of lines of a study of few targets: the best ones."""
FILLED = f"Filled marks differ significantly from 0 (q ≤ {MOST_Q}); hollow marks do not."
UNTESTED = "Hollow marks show effects that are not tested, because each method has one run."


def plot_effect_forest(frames: Frames) -> Figure | None:
    """Plot the effects, or return None if no pair of tasks has a delta."""
    cells = frames["cells"]
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    if singles.empty:
        return None
    if len(singles[["dataset", "target"]].drop_duplicates()) <= FEW_TARGETS:
        return _plot_sources(frames, singles)
    return _plot_averages(frames)


def _plot_averages(frames: Frames) -> Figure | None:
    """Plot mean effects: one panel per dataset, one line per algorithm or control."""
    summary = frames["summary"]
    order = frames.metadata.order_names
    models = order("model", summary["model"])
    looks = {model: get_series_look(rank) for rank, model in enumerate(models)}
    controls = frames.get("control_summary", summary.iloc[:0])
    panels: dict[str, dict[str, list[Estimate]]] = {
        dataset: {} for dataset in order("dataset", summary["dataset"])
    }
    for algorithm in order("algorithm", summary["algorithm"]):
        label = get_algorithm_label(algorithm)
        for row in to_records(summary[summary["algorithm"] == algorithm]):
            estimate = _estimate_mean(row, looks[row["model"]])
            panels[row["dataset"]].setdefault(label, []).append(estimate)
        for row in to_records(controls[controls["algorithm"] == algorithm]):
            grey = replace(looks[row["model"]], colour=GREY)
            line = f"{label}, over {row['control'].replace('_', ' ')}"
            estimate = _build_estimate(row, "mean", grey, is_significant=row["q"] <= MOST_Q)
            panels[row["dataset"]].setdefault(line, []).append(estimate)
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    notes = [FILLED if summary["joint_q"].notna().any() else UNTESTED]
    notes += explain_hollow_intervals(summary, controls)
    if summary["joint_low"].isna().any():
        notes.append(
            "A mark without a line has no interval. Some intervals are over seeds only, without "
            "the variation between dialogues."
        )
    if len(controls):
        notes.append("Grey marks show differences from a control instead of the baseline.")
    title = "Mean change in score due to transfer, all pairs of tasks"
    return _draw_panels(frames, title, names, panels, looks, int(summary["n_seeds"].max()), notes)


def explain_hollow_intervals(summary: pd.DataFrame, controls: pd.DataFrame) -> list[str]:
    """Return a list with a note if the interval of any non-significant effect excludes 0."""
    families = (
        ("joint_low", "joint_high", "joint_q", summary, "mean changes"),
        ("low", "high", "q", controls, "differences from a control"),
    )
    parts = [
        f"for all {int(table[q].notna().sum())} {what}"
        for low, high, q, table, what in families
        if has_hollow_interval(table, low, high, q)
    ]
    return [_format_adjustment(parts)] if parts else []


def has_hollow_interval(table: pd.DataFrame, low: str, high: str, q: str) -> bool:
    """Return whether an interval excludes 0 although q is above 0.05."""
    if table.empty:
        return False
    excludes = (table[low] > 0) | (table[high] < 0)
    return bool((excludes & (table[q] > MOST_Q)).any())


def _format_adjustment(families: Sequence[str]) -> str:
    return (
        "The interval of a hollow mark can exclude 0, because each interval is for a single "
        "effect, whereas q is adjusted (Benjamini-Hochberg) "
        f"{' or '.join(families)}."
    )


def _estimate_mean(row: Row, look: Look) -> Estimate:
    """Return a mean with its interval over seeds and dialogues, or over seeds as a fallback."""
    alone = is_missing(row["joint_low"])
    ends = ("mean_low", "mean_high") if alone else ("joint_low", "joint_high")
    return _build_estimate(row, "mean", look, *ends, is_significant=row["joint_q"] <= MOST_Q)


def _build_estimate(
    row: Row, value: str, look: Look, low: str = "low", high: str = "high", *, is_significant: bool
) -> Estimate:
    q = row["joint_q"] if "joint_q" in row else row["q"]
    label = format_value_with_interval(row[value], row[low], row[high], "+.1f", DIFFERENCES)
    if not is_missing(q):
        label += f", {format_named_p('q', q)}"
    return Estimate(label, row[value], row[low], row[high], look, hollow=not is_significant)


def _plot_sources(frames: Frames, cells: pd.DataFrame) -> Figure:
    """Plot the effect of each source in one panel per target, with the best source first."""
    order = frames.metadata.order_names
    models = order("model", cells["model"])
    looks = {model: get_series_look(rank) for rank, model in enumerate(models)}
    several = cells["algorithm"].nunique() > 1
    shorts = fit_short_names(
        order("task", [*cells["source"], *cells["target"]]), frames.metadata.shorts
    )
    label = {
        (source, algorithm): ", ".join(
            [shorts[source], *([get_algorithm_label(algorithm)] if several else [])]
        )
        for source, algorithm in cells[["source", "algorithm"]].itertuples(index=False, name=None)
    }
    best = cells.groupby(["source", "algorithm"])["delta"].max().sort_values(ascending=False)
    names = [label[source, algorithm] for source, algorithm in best.index[:MOST_SOURCES]]
    panels: dict[str, dict[str, list[Estimate]]] = {}
    for (dataset, target), rows in cells.groupby(["dataset", "target"], sort=False):
        lines = panels.setdefault(f"{dataset} {shorts[str(target)]}", {})
        for row in to_records(rows):
            is_significant = bool(row["significant"]) and row["n_seeds"] > 1
            estimate = _build_estimate(
                row, "delta", looks[row["model"]], is_significant=is_significant
            )
            lines.setdefault(label[row["source"], row["algorithm"]], []).append(estimate)
    notes = [FILLED if cells["q"].notna().any() else UNTESTED, *explain_short_names(shorts)]
    if has_hollow_interval(cells, "low", "high", "q"):
        notes.append(_format_adjustment(["for all single-source cells of the dataset"]))
    if len(best) > MOST_SOURCES:
        notes.append(f"Only the best {MOST_SOURCES} of {len(best)} lines are shown.")
    title = "Change of the score from training on a source first"
    return _draw_panels(frames, title, names, panels, looks, int(cells["n_seeds"].max()), notes)


def _draw_panels(
    frames: Frames,
    title: str,
    names: Sequence[str],
    panels: Mapping[str, Mapping[str, Sequence[Estimate]]],
    looks: Mapping[str, Look],
    seeds: int,
    notes: Sequence[str],
) -> Figure:
    figure, axes = draw_forests(names, panels)
    for panel in axes:
        draw_zero_line(panel)
        panel.set_xlabel("Δ to the baseline, points", fontsize=LABEL_POINTS)
    entries: list[Any] = []
    if len(looks) > 1:
        entries = [make_line_entry(name, look, linestyle="") for name, look in looks.items()]
    finish_forests(figure, title, len(names), seeds, frames.metadata, entries=entries, notes=notes)
    return figure
