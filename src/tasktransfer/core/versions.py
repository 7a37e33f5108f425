"""Versions of the code that makes numbers; each is part of the digests of what it makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

RECIPE_VERSION = 3
"""Raise this when a change in the code changes the numbers of a training (not for comments,
speed or logging): every stage then gets a new digest, and old results stay beside the new. What
changes for some tasks and families alone is raised in their cards (``Task.recipes``), what changes
for a family on all tasks in ``FAMILY_RECIPES``."""

FAMILY_RECIPES: Mapping[str, int] = {"decoder": 4, "encoder_decoder": 4}
"""The recipe of a family's trainings, where it is a later one. 4: tanh-GELU is one operation."""

LIBRARY_VERSION = 1
"""The same for derived data, fits and evaluations, all of them. What changes for those alone that
use a measure, a learner or a recipe by its name is raised in ``VERSIONS``."""

Registry = Literal["measure", "learner", "recipe"]
"""What is used by its name: measures (``metrics.MEASURES``), learners of fits (``fits``), recipes
of derived data (``data.recipes``). The recipe of trainings is ``RECIPE_VERSION``."""

Entry = tuple[Registry, str]
"""A registry and a name in it."""

VERSIONS: dict[Entry, int] = {("learner", "embeddings"): 2}
"""The versions of entries; 1 of one that is not here. Raise an entry's when a change in its code
changes a number: whatever uses it, and nothing else, gets a new digest. They are here and not
beside the code, as plans are made without importing it. Those of what a design brings are added
with it (``Design.versions``). 2 of ``embeddings``: until then they were of empty texts."""


def raised(registry: Registry, names: Iterable[str]) -> dict[str, int]:
    """Name → version of those that are above 1: the others are in no identity, so that old digests
    stay."""
    versions = {name: VERSIONS.get((registry, name), 1) for name in names}
    return {name: version for name, version in versions.items() if version > 1}
