"""What a config of the study says beyond the common keys."""

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
from tasktransfer.config.sections import named_once
from tasktransfer.config.training import FIDELITY_OF_FETA, OF_FETA
from tasktransfer.core.specs import FAMILIES, Family, Training
from tasktransfer.core.validation import Problem
from tasktransfer.designs.empathetic.contradictions import contradictions
from tasktransfer.designs.empathetic.methods import TOPIC_TASKS, prepended
from tasktransfer.designs.empathetic.sources.cards import (
    DAILY,
    ED,
    LABELS,
    PAIRS,
    TAGS,
)

Read = Literal[
    "EmpatheticDialogues", "DailyDialogReplies", "DailyDialog", "Newsgroups", "ReplyPairs",
    "GoEmotions",
]  # fmt: skip
PoolName = Literal["ED", "ED+DD", "R", "ED+DD+R"]
Setting = Literal["retrieval", "generation"]


class EmpatheticData(DataConfig):
    """Which dialogues are studied, and where the other data lie."""

    releases: dict[Read, UserPath] = Field(
        default={}, description="dataset: folder of its release, where that is not data.release"
    )

    def release_of(self, dataset: str) -> str:
        folders: Mapping[Any, str] = self.releases
        return folders.get(dataset, self.release)

    def generates(self, dataset: str) -> bool:
        return self.generated and dataset not in self.releases


class EmpatheticModel(ModelConfig):
    """A model that is built here, or one of a checkpoint."""

    families: ClassVar[tuple[Family, ...]] = (*FAMILIES, "dual_encoder")
    may_be_built: ClassVar[bool] = True

    family: Family = Field(description="encoder, decoder, encoder_decoder or dual_encoder")
    checkpoint: Checkpoint = Field(
        description="'tiny' (built in), a local folder (./path), a name on the Hugging Face hub, "
        "or 'built' from architecture"
    )
    architecture: ArchitectureConfig | None = Field(
        default=None, description="what is built, where checkpoint is 'built'"
    )
    beside: ModelName | None = Field(
        default=None, description="another model of the study, whose encoder reads beside this one"
    )

    @field_validator("beside")
    @classmethod
    def _alone(cls, beside: str | None, info: ValidationInfo) -> str | None:
        if beside is not None and info.data.get("adapter") is not None:
            raise ValueError(
                "a model with an adapter is saved without what reads beside it: remove one of both"
            )
        return beside

    @field_validator("checkpoint")
    @classmethod
    def _of_a_family(cls, checkpoint: str, info: ValidationInfo) -> str:
        family = info.data.get("family")
        if checkpoint == TINY and family == "dual_encoder":
            raise ValueError(f"no tiny model is of family {family}: build one (checkpoint: built)")
        if checkpoint == BUILT and family in ("encoder", "decoder"):
            raise ValueError(
                f"a model of family {family} cannot be built: take a dual_encoder or an "
                "encoder_decoder, or name a checkpoint"
            )
        return checkpoint

    @field_validator("architecture")
    @classmethod
    def _of_built(
        cls, architecture: ArchitectureConfig | None, info: ValidationInfo
    ) -> ArchitectureConfig | None:
        checkpoint, longest = info.data.get("checkpoint"), info.data.get("max_length", 0)
        if architecture is not None and architecture.positions < longest:
            raise ValueError(
                f"positions is {architecture.positions}, and max_length {longest}: raise positions"
            )
        if checkpoint is not None and (checkpoint == BUILT) != (architecture is not None):
            wanted = "give one" if architecture is None else "remove it, or write checkpoint: built"
            raise ValueError(
                f"goes with checkpoint: built, and the checkpoint is {checkpoint!r}: {wanted}"
            )
        return architecture

    @property
    def built(self) -> ArchitectureConfig | None:
        return self.architecture

    @property
    def second(self) -> str | None:
        return self.beside


