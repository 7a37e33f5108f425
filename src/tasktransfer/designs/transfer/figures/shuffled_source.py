"""Heatmap of each cell's improvement over training on its source with permuted answers."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.figure import Figure

from tasktransfer.designs.transfer.collect.results import Results
from tasktransfer.designs.transfer.controls import SHUFFLED_SOURCE
from tasktransfer.designs.transfer.figures.heatmap import plot_heatmap


def plot_shuffled_source(results: Results, dataset: str) -> Figure | None:
    """Draw the heatmap of one dataset with the control ``shuffled_source`` as the baseline.

    A cell shows its delta minus the delta of its shuffled source. None if the control has no run.
    """
    statistics = results.statistics
    over = statistics.control_cells
    cells = over[over["control"] == SHUFFLED_SOURCE].drop(columns="control")
    if cells.empty:
        return None
    compared = replace(results, statistics=replace(statistics, cells=cells))
    return plot_heatmap(compared, dataset, "the shuffled source")
