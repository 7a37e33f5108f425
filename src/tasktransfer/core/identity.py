"""Identities of nodes: their parts, their digests, and the versions of the code in them.

Standard library only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol

SHORT = 12
"""Number of hex digits of a digest in paths."""

Settings = Mapping[str, Any]


class _Referred(Protocol):
    @property
    def reference(self) -> Any: ...


def list_references(nodes: Iterable[_Referred]) -> list[Any]:
    """Return references to nodes, for the identity of a node that reads them."""
    return [node.reference for node in nodes]


def drop_empty_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop None, False, 0 and empty values, which identities omit."""
    return {name: value for name, value in values.items() if value}


def find_texts(value: Any) -> Iterator[str]:
    """Yield every string in nested plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from find_texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_texts(item)


def join_path_names(names: tuple[str, ...]) -> str:
    """Join up to four names for a path, and append the number of omitted names."""
    shown = "+".join(names[:4])
    return f"{shown}+{len(names) - 4}more" if len(names) > 4 else shown


def collect_limits(identity: Any) -> dict[str, int]:
    """Return the integers in an identity whose keys begin with ``limit``, by key path.

    A node with such limits uses subsampled data.
    """
    return dict(_collect_limits(identity, ""))


def _collect_limits(value: Any, path: str) -> list[tuple[str, int]]:
    limits: list[tuple[str, int]] = []
    for key, item in value.items() if isinstance(value, Mapping) else ():
        below = f"{path}.{key}" if path else str(key)
        if str(key).startswith("limit") and isinstance(item, int) and not isinstance(item, bool):
            limits.append((below, item))
        limits += _collect_limits(item, below)
    return limits


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_canonical_json(value: Any) -> str:
    """Convert a JSON value to canonical text for digests (sorted keys, no spaces, ASCII)."""
    return _ENCODER.encode(value)


def compute_digest(value: Any) -> str:
    """Compute the SHA-256 (hex) of a JSON value's canonical text."""
    return hashlib.sha256(to_canonical_json(value).encode()).hexdigest()


RECIPE_VERSION = 3
"""Version of the training code.

Increase it when a change in the code changes the numbers of a training run (not for comments, speed
or logging). Every stage then gets a new digest, and old results stay next to the new ones. For a
change that affects some tasks and families only, increase the version in their cards
(``Task.recipes``). For a family on all tasks, increase it in ``FAMILY_RECIPES``.
"""

FAMILY_RECIPES: Mapping[str, int] = {"decoder": 4, "encoder_decoder": 4}
"""Version of a family's training code, if it is later. 4: tanh-GELU is one operation."""

HEAD_RECIPES: Mapping[str, int] = {"logistic_regression": 4, "auto": 5}
"""Version of the training code with fitted heads, if it is later, by ``head_initialization``.

4: the states are scaled before the regression. 5: round 0 is never the best round.
"""

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
