"""Forest plot of methods by target, with scores, intervals and the recommended method."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasktransfer.core.references import METHODS, TRANSFER
from tasktransfer.designs.transfer.tables.names import explain_short_names, fit_short_names
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
from tasktransfer.present.kit.series import Estimate, plot_forest
from tasktransfer.present.kit.style import (
    INK,
    LABEL_POINTS,
    Look,
    add_legend_below,
    add_title,
    fold_name,
)
from tasktransfer.present.numbers import is_missing
from tasktransfer.results.frames import Frames

LOOK = Look(INK, "o", "-")
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
    names = _list_names(rows, several)
    inches = _NAME_INCHES_IN_A_PAPER if is_paper_style() else _NAME_INCHES
    labels = [fold_name(name, inches, LABEL_POINTS) for name in names]
    is_dense = is_paper_style() and len(panels) > 1 and not any("\n" in name for name in labels)
    width = 3.6 if len(panels) == 1 else 2.1
    height = (_DENSE_LINE if is_dense else _LINE) * len(names)
    figure, axes = create_panels(len(panels), width, height + _ABOVE_AND_BELOW, shared="y")
    targets = list(dict.fromkeys(rows["target"]))
    shorts = fit_short_names(targets, frames.metadata.shorts)
    for panel, methods in zip(axes, panels, strict=True):
        _draw_panel(panel, methods, names, several, frames.metadata.shorts)
        panel.set_yticklabels(labels)
        set_panel_title(panel, shorts[methods[0]["target"]])
    filled = make_line_entry("recommended", LOOK)
    hollow = make_line_entry("other methods", LOOK, markerfacecolor="white")
    add_legend_below(figure, [filled, hollow])
    seeds = int(rows["n_seeds"].max())
    title = f"{rows['dataset'].iloc[0]}: methods by target, with 95 % intervals"
    add_title(figure, title, seeds, frames.metadata)
    add_caption_notes(figure, explain_short_names(shorts))
    fit_figure_to_panels(figure, axes, width, height)
    return figure


def _list_names(rows: pd.DataFrame, several: Collection[str]) -> list[str]:
    """Return the labels of all methods, from the simplest to the most complex."""
    ordered = rows.assign(order=rows["method"].map(_ORDER.index)).sort_values(
        "order", kind="stable"
    )
    return list(dict.fromkeys(_format_method_name(row, several) for row in to_records(ordered)))


def _draw_panel(
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
        lines[place].append(Estimate("", *ends, LOOK, hollow=not row["recommended"]))
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
