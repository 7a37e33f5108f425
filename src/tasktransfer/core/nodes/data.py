"""Data that nodes read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from tasktransfer.core.digests import digest_of
from tasktransfer.core.nodes.identity import SHORT, Settings, references, stated, texts_in
from tasktransfer.core.specs import REFUSE_UNKNOWN
from tasktransfer.core.versions import LIBRARY_VERSION, raised

if TYPE_CHECKING:
    from tasktransfer.core.nodes import Node


@dataclass(frozen=True)
class Data:
    """Instances by task and split: read from a release, or derived from other nodes by a recipe.

    ``revision`` is the content digest of the release that is read, also where the instances are
    then derived. ``settings`` are plain values; ``uses`` are the nodes that a recipe reads: data,
    fits, and the stages of trained models. ``cards``: task → digest of its card, of all tasks of
    the dataset; whatever reads the data has those of its own tasks in its identity, and derived
    data have those of the tasks that their settings name. JSON leaves them out (``node_json``).
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    name: str
    revision: str
    settings: Settings = field(default_factory=dict, hash=False)
    recipe: str = ""
    uses: tuple[Node, ...] = ()
    cards: Mapping[str, str] = field(default_factory=dict, hash=False, metadata={"told": False})

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The data by themselves; nodes that read them have ``identity_for`` their tasks."""
        read = {"dataset": self.name, "data_revision": self.revision}
        if not self.recipe:
            return {**read, **self.settings}
        derived = {
            "library": LIBRARY_VERSION,
            "recipe": self.recipe,
            "settings": dict(self.settings),
            "uses": references(self.uses),
            **stated({"versions": raised("recipe", (self.recipe,))}),
            **stated({"cards": self.cards_of(texts_in(self.settings))}),
        }
        return {**read, "derived": derived}

    def identity_for(self, tasks: Iterable[str]) -> dict[str, Any]:
        """What stands for the data in the identity of a node that reads these tasks."""
        return {**self.identity, **stated({"cards": self.cards_of(tasks)})}

    def cards_of(self, tasks: Iterable[str]) -> dict[str, str]:
        """The digests of the cards of those that are tasks of the dataset."""
        return {task: self.cards[task] for task in tasks if task in self.cards}

    @cached_property
    def digest(self) -> str:
        return digest_of(self.identity)

    @property
    def reference(self) -> Any:
        """What stands for it in the identity of a node that reads it."""
        return self.digest

    @property
    def longer_by(self) -> int:
        """How many tokens more than a model's ``max_length`` its inputs may have: those of words
        that a recipe has put before them, as its setting ``longer_by`` says."""
        return int(self.settings.get("longer_by", 0))

    @property
    def path(self) -> str:
        """Where derived data lie, relative to the results folder; what is read lies elsewhere."""
        return f"data/derived/{self.recipe}/{self.name}-{self.digest[:SHORT]}"

    @property
    def label(self) -> str:
        """A readable name."""
        return f"{self.name} ({self.recipe})" if self.recipe else self.name
