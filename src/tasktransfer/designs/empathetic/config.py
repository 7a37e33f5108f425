"""The config of the study: its keys in addition to the common ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from tasktransfer.config import (
    BUILT,
    TINY,
    ArchitectureConfig,
    CommonConfig,
    DataConfig,
    ModelConfig,
    TrainingConfig,
)
from tasktransfer.config.brought import Brought
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
    UserPath,
)
from tasktransfer.config.models import check_unique_names
from tasktransfer.config.training import FIDELITY_OF_FETA, OF_FETA
from tasktransfer.core.specs import FAMILIES, Family, Training
from tasktransfer.core.validation import Problem
from tasktransfer.designs.empathetic.contradictions import find_contradictions
from tasktransfer.designs.empathetic.human_section import HumanConfig
from tasktransfer.designs.empathetic.methods import TOPIC_TASKS, parse_prepend
from tasktransfer.designs.empathetic.sources.cards import (
    DAILY,
    ED,
    LABELS,
    PAIRS,
    TAGS,
)
from tasktransfer.results.study import Study

Read = Literal[
    "EmpatheticDialogues", "DailyDialogReplies", "DailyDialog", "Newsgroups", "ReplyPairs",
    "GoEmotions",
]  # fmt: skip
PoolName = Literal["ED", "ED+DD", "R", "ED+DD+R"]
Control = Literal["gold", "random", "untrained", "longer"]
Setting = Literal["retrieval", "generation"]


class EmpatheticData(DataConfig):
    """Dialogues of the study, and folders of the other data."""

    releases: dict[Read, UserPath] = Field(
        default={},
        description=(
            "folder with the release of each dataset (name: folder); a dataset that is not "
            "listed is read from data.release"
        ),
    )

    def get_release(self, dataset: str) -> str:
        folders: Mapping[Any, str] = self.releases
        return folders.get(dataset, self.release)

    def generates(self, dataset: str) -> bool:
        return self.generated and dataset not in self.releases


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
    def _refuse_adapter_with_second_encoder(
        cls, second_encoder: str | None, info: ValidationInfo
    ) -> str | None:
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
            raise ValueError(
                f"There is no tiny model of family {family}. Build one with checkpoint: built."
            )
        if checkpoint == BUILT and family in ("encoder", "decoder"):
            raise ValueError(
                f"A model of family {family} cannot be built. Choose dual_encoder or "
                "encoder_decoder, or name a checkpoint."
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
                f"positions ({architecture.positions}) is smaller than max_length "
                f"({longest}). Raise positions."
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
    def built(self) -> ArchitectureConfig | None:
        return self.architecture

    @property
    def second(self) -> str | None:
        return self.second_encoder


class EmpatheticTraining(TrainingConfig):
    """Default hyperparameters of every training of the study; sections may override them."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "limit_test": "set evaluation.limit, evaluation.limit_generated or evaluation.limit_pool",
        "task_weighting": "remove it, because no training mixes batches of several tasks",
        "loss_on": "remove it, because no decoder is trained",
        "fidelity.weighting_when_finetuning": "remove it, because no fine-tuning follows a "
        "training on several tasks",
        "fidelity.repetition_penalty": "remove it, because evaluation.decoding sets the decoding",
        **dict.fromkeys(FIDELITY_OF_FETA, OF_FETA),
    }

    epochs: Epochs = Field(default=10, description="number of passes over the training set")
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
            "multiplied; null to score with the dot product, as in the paper"
        ),
    )

    later: ClassVar[tuple[str, ...]] = (*TrainingConfig.later, "patience")

    @field_validator("optimiser")
    @classmethod
    def _check_optimiser_bits(cls, optimiser: str, info: ValidationInfo) -> str:
        if optimiser == "adamax" and info.data.get("optimiser_bits") == 8:
            raise ValueError(
                "'adamax' needs optimizer states with 32 bits. Set optimiser to adam, or "
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
    epochs: Epochs | None = Field(
        default=None, description="number of passes over the training set"
    )
    limit_train: Count | None = Field(
        default=None, description="maximum number of training instances"
    )
    limit_dev: Count | None = Field(default=None, description="maximum number of dev instances")


class SettingConfig(Overrides):
    """Methods and model of a setting: retrieval or generation."""

    model: ModelName = Field(description="name of the model to train, as listed in models")
    ensemble: ModelName | None = Field(
        default=None,
        description="name of the same model with the classifier as second_encoder, for ensembles",
    )
    methods: Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        description="methods to train; docs/empathetic.md describes each"
    )


