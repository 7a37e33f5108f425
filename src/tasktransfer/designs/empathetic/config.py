"""What a config of the study says beyond the common keys."""

from __future__ import annotations

import re
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
    Place,
    Section,
)
from tasktransfer.config.sections import named_once
from tasktransfer.core.specs import FAMILIES, Family, Training
from tasktransfer.core.validation import Problem, unknown
from tasktransfer.datasets.dailydialog.cards import TOPIC_CLASSIFICATION
from tasktransfer.designs.empathetic.sources.cards import (
    DAILY,
    ED,
    LABELS,
    NEWSGROUP,
    NEWSGROUPS,
    PAIRS,
    TAGS,
)
from tasktransfer.tasks.card import Task

TOPIC_TASKS: Mapping[str, Task] = {"DailyDialog": TOPIC_CLASSIFICATION, NEWSGROUPS: NEWSGROUP}
FIXED = ("pretrained", "base", "multitask", "ensemble-plain", "ensemble-tuned", "ensemble-tags")
LARGE = ("pretrained-large", "base-large")
_PREPEND = re.compile(r"(emo|topic)prepend-([1-9][0-9]*)")

Read = Literal[
    "EmpatheticDialogues", "DailyDialogReplies", "DailyDialog", "Newsgroups", "ReplyPairs",
    "GoEmotions",
]  # fmt: skip
PoolName = Literal["ED", "ED+DD", "R", "ED+DD+R"]
Setting = Literal["retrieval", "generation"]


def prepended(method: str) -> tuple[str, int] | None:
    """(emo or topic, k) of a Prepend-k method; None for others."""
    match = _PREPEND.fullmatch(method)
    return (match[1], int(match[2])) if match else None


class EmpatheticData(DataConfig):
    """Which dialogues are studied, and where the other data lie."""

    releases: dict[Read, Place] = Field(
        default={}, description="dataset: folder of its release, where that is not data.release"
    )

    def release_of(self, dataset: str) -> str:
        return next((at for name, at in self.releases.items() if name == dataset), self.release)


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

    epochs: Epochs = Field(default=10, description="passes over the training set")
    optimiser: Literal["adam", "adamax"] = Field(
        default="adamax", description="Adam, or its variant that the paper's code takes"
    )
    cosine_scale: Annotated[float, Field(gt=0, le=1000), NUMBER] | None = Field(
        default=None,
        description="retrieval: replies are scored by so many times the cosine; null: by the dot "
        "product, as in the paper",
    )


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
    limit: Count | None = Field(default=None, description="test replies at most; null means all")
    limit_written: Count | None = Field(
        default=None, description="test replies that are written at most; null: limit"
    )
    limit_pool: Count | None = Field(
        default=None, description="candidates of a pool's dataset at most; null means all"
    )
    decoding: DecodingConfig = Field(
        default=DecodingConfig(), description="how replies are written"
    )


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

    @property
    def vocabulary_of(self) -> tuple[str, ...]:
        read = (ED, DAILY, PAIRS, self.topics.dataset)
        return tuple(name for name in self.dataset_names if name in read)

    def hyperparameters(self, *sections: Overrides | None) -> Training:
        """The section training with what sections say instead, the later ones first."""
        values = self.training.resolved()
        for section in sections:
            for key in Overrides.model_fields if section else ():
                if getattr(section, key) is not None:
                    values[key] = getattr(section, key)
        return Training(**values)

    @classmethod
    def contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        models = {model.name: model for model in parts.get("models", ())}
        families = {"retrieval": "dual_encoder", "generation": "encoder_decoder"}
        for name, family in families.items():
            section = parts.get(name)
            if section is not None and models:
                yield from _of_setting(name, section, family, models, parts)
        if "retrieval" in parts and not (parts["retrieval"] or parts.get("generation")):
            yield Problem("retrieval", "is missing, and generation too: give one of them")
        classifier = parts.get("classifier")
        if classifier and models:
            yield from _of_family("classifier.model", classifier.model, "encoder", models)
        for index, model in enumerate(models.values()):
            if model.beside is not None:
                path = f"models[{index}].beside"
                yield from _of_family(path, model.beside, "encoder", models)
                if getattr(models.get(model.beside), "beside", None) is not None:
                    told = "reads beside another itself: name a model without beside"
                    yield Problem(path, f"{model.beside!r} {told}")
        data, evaluation = parts.get("data"), parts.get("evaluation")
        if data and evaluation:
            for index, pool in enumerate(evaluation.pools):
                if "R" in pool.split("+") and PAIRS not in data.releases:
                    yield Problem(
                        f"evaluation.pools[{index}]",
                        f"{pool!r} needs reply pairs, and data.releases.{PAIRS} names no folder: "
                        "give one, or remove the pool",
                    )


def _of_family(path: str, name: str, family: str, models: Mapping[str, Any]) -> Iterator[Problem]:
    if name not in models:
        yield Problem(path, unknown("model", name, tuple(models)))
    elif models[name].family != family:
        found = models[name].family
        yield Problem(path, f"{name!r} is of family {found}: name a model of family {family}")


def _of_setting(
    name: str,
    section: Any,
    family: str,
    models: Mapping[str, Any],
    parts: Mapping[str, Any],
) -> Iterator[Problem]:
    yield from _of_family(f"{name}.model", section.model, family, models)
    for key in ("ensemble", "large"):
        other = getattr(section, key, None)
        if other is not None:
            yield from _of_family(f"{name}.{key}", other, family, models)
    topics = parts.get("topics")
    offered = (*FIXED, *(LARGE if name == "generation" else ()))
    for index, method in enumerate(section.methods):
        path = f"{name}.methods[{index}]"
        prepend = prepended(method)
        if prepend is None and method not in offered:
            names = (*offered, "emoprepend-1", "topicprepend-1")
            yield Problem(path, unknown("method", method, names))
        if prepend is not None and topics is not None:
            what, k = prepend
            labels = LABELS if what == "emo" else TOPIC_TASKS[topics.dataset].labels
            if k > len(labels):
                yield Problem(
                    path, f"{method!r} prepends {k} labels, and there are {len(labels)}: lower it"
                )
        if method.startswith("ensemble"):
            if parts.get("classifier") is None:
                yield Problem(path, f"{method!r} needs the section classifier: give its model")
            if (
                section.ensemble is None
                or getattr(models.get(section.ensemble), "beside", None) is None
            ):
                yield Problem(
                    path, f"{method!r} needs {name}.ensemble, a model with the classifier beside it"
                )
        if method.endswith("large") and section.large is None:
            yield Problem(path, f"{method!r} needs {name}.large: name the larger model")
