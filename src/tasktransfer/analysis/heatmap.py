"""Figure 3 of the paper: who helps whom, per dataset, model and algorithm.

Rows are sources, columns targets; the diagonal holds the baseline's score, every other cell the
relative improvement over it. What is missing is hatched and named so, never drawn as zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from tasktransfer.analysis.collect import BASELINE, Tables
from tasktransfer.analysis.names import algorithm_label, in_order, short_names
from tasktransfer.analysis.style import INK, MISSING, NEUTRAL, heading, signed, wrapped
from tasktransfer.analysis.tables import Metadata

COLOURS = "RdBu"
"""Diverging and readable by colour-blind readers: red is negative, blue positive transfer."""

CELL = 0.46
"""Width and height of a cell, inches."""


@dataclass(frozen=True)
class Panel:
    """The cells of one model and algorithm, each a mean over seeds.

    ``improvement`` (%), ``delta`` and ``partial`` are square (sources, targets); NaN where
    nothing is there; ``baseline`` has one score per target. ``partial`` marks cells (on the
    diagonal: baselines) with fewer seeds than planned.
    """

    model: str
    algorithm: str
    improvement: np.ndarray[Any, np.dtype[np.float64]]
    delta: np.ndarray[Any, np.dtype[np.float64]]
    partial: np.ndarray[Any, np.dtype[np.bool_]]
    baseline: np.ndarray[Any, np.dtype[np.float64]]


def panels(tables: Tables, metadata: Metadata, dataset: str) -> tuple[list[str], list[list[Panel]]]:
    """The tasks of a dataset in order, and its panels: a list of models of lists of algorithms.

    A cell's improvement is 100 · mean delta / mean baseline over the seeds that have both; it is
    NaN where that baseline is 0. Models, algorithms and tasks come from what is there and from
    what is missing, so that a model that failed altogether still has its (hatched) panel.
    """
    runs = tables.runs[tables.runs["dataset"] == dataset]
    deltas = tables.deltas[
        (tables.deltas["dataset"] == dataset) & (tables.deltas["n_sources"] == 1)
    ]
    absent = tables.missing[
        (tables.missing["dataset"] == dataset) & (tables.missing["n_sources"] <= 1)
    ]
    sources = [*deltas["source"], *absent.loc[absent["n_sources"] == 1, "source"]]
    order = metadata.order
    tasks = in_order([*runs["target"], *absent["target"], *sources], order.get("task", ()))
    models = in_order([*runs["model"], *absent["model"]], order.get("model", ()))
    found = in_order([*deltas["algorithm"], *absent["algorithm"]], order.get("algorithm", ()))
    algorithms = [name for name in found if name != BASELINE]
    return tasks, [
        [_panel(model, algorithm, tasks, runs, deltas, absent) for algorithm in algorithms]
        for model in models
    ]


def _panel(
    model: str,
    algorithm: str,
    tasks: list[str],
    runs: pd.DataFrame,
    deltas: pd.DataFrame,
    absent: pd.DataFrame,
) -> Panel:
    here = deltas[(deltas["model"] == model) & (deltas["algorithm"] == algorithm)]
    cells = (
        here[here["delta"].notna()]
        .groupby(["source", "target"])[["delta", "baseline_score"]]
        .mean()
        .reset_index()
    )
    above_zero = cells["baseline_score"].where(cells["baseline_score"] > 0, np.nan)
    cells["improvement"] = 100 * cells["delta"] / above_zero
    gone = absent[(absent["model"] == model) & (absent["algorithm"] == algorithm)]
    own = runs[(runs["model"] == model) & (runs["algorithm"] == BASELINE)]
    lost = absent[(absent["model"] == model) & (absent["algorithm"] == BASELINE)]
    partial = ~np.isnan(_square(gone.assign(one=1.0), "one", tasks))
    np.fill_diagonal(partial, np.isin(tasks, lost["target"].to_numpy()))
    return Panel(
        model=model,
        algorithm=algorithm,
        improvement=_square(cells, "improvement", tasks),
        delta=_square(cells, "delta", tasks),
        partial=partial,
        baseline=own.groupby("target")["score"].mean().reindex(tasks).to_numpy(np.float64),
    )


def _square(
    cells: pd.DataFrame, value: str, tasks: list[str]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    place = {task: index for index, task in enumerate(tasks)}
    square = np.full((len(tasks), len(tasks)), np.nan)
    rows = [place[name] for name in cells["source"]]
    columns = [place[name] for name in cells["target"]]
    square[rows, columns] = cells[value].to_numpy(np.float64)
    return square


def colour_limit(improvements: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """The symmetric limit of the colour scale, %: the 95th percentile of the absolute values,
    rounded up to 1, 2 or 5 times a power of ten, so that one outlier does not wash out the rest
    (the number in its cell is exact, and the colour bar's arrow says that values go beyond)."""
    sizes = np.abs(improvements[~np.isnan(improvements)])
    wide = float(np.percentile(sizes, 95)) if len(sizes) else 0.0
    if wide <= 1:
        return 1.0
    power = 10.0 ** np.floor(np.log10(wide))
    return float(next(step * power for step in (1, 2, 5, 10) if wide <= step * power * 1.0001))


def heatmap(tables: Tables, metadata: Metadata, dataset: str) -> Figure | None:
    """Draw the figure of one dataset; None when it has no single-source transfer run planned."""
    tasks, grid = panels(tables, metadata, dataset)
    if not grid or not grid[0]:
        return None
    improvements = np.concatenate([one.improvement.ravel() for row in grid for one in row])
    limit = colour_limit(improvements)
    norm = TwoSlopeNorm(0, -limit, limit)
    colours = mpl.colormaps[COLOURS]
    names = short_names(tasks, metadata.shorts)
    figure = _canvas(len(tasks), len(grid), len(grid[0]))
    axes = figure.subplots(len(grid), len(grid[0]), squeeze=False)
    for row, line in zip(axes, grid, strict=True):
        for place, panel in zip(row, line, strict=True):
            _draw(place, panel, [names[task] for task in tasks], norm, colours)
            _scale_text(place, min(1.5, _cell_size(len(tasks), len(line)) / CELL))
    _label_grid(axes, grid)
    beyond = bool(np.nanmax(np.abs(improvements), initial=0) > limit)
    bar = figure.colorbar(
        ScalarMappable(norm, colours),
        ax=axes,
        extend="both" if beyond else "neither",
        fraction=0.05,
        shrink=0.9 if len(grid) == 1 else 0.6,
        pad=0.02,
        aspect=25,
    )
    bar.set_label("Improvement, %")
    _legend(figure, grid)
    _title(figure, tables, metadata, dataset)
    return figure


def _cell_size(tasks: int, columns: int) -> float:
    """Width of a cell, inches: CELL, or more where few panels of few tasks would leave a figure
    too narrow for its title."""
    return max(CELL, (4.2 / columns - 0.75) / tasks)


def _canvas(tasks: int, rows: int, columns: int) -> Figure:
    """A figure with room for cells of that size, names, title and legend."""
    side = _cell_size(tasks, columns) * tasks
    width, height = (side + 0.75) * columns + 1.4, (side + 0.65) * rows + 1.5
    return Figure(figsize=(width, height), layout="constrained")


def _draw(
    axes: Axes, panel: Panel, names: list[str], norm: TwoSlopeNorm, colours: Colormap
) -> None:
    count = len(names)
    axes.set(xlim=(0, count), ylim=(count, 0), aspect="equal")
    for source in range(count):
        for target in range(count):
            if source == target:
                _draw_baseline(axes, panel, target)
            else:
                _draw_cell(axes, panel, (source, target), norm, colours)
    middle = np.arange(count) + 0.5
    axes.set_xticks(middle, names, rotation=90 if count > 4 else 0)
    axes.set_yticks(middle, names)
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)