class GenerationConfig(SettingConfig):
    """Methods and models of generation."""

    large_model: ModelName | None = Field(
        default=None,
        description="name of the larger generator, which has one layer more than the others",
    )


class ClassifierConfig(Overrides):
    """The encoder that is trained on emotions, for ensembles."""

    model: ModelName = Field(description="name of an encoder in models")


class PretrainingConfig(Overrides):
    """Training on other replies before the study's own dialogues."""

    dataset: Literal["DailyDialogReplies", "ReplyPairs"] = Field(
        default="DailyDialogReplies", description="dataset whose replies the model is trained on"
    )
    retrieval: bool = Field(
        default=True, description="false to use the released retrieval model without fine-tuning"
    )


class EmotionsConfig(Section):
    """The fastText classifier of emotions, whose labels EmoPrepend prepends."""

    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] = Field(
        default=0.5, description="initial learning rate of fastText, which decays to 0"
    )
    epochs: Epochs = Field(default=5, description="number of passes over the situations")


class TopicsConfig(Section):
    """The fastText classifier of topics, and its training texts."""

    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] = Field(
        default=0.1, description="initial learning rate of fastText, which decays to 0"
    )
    epochs: Epochs = Field(default=25, description="number of passes over the texts")
    dataset: Literal["DailyDialog", "Newsgroups"] = Field(
        default="DailyDialog",
        description="dataset with topic labels: 20 Newsgroups, or DailyDialog as a substitute",
    )


class DecodingConfig(Section):
    """Diverse beam search; one group of one beam is greedy decoding.

    The values are our choice, because the paper does not report them.
    """

    groups: int = Field(default=3, ge=1, le=100, description="number of beam groups")
    beams: int = Field(default=2, ge=1, le=100, description="number of beams per group")
    diversity_penalty: Annotated[float, Field(ge=0, le=100), NUMBER] = Field(
        default=0.5,
        description=(
            "amount that is subtracted from a word's score for each earlier group that chose it "
            "at this step"
        ),
    )
    max_words: int = Field(
        default=40, ge=1, le=1000, description="maximum number of words of a reply"
    )


class EvaluationConfig(Section):
    """Evaluation of replies."""

    block: int = Field(
        default=100, ge=2, le=10_000, description="k of P@1,k: the number of replies in a block"
    )
    shuffles: int = Field(
        default=20,
        ge=2,
        le=1000,
        description="number of random row orders for which P@1 is computed",
    )
    pools: Annotated[tuple[PoolName, ...], LIST, DISTINCT] = Field(
        default=("ED", "ED+DD"),
        description="pools of replies from which retrieval models choose, for BLEU",
    )
    pool_words: int = Field(
        default=20, ge=1, le=1000, description="maximum number of words of a candidate"
    )
    limit: Count | None = Field(
        default=None,
        description=(
            "maximum number of test replies for P@1, in whole blocks of consecutive replies; "
            "null for all"
        ),
    )
    limit_generated: Count | None = Field(
        default=None,
        description="maximum number of test replies to generate; null for the value of limit",
    )
    limit_pool: Count | None = Field(
        default=None,
        description="maximum number of candidates per dataset in a pool; null for all",
    )
    decoding: DecodingConfig = Field(
        default=DecodingConfig(), description="decoding settings of generated replies"
    )

    @property
    def cuts(self) -> str:
        """The limits as text for captions; empty if there are none."""
        limits = {name: getattr(self, name) for name in ("limit", "limit_generated", "limit_pool")}
        listed = (f"evaluation.{name} {n}" for name, n in limits.items() if n is not None)
        return ", ".join(listed)


