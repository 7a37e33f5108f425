"""Config sections of a transfer study that extend the common ones.

These are ``data``, ``training``, ``models``, ``checkpoints`` and ``prompted``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from tasktransfer.config import ALL, CheckpointConfig, DataConfig, ModelConfig, TrainingConfig
from tasktransfer.config.fields import DISTINCT, LIST, Count, Epochs, UserPath
from tasktransfer.config.models import (
    PromptedModelConfig,
    Seen,
    SeenField,
    find_model_problems,
)
from tasktransfer.config.training import Recipe
from tasktransfer.core.specs import HeadInitialization, ModelSpec, Rounds, Training
from tasktransfer.core.validation import Problem, extend_path
from tasktransfer.designs.names import DatasetName, get_tasks
from tasktransfer.designs.transfer.algorithms import STAGE_KINDS
from tasktransfer.designs.transfer.dataset_section import DatasetConfig
from tasktransfer.tasks.asking import list_hidden_fields

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
            "initial weights of an encoder's task heads. random: random weights. "
            "logistic_regression: fitted to the training split, before the first update, by "
            "logistic regression on the encoder's states (heads of span, multiple choice and "
            "rating tasks are random). auto: fitted only in tasks with a single label per turn, "
            "and the model before the first update is never selected as the best one"
        ),
    )
    recipe: Literal["auto"] | None = Field(
        default=None,
        description=(
            "auto to derive the omitted keys of this section, and models[].reads, from the "
            "model's family and size; null to use the paper's values for these keys"
        ),
    )

    later: ClassVar[tuple[str, ...]] = (
        *TrainingConfig.later,
        *("updates", "min_updates", "round_updates", "patience", "recipe"),
        "head_initialization",
    )

    @property
    def keys_in_file(self) -> set[str]:
        """Keys to which the config file assigns a value other than null."""
        return {key for key in self.model_fields_set if getattr(self, key) is not None}

    @property
    def has_own_budget(self) -> bool:
        """True if the config file sets the length of training, not only its minimum."""
        return bool({"epochs", "updates"} & self.keys_in_file)

    def apply_recipe(self, recipe: Recipe) -> TransferTraining:
        """Return the section, with a recipe's values for keys that the config file does not set.

        A length of training in the file (``epochs`` or ``updates``) replaces the recipe's. If the
        file gives the length only in ``epochs``, each epoch is a round.
        """
        budget = {"epochs", "min_updates"} if self.has_own_budget else set()
        if "epochs" in self.keys_in_file and "min_updates" not in self.keys_in_file:
            budget.add("round_updates")
        values = {
            key: value
            for key, value in asdict(recipe).items()
            if key in type(self).model_fields and key not in self.keys_in_file and key not in budget
        }
        section: TransferTraining = self.model_copy(update=values)
        return section


def build_training_hyperparameters(dataset: str, section: TransferTraining) -> Training:
    """Return the hyperparameters of trainings on a dataset from the section ``training``."""
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

    reads: Literal["pooler", "first_token", "mean", "turn"] = Field(
        default="pooler",
        description=(
            "input of an encoder's task heads: the pooler's output (as in the paper), the first "
            "token's last hidden state, the mean of all tokens' last hidden states (mean), or the "
            "mean over the labelled turn's tokens, in tasks that label turns (turn; the same as "
            "mean in other tasks)"
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


MOST_SHOTS = 1000


def _wrap_number(value: Any) -> Any:
    return [value] if isinstance(value, int) and not isinstance(value, bool) else value


_Shots = Annotated[int, Field(ge=0, le=MOST_SHOTS)]


_SeenOfDatasets = SeenField | Annotated[dict[DatasetName, SeenField], Field(min_length=1)]


class PromptedConfig(PromptedModelConfig):
    """A released model that is prompted on every task of the study.

    It is one of ``models``, or is behind an endpoint.
    """

    shots: Annotated[
        tuple[_Shots, ...],
        LIST,
        Field(min_length=1),
        DISTINCT,
        BeforeValidator(_wrap_number, json_schema_input_type=_Shots | list[_Shots]),
    ] = Field(
        default=(0,),
        description=(
            "number of few-shot examples, which are sampled from the training set with the seed; "
            "one number, or several numbers that are evaluated separately"
        ),
    )
    test_data_seen: _SeenOfDatasets = Field(
        default="unknown",
        description=(
            "whether the model saw the test dialogues in its training (contamination), as far as "
            "known; one answer, or one per dataset; the answer is shown in tables and does not "
            "affect any score"
        ),
    )
    limit_test: Count | None = Field(
        default=None,
        description=(
            "maximum number of test instances per task, because prompting is slower than "
            "predicting; null to use training.limit_test"
        ),
    )

    def get_test_data_seen(self, dataset: str) -> Seen:
        """Return whether the model has seen a dataset's test dialogues, as far as known."""
        if isinstance(self.test_data_seen, dict):
            return self.test_data_seen.get(dataset, "unknown")
        return self.test_data_seen


Prompted = Annotated[tuple[PromptedConfig, ...], LIST, DISTINCT]


def find_hidden_field_problems(datasets: Sequence[DatasetConfig]) -> Iterator[Problem]:
    """Yield a problem for each dataset whose prompts hide the field that answers refer to."""
    for dataset in datasets:
        cards = get_tasks(dataset.name)
        for name in dataset.tasks:
            if hidden := list_hidden_fields(cards[name]):
                yield Problem(
                    f"datasets.{dataset.name}.tasks",
                    f"The prompts of {name} do not show {', '.join(hidden)}, which its answer is "
                    "about, so no model can be prompted on it. Remove the task or prompted.",
                )
                break


def find_prompted_problems(
    entries: Sequence[PromptedConfig], models: Sequence[ModelConfig]
) -> Iterator[Problem]:
    """Yield problems of the section ``prompted``, including conflicts with ``models``."""
    named = {model.name: model for model in models}
    entry_by_shots: dict[tuple[str, int], int] = {}
    first: dict[str, tuple[int, tuple[Any, ...]]] = {}
    for index, entry in enumerate(entries):
        path = extend_path("prompted", index)
        hint = "Add it to models, with trained: false to only prompt it, or give an endpoint."
        yield from find_model_problems(path, entry, named, hint)
        same = (
            *(entry.endpoint, entry.served, entry.max_length),
            *(entry.chat, entry.test_data_seen, entry.limit_test, entry.thinking_tokens),
        )
        earlier, before = first.setdefault(entry.model, (index, same))
        if before != same:
            yield Problem(
                path,
                f"{entry.model!r} has another endpoint, served, max_length, chat, test_data_seen, "
                f"limit_test or thinking_tokens than in prompted[{earlier}]. Give it another name, "
                "or list the shots in one entry.",
            )
        for shots in entry.shots:
            earlier = entry_by_shots.setdefault((entry.model, shots), index)
            if earlier != index:
                message = f"{entry.model!r} with {shots} shots is also in prompted[{earlier}]"
                yield Problem(path, f"{message}. Remove one of the two.")
