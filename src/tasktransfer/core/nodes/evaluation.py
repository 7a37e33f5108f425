"""Fits, outcomes and evaluations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from tasktransfer.core.identity import (
    LIBRARY_VERSION,
    SHORT,
    Settings,
    compute_digest,
    drop_empty_values,
    join_path_names,
    list_references,
    select_later_versions,
)
from tasktransfer.core.nodes.data import Data
from tasktransfer.core.nodes.stage import Stage, Start, list_stages
from tasktransfer.core.specs import ModelSpec

if TYPE_CHECKING:
    from tasktransfer.core.nodes import Node


@dataclass(frozen=True)
class Fit:
    """Models fitted by a library, one per task: a fastText classifier, or linear probes.

    Attributes:
        learner: name in ``fits.LEARNERS`` or of the design.
        on: model whose representations are the features, None to use the instances' texts.
        reads: other fits from whose numbers it is computed, and stages whose best rounds it reads.
    """

    learner: str
    data: Data
    tasks: tuple[str, ...]
    seed: int = 0
    settings: Settings = field(default_factory=dict, hash=False)
    on: Start | None = None
    reads: tuple[Node, ...] = ()

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Content of the node that affects its numbers."""
        return {
            "library": LIBRARY_VERSION,
            "learner": self.learner,
            **drop_empty_values({"reads": list_references(self.reads)}),
            **drop_empty_values({"versions": select_later_versions("learner", (self.learner,))}),
            **self.data.build_identity(self.tasks),
            "tasks": list(self.tasks),
            "seed": self.seed,
            "settings": dict(self.settings),
            "on": self.on.identity if self.on else None,
        }

    @cached_property
    def digest(self) -> str:
        return compute_digest(self.identity)

    @property
    def reference(self) -> Any:
        """Value that refers to the node in other nodes' identities."""
        return self.digest

    @property
    def label(self) -> str:
        """Readable name of the node."""
        if selector := self.settings.get("selector"):
            return f"{selector}_of_{join_path_names(self.tasks)}"
        of = f"{self.on.stage.label}@{self.on.at}" if self.on and self.on.stage else "texts"
        return f"{join_path_names(self.tasks)}_on_{of}"

    @property
    def uses(self) -> tuple[Node, ...]:
        """Nodes that must be finished before this node."""
        on = (self.on.stage,) if self.on and self.on.stage else ()
        return (*([self.data] if self.data.recipe else []), *on, *self.reads)

    @cached_property
    def path(self) -> str:
        name = f"{self.learner}/{self.data.name}/{self.label}"
        return f"fits/{name}/seed{self.seed}-{self.digest[:SHORT]}"


