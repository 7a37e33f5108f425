"""Figure 3 of the paper: heatmaps of relative improvement per dataset, model and algorithm.

Rows are sources and columns are targets. The diagonal shows the baseline's score, every other cell
the relative improvement over it. Sources from other datasets are rows below the target dataset's
own. Missing cells and cells outside the study have different hatchings and are never drawn as zero.
Cells of pairs that left a race keep their colour and number under a third hatching. Dots cover the
columns of targets whose baseline does not beat a simple reference. Cells that
survive false-discovery control are framed. Cells with one seed have a ring and never a frame,
because their test does not cover other runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tasktransfer.core.references import LEARNED
from tasktransfer.designs.transfer.figures.asked_margin import (
    compute_height,
    draw_margin,
    list_margin_rows,
    make_margin_entries,
)
from tasktransfer.designs.transfer.figures.one_dataset import select_single_source_cells
from tasktransfer.designs.transfer.pairs import is_foreign
from tasktransfer.designs.transfer.racing import LEFT_LABEL, NO_INTERVAL
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.tables.names import fit_short_names, get_algorithm_label
from tasktransfer.present.kit import matrix as cell_grid
from tasktransfer.present.kit.style import (
    DIVERGING,
    INK,
    LABEL_POINTS,
    NEUTRAL,
    add_legend_below,
    add_title,
    choose_text_colour,
    compute_growth,
    compute_improvement_limit,
    find_exceeded_ends,
    fit_panels,
    fold_name,
    format_signed,
)
from tasktransfer.results.frames import Frames

Floats = np.ndarray[Any, np.dtype[np.float64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

CELL = 0.42
"""Width and height of a cell, inches."""
_PALE = "#f7f7f7"
UNLEARNED_LABEL = "dotted: the baseline does not beat a simple reference"


@dataclass(frozen=True)
class Panel:
    """Cells of one model and algorithm, each a mean over seeds.

    ``improvement`` (%), ``delta``, ``partial``, ``significant``, ``one_training``, ``tested`` and
    ``left_race`` are square (sources, targets), with NaN or False in empty cells. ``baseline`` has
    one score per target. ``partial`` marks cells (on the diagonal: baselines) with fewer seeds than
    planned, including none; ``tested`` marks cells with a q, ``significant`` those with q ≤ 0.05,
    ``one_training`` those with one seed, ``left_race`` those that a race gave no more seeds.
    ``unlearned`` has one flag per target: its baselines do not beat a simple reference.
    """

    model: str
    algorithm: str
    improvement: Floats
    delta: Floats
    partial: Flags
    significant: Flags
    one_training: Flags
    tested: Flags
    left_race: Flags
    baseline: Floats
    unlearned: Flags

    @property
    def empty(self) -> Flags:
        """Mask of cells without a delta or, on the diagonal, without a baseline's score."""
        empty = np.isnan(self.delta)
        np.fill_diagonal(empty, np.isnan(self.baseline))
        return empty


def build_panels(frames: Frames, dataset: str) -> tuple[list[str], list[list[Panel]]]:
    """Return the tasks of a dataset in order, and its panels as a list of rows.

    There is one row per model, with one panel per algorithm. Models, algorithms and tasks come from
    finished and missing runs, so a model whose runs all failed still has its (hatched) panel.
    """
    runs, missing = frames["transfer_runs"], frames["missing_runs"]
    runs = runs[runs["dataset"] == dataset]
    cells = select_single_source_cells(frames, dataset)
    absent = missing[(missing["dataset"] == dataset) & (missing["n_sources"] <= 1)]
    sources = [*cells["source"], *absent.loc[absent["n_sources"] == 1, "source"]]
    tasks = frames.metadata.order_names("task", [*runs["target"], *absent["target"], *sources])
    models = frames.metadata.order_names("model", [*runs["model"], *absent["model"]])
    names = frames.metadata.order_names("algorithm", [*cells["algorithm"], *absent["algorithm"]])
    algorithms = [name for name in names if name != BASELINE]
    return tasks, [
        [
            _build_panel(
                *(model, algorithm, tasks, runs, cells, absent),
                unlearned=np.isin(tasks, list_unlearned(frames, dataset, model)),
            )
            for algorithm in algorithms
        ]
        for model in models
    ]


