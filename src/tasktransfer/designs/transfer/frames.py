"""A study's results as pandas data frames, without training and without importing torch.

Entry point for notebooks:

    from tasktransfer.designs.transfer.frames import read_results

    results = read_results("results/demo/tables")
    results.tables.deltas         # every transfer run with its baseline
    results.statistics.cells      # every cell of the heatmaps: delta, interval, p, q
    results.metadata              # study, synthetic or not, names and their order

Every step is a function that takes and returns frames. docs/columns.md lists their columns
(``collect.columns``), docs/analysis.md defines each number:

- records → tables: ``collect`` (a study), ``tables_of`` (the result of ``gather``), ``deltas_of``
  (runs → deltas).
- tables → averages: ``aggregate`` (Table 2), ``multi_source_gain`` (Table 3).
- tables → statistics: ``statistics.cells.cells``, ``statistics.summary.summary``,
  ``statistics.variance.variance``, ``statistics.asymmetry.asymmetry``,
  ``statistics.agreement.agreement``, ``statistics.overlap.overlap``,
  ``statistics.overlap.overlap_effect``; all of them: ``statistics.study_statistics.of_tables``.
- results → figures: ``figures.draw.DRAW``, functions of (results, dataset) that return a matplotlib
  figure, or None if there is nothing to show.
- results → text: ``tables.paper_tables.table2``, Tables 1, 2, 3 and 6 with the published values.
- a cell → records: ``designs.explain.explain``.

Import functions with the name of their module from there
(``from tasktransfer.designs.transfer.statistics.cells import cells``), and the others from here.
Figures need matplotlib and statistics need scipy, which are imported only with their modules.
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
from tasktransfer.results.metadata import Metadata

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
