"""The section ``training``, as every design has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from tasktransfer.config.fidelity import FidelityConfig, switches_of
from tasktransfer.config.fields import NUMBER, BatchSize, Count, Section
from tasktransfer.core.fidelity import TRAINING, Setting
from tasktransfer.core.specs import Decays, LearningRateSchedule
from tasktransfer.core.validation import refuse, show

FIDELITY_OF_FETA = tuple(
    f"fidelity.{switch}"
    for switch in (
        *("lost_spans", "span_choice", "inputs", "answers", "several_answers", "multi_label"),
        *("generation_length", "exp3_steps"),
    )
)
"""Switches for spans, sets of labels, generated labels, prompts of the toolkit's and bandits: a
transfer study alone has these."""
OF_FETA = "remove it, as only a transfer study has what it changes"

OF_ROUNDS = ("round_updates", "patience")
"""Keys that say what a round is and when a training ends early, in designs that have them."""


class TrainingConfig(Section):
    """Hyperparameters (paper, Appendix B). How long to train is for the design to say."""

    without_effect: ClassVar[Mapping[str, str]] = {}
    """Key → remedy, for keys that change no number in a design. They would still rename its
    results, so they are refused if they are set."""
    later: ClassVar[tuple[str, ...]] = (
        "deterministic",
        "optimiser_bits",
        "gradient_checkpointing",
        "schedule",
        "warmup",
        "head_learning_rate",
        "weight_decay",
    )
    """Keys that came later, and are left out of a study's digest at their default."""
    decays: ClassVar[Decays] = "matrices"
    """Parameters that weight decay is applied to."""

    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] = Field(
        default=3e-5, description="Adam's learning rate, at its highest"
    )
    schedule: LearningRateSchedule = Field(
        default="constant",
        description="course of the learning rate after its warm-up: constant, or a linear or "
        "cosine decay to zero over the planned updates",
    )
    warmup: Annotated[float, Field(ge=0, lt=1), NUMBER] = Field(
        default=0.0,
        description="fraction of the planned updates in which the learning rate rises from zero",
    )
    head_learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] | None = Field(
        default=None, description="learning rate of task heads; null: as all other parameters"
    )
    weight_decay: Annotated[float, Field(ge=0, le=1), NUMBER] = Field(
        default=0.0, description="of AdamW, on all parameters but biases and norms; 0: plain Adam"
    )
    batch_size: BatchSize = Field(default=60, description="instances per step")
    max_grad_norm: Annotated[float, Field(gt=0), NUMBER] = Field(
        default=1.0, description="gradients are clipped to this norm"
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto",
        description="auto: bfloat16 where GPU or CPU has units for it and gains by it, else "
        "float32",
    )
    task_weighting: Literal["auto", "none", "inverse_sqrt"] = Field(
        default="auto",
        description="how a task's loss is weighted when several are trained together; auto: as "
        "fidelity's setting says, inverse_sqrt by default",
    )
    loss_on: Literal["auto", "answer", "sequence"] = Field(
        default="auto",
        description="decoders: loss on the answer only, or on prompt and answer; auto: as "
        "fidelity's setting says, answer by default",
    )
    fidelity: Setting | FidelityConfig = Field(
        default="default",
        description="what is done where the paper and its toolkit differ: a setting (default, "
        "paper or tlidb), or a setting with single switches",
    )
    dropout: Annotated[float, Field(ge=0, le=0.9), NUMBER] | None = Field(
        default=None,
        description="replaces every dropout rate of the model; null keeps the checkpoint's own",
    )
    limit_train: Count | None = Field(
        default=None, description="training instances per task at most; null means all"
    )
    limit_dev: Count | None = Field(
        default=None, description="dev instances per task at most; null means all"
    )
    limit_test: Count | None = Field(
        default=None, description="test instances per task at most; null means all"
    )
    deterministic: bool = Field(
        default=False,
        description="equal seeds give equal numbers on a GPU too, by slower kernels; without it "
        "they agree there to rounding only. A CPU repeats itself always",
    )
    optimiser_bits: Literal[32, 8] = Field(
        default=32,
        description="bits of a number of Adam's moments; 8 needs the package bitsandbytes (pip "
        "install 'tasktransfer[eight-bit]') and spares 6 bytes a trained parameter",
    )
    gradient_checkpointing: bool = Field(
        default=False,
        description="compute each layer once more on the way back, in place of keeping it: less "
        "memory, a third more time, the same numbers to rounding. Needs fidelity's "
        "backbone_dropout",
    )

    @field_validator("gradient_checkpointing")
    @classmethod
    def _in_training_mode(cls, wanted: bool, info: ValidationInfo) -> bool:
        fidelity = info.data.get("fidelity")
        if wanted and fidelity is not None and not switches_of(fidelity)[1].backbone_dropout:
            raise ValueError(
                "found true, and fidelity.backbone_dropout is false: a model is then trained as it "
                "is evaluated, and nothing is computed once more; set one of the two otherwise"
            )
        return wanted

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        refuse(
            (f".{key}", f"found {show(value)}, which changes nothing in this design: {remedy}")
            for key, remedy, value in self._keys_without_effect()
        )
        return self

    def _keys_without_effect(self) -> Iterator[tuple[str, str, Any]]:
        """Yield key, remedy and value of the keys in ``without_effect`` that are set."""
        for key, remedy in self.without_effect.items():
            section, _, switch = key.rpartition(".")
            part = getattr(self, section) if section else self
            value = getattr(part, switch, None)
            default = None if section else type(self).model_fields[switch].default
            if value != default:
                yield key, remedy, value

    @property
    def cuts(self) -> str:
        """The limits on instances, by name and in numbers, for captions; empty: none."""
        names = ("limit_train", "limit_dev", "limit_test")
        limits = {name: getattr(self, name) for name in names}
        return ", ".join(f"{name} {limit}" for name, limit in limits.items() if limit is not None)

    def resolved(self) -> dict[str, Any]:
        """The fields of ``core.specs.Training``, without ``auto`` and with every switch set."""
        setting, switches = switches_of(self.fidelity)
        values = self.model_dump(exclude={*OF_ROUNDS, "recipe"})
        for key, value in TRAINING[setting].items():
            if values[key] == "auto":
                values[key] = value
        if values["weight_decay"]:
            values["decays"] = self.decays
        return {**values, "fidelity": switches}