class EmpatheticConfig(CommonConfig):
    """A study of empathetic replies."""

    data: EmpatheticData = Field(
        default=EmpatheticData(), description="dialogues of the study and where they are stored"
    )
    models: Annotated[
        tuple[EmpatheticModel, ...], LIST, Field(min_length=1), AfterValidator(check_unique_names)
    ] = Field(
        description="models of the study, each with an architecture or a checkpoint with its family"
    )
    training: EmpatheticTraining = Field(
        default=EmpatheticTraining(), description="default hyperparameters of every training"
    )
    retrieval: SettingConfig | None = Field(
        default=None, description="settings of the methods that retrieve replies"
    )
    generation: GenerationConfig | None = Field(
        default=None, description="settings of the methods that generate replies"
    )
    classifier: ClassifierConfig | None = Field(
        default=None, description="encoder that is trained to classify emotions, for ensembles"
    )
    pretraining: PretrainingConfig = Field(
        default=PretrainingConfig(), description="settings of a first training on other replies"
    )
    emotions: EmotionsConfig = Field(
        default=EmotionsConfig(), description="settings of the fastText classifier of emotions"
    )
    topics: TopicsConfig = Field(
        default=TopicsConfig(), description="settings of the fastText classifier of topics"
    )
    evaluation: EvaluationConfig = Field(
        default=EvaluationConfig(), description="settings of the evaluation of replies"
    )
    controls: Annotated[tuple[Control, ...], LIST, DISTINCT] = Field(
        default=(),
        description=(
            "controls to run: EmoPrepend-1 with gold labels (not comparable with other methods) "
            "or with random labels; untrained, an ensemble whose second encoder was not trained "
            "on emotions; longer, Base trained a second time for as many epochs as an ensemble"
        ),
    )
    brought: Brought = Field(
        default=(), description="your own systems, each with its replies to the test contexts"
    )
    human: HumanConfig | None = Field(
        default=None,
        description="human judgements of replies, which the report shows; null for none",
    )
    release_compat: bool = Field(
        default=False,
        description=(
            "true to follow the paper's code: put the best label last, keep the spelling of "
            "newsgroups, and drop the last block of P@1"
        ),
    )

    @property
    def settings(self) -> dict[Setting, SettingConfig]:
        """The configured settings."""
        both: dict[Setting, SettingConfig | None] = {
            "retrieval": self.retrieval,
            "generation": self.generation,
        }
        return {name: section for name, section in both.items() if section}

    @property
    def methods(self) -> tuple[str, ...]:
        """All methods of either setting."""
        return tuple(dict.fromkeys(m for s in self.settings.values() for m in s.methods))

    @property
    def brought_files(self) -> Mapping[str, str]:
        return {replier.name: replier.file for replier in self.brought}

    @property
    def dataset_names(self) -> tuple[str, ...]:
        names = [ED]
        if self.pretrains or any("DD" in pool for pool in self.evaluation.pools):
            names.append(self.pretraining.dataset if self.pretrains else DAILY)
        if self.retrieval and any("DD" in pool for pool in self.evaluation.pools):
            names.append(DAILY)
        if self.retrieval and any("R" in pool.split("+") for pool in self.evaluation.pools):
            names.append(PAIRS)
        if any(parse_prepend(m) and m.startswith("topic") for m in self.methods):
            names.append(self.topics.dataset)
        if "ensemble-tags" in self.methods:
            names.append(TAGS)
        return tuple(dict.fromkeys(names))

    @property
    def pretrains(self) -> bool:
        """True if a model is trained on other replies first."""
        return "generation" in self.settings or self.pretraining.retrieval

    def list_vocabulary_datasets(self, model: str) -> tuple[str, ...]:
        """Return the datasets that the model's vocabulary is built from.

        They do not depend on the study's methods and pools, because words of other data would
        change Base.
        """
        chooses = any(
            config.name == model and config.family == "dual_encoder" for config in self.models
        )
        pretrained = self.pretraining.retrieval or not chooses
        read = (ED, self.pretraining.dataset) if pretrained else (ED,)
        return tuple(name for name in read if name in self.dataset_names)

    @property
    def files_read(self) -> Mapping[str, str]:
        files = self.human.files if self.human else {}
        return {f"human.{key}": path for key, path in files.items()}

    @property
    def known_labels(self) -> tuple[str, ...]:
        """Every label that any method prepends, whatever methods the study has."""
        return (*LABELS, *(label for task in TOPIC_TASKS.values() for label in task.labels))

    def resolve_hyperparameters(
        self, setting: Setting | None, *sections: Overrides | None
    ) -> Training:
        """Return the hyperparameters of the section training with the overrides of other sections.

        Later sections take precedence. ``cosine_scale`` applies to retrieval only.
        """
        values = self.training.resolve()
        if setting != "retrieval":
            values["cosine_scale"] = None
        for section in sections:
            for key in Overrides.model_fields if section else ():
                if getattr(section, key) is not None:
                    values[key] = getattr(section, key)
        return Training(**values)

    @classmethod
    def find_contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        yield from find_contradictions(parts)


def get_config(study: Study) -> EmpatheticConfig:
    """Return the config of a study of this design."""
    assert isinstance(study.config, EmpatheticConfig)
    return study.config
