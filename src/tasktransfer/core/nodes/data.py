"""Data that nodes read, and the fractions of training dialogues that a recipe samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tasktransfer.core.identity import (
    LIBRARY_VERSION,
    SHORT,
    Settings,
    compute_digest,
    drop_empty_values,
    find_texts,
    list_references,
    select_later_versions,
)

if TYPE_CHECKING:
    from tasktransfer.core.nodes import Node


@dataclass(frozen=True)
class Data:
    """Instances by task and split: read from a release, or derived from other nodes by a recipe.

    Attributes:
        name: name of the dataset.
        revision: content digest of the release, also for derived data.
        settings: plain values.
        recipe: name of the recipe of derived data.
        uses: nodes that the recipe reads: data, fits, and the stages of trained models.
        cards: task → digest of its card, for all tasks of the dataset. A node that reads the data
            has the digests of its own tasks in its identity. Derived data have those of the tasks
            in their settings.
    """

    name: str
    revision: str
    settings: Settings = field(default_factory=dict, hash=False)
    recipe: str = ""
    uses: tuple[Node, ...] = ()
    cards: Mapping[str, str] = field(default_factory=dict, hash=False)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Identity of the data alone, without task cards (see ``build_identity``)."""
        read = {"dataset": self.name, "data_revision": self.revision}
        if not self.recipe:
            return {**read, **self.settings}
        derived = {
            "library": LIBRARY_VERSION,
            "recipe": self.recipe,
            "settings": dict(self.settings),
            "uses": list_references(self.uses),
            **drop_empty_values({"versions": select_later_versions("recipe", (self.recipe,))}),
            **drop_empty_values({"cards": self.get_card_digests(find_texts(self.settings))}),
        }
        return {**read, "derived": derived}

    def build_identity(self, tasks: Iterable[str]) -> dict[str, Any]:
        """Return the part of a node's identity that describes the data of these tasks."""
        return {**self.identity, **drop_empty_values({"cards": self.get_card_digests(tasks)})}

    def get_card_digests(self, tasks: Iterable[str]) -> dict[str, str]:
        """Return the digests of task cards, ignoring unknown names."""
        return {task: self.cards[task] for task in tasks if task in self.cards}

    @cached_property
    def digest(self) -> str:
        return compute_digest(self.identity)

    @property
    def reference(self) -> Any:
        """Value that refers to the data in other nodes' identities."""
        return self.digest

    @property
    def longer_by(self) -> int:
        """Number of additional tokens that inputs may have beyond a model's ``max_length``.

        These are words that a recipe prepends to the inputs, according to its setting
        ``longer_by``.
        """
        return int(self.settings.get("longer_by", 0))

    @property
    def path(self) -> str:
        """Folder of derived data, relative to the results folder."""
        return f"data/derived/{self.recipe}/{self.name}-{self.digest[:SHORT]}"

    @property
    def label(self) -> str:
        """Readable name of the data."""
        return f"{self.name} ({self.recipe})" if self.recipe else self.name


FRACTIONS = (0.25, 0.5, 0.75, 1.0)
"""Fractions of the training dialogues in a learning curve."""

NEXT = 2.0
"""Fraction of the training dialogues if as many again were labelled, for the forecast."""

SAMPLED = "sampled_dialogues"
"""Recipe of derived data with a sample of the training dialogues (``data.samples``)."""

FRACTION = "fraction"
"""Setting of the recipe: the fraction of the training dialogues that the sample has."""
