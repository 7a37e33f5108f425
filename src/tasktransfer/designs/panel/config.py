"""What a config of a panel study says beyond the common keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from tasktransfer.config import CommonConfig, ModelConfig, TrainingConfig, WholeData, fields
from tasktransfer.config.fields import DISTINCT, LIST, NOT_EMPTY, NUMBER, Count, ModelName, Section
from tasktransfer.config.sections import named_once
from tasktransfer.core.specs import Family, Training
from tasktransfer.core.validation import Problem, refuse, unknown
from tasktransfer.designs.panel.sources.cards import (
    AT_HAND,
    DIALOGUES,
    DOMAINS,
    TINY,
    TINY_DOMAINS,
    rated_sets,
)

Method = Literal["panel", "collection", "single", "panel-mean", "panel-max", "panel-min"]
METHODS: tuple[Method, ...] = (
    "panel", "collection", "single", "panel-mean", "panel-max", "panel-min",
)  # fmt: skip
Persona = Literal["none", "original", "revised"]
Rate = Annotated[float, Field(gt=0, le=1), NUMBER]
Percent = Annotated[int, Field(ge=1, le=90)]
Share = Annotated[float, Field(ge=0.5, le=1), NUMBER]


class LeaksConfig(Section):
    """What counts as a leak from rated sets into training."""

    words: int = Field(default=6, ge=1, le=1000, description="least words of a shared utterance")
    drop: bool = Field(
        default=True,
        description="leave out dialogues that share one; false marks every table and figure",
    )


class PanelData(WholeData):
    """Which dialogues and ratings are read."""

    leaks: LeaksConfig = Field(default=LeaksConfig(), description="the leak filter")


class PanelModel(ModelConfig):
    """An encoder."""

    families: ClassVar[tuple[Family, ...]] = ("encoder",)


class PanelTraining(TrainingConfig):
    """Hyperparameters of every training, where its section gives no others (section VI-C)."""

    learning_rate: Rate = Field(default=5e-6, description="AdamW's constant learning rate")
    batch_size: fields.BatchSize = Field(default=32, description="instances per step")
    weight_decay: Annotated[float, Field(ge=0, le=1), NUMBER] = Field(
        default=0.01, description="of AdamW; torch's own default, the paper says none"
    )


class StageConfig(Section):
    """How one kind of training runs."""

    learning_rate: Rate = Field(description="constant learning rate")
    epochs: fields.Epochs = Field(description="passes over the training pairs at most")
    every: Count | None = Field(description="updates of a round; null: an epoch")
    patience: Count | None = Field(description="rounds without a better one that end it")
    batch_size: fields.BatchSize | None = Field(default=None, description="null: that of training")


class LabellerConfig(StageConfig):
    """The model that labels pairs, in DEB's place."""

    learning_rate: Rate = Field(default=3e-5, description="constant learning rate")
    epochs: fields.Epochs = Field(default=2, description="passes over the training pairs at most")
    every: Count | None = Field(default=None, description="updates of a round; null: an epoch")
    patience: Count | None = Field(default=None, description="rounds without a better one")
    model: ModelName = Field(description="an encoder of models")
    limit_train: Count | None = Field(default=None, description="training pairs at most")
    limit_dev: Count | None = Field(default=None, description="dev pairs at most")


class JointConfig(StageConfig):
    """All domains together, and models without adapters (section VI-C)."""

    learning_rate: Rate = Field(default=5e-6, description="constant learning rate")
    epochs: fields.Epochs = Field(default=3, description="passes over the training pairs at most")
    every: Count | None = Field(default=2000, description="updates of a round; null: an epoch")
    patience: Count | None = Field(default=10, description="rounds without a better one")
    sampler: Literal["uniform", "mixed"] = Field(
        default="mixed",
        description="uniform: each batch is of one domain; mixed: each pair's domain is drawn",
    )


class ExpertsConfig(StageConfig):
    """Adapter and classifier of each domain, the encoder frozen."""

    learning_rate: Rate = Field(default=1e-5, description="constant learning rate")
    epochs: fields.Epochs = Field(default=10, description="passes over the training pairs at most")
    every: Count | None = Field(default=1024, description="updates of a round; null: an epoch")
    patience: Count | None = Field(default=3, description="rounds without a better one")


class PairsConfig(Section):
    """The training pairs of each domain (section V)."""

    train: Count = Field(default=400_000, description="training pairs of a domain")
    dev: Count = Field(default=40_000, description="validation pairs of a domain")
    made: Annotated[float, Field(ge=1, le=100), NUMBER] = Field(
        default=3.0, description="pairs that are made and labelled for each that is asked for"
    )
    labels: Literal["labeller", "given", "made"] = Field(
        default="labeller",
        description="labeller: the section labeller's model gives them; given: the release does, "
        "in probabilities/<domain>.jsonl; made: how a pair was made does",
    )
    sure: Share = Field(default=0.9, description="least probability of a label that is kept")
    seed: fields.Seed = Field(default=0, description="of the perturbations")


