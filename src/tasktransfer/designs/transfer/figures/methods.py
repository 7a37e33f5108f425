"""Forest plot of methods by target, with scores, intervals and the recommended method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from tasktransfer.present.kit.paper import add_caption_notes
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
_LINE = 0.34
"""Height of a line, inches."""
_ORDER = [*METHODS]


def plot_methods(frames: Frames) -> Figure | None:
    """Draw one panel per target with a line per method, or return None without comparisons.

    A method has the same line in all panels. The source of a transfer is named in its panel.
    """
    rows = frames["methods"]
    if rows.empty:
        return None
    panels = [to_records(group) for _, group in rows.groupby(["dataset", "target"], sort=False)]
    has_models = rows["model"].dropna().nunique() > 1
    names = _list_names(rows, has_models)
    width, height = (3.6 if len(panels) == 1 else 2.1), _LINE * len(names)
    figure, axes = create_panels(len(panels), width, height + 0.6, shared="y")
    targets = list(dict.fromkeys(rows["target"]))
    shorts = fit_short_names(targets, frames.metadata.shorts)
    several = rows["dataset"].nunique() > 1
    for panel, methods in zip(axes, panels, strict=True):
        _draw_panel(panel, methods, names, has_models, frames.metadata.shorts)
        dataset, target = methods[0]["dataset"], shorts[methods[0]["target"]]
        set_panel_title(panel, f"{dataset}: {target}" if several else target)
    filled = make_line_entry("recommended", LOOK)
    hollow = make_line_entry("other methods", LOOK, markerfacecolor="white")
    add_legend_below(figure, [filled, hollow])
    seeds = int(rows["n_seeds"].max())
    add_title(figure, "Methods by target, with 95 % intervals", seeds, frames.metadata)
    add_caption_notes(figure, explain_short_names(shorts))
    fit_figure_to_panels(figure, axes, width, height)
    return figure


def _list_names(rows: pd.DataFrame, has_models: bool) -> list[str]:
    """Return the labels of all methods, from the simplest to the most complex."""
    ordered = rows.assign(order=rows["method"].map(_ORDER.index)).sort_values(
        "order", kind="stable"
    )
    return list(dict.fromkeys(_format_method_name(row, has_models) for row in to_records(ordered)))


def _draw_panel(
    axes: Axes,
    methods: Sequence[Row],
    names: Sequence[str],
    has_models: bool,
    shorts: Mapping[str, str],
) -> None:
    lines: list[list[Estimate]] = [[] for _ in names]
    for row in methods:
        place = names.index(_format_method_name(row, has_models))
        ends = row["score"], row["low"], row["high"]
        lines[place].append(Estimate("", *ends, LOOK, hollow=not row["recommended"]))
        if row["method"] == TRANSFER:
            axes.annotate(
                f"from {_format_source_names(row, shorts)}", (1, place), xytext=(-1, 5),
                xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                ha="right", va="center", fontsize=NOTE, color=INK,
            )  # fmt: skip
    plot_forest(axes, lines, [fold_name(name, _NAME_INCHES, LABEL_POINTS) for name in names])
    axes.set_xlabel("score", fontsize=LABEL_POINTS)


def _format_method_name(row: Row, has_models: bool) -> str:
    """Return a method's label, with its shots, and with its model if there are several."""
    words = [
        "transfer, best source on dev" if row["method"] == TRANSFER else METHODS[row["method"]]
    ]
    if row["method"] != TRANSFER and not is_missing(row["variant"]):
        words.append(str(row["variant"]))
    if has_models and not is_missing(row["model"]):
        words.append(str(row["model"]))
    return ", ".join(words)


def _format_source_names(row: Row, shorts: Mapping[str, str]) -> str:
    """Return the short names of a transfer's sources."""
    sources = str(row["variant"]).rpartition(":")[2].split("+")
    tasks = [source.rpartition("/")[2] for source in sources]
    return " + ".join(shorts.get(task, task) for task in tasks)
