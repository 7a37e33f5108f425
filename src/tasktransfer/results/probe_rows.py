"""Names of the files and rows that a probe fit writes; usable without fitting anything."""

from __future__ import annotations

SHUFFLED, PRIOR, MLP = "shuffled", "prior", "mlp"
"""Suffixes of the task names in rows of other classifiers: ``<task>+<suffix>``."""

PROJECTION = "projection.npz"
"""Training representations projected on their first two principal components."""