def list_unlearned(frames: Frames, dataset: str, model: str) -> list[str]:
    """Return the targets whose baselines do not beat a simple reference; none without references.

    See the column ``state`` of the table ``references``.
    """
    table = frames.get("references")
    if table is None or table.empty:
        return []
    rows = table[(table["dataset"] == dataset) & (table["model"] == model)]
    return list(dict.fromkeys(rows.loc[rows["state"] != LEARNED, "target"]))


def _build_panel(
    model: str,
    algorithm: str,
    tasks: list[str],
    runs: pd.DataFrame,
    cells: pd.DataFrame,
    absent: pd.DataFrame,
    unlearned: Flags,
) -> Panel:
    shown = cells[(cells["model"] == model) & (cells["algorithm"] == algorithm)]
    gone = absent[(absent["model"] == model) & (absent["algorithm"] == algorithm)]
    own = runs[(runs["model"] == model) & (runs["algorithm"] == BASELINE)]
    lost = absent[(absent["model"] == model) & (absent["algorithm"] == BASELINE)]
    partial = _fill_matrix(gone, np.ones(len(gone)), tasks) > 0
    np.fill_diagonal(partial, np.isin(tasks, lost["target"].to_numpy()))
    left = _fill_matrix(shown, shown["no_interval"] == NO_INTERVAL, tasks) > 0
    return Panel(
        model=model,
        algorithm=algorithm,
        improvement=_fill_matrix(shown, shown["improvement"], tasks),
        delta=_fill_matrix(shown, shown["delta"], tasks),
        partial=partial,
        significant=_fill_matrix(shown, shown["significant"], tasks) > 0,
        one_training=(_fill_matrix(shown, shown["n_seeds"], tasks) == 1) & ~left,
        left_race=left,
        tested=~np.isnan(_fill_matrix(shown, shown["q"], tasks)),
        baseline=own.groupby("target")["score"].mean().reindex(tasks).to_numpy(np.float64),
        unlearned=unlearned,
    )


def _fill_matrix(cells: pd.DataFrame, values: Any, tasks: list[str]) -> Floats:
    """Return a matrix (sources, targets) of ``values``, one number per cell; NaN without a cell."""
    position = {task: index for index, task in enumerate(tasks)}
    square = np.full((len(tasks), len(tasks)), np.nan)
    rows = [position[name] for name in cells["source"]]
    columns = [position[name] for name in cells["target"]]
    square[rows, columns] = np.asarray(values, np.float64)
    return square


def plot_heatmap(
    frames: Frames, dataset: str, compared_with: str = "the baseline"
) -> Figure | None:
    """Draw the figure of one dataset; None if no single-source transfer run is planned in it.

    A cell's improvement is 100 · mean delta / mean baseline over the seeds that have both. If that
    baseline is 0, the cell shows points. ``compared_with`` names the cells' baseline in the title.
    """
    tasks, grid = build_panels(frames, dataset)
    if not grid or not grid[0]:
        return None
    improvements = np.concatenate([one.improvement.ravel() for row in grid for one in row])
    limit = compute_improvement_limit(improvements)
    short = fit_short_names(tasks, frames.metadata.shorts)
    names = [short[task] for task in tasks]
    foreign = [number for number, task in enumerate(tasks) if is_foreign(task)]
    targets = len(tasks) - len(foreign)  # sources of other datasets are not targets
    figure = _create_canvas(len(tasks), len(grid), len(grid[0]))
    axes = figure.subplots(len(grid), len(grid[0]), squeeze=False)
    scale = min(1.5, _compute_cell_size(len(tasks), len(grid[0])) / CELL)
    margin = list_margin_rows(frames.get("prompted"), dataset, tasks[:targets])
    for row, line in zip(axes, grid, strict=True):
        for place, panel in zip(row, line, strict=True):
            _draw(place, panel, names, limit, scale)
            draw_margin(place, names, margin, scale)
            place.set_xlim(0, targets)
            for number in _list_first_rows(tasks, foreign):
                place.axhline(number, color=INK, linewidth=1.2, clip_on=False)
    side = _compute_cell_size(len(tasks), len(grid[0])) * len(tasks)
    _label_grid(axes, grid, side + 0.4, LABEL_POINTS * compute_growth(figure) + 1)
    bar = figure.colorbar(
        ScalarMappable(TwoSlopeNorm(0, -limit, limit), mpl.colormaps[DIVERGING]),
        ax=axes,
        extend=find_exceeded_ends(improvements, limit),
        fraction=0.05,
        shrink=0.9 if len(grid) == 1 else 0.6,
        pad=0.02,
        aspect=25,
    )
    bar.set_label("Improvement, %", fontsize=LABEL_POINTS * compute_growth(figure) + 1)
    entries = _build_legend_entries([panel for row in grid for panel in row], limit)
    add_legend_below(figure, [*entries, *make_margin_entries(margin)])
    runs = frames["transfer_runs"]  # baselines may have more seeds
    transfers = (runs["dataset"] == dataset) & (runs["n_sources"] > 0)
    seeds = int(runs.loc[transfers, "seed"].nunique())
    what = f"{dataset}: improvement over {compared_with} by transfer, %"
    add_title(figure, what, seeds, frames.metadata)
    width, high = (
        side * cells / len(tasks) for cells in (targets, compute_height(len(tasks), margin))
    )
    fit_panels(figure, axes, width, high)
    return figure


