"""Names of the study's tables and statistics.

This is the only list of these names: the workflow's rules and the writers of the files read it. It
imports nothing, because Snakemake loads it at every start.
"""

from __future__ import annotations

TABLES_VERSION = 5
"""Version of the collected tables. Increase it when their columns change, so that they are
collected again. It is separate from the columns because the Snakefile must not import pandas."""

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
"""Parquet tables that ``collect`` writes from the records; columns in ``collect.columns``."""

COLLECTED = (*TABLES, "resources")
"""All collected tables, including those common to every design (``results.common_frames``)."""

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
"""Parquet tables that ``statistics`` computes; columns in ``collect.columns``."""

PROMPTED = ("prompted",)
"""Additional tables of ``statistics`` for studies with prompted models."""

REFERENCES = ("references",)
"""Additional table for studies with references (``statistics.references``)."""

CONTROL_SUMMARY = ("control_summary",)
"""Additional table for studies with controls (``statistics.control_summary``)."""

RACE = "race"
"""Additional table for studies whose pairs race (``statistics.race``)."""

MIXING = "mixing"
"""Additional table for studies in which a bandit mixes sources (``statistics.mixing``)."""

SELECTION = ("selectors", "regret")
"""Additional tables for studies with selectors."""

DATA_TABLES = ("table1", "lengths", "overlap_data")
"""Tables that ``data stats`` counts in the dialogues, each with all ``DATA_TABLE_ENDINGS``."""
DATA_TABLE_ENDINGS = ("csv", "parquet")
REFERENCE = "tables/reference.parquet"
"""Table that ``data reference`` computes from the dialogues, relative to the results folder."""
DATA_FILES = tuple(f"tables/{n}.{end}" for n in DATA_TABLES for end in DATA_TABLE_ENDINGS)
"""Files of ``DATA_TABLES``, relative to the results folder."""
