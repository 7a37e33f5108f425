"""What the study's tables and statistics are called.

The one list of these names. The rules of the workflow and what writes the files both read it, so it
imports nothing: Snakemake reads it at every start.
"""

from __future__ import annotations

TABLES_VERSION = 5
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
    "other_missing",
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

MIXING = "mixing"
"""The same of a study in which a bandit mixes several sources (``statistics.mixing``)."""

SELECTION = ("selectors", "regret")
"""What ``statistics`` makes besides where the study names selectors."""

DATA_TABLES = ("table1", "lengths", "overlap_data")
"""What ``data stats`` counts in the dialogues, each in all of ``DATA_TABLE_ENDINGS``."""
DATA_TABLE_ENDINGS = ("csv", "parquet")
REFERENCE = "tables/reference.parquet"
"""What ``data reference`` makes of the dialogues, relative to the results folder."""
DATA_FILES = tuple(f"tables/{n}.{end}" for n in DATA_TABLES for end in DATA_TABLE_ENDINGS)
"""Their files, relative to the results folder."""
