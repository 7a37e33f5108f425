"""The config of a panel study: its keys in addition to the common ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from tasktransfer.config import CommonConfig, EndpointConfig, WholeData, fields
from tasktransfer.config.brought import Brought, find_name_conflicts
from tasktransfer.config.fields import DISTINCT, LIST, NOT_EMPTY, Count, Section
from tasktransfer.config.models import check_unique_names
from tasktransfer.core.specs import Training
from tasktransfer.core.validation import Problem, describe_unknown, raise_problems
from tasktransfer.designs.panel.models_section import (
    PanelModel,
    PromptedRaters,
    find_model_contradictions,
)
from tasktransfer.designs.panel.names import RESERVED
from tasktransfer.designs.panel.sources.cards import (
    AT_HAND,
    DIALOGUES,
    DOMAINS,
    TINY,
    TINY_DOMAINS,
    list_rated_sets,
)
from tasktransfer.designs.panel.training_sections import (
    INHERITED,
    ExpertsConfig,
    JointConfig,
    LabellerConfig,
    PairsConfig,
    PanelTraining,
    Rate,
    StageConfig,
    TwinConfig,
)
from tasktransfer.results.study import Study

Method = Literal["panel", "collection", "single", "panel-mean", "panel-max", "panel-min", "twin"]
METHODS: tuple[Method, ...] = (
    "panel", "collection", "single", "panel-mean", "panel-max", "panel-min",
)  # fmt: skip
"""Default methods, which are the paper's; ``twin`` is ours."""
Control = Literal["untrained", "leaky", "exchanged", "embeddings"]
Persona = Literal["none", "original", "revised"]
DrawnBy = Literal["contexts", "items"]
Percent = Annotated[int, Field(ge=1, le=90)]


class LeaksConfig(Section):
    """Definition of a leak from rated sets into training."""

    min_words: int = Field(
        default=6,
        ge=1,
        le=1000,
        description="minimum number of words of the utterances that the leak filter compares",
    )
    drop: bool = Field(
        default=True,
        description=(
            "true to leave out training dialogues that share an utterance with a rated set; if "
            "false, every table and figure states that the filter is off"
        ),
    )


class PanelData(WholeData):
    """Dialogues and ratings of the study."""

    leaks: LeaksConfig = Field(
        default=LeaksConfig(),
        description="settings of the filter that leaves out dialogues shared with rated sets",
    )


class FewShotConfig(Section):
    """Few-shot transfer to a rated set, with a sample of its ratings (IV-E, VI-C)."""

    paper_rate: ClassVar[float] = 1e-5

    sets: Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        description="names of the rated sets"
    )
    percentages: Annotated[tuple[Percent, ...], LIST, fields.FEW, DISTINCT] = Field(
        default=(10, 20, 30, 40),
        description=(
            "percentages of the items to sample; half of the sample is used for training, and "
            "half for validation"
        ),
    )
    draws: int = Field(
        default=10, ge=1, le=100, description="number of random samples per percentage"
    )
    sampling_units: Annotated[tuple[DrawnBy, ...], LIST, Field(min_length=1), DISTINCT] = Field(
        default=("contexts",),
        description=(
            "sampling unit: contexts to sample contexts with all their items, so that held-out "
            "items share no context with training items, or items to sample single items as in "
            "the paper"
        ),
    )
    learning_rate: Rate | None = Field(default=None, description=INHERITED)
    batch_size: fields.BatchSize = Field(
        default=2, description="number of instances per training step"
    )
    epochs: fields.Epochs = Field(
        default=30, description="maximum number of epochs (not reported in the paper)"
    )
    patience: Count = Field(
        default=10, description="number of epochs without improvement after which training stops"
    )
    train_encoder: bool = Field(
        default=False,
        description=(
            "true to train the panel's encoder too; the paper does not say whether the encoder "
            "was trained"
        ),
    )


