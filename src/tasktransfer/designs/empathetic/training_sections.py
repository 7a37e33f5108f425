"""Config sections of models and of how they are trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from tasktransfer.config import BUILT, TINY, ArchitectureConfig, ModelConfig, TrainingConfig
from tasktransfer.config.fields import (
    DISTINCT,
    LIST,
    NOT_EMPTY,
    NUMBER,
    BatchSize,
    Checkpoint,
    Count,
    Epochs,
    ModelName,
    Section,
)
from tasktransfer.config.training import ONLY_IN_TRANSFER, TRANSFER_SWITCHES
from tasktransfer.core.specs import FAMILIES, Family


class EmpatheticModel(ModelConfig):
    """A model that is built from an architecture, or loaded from a checkpoint."""

    families: ClassVar[tuple[Family, ...]] = (*FAMILIES, "dual_encoder")
    may_be_built: ClassVar[bool] = True

    family: Family = Field(
        description="model family: encoder, decoder, encoder_decoder or dual_encoder"
    )
    checkpoint: Checkpoint = Field(
        description=(
            "checkpoint: 'tiny' (built in), a local folder (./path), a name on the Hugging Face "
            "hub, or 'built' for a new model with the given architecture"
        )
    )
    architecture: ArchitectureConfig | None = Field(
        default=None, description="architecture of the model; required if checkpoint is 'built'"
    )
    second_encoder: ModelName | None = Field(
        default=None,
        description="name of another model in models, whose encoder is added to this model",
    )

    @field_validator("second_encoder")
    @classmethod
    def _check_adapter(cls, second_encoder: str | None, info: ValidationInfo) -> str | None:
        if second_encoder is not None and info.data.get("adapter") is not None:
            raise ValueError(
                "A model with an adapter is saved without its second encoder. Remove adapter "
                "or second_encoder."
            )
        return second_encoder

    @field_validator("checkpoint")
    @classmethod
    def _check_family(cls, checkpoint: str, info: ValidationInfo) -> str:
        family = info.data.get("family")
        if checkpoint == TINY and family == "dual_encoder":
            raise ValueError(f"There is no tiny model of family {family}. Set checkpoint to built.")
        if checkpoint == BUILT and family in ("encoder", "decoder"):
            raise ValueError(
                f"A model of family {family} cannot be built. Use family dual_encoder or "
                "encoder_decoder, or set checkpoint to an existing model."
            )
        return checkpoint

    @field_validator("architecture")
    @classmethod
    def _check_architecture(
        cls, architecture: ArchitectureConfig | None, info: ValidationInfo
    ) -> ArchitectureConfig | None:
        checkpoint, longest = info.data.get("checkpoint"), info.data.get("max_length", 0)
        if architecture is not None and architecture.positions < longest:
            raise ValueError(
                f"positions ({architecture.positions}) is smaller than max_length ({longest}). Set "
                "positions to max_length or more."
            )
        if checkpoint is not None and (checkpoint == BUILT) != (architecture is not None):
            wanted = (
                "Add an architecture."
                if architecture is None
                else "Remove it, or write checkpoint: built."
            )
            raise ValueError(
                "An architecture requires checkpoint: built, but the checkpoint is "
                f"{checkpoint!r}. {wanted}"
            )
        return architecture

    @property
    def is_only_prompted(self) -> bool:
        return self.family == "decoder"

    @property
    def built(self) -> ArchitectureConfig | None:
        return self.architecture

    @property
    def second(self) -> str | None:
        return self.second_encoder


class EmpatheticTraining(TrainingConfig):
    """Default hyperparameters of every training of the study; sections may override them."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "limit_test": "Set evaluation.limit, evaluation.limit_generated or evaluation.limit_pool",
        "task_weighting": "Remove the key, because no training mixes batches of several tasks",
        "loss_on": "Remove the key, because no decoder is trained",
        "fidelity.weighting_when_finetuning": "Remove the key, because no fine-tuning follows a "
        "training on several tasks",
        "fidelity.repetition_penalty": "Remove the key, because evaluation.decoding sets the "
        "decoding",
        **dict.fromkeys(TRANSFER_SWITCHES, ONLY_IN_TRANSFER),
    }

    epochs: Epochs = Field(default=10, description="number of epochs")
    patience: Count | None = Field(
        default=None,
        description=(
            "number of epochs without improvement after which training stops; null to disable "
            "early stopping"
        ),
    )
    optimiser: Literal["adam", "adamax"] = Field(
        default="adamax", description="optimizer: Adam, or Adamax as in the paper's code"
    )
    cosine_scale: Annotated[float, Field(gt=0, le=1000), NUMBER] | None = Field(
        default=None,
        description=(
            "for retrieval models: factor by which the cosine similarity of a reply is "
            "multiplied; null to use the dot product as the score, as in the paper"
        ),
    )

    later: ClassVar[tuple[str, ...]] = (*TrainingConfig.later, "patience")

    @field_validator("optimiser")
    @classmethod
    def _check_optimiser_bits(cls, optimiser: str, info: ValidationInfo) -> str:
        if optimiser == "adamax" and info.data.get("optimiser_bits") == 8:
            raise ValueError(
                "'adamax' requires 32-bit optimizer states. Set optimiser to adam, or "
                "optimiser_bits to 32."
            )
        return optimiser


