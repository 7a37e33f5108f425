"""The section ``training`` of every design, and the values for ``training.recipe: auto``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from tasktransfer.config.fields import MAX_COUNT, NUMBER, BatchSize, Section
from tasktransfer.config.from_core import CoreKey, FidelityConfig, define_section, resolve_switches
from tasktransfer.core.fidelity import TRAINING, Setting
from tasktransfer.core.specs import (
    Decays,
    Family,
    HeadInitialization,
    LearningRateSchedule,
    Reads,
    Training,
)
from tasktransfer.core.validation import raise_problems
from tasktransfer.errors import format_value

TRANSFER_SWITCHES = tuple(
    f"fidelity.{switch}"
    for switch in (
        *("truncated_spans", "span_choice", "inputs", "answers", "several_answers", "multi_label"),
        *("generation_length", "exp3_steps"),
    )
)
"""Switches that affect transfer studies only.

They concern spans, sets of labels, generated labels, the toolkit's prompts, and bandits.
"""
ONLY_IN_TRANSFER = "Remove the key, because it has an effect in transfer studies only"

ROUND_KEYS = ("round_updates", "patience")
"""Keys of some designs: the length of a round, and early stopping."""

_SIZE = (Field(ge=1, le=MAX_COUNT),)

# A type checker reads each key as Any.
_Keys: Any = define_section(
    "_Keys",
    "training",
    Section,
    Training,
    {
        "learning_rate": CoreKey("peak learning rate of Adam", (Field(gt=0, le=1), NUMBER)),
        "schedule": CoreKey(
            "learning rate schedule after the warm-up: constant, or a linear or cosine decay to "
            "zero over the planned updates"
        ),
        "warmup": CoreKey(
            "fraction of the planned updates in which the learning rate rises from zero",
            (Field(ge=0, lt=1), NUMBER),
        ),
        "head_learning_rate": CoreKey(
            "learning rate of task heads; null to use the learning rate of the other parameters",
            (Field(gt=0, le=1), NUMBER),
        ),
        "weight_decay": CoreKey(
            "weight decay of AdamW, for all parameters except biases and norms; 0 for Adam",
            (Field(ge=0, le=1), NUMBER),
        ),
        "batch_size": CoreKey("number of instances per update", kind=BatchSize),
        "max_grad_norm": CoreKey("maximum gradient norm for clipping", (Field(gt=0), NUMBER)),
        "precision": CoreKey(
            "number format of computations; auto to use bfloat16 if the GPU or CPU supports "
            "bfloat16 and is faster with it, and otherwise float32"
        ),
        "task_weighting": CoreKey(
            "weighting of the tasks' losses in multitask training; auto to follow the setting in "
            "fidelity (inverse_sqrt by default)",
            kind=Literal["auto", "none", "inverse_sqrt"],
            default="auto",
        ),
        "loss_on": CoreKey(
            "for decoders: tokens that contribute to the loss, either only the answer, or prompt "
            "and answer (sequence); auto to follow the setting in fidelity (answer by default)",
            kind=Literal["auto", "answer", "sequence"],
            default="auto",
        ),
        "fidelity": CoreKey(
            "behaviour in details in which the paper and its toolkit differ: a setting "
            "(default, paper or tlidb), or a setting with single switches",
            kind=Setting | FidelityConfig,
            default="default",
        ),
        "dropout": CoreKey(
            "value of every dropout rate of the model; null to keep the checkpoint's values",
            (Field(ge=0, le=0.9), NUMBER),
        ),
        "limit_train": CoreKey(
            "maximum number of training instances per task; null to use all", _SIZE
        ),
        "limit_dev": CoreKey("maximum number of dev instances per task; null to use all", _SIZE),
        "limit_test": CoreKey("maximum number of test instances per task; null to use all", _SIZE),
        "deterministic": CoreKey(
            "true to use deterministic GPU kernels, which are slower, so that the same seed gives "
            "identical numbers; false to allow differences from rounding. Computations on a CPU "
            "are always deterministic"
        ),
        "optimiser_bits": CoreKey(
            "number of bits of Adam's moments; 8 requires the package bitsandbytes (pip install "
            "'tasktransfer[eight-bit]') and saves 6 bytes per trained parameter"
        ),
        "gradient_checkpointing": CoreKey(
            "true to recompute each layer in the backward pass instead of storing its "
            "activations: this needs less memory and a third more time, and gives the same "
            "numbers up to rounding. Requires fidelity.backbone_dropout"
        ),
    },
)


class TrainingConfig(_Keys):  # type: ignore[misc]
    """Hyperparameters (paper, Appendix B). The designs define the length of training."""

    without_effect: ClassVar[Mapping[str, str]] = {}
    """Key → remedy (a sentence without full stop), for keys that change no number in a design.

    They would still change the digests of its results, so setting them is an error.
    """
    later: ClassVar[tuple[str, ...]] = (
        "deterministic",
        "optimiser_bits",
        "gradient_checkpointing",
        "schedule",
        "warmup",
        "head_learning_rate",
        "weight_decay",
    )
    """Keys that were added later, and are omitted from a study's digest at their default."""
    decays: ClassVar[Decays] = "matrices"
    """Parameters that weight decay is applied to."""

    @field_validator("gradient_checkpointing")
    @classmethod
    def _check_gradient_checkpointing(cls, wanted: bool, info: ValidationInfo) -> bool:
        fidelity = info.data.get("fidelity")
        if wanted and fidelity is not None and not resolve_switches(fidelity)[1].backbone_dropout:
            raise ValueError(
                "The value cannot be true while fidelity.backbone_dropout is false, because the "
                "model then trains in evaluation mode, in which activations are not recomputed. "
                "Change one of the two keys."
            )
        return wanted

    @model_validator(mode="after")
    def _refuse_ineffective_keys(self) -> Self:
        raise_problems(
            (f".{key}", f"The value is {format_value(value)}, which has no effect here. {remedy}.")
            for key, remedy, value in self._find_ineffective_keys()
        )
        return self

    def _find_ineffective_keys(self) -> Iterator[tuple[str, str, Any]]:
        """Yield key, remedy and value of each key in ``without_effect`` that the config sets."""
        for key, remedy in self.without_effect.items():
            section, _, switch = key.rpartition(".")
            part = getattr(self, section) if section else self
            value = getattr(part, switch, None)
            default = None if section else type(self).model_fields[switch].default
            if value != default:
                yield key, remedy, value

    def resolve(self) -> dict[str, Any]:
        """Return hyperparameters (``core.specs.Training``), with ``auto`` and switches resolved."""
        setting, switches = resolve_switches(self.fidelity)
        values = self.model_dump(exclude={*ROUND_KEYS, "recipe"})
        for key, value in TRAINING[setting].items():
            if values[key] == "auto":
                values[key] = value
        if values["weight_decay"]:
            values["decays"] = self.decays
        return {**values, "fidelity": switches}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Hyperparameters, named like the config's keys.

    Attributes:
        epochs: minimum number of passes over the training set.
        min_updates: minimum number of updates.
        round_updates: number of updates between two evaluations on dev.
        reads: representation that an encoder's heads read.
        head_initialization: initial weights of an encoder's heads.
    """

    learning_rate: float
    batch_size: int = 16
    epochs: int = 3
    min_updates: int = 300
    round_updates: int = 50
    schedule: LearningRateSchedule = "linear"
    warmup: float = 0.1
    weight_decay: float = 0.01
    reads: Reads = "pooler"
    head_initialization: HeadInitialization = "random"


@dataclass(frozen=True, slots=True)
class _Row:
    """A recipe, and the models that use it.

    Attributes:
        adapted: True for models with an adapter.
        parameters: maximum number of parameters of a model.
    """

    family: Family
    adapted: bool
    parameters: float
    recipe: Recipe


_NO_LIMIT = float("inf")
_SMALL, _BASE = 5e6, 6e7
"""Maximum number of parameters of models like the built-in tiny ones, and of models like MiniLM."""

# The encoders' heads were chosen by dev scores, and four learning rates of MiniLM had equal ones
# (docs/recipes.md). The other values are provisional: they are common for models of this kind, and
# benchmarks/recipe_search.py, which compares settings by dev scores, has not been run to its end.
# An adapter's learning rate is ADAPTER_RATE_FACTOR times that of its row.
_ENCODER = Recipe(1e-4, reads="turn", head_initialization="auto")
_ROWS = (
    _Row("encoder", False, _SMALL, Recipe(1e-3)),
    _Row("encoder", False, _BASE, replace(_ENCODER, learning_rate=3e-4)),
    _Row("encoder", False, _NO_LIMIT, _ENCODER),
    _Row("encoder", True, _NO_LIMIT, _ENCODER),
    _Row("decoder", False, _SMALL, Recipe(1e-3)),
    _Row("decoder", False, _NO_LIMIT, Recipe(1e-4)),
    _Row("decoder", True, _NO_LIMIT, Recipe(1e-4)),
    _Row("encoder_decoder", False, _SMALL, Recipe(1e-3)),
    _Row("encoder_decoder", False, _NO_LIMIT, Recipe(3e-4)),
    _Row("encoder_decoder", True, _NO_LIMIT, Recipe(1e-4)),
)


def find_recipe(family: Family, parameters: int, *, adapted: bool) -> Recipe:
    """Find the training recipe for a model.

    Args:
        parameters: total number of the model's parameters.
        adapted: True if a low-rank adapter is trained instead of the weights.
    """
    rows = (row for row in _ROWS if (row.family, row.adapted) == (family, adapted))
    return next(row.recipe for row in rows if parameters <= row.parameters)
