"""Specifications of a stage's model, hyperparameters and selection."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

from tasktransfer.core.fidelity import DEFAULT, Fidelity
from tasktransfer.core.identity import select_later_versions

Family = Literal["encoder", "decoder", "encoder_decoder", "dual_encoder"]
FAMILIES: tuple[Family, ...] = ("encoder", "decoder", "encoder_decoder")
"""Families that have a built-in tiny model."""

Sampler = Literal[
    "task_batches",
    "uniform",
    "mixed",
    "together",
    "temperature",
    "random_weights",
    "exp3",
    "ucb1",
]
"""Sampling of the training tasks' instances for updates, see ``training.samplers``."""

Keep = Literal["best", "every"]

Pooling = Literal["mean", "pooler"]
"""Encoding of a text: the mean over its tokens, or the pooler's output for the first token."""


Reads = Literal["pooler", "own_pooler", "first_token", "mean", "turn", "pair"]
"""Representation of a sequence that an encoder's heads read.

- ``pooler``: the pooler's output for the first token. A pooler that the checkpoint lacks is
  initialised at random.
- ``own_pooler``: the same, but a checkpoint without pooler is an error.
- ``first_token``: the last hidden state of the first token.
- ``mean``: the mean of the last hidden states over all tokens.
- ``turn``: the mean over the tokens of the labelled turn, the last turn of the context. The mean
  over all tokens in tasks that do not label turns.
- ``pair``: the two segments, encoded separately (``models.pairs``).
"""

LearningRateSchedule = Literal["constant", "linear", "cosine"]
"""Learning rate schedule after the warm-up over the planned updates: constant, or decay to zero."""

Decays = Literal["all", "matrices"]
"""Parameters that weight decay is applied to: all, or all except biases and norms."""

HeadInitialization = Literal["random", "logistic_regression", "auto"]
"""Initial weights of an encoder's new task heads: random, or fitted (``models.fitted_heads``).

``auto`` fits the heads of tasks that label turns.
"""

SERVED = "served:"
"""Prefix of the weights' name of a model that an endpoint serves."""

REFUSE_UNKNOWN = {"extra": "forbid"}
"""Pydantic config of specs that are read from JSON: an unknown key is an error."""


def list_plain_fields(value: Any) -> dict[str, Any]:
    """Return the values of a dataclass by field name, without copying them.

    ``asdict`` makes deep copies, which is slow for thousands of stages.
    """
    return {field.name: getattr(value, field.name) for field in fields(value)}


AdapterStart = Literal["continue", "merge", "stack"]
"""Use of the source run's adapter: train it further; merge it into the weights and train a new one;
or freeze it and train a new one next to it."""

ADAPTER_RATE_FACTOR = 10
"""Default ratio of an adapter's learning rate to that of fully trained models."""


@dataclass(frozen=True, slots=True)
class LowRank:
    """A LoRA adapter that is trained instead of the model's weights (Hu et al. 2021).

    It adds ``alpha / rank`` times B (out, rank) A (rank, in) to a linear layer W (out, in).

    Attributes:
        rank: rank of the update.
        alpha: numerator of the update's scale.
        target_modules: layers that get an adapter, by the ends of their names. Empty for all linear
            layers except the output layer.
        dropout: dropout rate of A's input.
        start: see ``AdapterStart``. It is part of the identity of stages that start from others.
        learning_rate: None for ``ADAPTER_RATE_FACTOR`` times ``Training.learning_rate``. The value
            is part of the identity of the training.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    rank: int = 16
    alpha: float = 32.0
    target_modules: tuple[str, ...] = ()
    dropout: float = 0.05
    start: AdapterStart = "continue"
    learning_rate: float | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """Fields that affect the numbers of every training run."""
        named = sorted(self.target_modules) or "all-linear"
        own = {"kind": "lora", "rank": self.rank, "alpha": self.alpha, "dropout": self.dropout}
        return {**own, "target_modules": named}


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A checkpoint with its family.

    ``weights`` names the content, never a path:

    - ``<hub name>@<revision>`` for the Hugging Face hub,
    - ``sha256:<digest>`` of the files for a local folder,
    - ``tiny:<digest>`` of the recipe for the built-in tiny models,
    - ``built:<digest>`` of the recipe of an architecture with randomly initialised weights,
    - ``served:<name>`` for a model that an endpoint serves under this name.

    Attributes:
        name: name of the model in paths and tables, which is not part of the identity.
        max_length: maximum sequence length in tokens.
        beside: second encoder that reads the same text.
        adapter_reduction: ratio of hidden size to bottleneck size of one bottleneck adapter per
            task (``models.adapters``), None for no such adapters.
        beside_reads: the second encoder's encoding of a text: the mean over tokens, or the pooled
            first token, which a classifier's head reads.
        reads: representation that the model's heads read.
        adapter: adapter that is trained instead of the weights, None to train the weights.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    name: str
    family: Family
    weights: str
    max_length: int
    beside: ModelSpec | None = None
    adapter_reduction: int | None = None
    beside_reads: Pooling = "mean"
    reads: Reads = "pooler"
    adapter: LowRank | None = None

    def apply_learning_rate(self, training: Training) -> Training:
        """Return the hyperparameters with the learning rate of the model's adapter, if any."""
        if self.adapter is None:
            return training
        rate = self.adapter.learning_rate or training.learning_rate * ADAPTER_RATE_FACTOR
        return replace(training, learning_rate=float(f"{rate:.12g}"))

    @property
    def as_released(self) -> ModelSpec:
        """Specification of the checkpoint itself, without adapters and changes to its heads."""
        return replace(self, adapter=None, adapter_reduction=None, reads="pooler")

    @property
    def served(self) -> bool:
        """True if an endpoint serves the model, so that no local device is needed."""
        return self.weights.startswith(SERVED)

    @property
    def identity(self) -> dict[str, Any]:
        """Fields that affect results."""
        own: dict[str, Any] = {
            "family": self.family,
            "weights": self.weights,
            "max_length": self.max_length,
        }
        if self.beside is not None:
            own["beside"] = self.beside.identity
        if self.adapter_reduction is not None:
            own["adapter_reduction"] = self.adapter_reduction
        if self.beside_reads != "mean":
            own["beside_reads"] = self.beside_reads
        if self.reads != "pooler":
            own["reads"] = self.reads
        if self.adapter is not None:
            own["adapter"] = self.adapter.identity
        return own


