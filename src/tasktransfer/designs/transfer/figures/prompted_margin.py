"""Table below the heatmap: scores of prompted models on each target.

They do not depend on the panels' models and algorithms, so they appear once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from tasktransfer.present.kit import matrix as cell_grid
from tasktransfer.present.kit.paper import is_paper_style
from tasktransfer.present.kit.style import INK, LABEL_POINTS

TITLE = "Score of prompted models (not fine-tuned)"
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
    axes.set_title(TITLE, fontsize=LABEL_POINTS, loc="left")
