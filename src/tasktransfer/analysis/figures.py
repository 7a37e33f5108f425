"""Tables on disk to figures and printed tables: what the rule ``figures`` runs."""

from __future__ import annotations

from pathlib import Path

from tasktransfer.analysis.aggregates import aggregate
from tasktransfer.analysis.heatmap import heatmap
from tasktransfer.analysis.multi_source_bars import multi_source_bars
from tasktransfer.analysis.names import in_order
from tasktransfer.analysis.style import save
from tasktransfer.analysis.table2 import write_table2
from tasktransfer.analysis.tables import read_tables

_FIGURES = {"heatmap": heatmap, "multi_source": multi_source_bars}


def draw(tables_folder: Path, out: Path) -> list[Path]:
    """Draw everything that the collected tables hold.

    Per dataset ``heatmap_<dataset>`` and, when there are runs of several sources,
    ``multi_source_<dataset>``, each as PNG and PDF; ``table2`` as CSV, Markdown and LaTeX.

    Returns:
        The files written.

    Raises:
        RecordError: the tables are absent or damaged.
    """
    tables, metadata = read_tables(tables_folder)
    written = write_table2(out, aggregate(tables.deltas, tables.missing, metadata.order), metadata)
    found = [*tables.runs["dataset"], *tables.missing["dataset"]]
    for dataset in in_order(found, metadata.order.get("dataset", ())):
        for name, plot in _FIGURES.items():
            figure = plot(tables, metadata, dataset)
            if figure is not None:
                written += save(figure, out, f"{name}_{dataset}")
    return written