_LATER = (
    "deterministic",
    "optimiser",
    "cosine_scale",
    "weight_decay",
    "optimiser_bits",
    "updates",
    "min_updates",
    "schedule",
    "warmup",
    "head_learning_rate",
    "decays",
    "head_initialization",
)
"""Fields of ``Training`` that are not part of older identities."""


@dataclass(frozen=True, slots=True)
class Training:
    """The hyperparameters of one training run (paper, Appendix B).

    All fields change numbers, except ``gradient_checkpointing``: it recomputes activations in the
    backward pass instead of storing them.

    Attributes:
        learning_rate: peak learning rate, per Adam step.
        batch_size: number of instances per update.
        epochs: number of passes over the training set.
        max_grad_norm: maximum gradient norm for clipping.
        precision: number format of the computation.
        task_weighting: weighting of the tasks' losses in multitask training.
        loss_on: tokens with a loss, for decoders.
        fidelity: behaviour if the paper and its toolkit differ.
        dropout: value for every dropout rate of the model, None for the checkpoint's values.
        limit_train: maximum number of training instances per task, None for all; ``limit_dev`` and
            ``limit_test`` likewise.
        deterministic: use deterministic, slower GPU kernels, so that the same seed gives the
            same numbers.
        optimiser: Adam, or its variant with the infinity norm.
        cosine_scale: factor of the cosine similarity that compares two encodings, None to compare
            them by their dot product.
        weight_decay: weight decay of AdamW, per step and unit of the learning rate; 0 for Adam.
        optimiser_bits: number of bits of the optimiser's moments.
        updates: budget in optimiser steps per training task, which replaces ``epochs``.
        min_updates: minimum budget in updates if ``epochs`` is the budget.
        schedule: learning rate schedule after the warm-up.
        warmup: fraction of the updates in which the learning rate rises from zero.
        head_learning_rate: learning rate of task heads, None for ``learning_rate``.
        decays: parameters that ``weight_decay`` is applied to.
        head_initialization: initial weights of new task heads.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    learning_rate: float = 3e-5
    batch_size: int = 60
    epochs: int = 30
    max_grad_norm: float = 1.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    task_weighting: Literal["none", "inverse_sqrt"] = "inverse_sqrt"
    loss_on: Literal["answer", "sequence"] = "answer"
    fidelity: Fidelity = DEFAULT
    dropout: float | None = None
    limit_train: int | None = None
    limit_dev: int | None = None
    limit_test: int | None = None
    deterministic: bool = False
    optimiser: Literal["adam", "adamax"] = "adam"
    cosine_scale: float | None = None
    weight_decay: float = 0.0
    optimiser_bits: Literal[32, 8] = 32
    gradient_checkpointing: bool = False
    updates: int | None = None
    min_updates: int | None = None
    schedule: LearningRateSchedule = "constant"
    warmup: float = 0.0
    head_learning_rate: float | None = None
    decays: Decays = "all"
    head_initialization: HeadInitialization = "random"

    @property
    def budget(self) -> str:
        """Training length as part of names, such as ``60_epochs`` or ``1200_updates``.

        With two minimums, it is for example ``6_epochs_600_updates``.
        """
        if self.updates is not None:
            return f"{self.updates}_updates"
        least = f"_{self.min_updates}_updates" if self.min_updates else ""
        return f"{self.epochs}_epochs{least}"

    def count_updates(self, sampler: Sampler, tasks: int, in_epoch: int) -> int:
        """Return the number of updates of a training run without early stopping.

        A budget in updates is per training task, as epochs are. A run on several tasks has a
        multiple of it, divided by the number of batches that one update of its sampler reads.

        Args:
            tasks: number of training tasks.
            in_epoch: number of updates per epoch.
        """
        batches = {"together": tasks, "random_weights": tasks, "exp3": 2, "ucb1": 2}.get(sampler, 1)
        least = self.min_updates or 0
        updates = math.ceil((least if self.updates is None else self.updates) * tasks / batches)
        return updates if self.updates is not None else max(self.epochs * in_epoch, updates)

    def multiply_budget(self, factor: int) -> Training:
        """Return the hyperparameters with their budget multiplied by a number."""
        return replace(
            self,
            epochs=factor * self.epochs,
            updates=None if self.updates is None else factor * self.updates,
            min_updates=None if self.min_updates is None else factor * self.min_updates,
        )

    def limit_to_epochs(self, epochs: int) -> Training:
        """Return the hyperparameters with a budget in epochs instead of updates."""
        return replace(self, epochs=epochs, updates=None, min_updates=None)

    @property
    def identity(self) -> dict[str, Any]:
        """Plain values for an identity. Fields added later are omitted at their default."""
        values = {**list_plain_fields(self), "fidelity": self.fidelity.identity}
        del values["gradient_checkpointing"]
        if self.updates is not None:
            del values["epochs"], values["min_updates"]
        for field in fields(self):
            if field.name in _LATER and values.get(field.name, "") == field.default:
                del values[field.name]
        return values


@dataclass(frozen=True, slots=True)
class Rounds:
    """Default rounds of a training run, for steps that do not define them, see ``Selection``."""

    every: int | None = None
    patience: int | None = None

    def apply_to(self, selection: Selection) -> Selection:
        """Return a selection whose undefined fields are taken from this object."""
        every = self.every if selection.every is None else selection.every
        patience = self.patience if selection.patience is None else selection.patience
        return replace(selection, every=every, patience=patience)


OPEN = Rounds()
"""Rounds without defaults."""


_DISK_FIELDS = ("keep", "rounds")
"""Fields of ``Selection`` that define which checkpoints are kept and change no number."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of a stage's best round.

    The rounds that are kept change no number and are not part of an identity. If a finished stage
    lacks a requested round, it is trained again, and keeps the earlier rounds, too (ADR 0023).

    Attributes:
        tasks: tasks whose mean score on dev decides. Training runs that differ only in these tasks
            are one stage (``nodes.Stage``).
        measure: name in ``metrics.MEASURES``, which also defines whether higher is better.
        every: number of updates per round, None if a round is an epoch.
        patience: number of rounds without improvement after which training stops, None for no early
            stopping.
        keep: ``every`` keeps the parameters of all rounds on the disk, including round 0, the
            untrained model, which is never the best.
        rounds: rounds to keep, empty for all.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    tasks: tuple[str, ...]
    measure: str = "score"
    every: int | None = None
    patience: int | None = None
    keep: Keep = "best"
    rounds: tuple[int, ...] = ()

    def keeps_round(self, number: int) -> bool:
        """Return whether the selection keeps the parameters of a round."""
        return self.keep == "every" and (not self.rounds or number in self.rounds)

    def merge_rounds(self, other: Selection) -> Selection:
        """Return a selection that also keeps the rounds of another selection."""
        both = [selection for selection in (self, other) if selection.keep == "every"]
        if not both:
            return self
        rounds = {number for selection in both for number in selection.rounds}
        named = tuple(sorted(rounds)) if all(selection.rounds for selection in both) else ()
        return replace(self, keep="every", rounds=named)

    @property
    def identity(self) -> dict[str, Any]:
        """Fields that affect numbers, except ``tasks``.

        Defaults are omitted, so that a new field does not change existing identities.
        """
        values = {
            field.name: value
            for field in fields(self)
            if field.name not in ("tasks", *_DISK_FIELDS)
            and (value := getattr(self, field.name)) != field.default
        }
        versions = select_later_versions("measure", (self.measure,))
        return {**values, "versions": versions} if versions else values
