"""Figure 3 of the paper: heatmaps of relative improvement per dataset, model and algorithm.

Rows are sources and columns are targets. The diagonal shows the baseline's score, every other cell
the relative improvement over it. Sources from other datasets are rows below the target dataset's
own. Missing cells and cells outside the study have different hatchings and are never drawn as zero.
Cells of pairs that left a race keep their colour and number under a third hatching. Dots cover the
columns of targets whose baseline has not learned. Cells that
survive false-discovery control are framed. Cells with one seed have a ring and never a frame,
because their test does not cover other runs.

``plot_effects`` shows the same cells in points, and fades those whose interval includes 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, TwoSlopeNorm, to_rgba
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.patches import Patch

from tasktransfer.designs.transfer.algorithms import SHUFFLED_SOURCE
from tasktransfer.designs.transfer.choices import LEFT_LABEL
from tasktransfer.designs.transfer.dataset_section import is_foreign
from tasktransfer.designs.transfer.figures.heatmap_panels import (
    Flags,
    Floats,
    Panel,
    build_panels,
    compute_margin_ratio,
    draw_margin,
    list_margin_rows,
)
from tasktransfer.designs.transfer.runs import (
    explain_short_names,
    fit_short_names,
    get_algorithm_label,
)
from tasktransfer.present.kit import matrix as cell_grid
from tasktransfer.present.kit.paper import add_caption_notes, count_columns
from tasktransfer.present.kit.style import (
    DIVERGING,
    INK,
    LABEL_POINTS,
    NEUTRAL,
    add_legend_below,
    add_title,
    choose_text_colour,
    compute_colour_limit,
    compute_font_scale,
    compute_improvement_limit,
    find_exceeded_ends,
    fit_panels,
    fold_name,
    format_signed,
)
from tasktransfer.results.frames import Frames

CELL = 0.42
"""Width and height of a cell, inches."""
_PALE = "#f7f7f7"
FADED = 0.25
"""Strength of a faded cell's colour."""
FADED_INK = "#5a5a5a"
FADED_LABEL = "faded: the 95 % interval includes 0, or there is only one seed"
UNLEARNED_LABEL = "dotted: the baseline has not learned"


def plot_heatmap(
    frames: Frames, dataset: str, compared_with: str = "the baseline"
) -> Figure | None:
    """Draw a dataset's heatmap, or return None if it has no planned single-source transfer.

    A cell's improvement is 100 · mean delta / mean baseline over the seeds that have both. If that
    baseline is 0, the cell shows points. ``compared_with`` names the cells' baseline in the title.
    """
    return _draw_heatmap(frames, dataset, f"improvement over {compared_with} by transfer, %", "%")


def plot_shuffled_source(frames: Frames, dataset: str) -> Figure | None:
    """Draw a dataset's heatmap of deltas minus the deltas of shuffled sources.

    A cell shows its delta minus the delta of its shuffled source. None if the control has no run.
    """
    over = frames["control_cells"]
    cells = over[over["control"] == SHUFFLED_SOURCE].drop(columns="control")
    if cells.empty:
        return None
    return plot_heatmap(frames.replace({"cells": cells}), dataset, "the shuffled source")


def plot_effects(frames: Frames, dataset: str) -> Figure | None:
    """Draw the heatmap in points of the score, with faded cells if the effect may be 0."""
    return _draw_heatmap(frames, dataset, "change of the score by transfer, points", "points")


def _draw_heatmap(frames: Frames, dataset: str, what: str, unit: str) -> Figure | None:
    tasks, grid = build_panels(frames, dataset)
    if not grid or not grid[0]:
        return None
    panels = [panel for row in grid for panel in row]
    values = np.concatenate([_get_values(panel, unit).ravel() for panel in panels])
    limit = compute_improvement_limit(values) if unit == "%" else compute_colour_limit(values)
    short = fit_short_names(tasks, frames.metadata.shorts)
    names = [short[task] for task in tasks]
    foreign = [number for number, task in enumerate(tasks) if is_foreign(task)]
    targets = len(tasks) - len(foreign)  # sources of other datasets are not targets
    side = _compute_cell_size(len(tasks), len(grid[0])) * len(tasks)
    if count_columns(len(grid[0]), side + 0.5, len(grid[0])) < len(grid[0]):
        grid = [[panel] for panel in panels]
    prompted = frames.get("prompted") if unit == "%" else None
    margin = list_margin_rows(prompted, dataset, tasks[:targets])
    figure, axes, below = _create_canvas(len(tasks), grid, len(margin))
    scale = min(1.5, side / len(tasks) / CELL)
    for place, panel in zip(axes.flat, (one for row in grid for one in row), strict=True):
        _draw_panel(place, panel, names, unit, limit, scale)
        place.set_xlim(0, targets)
        for number in _list_first_rows(tasks, foreign):
            place.axhline(number, color=INK, linewidth=1.2, clip_on=False)
    if below is not None:
        draw_margin(below, names[:targets], margin, scale)
    _label_grid(axes, grid, side + 0.4, LABEL_POINTS * compute_font_scale(figure) + 1)
    _add_colour_bar(figure, axes, values, limit, unit)
    add_legend_below(figure, _build_legend_entries(panels, limit, unit))
    runs = frames["transfer_runs"]  # baselines may have more seeds
    transfers = (runs["dataset"] == dataset) & (runs["n_sources"] > 0)
    seeds = int(runs.loc[transfers, "seed"].nunique())
    add_title(figure, f"{dataset}: {what}", seeds, frames.metadata)
    add_caption_notes(figure, explain_short_names(short))
    fit_panels(figure, axes, side * targets / len(tasks), side, cells=True)
    return figure


