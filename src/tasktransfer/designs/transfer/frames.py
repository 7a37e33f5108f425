"""A study's results as pandas data frames. Never trains, never imports torch.

What notebooks start from:

    from tasktransfer.designs.transfer.frames import read_results

    results = read_results("results/demo/tables")
    results.tables.deltas         # every transfer run beside its baseline
    results.statistics.cells      # every cell of the heatmaps: delta, interval, p, q
    results.metadata              # study, synthetic or not, names and their order

Every step is a function that takes and returns frames; docs/columns.md lists their columns
(``collect.columns``), docs/analysis.md says how each number is defined:

- records → tables: ``collect`` (a study), ``tables_of`` (what ``gather`` gave), ``deltas_of``
  (runs → deltas).
- tables → averages: ``aggregate`` (Table 2), ``multi_source_gain`` (Table 3).
- tables → statistics: ``statistics.cells.cells``, ``statistics.summary.summary``,
  ``statistics.variance.variance``, ``statistics.asymmetry.asymmetry``,
  ``statistics.agreement.agreement``, ``statistics.overlap.overlap``,
  ``statistics.overlap.overlap_effect``; all of them: ``statistics.study_statistics.of_tables``.
- results → figures: ``figures.draw.DRAW``, functions of (results, dataset) that give a matplotlib
  figure, or None where there is nothing to show.
- results → text: ``tables.paper_tables.table2``, Tables 1, 2, 3 and 6 beside the published.
- a cell → records: ``explain.explain``.

Functions that are named like their module are imported from there
(``from tasktransfer.designs.transfer.statistics.cells import cells``); the others below from here.
Figures need matplotlib and statistics scipy, which are imported with their modules only.
"""

from tasktransfer.designs.transfer.collect.collect import collect, deltas_of, tables_of
from tasktransfer.designs.transfer.collect.results import (
    Results,
    Statistics,
    Tables,
    read_results,
    read_tables,
)
from tasktransfer.designs.transfer.tables.aggregates import aggregate
from tasktransfer.designs.transfer.tables.multi_source import multi_source_gain
from tasktransfer.tables.metadata import Metadata

__all__ = [
    "Metadata",
    "Results",
    "Statistics",
    "Tables",
    "aggregate",
    "collect",
    "deltas_of",
    "multi_source_gain",
    "read_results",
    "read_tables",
    "tables_of",
]
