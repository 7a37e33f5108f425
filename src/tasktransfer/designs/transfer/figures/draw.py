"""Drawing functions of a dataset's figures, and the selection of the results that they read."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from tasktransfer.designs.transfer.figures.curves import plot_training_curves
from tasktransfer.designs.transfer.figures.heatmap import (
    plot_effects,
    plot_heatmap,
    plot_shuffled_source,
)
from tasktransfer.designs.transfer.figures.multi_source_bars import plot_multi_source_bars
from tasktransfer.designs.transfer.figures.one_dataset import select_dataset
from tasktransfer.designs.transfer.figures.pair_means import (
    plot_aggregate_transfer,
    plot_transfer_graph,
)
from tasktransfer.designs.transfer.figures.task_properties import (
    plot_lengths,
    plot_sample_count,
    plot_sample_ratio,
    plot_source_type,
)
from tasktransfer.results.frames import Frames

DRAW: dict[str, Callable[[Frames, str], Figure | None]] = {
    "heatmap": plot_heatmap,
    "effects": plot_effects,
    "transfer_graph": plot_transfer_graph,
    "aggregate_transfer": plot_aggregate_transfer,
    "multi_source": plot_multi_source_bars,
    "source_type": plot_source_type,
    "sample_ratio": plot_sample_ratio,
    "sample_count": plot_sample_count,
    "shuffled_source": plot_shuffled_source,
    "training_curves": plot_training_curves,
    "lengths": plot_lengths,
}
"""Kind of figure → function that draws it for a dataset."""


def plot_figure(kind: str, dataset: str, frames: Frames) -> Figure | None:
    """Draw a figure for a dataset, or return None if there is nothing to show."""
    return DRAW[kind](frames, dataset)


def select_dataset_frames(dataset: str, frames: Frames) -> Frames:
    """Return the frames with the rows of one dataset, for its figures."""
    return select_dataset(frames, dataset)