class SelectionConfig(Section):
    """Selection of the true response among candidates (VII-D)."""

    domain: str = Field(default="ConvAI2", description="domain of the dialogues")
    personas: Annotated[tuple[Persona, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=("none", "original"), description="personas that are put before the context"
    )
    candidates: int = Field(default=20, ge=2, le=1000, description="number of candidate responses")
    cosine: bool = Field(
        default=False,
        description=(
            "true to select responses also by their cosine similarity to the last utterance of "
            "the context"
        ),
    )
    limit_train: Count | None = Field(
        default=None, description="maximum number of true training responses"
    )
    limit_test: Count | None = Field(
        default=None, description="maximum number of true test responses"
    )


class PanelConfig(CommonConfig):
    """A panel study."""

    data: PanelData = Field(
        default=PanelData(),
        description="dialogues and ratings of the study, and where they are stored",
    )
    models: Annotated[
        tuple[PanelModel, ...], LIST, NOT_EMPTY, AfterValidator(check_unique_names)
    ] = Field(
        description=(
            "models of the study: encoders (the panel uses the first encoder), and the models in "
            "prompted"
        )
    )
    training: PanelTraining = Field(
        default=PanelTraining(), description="default hyperparameters of all training runs"
    )
    domains: Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=DOMAINS[:4], description="training domains, one per expert"
    )
    rated_sets: Annotated[tuple[str, ...], LIST, NOT_EMPTY, DISTINCT] = Field(
        default=tuple(name for name in AT_HAND if name != "Reddit_DSTC7"),
        description="rated sets to evaluate on",
    )
    methods: Annotated[tuple[Method, ...], LIST, DISTINCT] = Field(
        default=METHODS,
        description=(
            "methods to compare with each other; [] to train nothing and evaluate only prompted "
            "models, your own raters and controls"
        ),
    )
    reduction: int = Field(
        default=16,
        ge=1,
        le=1024,
        description="hidden size divided by the size of an adapter's bottleneck",
    )
    pairs: PairsConfig = Field(default=PairsConfig(), description="settings of the training pairs")
    labeller: LabellerConfig | None = Field(
        default=None,
        description="settings of the model that labels the pairs; used if pairs.labels is labeller",
    )
    joint: JointConfig = Field(
        default=JointConfig(),
        description="settings of the first stage, in which all domains are trained together",
    )
    experts: ExpertsConfig = Field(
        default=ExpertsConfig(),
        description="settings of the second stage, in which each expert is trained",
    )
    twin: TwinConfig = Field(
        default=TwinConfig(), description="settings of the training of the method twin"
    )
    few_shot: FewShotConfig | None = Field(
        default=None, description="settings of few-shot transfer"
    )
    selection: SelectionConfig | None = Field(
        default=None, description="settings of response selection"
    )
    brought: Brought = Field(
        default=(), description="your own raters, each with its ratings of the rated sets"
    )
    prompted: PromptedRaters = Field(
        default=(), description="language models that rate the responses without training"
    )
    controls: Annotated[tuple[Control, ...], LIST, DISTINCT] = Field(
        default=(),
        description=(
            "controls to run. `untrained` is the pretrained encoder with a random classifier. "
            "`leaky` is the method `single` (and `twin`, if the study trains it) without the "
            "leak filter. `exchanged` is the first method with the contexts of other items. "
            "`embeddings` is the cosine similarity of input embeddings"
        ),
    )

    @model_validator(mode="after")
    def _check_labels(self) -> PanelConfig:
        wanted = self.pairs.labels == "labeller"
        if wanted and self.labeller is None:
            remedy = "Add the section, or set pairs.labels to given or made."
            problem = "The section is missing, but pairs.labels is labeller."
            raise_problems([(".labeller", f"{problem} {remedy}")])
        if not wanted and self.labeller is not None:
            problem = f"The section has no effect, because pairs.labels is {self.pairs.labels}."
            remedy = "Remove the section, or set pairs.labels to labeller."
            raise_problems([(".labeller", f"{problem} {remedy}")])
        return self

    @property
    def dataset(self) -> str:
        """The dataset of the study."""
        return TINY if self.data.generated else DIALOGUES

    @property
    def dataset_names(self) -> tuple[str, ...]:
        return (self.dataset,)

    @property
    def brought_files(self) -> Mapping[str, str]:
        return {rater.name: rater.file for rater in self.brought}

    @property
    def endpoints(self) -> Mapping[str, EndpointConfig]:
        return {rater.model: rater for rater in self.prompted if rater.endpoint}

    def resolve_hyperparameters(self, section: StageConfig | FewShotConfig) -> Training:
        """Return the hyperparameters of ``training``, overridden by those of a section."""
        values = self.training.resolve()
        for key in ("learning_rate", "epochs", "batch_size", "limit_train", "limit_dev"):
            if getattr(section, key, None) is not None:
                values[key] = getattr(section, key)
        if values["learning_rate"] is None:
            values["learning_rate"] = section.paper_rate
        return Training(**values)

    @property
    def all_rated_sets(self) -> tuple[str, ...]:
        """The rated sets used for evaluation or few-shot transfer."""
        few = self.few_shot.sets if self.few_shot else ()
        return tuple(dict.fromkeys((*self.rated_sets, *few)))

    @classmethod
    def find_contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        data, models = parts.get("data"), parts.get("models")
        if data is None:
            return
        dataset = TINY if data.generated else DIALOGUES
        domains = TINY_DOMAINS if data.generated else DOMAINS
        rated = tuple(list_rated_sets(dataset))
        few_shot, selection = parts.get("few_shot"), parts.get("selection")
        yield from _find_unknown_names("domains", "domain", parts.get("domains", ()), domains)
        yield from _find_unknown_names(
            "rated_sets", "rated set", parts.get("rated_sets", ()), rated
        )
        if few_shot is not None:
            yield from _find_unknown_names("few_shot.sets", "rated set", few_shot.sets, rated)
            if not {"panel-mean", "single"} & {*parts.get("methods", METHODS)}:
                problem = "Few-shot transfer starts from panel-mean or single."
                yield Problem("few_shot", f"{problem} Add one of them to methods.")
        if selection is not None and selection.domain not in parts.get("domains", domains):
            yield Problem(
                "selection.domain",
                describe_unknown("domain", selection.domain, parts.get("domains", ())),
            )
        labeller = parts.get("labeller")
        if labeller is not None and models is not None:
            names = tuple(model.name for model in models if model.family == "encoder")
            if labeller.model not in names:
                yield Problem("labeller.model", describe_unknown("model", labeller.model, names))
        training = parts.get("training")
        tests = few_shot is not None or selection is not None
        if training is not None and training.limit_test is not None and not tests:
            yield Problem(
                "training.limit_test",
                f"The value is {training.limit_test}, which has no effect without few_shot or "
                "selection. Remove it.",
            )
        yield from find_name_conflicts(parts.get("brought", ()), RESERVED)
        yield from find_model_contradictions(parts)
        yield from _find_problems_without_methods(parts)
        methods = parts.get("methods", ())
        if "leaky" in parts.get("controls", ()) and not {"single", "twin"} & {*methods}:
            problem = "The control leaky is compared with single and twin."
            yield Problem("controls", f"{problem} Add one of them to methods, or remove leaky.")


def _find_problems_without_methods(parts: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of keys that need a method, in a study without methods and training."""
    if parts.get("methods", METHODS):
        return
    if not parts.get("prompted") and not parts.get("brought"):
        problem = "The list is empty, and prompted and brought are empty, too. Add a method."
        yield Problem("methods", problem)
    for key in ("labeller", "selection"):
        if parts.get(key) is not None:
            problem = (
                "The section has no effect without methods. Remove the section, or add a method."
            )
            yield Problem(key, problem)
    if "exchanged" in parts.get("controls", ()):
        problem = "The control exchanged repeats the first method, but methods is empty."
        yield Problem("controls", f"{problem} Add a method, or remove exchanged.")


def _find_unknown_names(
    path: str, what: str, names: Any, known: tuple[str, ...]
) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name not in known:
            yield Problem(f"{path}[{index}]", describe_unknown(what, name, known))


def get_config(study: Study) -> PanelConfig:
    """Return the config of a study of this design."""
    assert isinstance(study.config, PanelConfig)
    return study.config
