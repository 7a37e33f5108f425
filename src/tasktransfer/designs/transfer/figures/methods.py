"""Forest plot of the methods on each target: score, interval, and the recommended method."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasktransfer.core.methods import METHODS, TRANSFER
from tasktransfer.designs.transfer.tables.names import fit_short_names
from tasktransfer.present.columns import Row
from tasktransfer.present.html import to_records
from tasktransfer.present.kit.panels import make_line_entry
from tasktransfer.present.kit.series import Estimate, plot_forest
from tasktransfer.present.kit.style import (
    INK,
    LABEL_POINTS,
    Look,
    add_legend_below,
    add_title,
    fold_name,
    strip_axes,
)
from tasktransfer.present.numbers import is_missing
from tasktransfer.results.frames import Frames

COLUMNS = 3
LOOK = Look(INK, "o", "-")
_NAME_INCHES = 2.4
"""Width of the names of methods, to the left of a panel."""


def plot_methods(frames: Frames) -> Figure | None:
    """Draw one panel per target, with a line per method; None if no target has two methods."""
    rows = frames["methods"]
    if rows.empty:
        return None
    panels = [group for _, group in rows.groupby(["dataset", "target"], sort=False)]
    has_models = rows["model"].dropna().nunique() > 1
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    most = max(map(len, panels))
    size = (max(6.5, (_NAME_INCHES + 2.0) * columns), (0.34 * most + 0.7) * lines + 1.0)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    shorts = fit_short_names(list(dict.fromkeys(rows["target"])), frames.metadata.shorts)
    several = rows["dataset"].nunique() > 1
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw(axes, panel, has_models, frames.metadata.shorts)
        dataset, target = panel["dataset"].iloc[0], shorts[panel["target"].iloc[0]]
        axes.set_title(f"{dataset}: {target}" if several else target, fontsize=LABEL_POINTS)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    filled = make_line_entry("recommended", LOOK)
    hollow = make_line_entry("other methods", LOOK, markerfacecolor="white")
    add_legend_below(figure, [filled, hollow])
    seeds = int(rows["n_seeds"].max())
    add_title(figure, "Methods by target, with 95 % intervals", seeds, frames.metadata)
    return figure


def _draw(axes: Axes, panel: pd.DataFrame, has_models: bool, shorts: Mapping[str, str]) -> None:
    strip_axes(axes, zero=None)
    rows = to_records(panel)
    lines = [
        [Estimate("", row["score"], row["low"], row["high"], LOOK, hollow=not row["recommended"])]
        for row in rows
    ]
    names = [_name(row, has_models, shorts) for row in rows]
    plot_forest(axes, lines, [fold_name(name, _NAME_INCHES, LABEL_POINTS) for name in names])
    axes.set_xlabel("score", fontsize=LABEL_POINTS)


def _name(row: Row, has_models: bool, shorts: Mapping[str, str]) -> str:
    """Return the label of a method, with its source or shots, and its model if several exist."""
    words = [METHODS[row["method"]]]
    if row["method"] == TRANSFER:
        sources = str(row["variant"]).rpartition(":")[2].split("+")
        tasks = [source.rpartition("/")[2] for source in sources]
        words = [f"transfer from {' + '.join(shorts.get(task, task) for task in tasks)}"]
    elif not is_missing(row["variant"]):
        words.append(str(row["variant"]))
    if has_models and not is_missing(row["model"]):
        words.append(str(row["model"]))
    return ", ".join(words)