def _list_first_rows(tasks: Sequence[str], foreign: Sequence[int]) -> list[int]:
    """Return the first row of each other dataset's sources."""
    homes = [tasks[number].partition("/")[0] for number in foreign]
    return [
        n for n, home in zip(foreign, homes, strict=True) if homes.index(home) == n - foreign[0]
    ]


def _compute_cell_size(tasks: int, columns: int) -> float:
    """Return the width of a cell in inches.

    It is CELL, or more if few panels with few tasks would make the figure too narrow for its title.
    """
    return max(CELL, (4.2 / columns - 0.75) / tasks)


def _create_canvas(tasks: int, rows: int, columns: int) -> Figure:
    """Return a figure with room for the cells, names, title and legend."""
    side = _compute_cell_size(tasks, columns) * tasks
    width, height = (side + 0.75) * columns + 1.4, (side + 0.7) * rows + 2.0
    return Figure(figsize=(width, height), layout="constrained")


def _draw(
    axes: Axes,
    panel: Panel,
    names: list[str],
    limit: float,
    scale: float,
) -> None:
    count = len(names)
    norm, colours = TwoSlopeNorm(0, -limit, limit), mpl.colormaps[DIVERGING]
    axes.set(xlim=(0, count), ylim=(count, 0))
    corners = _list_corners(~panel.empty)
    looks = [_choose_cell_look(panel, (int(y), int(x)), norm, colours) for x, y in corners]
    for corner, (text, _, ink, style) in zip(corners, looks, strict=True):
        cell_grid.write(axes, corner, text, scale * _choose_font_size(text), ink, **style)
    cell_grid.fill(axes, corners, [colour for _, colour, *_ in looks])
    cell_grid.hatch_lightly(axes, _list_corners(panel.left_race))
    cell_grid.draw_dots(axes, _list_corners(~panel.empty & panel.unlearned[None, :]))
    cell_grid.hatch_missing(axes, _list_corners(panel.empty & panel.partial))
    cell_grid.hatch_not_planned(axes, _list_corners(panel.empty & ~panel.partial))
    cell_grid.draw_frame(axes, _list_corners(panel.significant & ~panel.one_training))
    inks = {corner: ink for corner, (_, _, ink, _) in zip(corners, looks, strict=True)}
    alone = _list_corners(panel.one_training & ~np.isnan(panel.delta))
    cell_grid.mark_one_training(axes, alone, [inks[corner] for corner in alone])
    far = _list_corners(_mark_cells_beyond(panel, limit))
    cell_grid.mark_beyond(axes, far, [inks[corner] for corner in far])
    middle = np.arange(count) + 0.5
    axes.set_xticks(middle, names, rotation=90 if count > 4 else 0)
    axes.set_yticks(middle, names)
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)


def _list_corners(flags: Flags) -> list[cell_grid.Corner]:
    """Return the corners of the flagged cells of a square."""
    return [(float(target), float(source)) for source, target in np.argwhere(flags)]


