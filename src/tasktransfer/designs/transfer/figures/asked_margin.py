"""Rows below the heatmap: scores of prompted models on each target.

Each score is in the column whose diagonal cell shows the target's baseline score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from tasktransfer.present.kit import matrix as cell_grid
from tasktransfer.present.kit.style import INK

GAP = 0.4
"""Gap between matrix and margin, cells."""
FILL = "#efe9dc"

MarginRow = tuple[str, list[float]]
"""Prompted model with its number of shots, and its score on each target; NaN without a score."""


def list_margin_rows(
    prompted: pd.DataFrame | None, dataset: str, tasks: Sequence[str]
) -> list[MarginRow]:
    """Return the rows below a dataset's matrix, in the order of the table."""
    if prompted is None:
        return []
    own = prompted[(prompted["dataset"] == dataset) & prompted["target"].isin(list(tasks))]
    rows: list[MarginRow] = []
    for (model, shots), some in own.groupby(["model", "shots"], sort=False):
        scores = some.set_index("target")["score"].reindex(list(tasks))
        seeds, planned = int(some["n_seeds"].min()), int(some["n_seeds_planned"].max())
        few = f" ({seeds} of {planned} seeds)" if seeds < planned else ""
        rows.append((f"{model}, {shots} shots{few}", scores.tolist()))
    return rows


def compute_height(count: int, margin: Sequence[MarginRow]) -> float:
    """Return the height of a matrix with ``count`` tasks and its margin, in cells."""
    return count + (GAP + len(margin) if margin else 0)


def draw_margin(
    axes: Axes, names: Sequence[str], margin: Sequence[MarginRow], scale: float
) -> None:
    """Draw the margin below a matrix with rows ``names``, and label all rows."""
    if not margin:
        return
    count = len(names)
    axes.set_ylim(compute_height(count, margin), 0)
    tops = [count + GAP + index for index in range(len(margin))]
    for top, (_, scores) in zip(tops, margin, strict=True):
        numbers = list(enumerate(scores))
        there = [(float(x), top) for x, score in numbers if not np.isnan(score)]
        cell_grid.fill(axes, there, [FILL] * len(there))
        cell_grid.hatch_missing(axes, [(float(x), top) for x, score in numbers if np.isnan(score)])
        for x, y in there:
            cell_grid.write(axes, (x, y), f"{scores[int(x)]:.1f}", scale * 7.6, INK)
    middles = [*(index + 0.5 for index in range(count)), *(top + 0.5 for top in tops)]
    axes.set_yticks(middles, [*names, *(name for name, _ in margin)])


def make_margin_entries(margin: Sequence[MarginRow]) -> list[Artist]:
    """Return the legend entry of the margin; none without a margin."""
    if not margin:
        return []
    return [Patch(facecolor=FILL, label="below: score of a prompted model (not fine-tuned)")]
