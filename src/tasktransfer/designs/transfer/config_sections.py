"""Config sections of a transfer study that extend the common ones.

These are ``data``, ``training``, ``models`` and ``checkpoints``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from tasktransfer.config import ALL, CheckpointConfig, DataConfig, ModelConfig, TrainingConfig
from tasktransfer.config.fields import DISTINCT, LIST, Count, Epochs, UserPath
from tasktransfer.config.recipes import Recipe
from tasktransfer.core.specs import HeadInitialization, ModelSpec, Rounds, Training
from tasktransfer.designs.names import DatasetName
from tasktransfer.designs.transfer.algorithms import STAGE_KINDS

PAPER_EPOCHS = {"DailyDialog": 30, "Friends": 20}


class TransferData(DataConfig):
    """Dialogues of the study, and the folders of other datasets' releases."""

    releases: dict[DatasetName, UserPath] = Field(
        default={},
        description=(
            "folder with the release of each dataset (name: folder); a dataset that is not "
            "listed is read from data.release"
        ),
    )

    def get_release(self, dataset: str) -> str:
        return self.releases.get(dataset, self.release)

    def is_generated(self, dataset: str) -> bool:
        return self.generated and dataset not in self.releases


class TransferTraining(TrainingConfig):
    """Hyperparameters (paper, Appendix B)."""

    epochs: Epochs | Annotated[dict[DatasetName, Epochs], Field(min_length=1)] = Field(
        default=PAPER_EPOCHS,
        description="number of epochs; one number, or one per dataset",
    )
    updates: Count | None = Field(
        default=None,
        description=(
            "number of optimizer steps, instead of epochs; a run on several tasks has this "
            "number of steps per task"
        ),
    )
    min_updates: Count | None = Field(
        default=None,
        description=("minimum number of optimizer steps, used if epochs give fewer steps"),
    )
    round_updates: Count | None = Field(
        default=None,
        description=(
            "number of updates per round, after which the model is evaluated on dev; null to use "
            "one epoch"
        ),
    )
    patience: Count | None = Field(
        default=None,
        description=(
            "number of rounds without improvement after which training stops; null to disable "
            "early stopping"
        ),
    )
    head_initialization: HeadInitialization = Field(
        default="random",
        description=(
            "initial weights of an encoder's task heads: random, or fitted to the training split "
            "by logistic regression on the encoder's states before the first update. Heads of "
            "span, multiple choice and rating tasks are always random"
        ),
    )
    recipe: Literal["auto"] | None = Field(
        default=None,
        description=(
            "auto to derive keys of this section that the file does not set, and models[].reads, "
            "from the model's family and size; null to set these keys as in the paper"
        ),
    )

    later: ClassVar[tuple[str, ...]] = (
        *TrainingConfig.later,
        *("updates", "min_updates", "round_updates", "patience", "recipe"),
        "head_initialization",
    )

    @property
    def keys_in_file(self) -> set[str]:
        """Keys that the file sets to a value other than null."""
        return {key for key in self.model_fields_set if getattr(self, key) is not None}

    @property
    def has_own_budget(self) -> bool:
        """True if the file sets the length of training."""
        return bool({"epochs", "updates", "min_updates"} & self.keys_in_file)

    def apply_recipe(self, recipe: Recipe) -> TransferTraining:
        """Return the section with a recipe's values for the keys that are not in the file."""
        budget = ("updates", "round_updates")
        values = {
            key: value
            for key, value in asdict(recipe).items()
            if key in type(self).model_fields
            and key not in self.keys_in_file
            and not (key in budget and self.has_own_budget)
        }
        section: TransferTraining = self.model_copy(update=values)
        return section


def build_training_hyperparameters(dataset: str, section: TransferTraining) -> Training:
    """Return the hyperparameters of trainings on a dataset, from the section ``training``."""
    epochs = section.epochs
    if isinstance(epochs, dict):
        epochs = epochs.get(dataset, 1)  # checked to be there unless the budget is in updates
    return Training(**{**section.resolve(), "epochs": epochs})


class ModelTraining(NamedTuple):
    """Training settings of a model; ``trainings`` has the hyperparameters by dataset."""

    model: ModelSpec
    trainings: Mapping[str, Training]
    rounds: Rounds


class TransferModel(ModelConfig):
    """A model of the study."""

    trained: bool = Field(
        default=True,
        description="true to train the model in this study; false to only prompt it",
    )

    @property
    def is_only_prompted(self) -> bool:
        return not self.trained

    reads: Literal["pooler", "first_token", "mean"] = Field(
        default="pooler",
        description=(
            "input of an encoder's task heads: the pooler's output (as in the paper), the first "
            "token's last hidden state, or the mean of all tokens' last hidden states"
        ),
    )

    @field_validator("reads")
    @classmethod
    def _check_family(cls, reads: str, info: ValidationInfo) -> str:
        family = info.data.get("family", "encoder")
        if family != "encoder" and reads != "pooler":
            raise ValueError(
                f"The value is {reads!r}, but models of family {family} have no task heads. "
                "Remove the key."
            )
        return reads


StageKind = Literal["baseline", "multitask", "finetune", "control"]


def _expand_kinds(value: Any) -> Any:
    return list(STAGE_KINDS) if value == ALL else value


class TransferCheckpoints(CheckpointConfig):
    """Files that stay on disk in addition to records and predictions."""

    keep: Annotated[
        tuple[StageKind, ...],
        LIST,
        DISTINCT,
        BeforeValidator(_expand_kinds, json_schema_input_type=Literal["all"] | list[StageKind]),
    ] = Field(
        default=("baseline",),
        description=(
            "kinds of stages whose checkpoints stay on disk; all to keep the checkpoints of every "
            "kind"
        ),
    )