def _get_values(panel: Panel, unit: str) -> Floats:
    return panel.improvement if unit == "%" else panel.delta


def _add_colour_bar(figure: Figure, axes: Any, values: Floats, limit: float, unit: str) -> None:
    bar = figure.colorbar(
        ScalarMappable(TwoSlopeNorm(0, -limit, limit), mpl.colormaps[DIVERGING]),
        ax=axes,
        extend=find_exceeded_ends(values, limit),
        fraction=0.05,
        shrink=0.9 if len(axes) == 1 else 0.6,
        pad=0.02,
        aspect=25,
    )
    label = "Improvement, %" if unit == "%" else "Change, points"
    bar.set_label(label, fontsize=LABEL_POINTS * compute_font_scale(figure) + 1)


def _list_first_rows(tasks: Sequence[str], foreign: Sequence[int]) -> list[int]:
    """Return the index of the first row of each foreign dataset's sources."""
    owners = [tasks[number].partition("/")[0] for number in foreign]
    return [
        number
        for number, owner in zip(foreign, owners, strict=True)
        if owners.index(owner) == number - foreign[0]
    ]


def _compute_cell_size(tasks: int, columns: int) -> float:
    """Return the width of a cell in inches.

    It is CELL, or more if few panels with few tasks would make the figure too narrow for its title.
    """
    return max(CELL, (4.2 / columns - 0.75) / tasks)


def _create_canvas(
    tasks: int, grid: Sequence[Sequence[Panel]], prompted: int
) -> tuple[Figure, Any, Axes | None]:
    """Return an empty figure with space for cells, names, title and legend.

    Args:
        tasks: number of tasks.
        grid: rows of panels.
        prompted: number of prompted models, whose scores are below all panels.

    Returns:
        The figure; the axes of the panels; the axes of the prompted models, if there are any.
    """
    rows, columns = len(grid), len(grid[0])
    side = _compute_cell_size(tasks, columns) * tasks
    width, height = (side + 0.75) * columns + 1.4, (side + 0.7) * (rows + 0.5) + 2.0
    figure = Figure(figsize=(width, height), layout="constrained")
    ratios = [1.0] * rows + ([compute_margin_ratio(tasks, prompted)] if prompted else [])
    places = GridSpec(len(ratios), columns, figure, height_ratios=ratios)
    axes = [[figure.add_subplot(places[row, n]) for n in range(columns)] for row in range(rows)]
    below = figure.add_subplot(places[rows, :]) if prompted else None
    return figure, np.array(axes, dtype=object), below


def _draw_panel(
    axes: Axes,
    panel: Panel,
    names: list[str],
    unit: str,
    limit: float,
    scale: float,
) -> None:
    count = len(names)
    norm, colours = TwoSlopeNorm(0, -limit, limit), mpl.colormaps[DIVERGING]
    axes.set(xlim=(0, count), ylim=(count, 0))
    corners = _locate_cells(~panel.empty)
    looks = [_choose_cell_look(panel, (int(y), int(x)), unit, norm, colours) for x, y in corners]
    for corner, (text, _, ink, style) in zip(corners, looks, strict=True):
        cell_grid.write_cell_text(axes, corner, text, scale * _choose_font_size(text), ink, **style)
    cell_grid.fill_cells(axes, corners, [colour for _, colour, *_ in looks])
    cell_grid.hatch_cells_lightly(axes, _locate_cells(panel.left_race))
    cell_grid.draw_dots_over_cells(axes, _locate_cells(~panel.empty & panel.unlearned[None, :]))
    cell_grid.hatch_missing_cells(axes, _locate_cells(panel.empty & panel.partial))
    cell_grid.hatch_unplanned_cells(axes, _locate_cells(panel.empty & ~panel.partial))
    cell_grid.frame_significant_cells(axes, _locate_cells(panel.significant & ~panel.one_training))
    inks = {corner: ink for corner, (_, _, ink, _) in zip(corners, looks, strict=True)}
    alone = _locate_cells(panel.one_training & ~np.isnan(panel.delta))
    cell_grid.mark_single_seed_cells(axes, alone, [inks[corner] for corner in alone])
    far = _locate_cells(_mark_cells_beyond(panel, limit, unit))
    cell_grid.mark_clipped_cells(axes, far, [inks[corner] for corner in far])
    middle = np.arange(count) + 0.5
    axes.set_xticks(middle, names, rotation=90 if count > 4 else 0)
    axes.set_yticks(middle, names)
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)


def _locate_cells(flags: Flags) -> list[cell_grid.Corner]:
    """Return the plot coordinates of the flagged cells of a matrix."""
    return [(float(target), float(source)) for source, target in np.argwhere(flags)]


