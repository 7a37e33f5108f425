"""Cells of a heatmap: one panel per model and algorithm, with a number per source and target.

Below the panels is a table with the scores of prompted models on each target. They do not depend on
the panels' models and algorithms, so they appear once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from tasktransfer.designs.transfer.choices import NO_INTERVAL
from tasktransfer.designs.transfer.figures.one_dataset import select_single_source_cells
from tasktransfer.designs.transfer.report.learned import list_unlearned_targets
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.present.kit import matrix as cell_grid
from tasktransfer.present.kit.paper import is_paper_style
from tasktransfer.present.kit.style import INK, LABEL_POINTS
from tasktransfer.results.frames import Frames

Floats = np.ndarray[Any, np.dtype[np.float64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Panel:
    """Cells of one model and algorithm, each a mean over seeds.

    ``improvement`` (%), ``delta``, ``partial``, ``significant``, ``certain``, ``one_training``,
    ``tested`` and ``left_race`` are square (sources, targets), with NaN or False in empty cells.
    ``baseline`` has one score per target. ``partial`` marks cells (on the diagonal: baselines) with
    fewer seeds than planned, including none; ``tested`` marks cells with a q, ``significant`` those
    with q ≤ 0.05, ``certain`` those with several seeds whose 95 % interval excludes 0,
    ``one_training`` those with one seed, ``left_race`` those that a race gave no more seeds.
    ``unlearned`` has one flag per target: its baselines have not learned.
    """

    model: str
    algorithm: str
    improvement: Floats
    delta: Floats
    partial: Flags
    significant: Flags
    certain: Flags
    one_training: Flags
    tested: Flags
    left_race: Flags
    baseline: Floats
    unlearned: Flags

    @property
    def empty(self) -> Flags:
        """Mask of cells that lack a delta or, on the diagonal, a baseline score."""
        empty = np.isnan(self.delta)
        np.fill_diagonal(empty, np.isnan(self.baseline))
        return empty


def build_panels(frames: Frames, dataset: str) -> tuple[list[str], list[list[Panel]]]:
    """Return the tasks of a dataset in order, and its panels by row.

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
                unlearned=np.isin(tasks, list_unlearned_targets(frames, dataset, model)),
            )
            for algorithm in algorithms
        ]
        for model in models
    ]


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
        certain=_fill_matrix(shown, _excludes_zero(shown), tasks) > 0,
        one_training=(_fill_matrix(shown, shown["n_seeds"], tasks) == 1) & ~left,
        left_race=left,
        tested=~np.isnan(_fill_matrix(shown, shown["q"], tasks)),
        baseline=own.groupby("target")["score"].mean().reindex(tasks).to_numpy(np.float64),
        unlearned=unlearned,
    )


def _excludes_zero(cells: pd.DataFrame) -> pd.Series:
    return (cells["n_seeds"] > 1) & ((cells["low"] > 0) | (cells["high"] < 0))


def _fill_matrix(cells: pd.DataFrame, values: Any, tasks: list[str]) -> Floats:
    """Return a matrix (sources, targets) with one value per cell and NaN elsewhere."""
    position = {task: index for index, task in enumerate(tasks)}
    square = np.full((len(tasks), len(tasks)), np.nan)
    rows = [position[name] for name in cells["source"]]
    columns = [position[name] for name in cells["target"]]
    square[rows, columns] = np.asarray(values, np.float64)
    return square


# --- scores of prompted models ---


PROMPTED_TITLE = "Score of prompted models (not fine-tuned)"
FILL = "#efe9dc"

MarginRow = tuple[str, list[float]]
"""Prompted model with its number of shots, and its score on each target; NaN without a score."""


def list_margin_rows(
    prompted: pd.DataFrame | None, dataset: str, tasks: Sequence[str]
) -> list[MarginRow]:
    """Return the table rows below a heatmap, one per prompted model and number of shots."""
    if prompted is None:
        return []
    own = prompted[(prompted["dataset"] == dataset) & prompted["target"].isin(list(tasks))]
    rows: list[MarginRow] = []
    for (model, shots), group in own.groupby(["model", "shots"], sort=False):
        scores = group.set_index("target")["score"].reindex(list(tasks))
        seeds, planned = int(group["n_seeds"].min()), int(group["n_seeds_planned"].max())
        few = f" ({seeds} of {planned} seeds)" if seeds < planned else ""
        rows.append((f"{model}, {shots} shots{few}", scores.tolist()))
    return rows


def compute_margin_ratio(tasks: int, rows: int) -> float:
    """Return the height of the margin relative to a matrix with ``tasks`` rows."""
    return max(0.9 * rows / tasks, 0.12)


def draw_margin(
    axes: Axes, names: Sequence[str], margin: Sequence[MarginRow], scale: float
) -> None:
    """Draw a table of scores below all panels, prompted models × targets."""
    for top, (_, scores) in enumerate(margin):
        there = [(float(x), float(top)) for x, score in enumerate(scores) if not np.isnan(score)]
        cell_grid.fill_cells(axes, there, [FILL] * len(there))
        gone = [(float(x), float(top)) for x, score in enumerate(scores) if np.isnan(score)]
        cell_grid.hatch_missing_cells(axes, gone)
        for x, y in there:
            cell_grid.write_cell_text(axes, (x, y), f"{scores[int(x)]:.1f}", scale * 7.6, INK)
    axes.set(xlim=(0, len(names)), ylim=(len(margin), 0))
    turned = 90 if is_paper_style() and len(names) > 4 else 0
    axes.set_xticks([x + 0.5 for x in range(len(names))], names, rotation=turned)
    axes.set_yticks([y + 0.5 for y in range(len(margin))], [name for name, _ in margin])
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    axes.set_title(PROMPTED_TITLE, fontsize=LABEL_POINTS, loc="left")