class Overrides(Section):
    """Hyperparameters that override the section training; null to keep its values."""

    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] | None = Field(
        default=None, description="learning rate"
    )
    batch_size: BatchSize | None = Field(
        default=None, description="number of instances per training step"
    )
    epochs: Epochs | None = Field(default=None, description="number of epochs")
    limit_train: Count | None = Field(
        default=None, description="maximum number of training instances"
    )
    limit_dev: Count | None = Field(default=None, description="maximum number of dev instances")


class SettingConfig(Overrides):
    """Methods and model of a setting: retrieval or generation."""

    model: ModelName = Field(description="name of the model to train, as listed in models")
    ensemble: ModelName | None = Field(
        default=None,
        description=(
            "for ensembles: name of a model in models whose second_encoder is the classifier, "
            "and which otherwise equals this model"
        ),
    )
    methods: Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        description="methods to train, which are described in docs/empathetic.md"
    )


class GenerationConfig(SettingConfig):
    """Methods and models of generation."""

    large_model: ModelName | None = Field(
        default=None,
        description="name of the larger generator, which has one more layer than the others",
    )


class ClassifierConfig(Overrides):
    """The encoder that is trained on emotions, for ensembles."""

    model: ModelName = Field(description="name of an encoder in models")


class PretrainingConfig(Overrides):
    """Training on replies of another dataset before the study's dialogues."""

    dataset: Literal["DailyDialogReplies", "ReplyPairs"] = Field(
        default="DailyDialogReplies",
        description=("dataset of replies on which the model is trained"),
    )
    retrieval: bool = Field(
        default=True,
        description=(
            "false to skip this stage for retrieval methods, which then start from the released "
            "checkpoint"
        ),
    )


class EmotionsConfig(Section):
    """The fastText classifier of emotions, whose labels EmoPrepend prepends."""

    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] = Field(
        default=0.5, description="initial learning rate of fastText, which decays to 0"
    )
    epochs: Epochs = Field(default=5, description="number of epochs over the situations")


class TopicsConfig(Section):
    """The fastText classifier of topics, and its training texts."""

    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] = Field(
        default=0.1, description="initial learning rate of fastText, which decays to 0"
    )
    epochs: Epochs = Field(default=25, description="number of epochs over the texts")
    dataset: Literal["DailyDialog", "Newsgroups"] = Field(
        default="DailyDialog",
        description="dataset with topic labels: 20 Newsgroups, or DailyDialog as a substitute",
    )