def _draw_baseline(axes: Axes, panel: Panel, place: int) -> None:
    score, mark = panel.baseline[place], "*" if panel.partial[place, place] else ""
    if np.isnan(score):
        _hatch(axes, (place, place))
        return
    _fill(axes, (place, place), NEUTRAL)
    _write(axes, (place, place), f"{score:.1f}{mark}", INK, weight="bold")


def _draw_cell(
    axes: Axes, panel: Panel, cell: tuple[int, int], norm: TwoSlopeNorm, colours: Colormap
) -> None:
    improvement, delta = float(panel.improvement[cell]), float(panel.delta[cell])
    mark = "*" if panel.partial[cell] else ""
    if not np.isnan(improvement):
        colour = colours(norm(improvement))
        _fill(axes, cell, colour)
        _write(axes, cell, signed(improvement) + mark, _readable_on(colour))
    elif not np.isnan(delta):
        _fill(axes, cell, "#f7f7f7")
        _write(axes, cell, f"Δ{signed(delta)}{mark}", INK, style="italic")
    else:
        _hatch(axes, cell)


def _fill(axes: Axes, cell: tuple[int, int], colour: Any) -> None:
    source, target = cell
    axes.add_patch(Rectangle((target, source), 1, 1, facecolor=colour, edgecolor="white", lw=0.8))


