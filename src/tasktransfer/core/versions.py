"""Versions of the code that computes numbers; each is part of the digests of its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

RECIPE_VERSION = 3
"""Version of the training code.

Increase it when a change in the code changes the numbers of a training run (not for comments, speed
or logging). Every stage then gets a new digest, and old results stay next to the new ones. For a
change that affects some tasks and families only, increase the version in their cards
(``Task.recipes``). For a family on all tasks, increase it in ``FAMILY_RECIPES``.
"""

FAMILY_RECIPES: Mapping[str, int] = {"decoder": 4, "encoder_decoder": 4}
"""Version of a family's training code, if it is later. 4: tanh-GELU is one operation."""

ENCODING_VERSION = 2
"""Version of the conversion from instances to token ids (``encoding.encode``).

Increase it when the encoded data changes, because caches and digests depend on it.
"""

TINY_RECIPE_VERSION = 2
"""Version of building and pre-training the tiny models (``training.tiny``)."""

BUILD_VERSION = 2
"""Version of building a model folder from an architecture (``training.build``)."""

LIBRARY_VERSION = 1
"""Version of the code of all derived data, fits and evaluations.

For a change that affects only users of a measure, a learner or a recipe, increase its version in
``VERSIONS``.
"""

Registry = Literal["measure", "learner", "recipe"]
"""Registries of code that is used by name.

They are measures (``metrics.MEASURES``), learners of fits (``fits``), and recipes of derived data
(``data.recipes``). The version of training code is ``RECIPE_VERSION``.
"""

Entry = tuple[Registry, str]
"""A registry and a name in it."""

VERSIONS: dict[Entry, int] = {("learner", "embeddings"): 2}
"""Entry of a registry → its version, 1 if it is not listed.

Increase an entry's version when a change in its code changes a number. Only nodes that use the
entry then get new digests. The versions are here and not next to the code, because plans are built
without importing it. A design adds the versions of its own entries (``Design.versions``). Version 2
of ``embeddings``: before it, embeddings were computed from empty texts.
"""


def select_later_versions(registry: Registry, names: Iterable[str]) -> dict[str, int]:
    """Return the versions that are above 1, by name.

    Version 1 is not part of identities, so that old digests stay.
    """
    versions = {name: VERSIONS.get((registry, name), 1) for name in names}
    return {name: version for name, version in versions.items() if version > 1}