@dataclass(frozen=True)
class Outcome:
    """The model that is evaluated: one stage's model, or several combined without training.

    Merged parameters are starts with ``merged``.

    Attributes:
        starts: starts that give the parameters. Empty for a released model.
        combine: None for one start, ``mean`` for the mean of several models' answers, ``route`` to
            send each instance to the model of its domain.
        domains: domain of each start, for ``route``.
        model: base model that is evaluated as released.
    """

    starts: tuple[Start, ...]
    combine: Literal["mean", "route"] | None = None
    domains: tuple[str, ...] = ()
    model: ModelSpec | None = None

    @property
    def identity(self) -> dict[str, Any]:
        model = self.model.identity if self.model else None
        chosen = {"combine": self.combine, "domains": list(self.domains), "model": model}
        return {
            "starts": [start.identity for start in self.starts],
            **drop_empty_values(chosen),
        }

    @cached_property
    def digest(self) -> str:
        return compute_digest(self.identity)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Distinct stages whose parameters the outcome uses."""
        return list_stages(self.starts)

    @property
    def label(self) -> str:
        """Readable name of the outcome."""
        released = f"{self.model.name}_as_released" if self.model else "base"
        text = join_path_names(tuple(stage.label for stage in self.stages)) or released
        how = self.combine or (self.starts[0].merged if self.starts else None)
        return f"{text}_{how}" if how else text


@dataclass(frozen=True)
class Pool:
    """Training instances of a task, whose gold answers are candidates to choose from."""

    data: Data
    task: str


@dataclass(frozen=True)
class Evaluation:
    """Results of an outcome or a fit on a split of a task: one row per instance, and the measures.

    Attributes:
        pools: pools of candidate answers.
    """

    of: Outcome | Fit
    data: Data
    task: str
    measures: tuple[str, ...]
    split: Literal["train", "dev", "test"] = "test"
    settings: Settings = field(default_factory=dict, hash=False)
    pools: tuple[Pool, ...] = ()

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Content of the evaluation that affects its numbers."""
        pools = [[pool.data.digest, pool.task] for pool in self.pools]
        cards = self.data.get_card_digests((self.task,))
        for pool in self.pools:
            cards |= pool.data.get_card_digests((pool.task,))
        return {
            "library": LIBRARY_VERSION,
            **drop_empty_values({"pools": pools}),
            "of": self.of.digest,
            **self.data.identity,
            **drop_empty_values({"cards": cards}),
            "task": self.task,
            "measures": list(self.measures),
            **drop_empty_values({"versions": select_later_versions("measure", self.measures)}),
            "split": self.split,
            "settings": dict(self.settings),
        }

    @cached_property
    def digest(self) -> str:
        return compute_digest(self.identity)

    @property
    def reference(self) -> Any:
        """Value that refers to the evaluation in other nodes' identities."""
        return self.digest

    @property
    def asked(self) -> Settings | None:
        """Settings of a prompted model (``evaluation.prompting``), or None for other outcomes.

        They are ``shots``, ``wording`` (its index in the card), ``prompt`` (its digest), ``seed``
        of the shots, ``rating`` (``expected`` for the expected value of a rating) and settings that
        differ from their default.
        """
        settings: Settings | None = self.settings.get("asked")
        return settings

    @property
    def brought(self) -> Settings | None:
        """Name and file revision of a user's own system, or None for other outcomes."""
        settings: Settings | None = self.settings.get("brought")
        return settings

    @property
    def ranks_by_words(self) -> bool:
        """True if replies are ranked by shared words (``words``), without a model."""
        return "words" in self.settings

    @property
    def label(self) -> str:
        """Readable name of the evaluation."""
        if self.brought is not None:
            return f"{self.task}-{self.split}_of_{self.brought['name']}"
        if self.ranks_by_words:
            return f"{self.task}-{self.split}_of_{self.settings['words']}"
        if self.asked is not None and isinstance(self.of, Outcome) and self.of.model is not None:
            how = f"asked-{self.asked['wording']}-with-{self.asked['shots']}-shots"
            return f"{self.task}-{self.split}_of_{self.of.model.name}_{how}"
        return f"{self.task}-{self.split}_of_{self.of.label}"

    @property
    def uses(self) -> tuple[Node, ...]:
        """Nodes that must be finished before this evaluation."""
        of: tuple[Node, ...] = (self.of,) if isinstance(self.of, Fit) else self.of.stages
        return (*(data for data in self.read if data.recipe), *of)

    @property
    def read(self) -> tuple[Data, ...]:
        """Data that the evaluation reads."""
        return (self.data, *(pool.data for pool in self.pools))

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names of the models whose token IDs the evaluation reads."""
        if isinstance(self.of, Fit) or self.asked is not None:
            return ()
        released = (self.of.model.name,) if self.of.model else ()
        return tuple(dict.fromkeys((*released, *(s.model.name for s in self.of.stages))))

    @cached_property
    def path(self) -> str:
        """Folder of the evaluation's results, relative to the results folder."""
        return f"evaluations/{self.data.name}/{self.label}/{self.digest[:SHORT]}"
