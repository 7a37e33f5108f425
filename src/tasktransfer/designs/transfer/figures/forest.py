"""Forest plots: effects of transfer, and scores of all methods, with their intervals.

A study of many targets shows the mean effect of each algorithm, and below it, in grey, its mean
effect over each control. A study of one or two targets shows the effect of each source. The plot of
methods marks the recommended method of each target.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasktransfer.core.references import METHODS, TRANSFER
from tasktransfer.designs.transfer.report.advice import FEW_TARGETS
from tasktransfer.designs.transfer.runs import (
    explain_short_names,
    fit_short_names,
    get_algorithm_label,
)
from tasktransfer.present.columns import Row
from tasktransfer.present.html import to_records
from tasktransfer.present.kit.panels import (
    NOTE,
    create_panels,
    fit_figure_to_panels,
    make_line_entry,
    set_panel_title,
)
from tasktransfer.present.kit.paper import add_caption_notes, is_paper_style
from tasktransfer.present.kit.series import (
    GREY,
    Estimate,
    draw_forests,
    draw_zero_line,
    finish_forests,
    plot_forest,
)
from tasktransfer.present.kit.style import (
    INK,
    LABEL_POINTS,
    Look,
    add_legend_below,
    add_title,
    fold_name,
    get_series_look,
)
from tasktransfer.present.numbers import (
    DIFFERENCES,
    MOST_Q,
    format_named_p,
    format_value_with_interval,
    is_missing,
)
from tasktransfer.results.frames import Frames

# --- effects ---


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


# --- methods ---


_LOOK = Look(INK, "o", "-")
_NAME_INCHES = 1.9
"""Width of the names of methods, to the left of the first panel."""
_NAME_INCHES_IN_A_PAPER = 2.65
"""The same in paper style, whose letters are narrower than ``fold_name`` assumes."""
_LINE = 0.34
"""Height of a line, inches."""
_DENSE_LINE = 0.17
"""Height of a line in paper style if there are several panels and no folded names, inches."""
_ABOVE_AND_BELOW = 1.2
"""Height of a panel's title and axis, inches, from which columns are counted in paper style."""
_ORDER = [*METHODS]


def plot_methods(frames: Frames) -> Figure | None:
    """Draw one panel per target of a dataset, or return None if no target has two methods.

    A method has the same line in all panels. The source of a transfer is named in its panel.
    Lines are closer together in paper style, so that many panels fit a page.
    """
    rows = frames["methods"]
    if rows.empty:
        return None
    panels = [to_records(group) for _, group in rows.groupby("target", sort=False)]
    models = rows.groupby("method")["model"].nunique()
    several = frozenset(map(str, models[models > 1].index))
    names = _list_method_names(rows, several)
    inches = _NAME_INCHES_IN_A_PAPER if is_paper_style() else _NAME_INCHES
    labels = [fold_name(name, inches, LABEL_POINTS) for name in names]
    is_dense = is_paper_style() and len(panels) > 1 and not any("\n" in name for name in labels)
    width = 3.6 if len(panels) == 1 else 2.1
    height = (_DENSE_LINE if is_dense else _LINE) * len(names)
    figure, axes = create_panels(len(panels), width, height + _ABOVE_AND_BELOW, shared="y")
    targets = list(dict.fromkeys(rows["target"]))
    shorts = fit_short_names(targets, frames.metadata.shorts)
    for panel, methods in zip(axes, panels, strict=True):
        _draw_methods(panel, methods, names, several, frames.metadata.shorts)
        panel.set_yticklabels(labels)
        set_panel_title(panel, shorts[methods[0]["target"]])
    filled = make_line_entry("recommended", _LOOK)
    hollow = make_line_entry("other methods", _LOOK, markerfacecolor="white")
    add_legend_below(figure, [filled, hollow])
    seeds = int(rows["n_seeds"].max())
    title = f"{rows['dataset'].iloc[0]}: methods by target, with 95 % intervals"
    add_title(figure, title, seeds, frames.metadata)
    add_caption_notes(figure, explain_short_names(shorts))
    fit_figure_to_panels(figure, axes, width, height)
    return figure


def _list_method_names(rows: pd.DataFrame, several: Collection[str]) -> list[str]:
    """Return the labels of all methods, from the simplest to the most complex."""
    ordered = rows.assign(order=rows["method"].map(_ORDER.index)).sort_values(
        "order", kind="stable"
    )
    return list(dict.fromkeys(_format_method_name(row, several) for row in to_records(ordered)))


def _draw_methods(
    axes: Axes,
    methods: Sequence[Row],
    names: Sequence[str],
    several: Collection[str],
    shorts: Mapping[str, str],
) -> None:
    lines: list[list[Estimate]] = [[] for _ in names]
    for row in methods:
        place = names.index(_format_method_name(row, several))
        ends = row["score"], row["low"], row["high"]
        lines[place].append(Estimate("", *ends, _LOOK, hollow=not row["recommended"]))
        if row["method"] == TRANSFER:
            axes.annotate(
                f"from {_format_source_names(row, shorts)}", (1, place), xytext=(-1, 5),
                xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                ha="right", va="center", fontsize=NOTE, color=INK,
            )  # fmt: skip
    plot_forest(axes, lines, names)
    axes.set_xlabel("score", fontsize=LABEL_POINTS)


def _format_method_name(row: Row, several: Collection[str]) -> str:
    """Return the label of a method, with its shots, and its model if it has ``several``."""
    words = [
        "transfer, best source on dev" if row["method"] == TRANSFER else METHODS[row["method"]]
    ]
    if row["method"] != TRANSFER and not is_missing(row["variant"]):
        words.append(str(row["variant"]))
    if row["method"] in several:
        words.append(str(row["model"]))
    return ", ".join(words)


def _format_source_names(row: Row, shorts: Mapping[str, str]) -> str:
    """Return the short names of a transfer's sources."""
    sources = str(row["variant"]).rpartition(":")[2].split("+")
    tasks = [source.rpartition("/")[2] for source in sources]
    return " + ".join(shorts.get(task, task) for task in tasks)