class EmpatheticTraining(TrainingConfig):
    """Hyperparameters of every training of the study, where its section gives no others."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "limit_test": "set evaluation.limit, evaluation.limit_written or evaluation.limit_pool",
        "task_weighting": "remove it, as no training draws batches of several tasks",
        "loss_on": "remove it, as no decoder is trained",
        "fidelity.weighting_when_finetuning": "remove it, as none follows one on several tasks",
        "fidelity.repetition_penalty": "remove it, as evaluation.decoding says how to write",
        **dict.fromkeys(FIDELITY_OF_FETA, OF_FETA),
    }

    epochs: Epochs = Field(default=10, description="passes over the training set")
    patience: Count | None = Field(
        default=None, description="epochs without a better one that end a training; null: none do"
    )
    optimiser: Literal["adam", "adamax"] = Field(
        default="adamax", description="Adam, or its variant that the paper's code takes"
    )
    cosine_scale: Annotated[float, Field(gt=0, le=1000), NUMBER] | None = Field(
        default=None,
        description="retrieval: replies are scored by so many times the cosine; null: by the dot "
        "product, as in the paper",
    )

    later: ClassVar[tuple[str, ...]] = (*TrainingConfig.later, "patience")

    @field_validator("optimiser")
    @classmethod
    def _in_so_many_bits(cls, optimiser: str, info: ValidationInfo) -> str:
        if optimiser == "adamax" and info.data.get("optimiser_bits") == 8:
            raise ValueError("'adamax' has moments of 32 bits: set adam, or optimiser_bits: 32")
        return optimiser


class Overrides(Section):
    """Hyperparameters that differ from the section training; null: they do not."""

    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] | None = Field(
        default=None, description="learning rate"
    )
    batch_size: BatchSize | None = Field(default=None, description="instances per step")
    epochs: Epochs | None = Field(default=None, description="passes over the training set")
    limit_train: Count | None = Field(default=None, description="training instances at most")
    limit_dev: Count | None = Field(default=None, description="dev instances at most")


class SettingConfig(Overrides):
    """Retrieval, or generation."""

    model: ModelName = Field(description="the model of models that is trained")
    ensemble: ModelName | None = Field(
        default=None, description="the same model with the classifier's beside it, for ensembles"
    )
    methods: Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        description="what is trained, see docs/empathetic.md"
    )


class GenerationConfig(SettingConfig):
    """Generation."""

    large: ModelName | None = Field(default=None, description="the model with one more layer")


class ClassifierConfig(Overrides):
    """The encoder that is trained on emotions, for ensembles."""

    model: ModelName = Field(description="an encoder of models")


class PretrainingConfig(Overrides):
    """Next replies that a model learns before the study's own dialogues."""

    dataset: Literal["DailyDialogReplies", "ReplyPairs"] = Field(
        default="DailyDialogReplies", description="where the replies are from"
    )
    retrieval: bool = Field(
        default=True, description="false: the retrieval model is taken as it was released"
    )


class EmotionsConfig(Section):
    """fastText's classifier of emotions, whose labels EmoPrepend takes."""

    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] = Field(
        default=0.5, description="fastText's, falling to 0"
    )
    epochs: Epochs = Field(default=5, description="passes over the situations")


class TopicsConfig(Section):
    """The same of topics, and the texts that it learns from."""

    learning_rate: Annotated[float, Field(gt=0, le=1), NUMBER] = Field(
        default=0.1, description="fastText's, falling to 0"
    )
    epochs: Epochs = Field(default=25, description="passes over the texts")
    dataset: Literal["DailyDialog", "Newsgroups"] = Field(
        default="DailyDialog", description="20 newsgroups, or what stands in for them"
    )


class DecodingConfig(Section):
    """Diverse beam search; one group of one beam is greedy. Ours: the paper does not say them."""

    groups: int = Field(default=3, ge=1, le=100, description="groups of beams")
    beams: int = Field(default=2, ge=1, le=100, description="beams of each group")
    penalty: Annotated[float, Field(ge=0, le=100), NUMBER] = Field(
        default=0.5, description="of a word for each earlier group that chose it at this step"
    )
    longest: int = Field(default=40, ge=1, le=1000, description="words of a reply at most")


