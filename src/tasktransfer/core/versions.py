"""Versions of the code that makes numbers; each is part of the digests of what it makes."""

from __future__ import annotations

from collections.abc import Mapping

RECIPE_VERSION = 3
"""Raise this when a change in the code changes the numbers of a training (not for comments,
speed or logging): every stage then gets a new digest, and old results stay beside the new. What
changes for some tasks and families alone is raised in their cards (``Task.recipes``), what changes
for a family on all tasks in ``FAMILY_RECIPES``."""

FAMILY_RECIPES: Mapping[str, int] = {"decoder": 4, "encoder_decoder": 4}
"""The recipe of a family's trainings, where it is a later one. 4: tanh-GELU is one operation."""

LIBRARY_VERSION = 1
"""The same for derived data, fits and evaluations."""
