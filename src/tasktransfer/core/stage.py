"""The core types of a study: a stage (one training) and a run (what is scored).

A stage's identity is the digest of what changes its numbers, and of nothing else: no paths, no
machine, no micro-batch size. Equal stages are one stage, whatever study asks for them. Pure,
standard library only: the Snakefile imports this through ``plan``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from tasktransfer.core.digests import digest_of

RECIPE_VERSION = 3
"""Raise this when a change in the code changes the numbers of a training (not for comments,
speed or logging): every stage then gets a new digest, and old results stay beside the new."""

Family = Literal["encoder", "decoder", "encoder_decoder"]
FAMILIES: tuple[Family, ...] = ("encoder", "decoder", "encoder_decoder")

Fidelity = Literal["default", "tlidb"]
"""``tlidb``: the paper's toolkit's way where the two differ (feta-spec)."""

StageKind = Literal["baseline", "pretrain", "multitask", "finetune"]
STAGE_KINDS: tuple[StageKind, ...] = ("baseline", "pretrain", "multitask", "finetune")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A checkpoint with its family.

    ``weights`` names the content, never a path: ``<hub name>@<revision>`` for the Hugging Face
    hub, ``sha256:<digest>`` of the files for a local folder, ``tiny:<digest>`` of the recipe for
    the built-in tiny models. ``name`` is how the study calls it; it stands in paths and tables
    and is not part of the identity.
    """

    name: str
    family: Family
    weights: str
    max_length: int

    @property
    def identity(self) -> dict[str, Any]:
        """What of the model changes numbers."""
        return {"family": self.family, "weights": self.weights, "max_length": self.max_length}


@dataclass(frozen=True, slots=True)
class Training:
    """The hyperparameters of one training (paper, Appendix B). Everything here changes numbers.

    Units: ``batch_size`` in instances, ``epochs`` in passes over the training set,
    ``learning_rate`` per Adam step (constant), ``limit_*`` in instances per task (null: all).
    ``dropout`` replaces every dropout rate of the model (null: the checkpoint's own).
    """

    learning_rate: float = 3e-5
    batch_size: int = 60
    epochs: int = 30
    max_grad_norm: float = 1.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    task_weighting: Literal["none", "inverse_sqrt"] = "inverse_sqrt"
    loss_on: Literal["answer", "sequence"] = "answer"
    fidelity: Fidelity = "default"
    dropout: float | None = None
    limit_train: int | None = None
    limit_dev: int | None = None
    limit_test: int | None = None


def _fields(value: ModelSpec | Training) -> dict[str, Any]:
    """The fields of a spec that holds plain values only: ``asdict`` copies each of them deeply,
    which shows where it is called for thousands of stages."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


@dataclass(frozen=True)
class Stage:
    """One training: what to train on, what selects the best epoch, and where to start.

    ``parent`` is the stage whose best epoch this one starts from; None: the base model.
    ``train_tasks`` and ``select_on`` are sorted.
    """

    dataset: str
    data_revision: str
    few_sample: bool
    model: ModelSpec
    train_tasks: tuple[str, ...]
    select_on: tuple[str, ...]
    parent: Stage | None
    training: Training
    seed: int
    task_shorts: dict[str, str] = field(compare=False, hash=False, repr=False)
    """Short names of the tasks, for readable paths only."""

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that changes this stage's numbers; the parent by its digest."""
        return {
            "recipe": RECIPE_VERSION,
            "dataset": self.dataset,
            "data_revision": self.data_revision,
            "few_sample": self.few_sample,
            "model": self.model.identity,
            "train_tasks": list(self.train_tasks),
            "select_on": list(self.select_on),
            "parent": self.parent.digest if self.parent else None,
            "training": _fields(self.training),
            "seed": self.seed,
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the identity, in hex."""
        return digest_of(self.identity)

    @property
    def kind(self) -> StageKind:
        """Which rule trains it. Read off the stage itself, not off the run that asked for it."""
        if self.parent is not None:
            return "finetune"
        if self.select_on != self.train_tasks:
            return "multitask"
        return "baseline" if len(self.train_tasks) == 1 else "pretrain"

    @cached_property
    def label(self) -> str:
        """A readable name: ``DNLI``, ``CRE+DNLI@DNLI`` (selected on), ``DNLI_from_CRE``."""
        text = "+".join(self.task_shorts[task] for task in self.train_tasks)
        if self.select_on != self.train_tasks:
            text += "@" + "+".join(self.task_shorts[task] for task in self.select_on)
        return f"{text}_from_{self.parent.label}" if self.parent else text

    @cached_property
    def path(self) -> str:
        """Where its results live, relative to the results folder; ends in the digest."""
        return (
            f"stages/{self.kind}/{self.dataset}/{self.model.name}/{self.label}"
            f"/seed{self.seed}-{self.digest[:12]}"
        )

    def to_json(self) -> dict[str, Any]:
        """The whole stage with its ancestors, to hand to a training process."""
        return {
            "dataset": self.dataset,
            "data_revision": self.data_revision,
            "few_sample": self.few_sample,
            "model": _fields(self.model),
            "train_tasks": list(self.train_tasks),
            "select_on": list(self.select_on),
            "parent": self.parent.to_json() if self.parent else None,
            "training": _fields(self.training),
            "seed": self.seed,
            "task_shorts": {task: self.task_shorts[task] for task in self._named_tasks()},
        }

    def _named_tasks(self) -> tuple[str, ...]:
        return tuple(sorted({*self.train_tasks, *self.select_on}))

    @staticmethod
    def from_json(value: dict[str, Any]) -> Stage:
        """The inverse of ``to_json``."""
        parent = value["parent"]
        return Stage(
            dataset=value["dataset"],
            data_revision=value["data_revision"],
            few_sample=value["few_sample"],
            model=ModelSpec(**value["model"]),
            train_tasks=tuple(value["train_tasks"]),
            select_on=tuple(value["select_on"]),
            parent=Stage.from_json(parent) if parent else None,
            training=Training(**value["training"]),
            seed=value["seed"],
            task_shorts=value["task_shorts"],
        )


@dataclass(frozen=True)
class Run:
    """A model, algorithm, sources, target and seed: the unit that gets a score.

    ``stages`` are its trainings in order; the last one is scored on the target's test set.
    """

    dataset: str
    model: str
    family: Family
    algorithm: str
    sources: tuple[str, ...]
    target: str
    seed: int
    stages: tuple[Stage, ...] = field(compare=False)

    @property
    def identity(self) -> dict[str, Any]:
        """The run as its record names it."""
        return {
            "dataset": self.dataset,
            "model": self.model,
            "family": self.family,
            "algorithm": self.algorithm,
            "sources": list(self.sources),
            "target": self.target,
            "seed": self.seed,
        }

    @property
    def scored(self) -> Stage:
        """The stage whose record holds this run's score."""
        return self.stages[-1]