class EvaluationConfig(Section):
    """How replies are judged."""

    block: int = Field(default=100, ge=2, le=10_000, description="k of P@1,k: replies of a block")
    shuffles: int = Field(default=20, ge=2, le=1000, description="other orders of rows, for P@1")
    pools: Annotated[tuple[PoolName, ...], LIST, DISTINCT] = Field(
        default=("ED", "ED+DD"), description="where retrieved replies are from, for BLEU"
    )
    pool_words: int = Field(default=20, ge=1, le=1000, description="words of a candidate at most")
    limit: Count | None = Field(
        default=None,
        description="test replies at most, for P@1 in whole blocks of consecutive ones; null: all",
    )
    limit_written: Count | None = Field(
        default=None, description="test replies that are written at most; null: limit"
    )
    limit_pool: Count | None = Field(
        default=None, description="candidates of a pool's dataset at most; null means all"
    )
    decoding: DecodingConfig = Field(
        default=DecodingConfig(), description="how replies are written"
    )

    @property
    def cuts(self) -> str:
        """The limits, for captions; empty: none."""
        limits = {name: getattr(self, name) for name in ("limit", "limit_written", "limit_pool")}
        listed = (f"evaluation.{name} {n}" for name, n in limits.items() if n is not None)
        return ", ".join(listed)


class EmpatheticConfig(CommonConfig):
    """A study of empathetic replies."""

    data: EmpatheticData = Field(
        default=EmpatheticData(), description="which dialogues are studied"
    )
    models: Annotated[
        tuple[EmpatheticModel, ...], LIST, Field(min_length=1), AfterValidator(named_once)
    ] = Field(description="the models: built, or each a checkpoint with its family")
    training: EmpatheticTraining = Field(
        default=EmpatheticTraining(), description="hyperparameters"
    )
    retrieval: SettingConfig | None = Field(default=None, description="choosing replies")
    generation: GenerationConfig | None = Field(default=None, description="writing replies")
    classifier: ClassifierConfig | None = Field(default=None, description="for ensembles")
    pretraining: PretrainingConfig = Field(
        default=PretrainingConfig(), description="what comes before"
    )
    emotions: EmotionsConfig = Field(
        default=EmotionsConfig(), description="of the emotion classifier"
    )
    topics: TopicsConfig = Field(default=TopicsConfig(), description="of the topic classifier")
    evaluation: EvaluationConfig = Field(
        default=EvaluationConfig(), description="how replies are judged"
    )
    controls: Annotated[tuple[Literal["gold", "random"], ...], LIST, DISTINCT] = Field(
        default=(),
        description="EmoPrepend-1 with right labels (not comparable: an upper bound), or with "
        "labels drawn at random",
    )
    release_compat: bool = Field(
        default=False,
        description="as the paper's code: the best label last, newsgroups spelled as they are, the "
        "last block of P@1 left out",
    )

    @property
    def settings(self) -> dict[Setting, SettingConfig]:
        """The settings that are studied."""
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
    def dataset_names(self) -> tuple[str, ...]:
        names = [ED]
        if self.pretrains or any("DD" in pool for pool in self.evaluation.pools):
            names.append(self.pretraining.dataset if self.pretrains else DAILY)
        if self.retrieval and any("DD" in pool for pool in self.evaluation.pools):
            names.append(DAILY)
        if self.retrieval and any("R" in pool.split("+") for pool in self.evaluation.pools):
            names.append(PAIRS)
        if any(prepended(m) and m.startswith("topic") for m in self.methods):
            names.append(self.topics.dataset)
        if "ensemble-tags" in self.methods:
            names.append(TAGS)
        return tuple(dict.fromkeys(names))

    @property
    def pretrains(self) -> bool:
        """Whether some model learns from other replies first."""
        return "generation" in self.settings or self.pretraining.retrieval

    def vocabulary_of(self, model: str) -> tuple[str, ...]:
        """What the model is trained on, whatever methods and pools the study has: words of other
        data would make another Base of it."""
        chooses = any(
            config.name == model and config.family == "dual_encoder" for config in self.models
        )
        pretrained = self.pretraining.retrieval or not chooses
        read = (ED, self.pretraining.dataset) if pretrained else (ED,)
        return tuple(name for name in read if name in self.dataset_names)

    @property
    def known_labels(self) -> tuple[str, ...]:
        """All that any method puts before a text, whatever methods the study has."""
        return (*LABELS, *(label for task in TOPIC_TASKS.values() for label in task.labels))

    def hyperparameters(self, setting: Setting | None, *sections: Overrides | None) -> Training:
        """The section training with what sections say instead, the later ones first. The scale of
        cosines is of retrieval alone."""
        values = self.training.resolved()
        if setting != "retrieval":
            values["cosine_scale"] = None
        for section in sections:
            for key in Overrides.model_fields if section else ():
                if getattr(section, key) is not None:
                    values[key] = getattr(section, key)
        return Training(**values)

    @classmethod
    def contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        yield from contradictions(parts)
