"""The second heatmap: what is left of each cell when its source's answers are permuted."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.figure import Figure

from tasktransfer.designs.transfer.collect.results import Results
from tasktransfer.designs.transfer.controls import SHUFFLED_SOURCE
from tasktransfer.designs.transfer.figures.heatmap import heatmap
from tasktransfer.designs.transfer.statistics.over_control import over_control


def shuffled_source(results: Results, dataset: str) -> Figure | None:
    """Draw the heatmap of one dataset with the control ``shuffled_source`` in the baseline's place:
    a cell's delta less that of its shuffled source. None where that control left no run."""
    statistics = results.statistics
    cells = over_control(SHUFFLED_SOURCE, statistics.controls, statistics.cells)
    if cells.empty:
        return None
    compared = replace(results, statistics=replace(statistics, cells=cells))
    return heatmap(compared, dataset, "the shuffled source")
