"""What the study's files are called: tables, statistics, printed tables, figures.

The one list of these names. The rules of the workflow and what writes the files both read it, so it
imports nothing: Snakemake reads it at every start.
"""

from __future__ import annotations

from collections.abc import Collection

TABLES_VERSION = 4
"""Raise this when the columns of the collected tables change: they are collected again then. It is
not with the columns because the Snakefile must not import pandas."""

TABLES = (
    "runs",
    "scores",
    "deltas",
    "sizes",
    "missing",
    "problems",
    "control_runs",
    "control_missing",
)
"""What ``collect`` writes of the records, as Parquet; columns in ``collect.columns``."""

COLLECTED = (*TABLES, "resources")
"""The same, with what is the same for every design (``tables.collected``)."""

STATISTICS = (
    "cells",
    "summary",
    "variance",
    "asymmetry",
    "agreement",
    "overlap",
    "overlap_effect",
    "control_cells",
    "controls",
    "top1",
    "collapsed",
)
"""What ``statistics`` makes of the tables, as Parquet; columns in ``collect.columns``."""

PROMPTED = ("prompted",)
"""What ``statistics`` makes besides where the study asks models that it does not train."""

RACE = "race"
"""The same of a study whose pairs race (``statistics.race``)."""

REGRET = "regret"
"""The figure of a study that names selectors."""

SELECTION = ("selectors", "regret")
"""What ``statistics`` makes besides where the study names selectors."""

DATA_TABLES = ("table1", "lengths", "overlap_data")
"""What ``data stats`` counts in the dialogues, each in all of ``DATA_TABLE_ENDINGS``."""
DATA_TABLE_ENDINGS = ("csv", "parquet")
REFERENCE = "tables/reference.parquet"
"""What ``data reference`` makes of the dialogues, relative to the results folder."""

PAPER_TABLES = {
    "table1": "Table 1",
    "table2": "Table 2",
    "table3": "Table 3",
    "table6": "Table 6",
}
"""The paper's tables, made of this study, with their titles."""
PUBLISHED_CHECK = "published_check"
PRINTED = {**PAPER_TABLES, PUBLISHED_CHECK: "Published Table 2"}
"""Every printed table by its files' name, with its title, each in all of ``PRINTED_ENDINGS``."""
PRINTED_ENDINGS = ("csv", "md", "tex", "parquet")

LENGTHS, MULTI_SOURCE, CONTROLS = "lengths", "multi_source", "shuffled_source"
FIGURES = (
    "transfer_graph",
    "heatmap",
    "sample_ratio",
    "sample_count",
    LENGTHS,
    "aggregate_transfer",
    "source_type",
    MULTI_SOURCE,
    CONTROLS,
)
"""Figures of a dataset: ``<name>_<dataset>`` in all of ``FIGURE_ENDINGS``."""
FIGURE_ENDINGS = ("png", "pdf")


def figures_of(
    source_counts: Collection[int], *, lengths: bool, shuffled_source: bool = False
) -> list[str]:
    """The figures that a dataset always has.

    Args:
        source_counts: how many sources its runs have; 0 of a baseline.
        lengths: whether the lengths of its dialogues are known.
        shuffled_source: whether its transfers are held against that control.
    """
    shown = {
        LENGTHS: lengths,
        MULTI_SOURCE: any(count > 1 for count in source_counts),
        CONTROLS: shuffled_source and 1 in source_counts,
    }
    return [name for name in FIGURES if shown.get(name, 1 in source_counts)]
