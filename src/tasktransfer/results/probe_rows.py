"""What a fit of probes leaves besides its record, by name: read where nothing is fitted."""

from __future__ import annotations

SHUFFLED, PRIOR, MLP = "shuffled", "prior", "mlp"
"""Ends of the names under which rows of other classifiers stand: ``<task>+<end>``."""

PROJECTION = "projection.npz"
"""The training representations on their first two principal components."""