def _mark_cells_beyond(panel: Panel, limit: float) -> Flags:
    """Return a mask of cells whose number lies beyond the colour scale."""
    return np.asarray(np.abs(panel.improvement) > limit, np.bool_)


def _choose_cell_look(
    panel: Panel, cell: tuple[int, int], norm: TwoSlopeNorm, colours: Colormap
) -> tuple[str, Any, str, dict[str, Any]]:
    """Return text, fill, text colour and font style of a cell that is not empty."""
    mark = "*" if panel.partial[cell] else ""
    if cell[0] == cell[1]:
        return f"{panel.baseline[cell[0]]:.1f}{mark}", NEUTRAL, INK, {"weight": "bold"}
    improvement = float(panel.improvement[cell])
    if np.isnan(improvement):
        return f"Δ{format_signed(float(panel.delta[cell]))}{mark}", _PALE, INK, {"style": "italic"}
    colour = colours(norm(improvement))
    return format_signed(improvement) + mark, colour, choose_text_colour(colour), {}


def _choose_font_size(text: str) -> float:
    return {6: 7.0, 7: 6.0}.get(len(text), 7.6 if len(text) < 6 else 5.2)


def _label_grid(axes: Any, grid: Sequence[Sequence[Panel]], side: float, points: float) -> None:
    """Write algorithms above the columns, models left of the rows, and axis names at the rim."""
    for place, panel in zip(axes[0], grid[0], strict=True):
        name = fold_name(get_algorithm_label(panel.algorithm), side, points)
        place.set_title(name, fontsize=points, pad=8)
    for row, line in zip(axes, grid, strict=True):
        row[0].set_ylabel(f"{fold_name(line[0].model, side, points)}\nsource", fontsize=points)
    for place in axes[-1]:
        place.set_xlabel("target", fontsize=points)


def _build_legend_entries(every: list[Panel], limit: float) -> list[Artist]:
    """Return legend entries for the marks that the figure contains."""
    off = ~np.eye(len(every[0].baseline), dtype=bool)
    entries: list[Artist] = [Patch(facecolor=NEUTRAL, label="diagonal: baseline score")]
    entries += _build_frame_entries(every, off)
    entries += cell_grid.make_empty_entries(
        missing=any((one.empty & one.partial).any() for one in every),
        not_planned=any((one.empty & ~one.partial).any() for one in every),
    )
    if any(one.left_race.any() for one in every):
        entries.append(cell_grid.make_lightly_hatched_entry(LEFT_LABEL))
    if any((~one.empty & one.unlearned[None, :]).any() for one in every):
        entries.append(cell_grid.make_dotted_entry(UNLEARNED_LABEL))
    if any(_mark_cells_beyond(one, limit).any() for one in every):
        entries.append(cell_grid.make_beyond_entry(limit, " %"))
    if any((np.isnan(one.improvement) & ~np.isnan(one.delta)).any() for one in every):
        entries.append(
            Patch(facecolor=_PALE, edgecolor=INK, label="Δ: points (baseline 0, no percentage)")
        )
    if any(_has_partial_cells(one, off) for one in every):
        entries.append(Patch(facecolor="none", edgecolor="none", label="* some seeds missing"))
    return entries


def _build_frame_entries(every: list[Panel], off: Flags) -> list[Artist]:
    """Return legend entries for frames and rings, or for the reason that there are none."""
    entries: list[Artist] = []
    if any((one.significant & ~one.one_training).any() for one in every):
        entries.append(Patch(**cell_grid.FRAME, label=cell_grid.SURVIVES_LABEL))
    if any(one.one_training.any() for one in every):
        entries.append(cell_grid.make_one_training_entry())
    if entries:
        return entries
    tested = any(one.tested[off].any() for one in every)
    none = "no cell survives false-discovery control (q ≤ 0.05)" if tested else "no cell was tested"
    return [Patch(facecolor="none", edgecolor="none", label=none)]


def _has_partial_cells(panel: Panel, off: Flags) -> bool:
    cells = panel.partial & off & ~np.isnan(panel.delta)
    return bool(cells.any() or (panel.partial.diagonal() & ~np.isnan(panel.baseline)).any())
