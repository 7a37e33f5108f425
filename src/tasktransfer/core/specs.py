"""What a stage is told besides its tasks: the model that it trains, and how."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

from tasktransfer.core.fidelity import DEFAULT, Fidelity
from tasktransfer.core.versions import raised

Family = Literal["encoder", "decoder", "encoder_decoder", "dual_encoder"]
FAMILIES: tuple[Family, ...] = ("encoder", "decoder", "encoder_decoder")
"""Those that have a built-in tiny model."""

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
"""How updates are made of the training tasks' instances, see ``training.samplers``."""

Keep = Literal["best", "every"]

Pooling = Literal["mean", "pooler"]
"""A text's encoding: the mean over its tokens, or what the pooler makes of the first one."""


Reads = Literal["pooler", "own_pooler", "first_token", "mean", "pair"]
"""What an encoder's heads read of a sequence: what the pooler makes of its first token, which is
drawn at random where the checkpoint lacks one, or is refused then (``own_pooler``); the first
token's last state as it is; the mean of the last states over all tokens; or the two segments, each
read by itself (``models.pairs``)."""

LearningRateSchedule = Literal["constant", "linear", "cosine"]
"""Course of the learning rate after its warm-up, over the planned updates of a training: constant,
or a decay to zero."""

Decays = Literal["all", "matrices"]
"""Parameters that weight decay is applied to: all, or all but biases and norms."""

SERVED = "served:"
"""Begins the weights of a model that an endpoint serves."""

REFUSE_UNKNOWN = {"extra": "forbid"}
"""How pydantic reads a node from JSON (``node_json``): a key that no field has is an error."""


def plain_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that holds plain values only: ``asdict`` copies each of them
    deeply, which shows where it is called for thousands of stages."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


AdapterStart = Literal["continue", "merge", "stack"]
"""What a training makes of the adapter that it starts from: it goes on training it; it puts it into
the weights and trains a new one; or it trains a new one beside it, which stays as it is."""

RATE_OF_ADAPTERS = 10
"""An adapter's learning rate is so many times that of whole models, where it has none of its
own."""


