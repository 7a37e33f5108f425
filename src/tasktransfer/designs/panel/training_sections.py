"""Config sections of training pairs and of the trainings on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tasktransfer.config import TrainingConfig, fields
from tasktransfer.config.fields import DISTINCT, LIST, NUMBER, Count, ModelName, Section
from tasktransfer.config.training import ONLY_IN_TRANSFER, TRANSFER_SWITCHES
from tasktransfer.core.specs import Decays

Perturbation = Literal[
    "drop", "shuffle", "repeat", "random_utterance", "context_copy", "mask_and_fill"
]
PERTURBATIONS: tuple[Perturbation, ...] = (
    "drop", "shuffle", "repeat", "random_utterance", "context_copy", "mask_and_fill",
)  # fmt: skip
Perturbations = Annotated[tuple[Perturbation, ...], LIST, Field(min_length=1), DISTINCT]
Rate = Annotated[float, Field(gt=0, le=1), NUMBER]
Share = Annotated[float, Field(ge=0.5, le=1), NUMBER]


class PanelTraining(TrainingConfig):
    """Default hyperparameters of every training (section VI-C); sections may override them."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "loss_on": "Remove the key, because no decoder is trained",
        "fidelity.repetition_penalty": "Remove the key, because nothing is generated",
        "fidelity.selection_metrics": "Remove the key, because accuracy or Spearman's correlation "
        "selects the best round",
        **dict.fromkeys(TRANSFER_SWITCHES, ONLY_IN_TRANSFER),
    }
    later: ClassVar[tuple[str, ...]] = tuple(
        key for key in TrainingConfig.later if key != "weight_decay"
    )
    decays: ClassVar[Decays] = "all"

    learning_rate: Rate | None = Field(
        default=None,
        description=(
            "learning rate of AdamW for sections without learning_rate; null to use the paper's "
            "value"
        ),
    )
    batch_size: fields.BatchSize = Field(
        default=32, description="number of instances per training step"
    )
    weight_decay: Annotated[float, Field(ge=0, le=1), NUMBER] = Field(
        default=0.01,
        description=(
            "weight decay of AdamW; the paper does not report it, so the default is the default "
            "of torch"
        ),
    )


INHERITED = "learning rate; null to use training.learning_rate, or the paper's value"


class StageConfig(Section):
    """Hyperparameters of one kind of training."""

    paper_rate: ClassVar[float]
    """The learning rate if neither the section nor training gives one."""

    learning_rate: Rate | None = Field(default=None, description=INHERITED)
    epochs: fields.Epochs = Field(description="maximum number of epochs over the training pairs")
    round_updates: Count | None = Field(
        description=(
            "number of updates per round, after which the model is evaluated on dev; null to use "
            "one epoch"
        )
    )
    patience: Count | None = Field(
        description="number of rounds without improvement after which training stops"
    )
    batch_size: fields.BatchSize | None = Field(
        default=None,
        description="number of instances per training step; null to use training.batch_size",
    )


class LabellerConfig(StageConfig):
    """The model that labels pairs, as a substitute for DEB."""

    paper_rate: ClassVar[float] = 3e-5  # ours: DEB was trained by others

    epochs: fields.Epochs = Field(
        default=2, description="maximum number of epochs over the training pairs"
    )
    round_updates: Count | None = Field(
        default=None,
        description=(
            "number of updates per round, after which the model is evaluated on dev; null to "
            "use one epoch"
        ),
    )
    patience: Count | None = Field(
        default=None, description="number of rounds without improvement after which training stops"
    )
    model: ModelName = Field(description="name of an encoder in models")
    limit_train: Count | None = Field(default=None, description="maximum number of training pairs")
    limit_dev: Count | None = Field(default=None, description="maximum number of dev pairs")
    two_towers: bool = Field(
        default=False,
        description=(
            "true to encode context and response separately, with one shared encoder, as the "
            "method twin does; false to encode them together, as one input"
        ),
    )


class JointConfig(StageConfig):
    """Training on all domains together, and of models without adapters (section VI-C)."""

    paper_rate: ClassVar[float] = 5e-6

    epochs: fields.Epochs = Field(
        default=3, description="maximum number of epochs over the training pairs"
    )
    round_updates: Count | None = Field(
        default=2000,
        description=(
            "number of updates per round, after which the model is evaluated on dev; null to "
            "use one epoch"
        ),
    )
    patience: Count | None = Field(
        default=10, description="number of rounds without improvement after which training stops"
    )
    sampler: Literal["uniform", "mixed"] = Field(
        default="mixed",
        description=(
            "sampling of domains: uniform to sample one domain for each batch, mixed to sample "
            "the domain for each pair"
        ),
    )


class ExpertsConfig(StageConfig):
    """Training of each domain's adapter and classifier, with a frozen encoder."""

    paper_rate: ClassVar[float] = 1e-5

    epochs: fields.Epochs = Field(
        default=10, description="maximum number of epochs over the training pairs"
    )
    round_updates: Count | None = Field(
        default=1024,
        description=(
            "number of updates per round, after which the model is evaluated on dev; null to "
            "use one epoch"
        ),
    )
    patience: Count | None = Field(
        default=3, description="number of rounds without improvement after which training stops"
    )


class TwinConfig(StageConfig):
    """Training of two encoder towers on pairs of all domains with labels by construction.

    This method is ours, not the paper's.
    """

    paper_rate: ClassVar[float] = 2e-5  # Sentence-BERT's

    epochs: Count = Field(
        default=1, description=("maximum number of epochs over the training pairs")
    )
    round_updates: Count | None = Field(
        default=None,
        description=(
            "number of updates per round, after which the model is evaluated on dev; null to "
            "use one epoch"
        ),
    )
    patience: Count | None = Field(
        default=None, description="number of rounds without improvement after which training stops"
    )
    perturbations: Perturbations = Field(
        default=("random_utterance",), description="perturbations that create unfitting responses"
    )


class PairsConfig(Section):
    """The training pairs of each domain (section V)."""

    train: Count = Field(default=400_000, description="number of training pairs per domain")
    dev: Count = Field(default=40_000, description="number of dev pairs per domain")
    candidates_per_pair: Annotated[float, Field(ge=1, le=100), NUMBER] = Field(
        default=3.0,
        description="number of candidate pairs that are built and labelled for each requested pair",
    )
    labels: Literal["labeller", "given", "made"] = Field(
        default="labeller",
        description=(
            "source of the labels: labeller (predictions of the model in the section labeller), "
            "given (the file probabilities/<domain>.jsonl in the release) or made (the way in "
            "which the pair was created)"
        ),
    )
    min_probability: Share = Field(
        default=0.9,
        description=(
            "minimum probability of a label; pairs whose label is less probable are dropped"
        ),
    )
    perturbations: Perturbations = Field(
        default=PERTURBATIONS,
        description="perturbations that create unfitting responses, used in turn",
    )
    seed: fields.Seed = Field(default=0, description="seed of the perturbations")
