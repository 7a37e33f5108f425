"""What a config of a panel study says beyond the common keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from tasktransfer.config import CommonConfig, ModelConfig, TrainingConfig, WholeData, fields
from tasktransfer.config.fields import DISTINCT, LIST, NOT_EMPTY, NUMBER, Count, ModelName, Section
from tasktransfer.config.sections import named_once
from tasktransfer.config.training import FIDELITY_OF_FETA, OF_FETA
from tasktransfer.core.specs import Decays, Family, Training
from tasktransfer.core.validation import Problem, refuse, unknown
from tasktransfer.designs.panel.sources.cards import (
    AT_HAND,
    DIALOGUES,
    DOMAINS,
    TINY,
    TINY_DOMAINS,
    rated_sets,
)

Method = Literal["panel", "collection", "single", "panel-mean", "panel-max", "panel-min", "twin"]
METHODS: tuple[Method, ...] = (
    "panel", "collection", "single", "panel-mean", "panel-max", "panel-min",
)  # fmt: skip
"""The paper's; ``twin`` is ours."""
Persona = Literal["none", "original", "revised"]
Perturbation = Literal[
    "drop", "shuffle", "repeat", "random_utterance", "context_copy", "mask_and_fill"
]
PERTURBATIONS: tuple[Perturbation, ...] = (
    "drop", "shuffle", "repeat", "random_utterance", "context_copy", "mask_and_fill",
)  # fmt: skip
Perturbations = Annotated[tuple[Perturbation, ...], LIST, Field(min_length=1), DISTINCT]
DrawnBy = Literal["contexts", "items"]
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

    reads: Literal["first_token", "pooler"] = Field(
        default="first_token",
        description="what classifiers read: the first token's last state, as in the paper, or what "
        "the checkpoint's own pooler makes of it",
    )

    families: ClassVar[tuple[Family, ...]] = ("encoder",)
    may_be_adapted: ClassVar[bool] = False


class PanelTraining(TrainingConfig):
    """Hyperparameters of every training, where its section gives no others (section VI-C)."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "loss_on": "remove it, as no decoder is trained",
        "fidelity.repetition_penalty": "remove it, as nothing is generated",
        "fidelity.selection_metrics": "remove it, as accuracy or Spearman's correlation selects",
        **dict.fromkeys(FIDELITY_OF_FETA, OF_FETA),
    }
    later: ClassVar[tuple[str, ...]] = tuple(
        key for key in TrainingConfig.later if key != "weight_decay"
    )
    decays: ClassVar[Decays] = "all"

    learning_rate: Rate | None = Field(  # type: ignore[assignment]
        default=None,
        description="AdamW's learning rate where a section gives none; null: the paper's",
    )
    batch_size: fields.BatchSize = Field(default=32, description="instances per step")
    weight_decay: Annotated[float, Field(ge=0, le=1), NUMBER] = Field(
        default=0.01, description="of AdamW; torch's own default, the paper says none"
    )


INHERITED = "learning rate; null: that of training, or the paper's"


class StageConfig(Section):
    """How one kind of training runs."""

    paper_rate: ClassVar[float]
    """The learning rate where neither the section nor training gives one."""

    learning_rate: Rate | None = Field(default=None, description=INHERITED)
    epochs: fields.Epochs = Field(description="passes over the training pairs at most")
    every: Count | None = Field(description="updates of a round; null: an epoch")
    patience: Count | None = Field(description="rounds without a better one that end it")
    batch_size: fields.BatchSize | None = Field(default=None, description="null: that of training")


class LabellerConfig(StageConfig):
    """The model that labels pairs, in DEB's place."""

    paper_rate: ClassVar[float] = 3e-5  # ours: DEB was trained by others

    epochs: fields.Epochs = Field(default=2, description="passes over the training pairs at most")
    every: Count | None = Field(default=None, description="updates of a round; null: an epoch")
    patience: Count | None = Field(default=None, description="rounds without a better one")
    model: ModelName = Field(description="an encoder of models")
    limit_train: Count | None = Field(default=None, description="training pairs at most")
    limit_dev: Count | None = Field(default=None, description="dev pairs at most")
    twin: bool = Field(
        default=False, description="two towers, as the method twin, in place of one that reads both"
    )