def _hatch(axes: Axes, cell: tuple[int, int]) -> None:
    source, target = cell
    axes.add_patch(Rectangle((target, source), 1, 1, **MISSING))


def _write(axes: Axes, cell: tuple[int, int], text: str, colour: str, **style: Any) -> None:
    source, target = cell
    size = 7.0 if len(text) <= 6 else 6.0 if len(text) == 7 else 5.2
    axes.text(
        target + 0.5,
        source + 0.5,
        text,
        ha="center",
        va="center",
        fontsize=size,
        color=colour,
        **style,
    )


def _scale_text(axes: Axes, scale: float) -> None:
    """Larger cells, larger numbers. Cells lie inside their axes, so the layout need not measure
    each of them, which halves its time."""
    for text in axes.texts:
        text.set_fontsize(float(text.get_fontsize()) * scale)
    for artist in (*axes.texts, *axes.patches):
        artist.set_in_layout(False)


def _readable_on(colour: Any) -> str:
    """Black or white, whichever stands out more (relative luminance of WCAG 2)."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return INK if luminance > 0.179 else "white"


def _label_grid(axes: Any, grid: Sequence[Sequence[Panel]]) -> None:
    """Algorithms above the columns, models left of the rows, axes named once at the rim."""
    for place, panel in zip(axes[0], grid[0], strict=True):
        place.set_title(algorithm_label(panel.algorithm), fontsize=10, pad=8)
    for row, line in zip(axes, grid, strict=True):
        row[0].set_ylabel(f"{line[0].model}\nsource", fontsize=10)
    for place in axes[-1]:
        place.set_xlabel("target", fontsize=10)


def _legend(figure: Figure, grid: list[list[Panel]]) -> None:
    """Only what the figure shows."""
    every = [panel for row in grid for panel in row]
    entries: list[Any] = [Patch(facecolor=NEUTRAL, label="diagonal: baseline score")]
    off = ~np.eye(len(every[0].baseline), dtype=bool)
    if any(np.isnan(one.delta[off]).any() or np.isnan(one.baseline).any() for one in every):
        entries.append(Patch(**MISSING, label="missing or not in the study"))
    if any((np.isnan(one.improvement) & ~np.isnan(one.delta)).any() for one in every):
        entries.append(
            Patch(facecolor="#f7f7f7", edgecolor=INK, label="Δ: points (baseline 0, no percentage)")
        )
    if any(text.get_text().endswith("*") for axes in figure.axes for text in axes.texts):
        entries.append(Patch(facecolor="none", edgecolor="none", label="* some seeds missing"))
    figure.legend(
        handles=entries,
        loc="outside lower center",
        ncols=len(entries) if len(every) > 1 or len(entries) < 3 else 2,
        frameon=False,
        fontsize=9,
    )


def _title(figure: Figure, tables: Tables, metadata: Metadata, dataset: str) -> None:
    here = tables.runs[tables.runs["dataset"] == dataset]
    what = f"{dataset}: improvement over the baseline by transfer, %"
    lines = heading(what, here["seed"].nunique(), metadata)
    figure.suptitle(wrapped(lines, figure, points=11), fontsize=11)