class FewShotConfig(Section):
    """Transfer to a rated set by some of its ratings (IV-E, VI-C)."""

    sets: Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(description="rated sets")
    percent: Annotated[tuple[Percent, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=(10, 20, 30, 40), description="of the items that are drawn; half of them validate"
    )
    draws: int = Field(default=10, ge=1, le=100, description="draws of items")
    learning_rate: Rate = Field(default=1e-5, description="constant learning rate")
    batch_size: fields.BatchSize = Field(default=2, description="instances per step")
    epochs: fields.Epochs = Field(default=30, description="passes at most; the paper does not say")
    patience: Count = Field(default=10, description="epochs without a better correlation")
    whole: bool = Field(
        default=False, description="the panel's encoder moves too; the paper does not say"
    )


class SelectionConfig(Section):
    """The true response among others (VII-D)."""

    domain: str = Field(default="ConvAI2", description="the domain whose dialogues are asked about")
    personas: Annotated[tuple[Persona, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=("none", "original"), description="what comes before the context"
    )
    candidates: int = Field(default=20, ge=2, le=1000, description="responses to choose from")
    limit_train: Count | None = Field(default=None, description="true training responses at most")
    limit_test: Count | None = Field(default=None, description="true test responses at most")


class PanelConfig(CommonConfig):
    """A panel study."""

    data: PanelData = Field(default=PanelData(), description="which dialogues and ratings are read")
    models: Annotated[tuple[PanelModel, ...], LIST, NOT_EMPTY, AfterValidator(named_once)] = Field(
        description="encoders: the first is the panel's"
    )
    training: PanelTraining = Field(default=PanelTraining(), description="hyperparameters")
    domains: Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=DOMAINS[:4], description="what experts are trained on"
    )
    rated: Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=tuple(name for name in AT_HAND if name != "Reddit_DSTC7"),
        description="the rated sets",
    )
    methods: Annotated[tuple[Method, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=METHODS, description="what is compared"
    )
    reduction: int = Field(default=16, ge=1, le=1024, description="of the adapters' bottlenecks")
    pairs: PairsConfig = Field(default=PairsConfig(), description="training pairs")
    labeller: LabellerConfig | None = Field(
        default=None, description="what labels the pairs, where pairs.labels is labeller"
    )
    joint: JointConfig = Field(default=JointConfig(), description="the first stage")
    experts: ExpertsConfig = Field(default=ExpertsConfig(), description="the second stage")
    few_shot: FewShotConfig | None = Field(default=None, description="few-shot transfer")
    selection: SelectionConfig | None = Field(default=None, description="response selection")
    controls: Annotated[tuple[Literal["untrained", "leaky"], ...], LIST, DISTINCT] = Field(
        default=(),
        description="untrained: the joint model before its first update; leaky: single, trained "
        "without the leak filter",
    )

    @model_validator(mode="after")
    def _has_labels(self) -> PanelConfig:
        wanted = self.pairs.labels == "labeller"
        if wanted and self.labeller is None:
            told = "give the section, or set pairs.labels to given or made"
            refuse([(".labeller", f"missing, and pairs.labels is labeller: {told}")])
        if not wanted and self.labeller is not None:
            told = "remove it, or set that to labeller"
            refuse([(".labeller", f"of no use where pairs.labels is {self.pairs.labels}: {told}")])
        return self

    @property
    def dataset(self) -> str:
        """The dataset that is read."""
        return TINY if self.data.generated else DIALOGUES

    @property
    def dataset_names(self) -> tuple[str, ...]:
        return (self.dataset,)

    def hyperparameters(self, section: StageConfig | FewShotConfig) -> Training:
        """Those of training, with what a section says instead."""
        values = self.training.resolved()
        for key in ("learning_rate", "epochs", "batch_size", "limit_train", "limit_dev"):
            if getattr(section, key, None) is not None:
                values[key] = getattr(section, key)
        return Training(**values)

    @classmethod
    def contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        data, models = parts.get("data"), parts.get("models")
        if data is None:
            return
        dataset = TINY if data.generated else DIALOGUES
        domains = TINY_DOMAINS if data.generated else DOMAINS
        rated = tuple(rated_sets(dataset))
        few_shot, selection = parts.get("few_shot"), parts.get("selection")
        yield from _unknown("domains", "domain", parts.get("domains", ()), domains)
        yield from _unknown("rated", "rated set", parts.get("rated", ()), rated)
        if few_shot is not None:
            yield from _unknown("few_shot.sets", "rated set", few_shot.sets, rated)
            if not {"panel-mean", "single"} & {*parts.get("methods", METHODS)}:
                yield Problem("few_shot", "needs panel-mean or single: add one to methods")
        if selection is not None and selection.domain not in parts.get("domains", domains):
            yield Problem(
                "selection.domain", unknown("domain", selection.domain, parts.get("domains", ()))
            )
        labeller = parts.get("labeller")
        if labeller is not None and models is not None:
            names = tuple(model.name for model in models)
            if labeller.model not in names:
                yield Problem("labeller.model", unknown("model", labeller.model, names))
        methods = parts.get("methods", ())
        if "leaky" in parts.get("controls", ()) and "single" not in methods:
            yield Problem("controls", "leaky is compared with single: add single to methods")


def _unknown(path: str, what: str, names: Any, known: tuple[str, ...]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name not in known:
            yield Problem(f"{path}[{index}]", unknown(what, name, known))