class JointConfig(StageConfig):
    """All domains together, and models without adapters (section VI-C)."""

    paper_rate: ClassVar[float] = 5e-6

    epochs: fields.Epochs = Field(default=3, description="passes over the training pairs at most")
    every: Count | None = Field(default=2000, description="updates of a round; null: an epoch")
    patience: Count | None = Field(default=10, description="rounds without a better one")
    sampler: Literal["uniform", "mixed"] = Field(
        default="mixed",
        description="uniform: each batch is of one domain; mixed: each pair's domain is drawn",
    )


class ExpertsConfig(StageConfig):
    """Adapter and classifier of each domain, the encoder frozen."""

    paper_rate: ClassVar[float] = 1e-5

    epochs: fields.Epochs = Field(default=10, description="passes over the training pairs at most")
    every: Count | None = Field(default=1024, description="updates of a round; null: an epoch")
    patience: Count | None = Field(default=3, description="rounds without a better one")


class TwinConfig(StageConfig):
    """Two towers of the encoder on pairs of all domains, whose labels are how they were made; ours,
    and none of the paper's."""

    paper_rate: ClassVar[float] = 2e-5  # Sentence-BERT's

    epochs: Count = Field(default=1, description="passes over the training pairs at most")
    every: Count | None = Field(default=None, description="updates of a round; null: an epoch")
    patience: Count | None = Field(default=None, description="rounds without a better one")
    perturbations: Perturbations = Field(
        default=("random_utterance",), description="how its responses that do not fit are made"
    )


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
    perturbations: Perturbations = Field(
        default=PERTURBATIONS, description="how responses that do not fit are made, in turn"
    )
    seed: fields.Seed = Field(default=0, description="of the perturbations")


class FewShotConfig(Section):
    """Transfer to a rated set by some of its ratings (IV-E, VI-C)."""

    paper_rate: ClassVar[float] = 1e-5

    sets: Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(description="rated sets")
    percent: Annotated[tuple[Percent, ...], LIST, fields.FEW, DISTINCT] = Field(
        default=(10, 20, 30, 40), description="of the items that are drawn; half of them validate"
    )
    draws: int = Field(default=10, ge=1, le=100, description="draws of items")
    by: Annotated[tuple[DrawnBy, ...], LIST, Field(min_length=1), DISTINCT] = Field(
        default=("contexts",),
        description="contexts: they are drawn with all their items, so that held-out items share "
        "none with learnt ones; items: each item is drawn by itself, as in the paper",
    )
    learning_rate: Rate | None = Field(default=None, description=INHERITED)
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
    twin: TwinConfig = Field(default=TwinConfig(), description="how the method twin is trained")
    few_shot: FewShotConfig | None = Field(default=None, description="few-shot transfer")
    selection: SelectionConfig | None = Field(default=None, description="response selection")
    controls: Annotated[tuple[Literal["untrained", "leaky"], ...], LIST, DISTINCT] = Field(
        default=(),
        description="untrained: the encoder as it is released under a classifier that is drawn; "
        "leaky: single, and twin where it is a method, trained without the leak filter",
    )

    @model_validator(mode="after")
    def _has_labels(self) -> PanelConfig:
        wanted = self.pairs.labels == "labeller"
        if wanted and self.labeller is None:
            remedy = "give the section, or set pairs.labels to given or made"
            refuse([(".labeller", f"missing, and pairs.labels is labeller: {remedy}")])
        if not wanted and self.labeller is not None:
            remedy = "remove it, or set that to labeller"
            refuse(
                [(".labeller", f"of no use where pairs.labels is {self.pairs.labels}: {remedy}")]
            )
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
        if values["learning_rate"] is None:
            values["learning_rate"] = section.paper_rate
        return Training(**values)

    @property
    def rated_or_learnt(self) -> tuple[str, ...]:
        """The rated sets that anything is scored on, of evaluation and of few-shot transfer."""
        few = self.few_shot.sets if self.few_shot else ()
        return tuple(dict.fromkeys((*self.rated, *few)))

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
        training = parts.get("training")
        tests = few_shot is not None or selection is not None
        if training is not None and training.limit_test is not None and not tests:
            yield Problem(
                "training.limit_test",
                f"found {training.limit_test}, which changes nothing without few_shot and "
                "selection, whose trainings are tested: remove it",
            )
        methods = parts.get("methods", ())
        if "leaky" in parts.get("controls", ()) and not {"single", "twin"} & {*methods}:
            remedy = "leaky is compared with single and twin: add one of them to methods"
            yield Problem("controls", remedy)


def _unknown(path: str, what: str, names: Any, known: tuple[str, ...]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name not in known:
            yield Problem(f"{path}[{index}]", unknown(what, name, known))