def _mark_cells_beyond(panel: Panel, limit: float, unit: str) -> Flags:
    """Return a mask of the unfaded cells whose number exceeds the colour scale."""
    beyond = np.asarray(np.abs(_get_values(panel, unit)) > limit, np.bool_)
    return beyond if unit == "%" else beyond & panel.certain


def _choose_cell_look(
    panel: Panel, cell: tuple[int, int], unit: str, norm: TwoSlopeNorm, colours: Colormap
) -> tuple[str, Any, str, cell_grid.FontStyle]:
    """Return the text, fill, text colour and font style of a non-empty cell."""
    mark = "*" if panel.partial[cell] else ""
    if cell[0] == cell[1]:
        return f"{panel.baseline[cell[0]]:.1f}{mark}", NEUTRAL, INK, {"weight": "bold"}
    value = float(_get_values(panel, unit)[cell])
    if np.isnan(value):
        return f"Δ{format_signed(float(panel.delta[cell]))}{mark}", _PALE, INK, {"style": "italic"}
    colour, text = colours(norm(value)), format_signed(value) + mark
    if unit == "%":
        return text, colour, choose_text_colour(colour), {}
    if panel.certain[cell]:
        return text, colour, choose_text_colour(colour), {"weight": "bold"}
    return text, fade_colour(colour), FADED_INK, {}


def fade_colour(colour: Any) -> Any:
    """Return a colour mixed with white, as RGB fractions."""
    return tuple(FADED * part + 1 - FADED for part in to_rgba(colour)[:3])


def _choose_font_size(text: str) -> float:
    return {6: 7.0, 7: 6.0}.get(len(text), 7.6 if len(text) < 6 else 5.2)


def _label_grid(axes: Any, grid: Sequence[Sequence[Panel]], side: float, points: float) -> None:
    """Label columns with algorithms, rows with models, and the axes with source and target."""
    stacked = len(grid[0]) == 1  # each row may have another algorithm
    for row, line in zip(axes if stacked else axes[:1], grid, strict=stacked):
        for place, panel in zip(row, line, strict=True):
            name = fold_name(get_algorithm_label(panel.algorithm), side, points)
            place.set_title(name, fontsize=points, pad=8)
    for row, line in zip(axes, grid, strict=True):
        row[0].set_ylabel(f"{fold_name(line[0].model, side, points)}\nsource", fontsize=points)
    for place in axes[-1]:
        place.set_xlabel("target", fontsize=points)


def _build_legend_entries(every: list[Panel], limit: float, unit: str) -> list[Artist]:
    """Return legend entries for the marks that the figure contains."""
    off = ~np.eye(len(every[0].baseline), dtype=bool)
    entries: list[Artist] = [Patch(facecolor=NEUTRAL, label="diagonal: baseline score")]
    if unit != "%" and any((~one.certain & off & ~np.isnan(one.delta)).any() for one in every):
        entries.append(Patch(facecolor="#dfe9f1", label=FADED_LABEL))
    entries += _build_frame_entries(every, off)
    entries += cell_grid.make_hatch_entries(
        missing=any((one.empty & one.partial).any() for one in every),
        not_planned=any((one.empty & ~one.partial).any() for one in every),
    )
    if any(one.left_race.any() for one in every):
        entries.append(cell_grid.make_light_hatch_entry(LEFT_LABEL))
    if any((~one.empty & one.unlearned[None, :]).any() for one in every):
        entries.append(cell_grid.make_dots_entry(UNLEARNED_LABEL))
    if any(_mark_cells_beyond(one, limit, unit).any() for one in every):
        entries.append(cell_grid.make_clipped_entry(limit, f" {unit}"))
    if any((np.isnan(_get_values(one, unit)) & ~np.isnan(one.delta)).any() for one in every):
        entries.append(
            Patch(facecolor=_PALE, edgecolor=INK, label="Δ: points (baseline 0, no percentage)")
        )
    if any(_has_partial_cells(one, off) for one in every):
        entries.append(Patch(facecolor="none", edgecolor="none", label="* some seeds missing"))
    return entries


def _build_frame_entries(every: list[Panel], off: Flags) -> list[Artist]:
    """Return legend entries for frames and rings, or an entry that explains their absence."""
    entries: list[Artist] = []
    if any((one.significant & ~one.one_training).any() for one in every):
        entries.append(Patch(**cell_grid.FRAME, label=cell_grid.SURVIVES_LABEL))
    if any(one.one_training.any() for one in every):
        entries.append(cell_grid.make_single_seed_entry())
    if entries:
        return entries
    tested = any(one.tested[off].any() for one in every)
    none = (
        "no cell is significant after false-discovery control (q ≤ 0.05)"
        if tested
        else "no cell was tested"
    )
    return [Patch(facecolor="none", edgecolor="none", label=none)]


def _has_partial_cells(panel: Panel, off: Flags) -> bool:
    cells = panel.partial & off & ~np.isnan(panel.delta)
    return bool(cells.any() or (panel.partial.diagonal() & ~np.isnan(panel.baseline)).any())
