"""Drawing functions of a dataset's figures, and the selection of the results that they read."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from tasktransfer.designs.transfer.collect.results import Results, in_view, results_of
from tasktransfer.designs.transfer.figures.aggregate_transfer import aggregate_transfer
from tasktransfer.designs.transfer.figures.heatmap import heatmap
from tasktransfer.designs.transfer.figures.lengths import lengths
from tasktransfer.designs.transfer.figures.multi_source_bars import multi_source_bars
from tasktransfer.designs.transfer.figures.one_dataset import of_dataset
from tasktransfer.designs.transfer.figures.sample_count import sample_count
from tasktransfer.designs.transfer.figures.sample_ratio import sample_ratio
from tasktransfer.designs.transfer.figures.shuffled_source import shuffled_source
from tasktransfer.designs.transfer.figures.source_type import source_type
from tasktransfer.designs.transfer.figures.transfer_graph import transfer_graph
from tasktransfer.present.view import View

DRAW: dict[str, Callable[[Results, str], Figure | None]] = {
    "heatmap": heatmap,
    "transfer_graph": transfer_graph,
    "aggregate_transfer": aggregate_transfer,
    "multi_source": multi_source_bars,
    "source_type": source_type,
    "sample_ratio": sample_ratio,
    "sample_count": sample_count,
    "shuffled_source": shuffled_source,
    "lengths": lengths,
}
"""Drawing function of a dataset's figure, by kind of figure."""


def drawn(kind: str, dataset: str, view: View) -> Figure | None:
    """Draw a figure of a dataset; None if it has nothing to show."""
    return DRAW[kind](results_of(view), dataset)


def part(dataset: str, view: View) -> View:
    """Return the part of a view that belongs to one dataset."""
    return in_view(view, of_dataset(results_of(view), dataset, tuple(view)))
