"""A study's results as pandas data frames. Never trains, never imports torch.

What notebooks start from::

    from tasktransfer.analysis import read_results

    results = read_results("results/demo/tables")
    results.tables.deltas         # every transfer run beside its baseline
    results.statistics.cells      # every cell of the heatmaps: delta, interval, p, q
    results.metadata              # study, synthetic or not, names and their order

Every step is a function that takes and returns frames; docs/columns.md lists their columns
(``columns.TABLES``, ``columns.STATISTICS``), docs/analysis.md says how each number is defined:

==================  ===============================================================================
records → tables    ``tables.collect`` (a folder), ``collect_runs`` (any record files),
                    ``deltas_of`` (runs → deltas)
tables → averages   ``aggregate`` (Table 2), ``multi_source_gain`` (Table 3)
tables →            ``cells.cells``, ``summary.summary``, ``variance.variance``,
statistics          ``asymmetry.asymmetry``, ``agreement.agreement``, ``overlap.overlap``,
                    ``overlap.overlap_effect``; all of them: ``study_statistics.of_tables``
results → figures   ``figures.FIGURES``: functions of (results, dataset) that give a matplotlib
                    figure, or None where there is nothing to show
results → text      ``paper_tables.printed_tables``: Tables 1, 2, 3 and 6 beside the published
a cell → records    ``explain.explain``
==================  ===============================================================================

Functions that are named like their module are imported from there
(``from tasktransfer.analysis.cells import cells``); the others below from here. Figures need
matplotlib and statistics scipy, which are imported with their modules only.
"""

from tasktransfer.analysis.aggregates import aggregate
from tasktransfer.analysis.collect import Tables, collect_runs, deltas_of
from tasktransfer.analysis.multi_source import multi_source_gain
from tasktransfer.analysis.results import Results, Statistics, read_results
from tasktransfer.analysis.tables import Metadata, read_tables

__all__ = [
    "Metadata",
    "Results",
    "Statistics",
    "Tables",
    "aggregate",
    "collect_runs",
    "deltas_of",
    "multi_source_gain",
    "read_results",
    "read_tables",
]