@dataclass(frozen=True, slots=True)
class LowRank:
    """An adapter that is trained in place of the model's own weights (Hu et al. 2021, LoRA): to a
    linear layer W (out, in) it adds ``alpha / rank`` times B (out, rank) A (rank, in).

    ``target_modules``: the layers that get one, by the ends of their names; none: all linear layers
    but the output layer. ``dropout``: of what A reads. ``start``: see ``AdapterStart``; it is part
    of the identity of stages that start from others. ``learning_rate``: None:
    ``RATE_OF_ADAPTERS`` times that of the training, whose identity has it.
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
        """What of it changes the numbers of every training."""
        named = sorted(self.target_modules) or "all-linear"
        own = {"kind": "lora", "rank": self.rank, "alpha": self.alpha, "dropout": self.dropout}
        return {**own, "target_modules": named}


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A checkpoint with its family.

    ``weights`` names the content, never a path: ``<hub name>@<revision>`` for the Hugging Face
    hub, ``sha256:<digest>`` of the files for a local folder, ``tiny:<digest>`` of the recipe for
    the built-in tiny models, ``built:<digest>`` of the recipe of an architecture whose weights are
    drawn, ``served:<name>`` for what an endpoint serves by this name. ``name`` is how the study
    calls it; it stands in paths and tables and is not part of the identity. ``beside``: an encoder
    that reads the same text beside it. ``beside_reads``: its encoding of a text, the mean over
    tokens or what a classifier's head reads, the pooled first token. ``adapter_reduction``: an
    adapter for each task, whose bottleneck is so many times narrower than the hidden states
    (``models.adapters``); None: none. ``reads``: what its heads read. ``adapter``: what is trained
    in place of its weights; None: they are.
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

    def trained_by(self, training: Training) -> Training:
        """The hyperparameters with the learning rate of what is trained of it."""
        if self.adapter is None:
            return training
        rate = self.adapter.learning_rate or training.learning_rate * RATE_OF_ADAPTERS
        return replace(training, learning_rate=float(f"{rate:.12g}"))

    @property
    def served(self) -> bool:
        """Whether it is behind an endpoint, and runs on no device of ours."""
        return self.weights.startswith(SERVED)

    @property
    def identity(self) -> dict[str, Any]:
        """What of the model changes numbers."""
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
)
"""Fields of ``Training`` that are no part of older identities."""


@dataclass(frozen=True, slots=True)
class Training:
    """The hyperparameters of one training (paper, Appendix B). Everything here changes numbers, but
    for ``gradient_checkpointing``: what the backward pass needs is computed once more, not kept.

    Units: ``batch_size`` in instances, ``epochs`` in passes over the training set,
    ``learning_rate`` per Adam step (its highest value), ``limit_*`` in instances per task (null:
    all). ``dropout`` replaces every dropout rate of the model (null: the checkpoint's own).
    ``fidelity``: what is done where the paper and its toolkit differ. ``deterministic``: equal
    seeds give equal numbers on a GPU too, which takes other and slower kernels there.
    ``optimiser``: Adam or its variant with the infinity norm. ``cosine_scale``: two encodings are
    compared by so many times their cosine; null: by their dot product. ``weight_decay``: of AdamW,
    per step and unit of the learning rate; 0: plain Adam. ``optimiser_bits``: of a number of the
    optimiser's moments. ``updates``: budget in steps of the optimiser for each training task, in
    place of ``epochs``; ``min_updates``: least budget where ``epochs`` is the budget. ``schedule``
    and ``warmup``: course of the learning rate, which rises from zero in the first ``warmup``
    (fraction) of the updates. ``head_learning_rate``: of task heads; None: ``learning_rate``.
    ``decays``: parameters that ``weight_decay`` is applied to.
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

    @property
    def budget(self) -> str:
        """Length of the training for names: ``60_epochs`` or ``1200_updates``."""
        if self.updates is not None:
            return f"{self.updates}_updates"
        return f"{self.epochs}_epochs"

    def planned_updates(self, sampler: Sampler, tasks: int, in_epoch: int) -> int:
        """Return the updates of a training, if nothing ends it before.

        A budget in updates is meant for each training task, as epochs are: a training on several
        tasks has a multiple of it, divided by the batches that an update of its sampler reads.

        Args:
            tasks: number of training tasks.
            in_epoch: updates of an epoch.
        """
        batches = {"together": tasks, "random_weights": tasks, "exp3": 2, "ucb1": 2}.get(sampler, 1)
        least = self.min_updates or 0
        updates = math.ceil((least if self.updates is None else self.updates) * tasks / batches)
        return updates if self.updates is not None else max(self.epochs * in_epoch, updates)

    def lengthen(self, factor: int) -> Training:
        """Return the hyperparameters with a budget that is a multiple of this one."""
        return replace(
            self,
            epochs=factor * self.epochs,
            updates=None if self.updates is None else factor * self.updates,
            min_updates=None if self.min_updates is None else factor * self.min_updates,
        )

    def limit_to_epochs(self, epochs: int) -> Training:
        """Return the hyperparameters with a budget of epochs alone."""
        return replace(self, epochs=epochs, updates=None, min_updates=None)

    @property
    def identity(self) -> dict[str, Any]:
        """All of it as plain values, for an identity; what came later, where it is set."""
        values = {**plain_fields(self), "fidelity": self.fidelity.identity}
        del values["gradient_checkpointing"]
        if self.updates is not None:
            del values["epochs"], values["min_updates"]
        for field in fields(self):
            if field.name in _LATER and values.get(field.name, "") == field.default:
                del values[field.name]
        return values


@dataclass(frozen=True, slots=True)
class Rounds:
    """Rounds of a training if its step does not say otherwise, see ``Selection``."""

    every: int | None = None
    patience: int | None = None

    def apply_to(self, selection: Selection) -> Selection:
        """Return a selection with these values in place of those that it leaves open."""
        every = self.every if selection.every is None else selection.every
        patience = self.patience if selection.patience is None else selection.patience
        return replace(selection, every=every, patience=patience)


OPEN = Rounds()
"""Rounds as a selection has them."""


_OF_DISK = ("keep", "rounds")
"""Fields of ``Selection`` that say what is left on the disk and change no number."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What chooses a stage's best round.

    ``tasks``: whose dev splits are measured; the mean over them decides. Trainings that differ in
    them alone are one (``nodes.Stage``). ``measure``: a name in
    ``metrics.MEASURES``, which also says whether more is better. ``every``: updates in a round;
    None: a round is an epoch. ``patience``: the training ends after so many rounds without a
    better one; None: never before its last epoch. ``keep``: ``every`` leaves the parameters of all
    rounds on the disk, those of round 0 too, the untrained model, which is never the best.
    ``rounds``: those of them that are left; none: all. Which rounds are left changes no number and
    is no part of an identity: a finished training that lacks one which is asked for is made once
    more and leaves those too that were there (ADR 0023).
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    tasks: tuple[str, ...]
    measure: str = "score"
    every: int | None = None
    patience: int | None = None
    keep: Keep = "best"
    rounds: tuple[int, ...] = ()

    def keeps(self, number: int) -> bool:
        """Whether the parameters of a round are left."""
        return self.keep == "every" and (not self.rounds or number in self.rounds)

    def with_rounds_of(self, other: Selection) -> Selection:
        """The same choice, leaving the rounds that either keeps."""
        both = [selection for selection in (self, other) if selection.keep == "every"]
        if not both:
            return self
        rounds = {number for selection in both for number in selection.rounds}
        named = tuple(sorted(rounds)) if all(selection.rounds for selection in both) else ()
        return replace(self, keep="every", rounds=named)

    @property
    def identity(self) -> dict[str, Any]:
        """What of it changes numbers, without ``tasks``; defaults are left out too, so that a new
        field leaves an identity alone."""
        values = {
            field.name: value
            for field in fields(self)
            if field.name not in ("tasks", *_OF_DISK)
            and (value := getattr(self, field.name)) != field.default
        }
        versions = raised("measure", (self.measure,))
        return {**values, "versions": versions} if versions else values
