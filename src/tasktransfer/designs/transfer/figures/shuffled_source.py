"""Heatmap of each cell's improvement over training on its source with permuted answers."""

from __future__ import annotations

from matplotlib.figure import Figure

from tasktransfer.designs.transfer.controls import SHUFFLED_SOURCE
from tasktransfer.designs.transfer.figures.heatmap import plot_heatmap
from tasktransfer.results.frames import Frames


def plot_shuffled_source(frames: Frames, dataset: str) -> Figure | None:
    """Draw a dataset's heatmap of deltas minus the deltas of shuffled sources.

    A cell shows its delta minus the delta of its shuffled source. None if the control has no run.
    """
    over = frames["control_cells"]
    cells = over[over["control"] == SHUFFLED_SOURCE].drop(columns="control")
    if cells.empty:
        return None
    return plot_heatmap(frames.replace({"cells": cells}), dataset, "the shuffled source")
