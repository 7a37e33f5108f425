"""Config of a transfer study: sections beyond the common ones, and checks across sections.

A key is declared once, with type, default and description in its section's class. Names of datasets
and tasks are looked up when a config is read, so that they include those of plugins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    model_validator,
)
from pydantic.config import JsonDict

from tasktransfer.config import CommonConfig, EndpointConfig
from tasktransfer.config.fields import DISTINCT, LIST, Seeds
from tasktransfer.config.from_core import resolve_switches
from tasktransfer.config.models import check_unique_names
from tasktransfer.config.training import ROUND_KEYS, find_recipe
from tasktransfer.core.references import REFERENCES
from tasktransfer.core.specs import ModelSpec, Reads, Rounds, Training
from tasktransfer.core.validation import Problem
from tasktransfer.designs.names import OneOf
from tasktransfer.designs.transfer.algorithms import (
    ALGORITHMS,
    CONTROLS,
    LONGER_BASELINE,
    STAGE_KINDS,
    expand_algorithms,
    order_algorithms,
)
from tasktransfer.designs.transfer.challenge_rules import Rules, list_forbidden_keys
from tasktransfer.designs.transfer.choices import COMPARED, RacingConfig
from tasktransfer.designs.transfer.config_conflicts import find_contradictions
from tasktransfer.designs.transfer.config_sections import (
    ModelTraining,
    Prompted,
    TransferCheckpoints,
    TransferData,
    TransferModel,
    TransferTraining,
    build_training_hyperparameters,
)
from tasktransfer.designs.transfer.dataset_section import (
    DatasetConfig,
    DatasetSection,
    DeclaredSection,
    Leak,
    Pairs,
    Patterns,
    RequestedPairs,
    add_requested_pairs,
    choose_algorithms,
    validate_datasets,
)
from tasktransfer.designs.transfer.multi_source_section import (
    MultiSourceConfig,
)
from tasktransfer.results.study import Study
from tasktransfer.selection.methods import SELECTORS

AlgorithmName = Annotated[str, OneOf("algorithm", lambda dataset: ALGORITHMS)]
SelectorName = Annotated[str, OneOf("selector", lambda dataset: SELECTORS)]
ReferenceName = Annotated[str, OneOf("reference", lambda dataset: REFERENCES)]
ControlName = Annotated[str, OneOf("control", lambda dataset: CONTROLS)]


NEEDS_A_MODEL: JsonDict = {
    "anyOf": [
        {"required": ["models"], "properties": {"models": {"minItems": 1}}},
        {"required": ["prompted"], "properties": {"prompted": {"minItems": 1}}},
    ]
}
"""JSON schema of the rule that a study needs a model to train or to prompt."""


class TransferConfig(CommonConfig):
    """A validated transfer study."""

    model_config = ConfigDict(json_schema_extra=NEEDS_A_MODEL)

    data: TransferData = Field(
        default=TransferData(), description="dialogues of the study and where they are stored"
    )
    training: TransferTraining = Field(
        default=TransferTraining(),
        description="hyperparameters of every training run (Appendix B of the paper)",
    )
    datasets: Annotated[
        tuple[DatasetConfig, ...],
        PlainValidator(
            validate_datasets,
            json_schema_input_type=Annotated[
                dict[str, DatasetSection | DeclaredSection], Field(min_length=1)
            ],
        ),
    ] = Field(
        exclude=True,
        description=(
            "datasets of the study: built-in datasets with their tasks, and your own datasets with "
            "their files"
        ),
    )
    models: Annotated[tuple[TransferModel, ...], LIST, AfterValidator(check_unique_names)] = Field(
        default=(),
        description=(
            "models of the study, each with a checkpoint and a family; required unless a model in "
            "prompted has an endpoint"
        ),
    )
    algorithms: (
        Annotated[
            tuple[AlgorithmName, ...],
            LIST,
            DISTINCT,
            AfterValidator(order_algorithms),
            BeforeValidator(
                expand_algorithms, json_schema_input_type=Literal["all"] | list[AlgorithmName]
            ),
        ]
        | None
    ) = Field(
        default=None,
        description=(
            "list of transfer algorithms, or `all` for the algorithms of the paper. The baseline "
            "always runs, and [] runs no other algorithm. The value null means `all`, or [] if "
            "no task has a source"
        ),
    )
    controls: Annotated[
        tuple[ControlName, ...],
        LIST,
        DISTINCT,
        AfterValidator(lambda names: tuple(name for name in CONTROLS if name in names)),
    ] = Field(
        default=(),
        description=(
            "controls that are compared with each single-source transfer, in addition to the "
            "baseline. If the key is omitted, studies of multitask_finetune with a recipe run "
            "longer_baseline, except in a race or under the challenge's rules"
        ),
    )
    references: Annotated[
        tuple[ReferenceName, ...],
        LIST,
        DISTINCT,
        AfterValidator(lambda names: tuple(name for name in REFERENCES if name in names)),
    ] = Field(
        default=(),
        description=(
            "simple predictors that are evaluated on the same instances as the models. The "
            "report compares each baseline with these references, with a confidence interval. "
            "The reference contrastive_logistic fine-tunes the encoders, and is compared with "
            "all methods instead"
        ),
    )
    selectors: Annotated[
        tuple[SelectorName, ...],
        LIST,
        DISTINCT,
        AfterValidator(lambda names: tuple(name for name in SELECTORS if name in names)),
    ] = Field(
        default=(),
        description=(
            "methods that rank the sources of each target before training; the report compares "
            "each ranking with the results of the finished transfers (docs/selection.md)"
        ),
    )
    racing: RacingConfig | None = Field(
        default=None,
        description=(
            "settings of racing, in which further seeds are trained only for pairs with high dev "
            "scores on the first seeds; null to train all pairs with all seeds"
        ),
    )
    check_baselines: bool = Field(
        default=False,
        description=(
            "true to train the targets' baselines first, and to train transfers only to targets "
            "whose baseline has a higher dev score than all simple references. The selection is "
            "made once, and is stored in tables/learned_targets.json. Default: true in studies "
            "with racing and references, otherwise false"
        ),
    )
    learning_curve: bool = Field(
        default=False,
        description=(
            "true to train each target's baseline also on 25, 50 and 75 % of the training "
            "dialogues, so that `tasktransfer learning-curve` includes fine-tuned models"
        ),
    )
    baseline_seeds: Seeds | None = Field(
        default=None,
        description=(
            "seeds of the baselines, which must include `seeds`. Every cell of a target depends "
            "on its baseline, so more seeds reduce the noise. Set the key to null to use `seeds`"
        ),
    )
    pairs: Pairs = Field(
        default=None,
        description=(
            "pairs of a source and a target task, within or across datasets: all, or a list of "
            "source and target (Dataset/task). If neither sources nor targets is set, the "
            "default is all pairs within each dataset"
        ),
    )
    sources: Patterns | None = Field(
        default=None, description="source tasks from any datasets, as Dataset/task"
    )
    targets: Patterns | None = Field(
        default=None, description="target tasks from any datasets, as Dataset/task"
    )
    allow_leaks: Annotated[tuple[Leak, ...], LIST, DISTINCT] = Field(
        default=(),
        description=(
            "pairs of datasets, written as 'Source > Target', for which the training data of the "
            "source may contain test dialogues of the target"
        ),
    )
    checkpoints: TransferCheckpoints = Field(
        default=TransferCheckpoints(),
        description="checkpoints that stay on disk in addition to records and predictions",
    )
    multi_source: MultiSourceConfig = Field(
        default=MultiSourceConfig(), description="runs with several sources (paper, section 6.2)"
    )
    prompted: Prompted = Field(
        default=(),
        description=(
            "language models that are prompted without training, to compare them with the baselines"
        ),
    )
    rules: Rules = Field(
        default="free",
        description=(
            "challenge: reject settings that the FETA challenge forbids; free: accept them, but "
            "the records cannot be submitted"
        ),
    )

    @model_validator(mode="after")
    def _resolve_sections(self) -> Self:
        requested = RequestedPairs(self.pairs, self.sources, self.targets)
        datasets, _ = add_requested_pairs(requested, self.datasets)
        algorithms = choose_algorithms(self.algorithms, datasets)
        multi_source = self.multi_source.drop_unused_keys(algorithms)
        return self.model_copy(update={"multi_source": multi_source, "datasets": datasets})

    def describe_exclusion(self, dataset: str, task: str) -> str:
        return f"remove {task!r} from datasets.{dataset}.tasks and multi_source"

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """Datasets of the study."""
        return tuple(dataset.name for dataset in self.datasets)

    @property
    def trained_models(self) -> tuple[TransferModel, ...]:
        """Models that the study trains."""
        return tuple(model for model in self.models if model.trained)

    @property
    def endpoints(self) -> Mapping[str, EndpointConfig]:
        """Endpoints of prompted models that are not run locally, by model name."""
        return {each.model: each for each in reversed(self.prompted) if each.endpoint}

    @property
    def more_baseline_seeds(self) -> tuple[int, ...]:
        """Baseline seeds in addition to the study's seeds."""
        return tuple(seed for seed in self.baseline_seeds or () if seed not in self.seeds)

    @property
    def planned_algorithms(self) -> tuple[str, ...]:
        """Algorithms in the config file, or the defaults for the study's pairs."""
        return choose_algorithms(self.algorithms, self.datasets)

    @property
    def planned_controls(self) -> tuple[str, ...]:
        """Controls in the config file, or ``longer_baseline`` by default for multitask_finetune.

        There is no default control without a recipe, in a race, or under the challenge's rules.
        """
        if "controls" in self.model_fields_set:
            return self.controls
        learns = self.training.recipe is not None and self.racing is None
        trains_longer = (
            "multitask_finetune" in self.planned_algorithms and self.rules != "challenge"
        )
        return (LONGER_BASELINE,) if learns and trains_longer else ()

    @property
    def needs_model_sizes(self) -> bool:
        """True if the study uses a recipe, whose values depend on model sizes."""
        return self.training.recipe is not None

    def get_training_hyperparameters(self, dataset: str) -> Training:
        """Return the hyperparameters that the config file sets for all trainings on a dataset."""
        return build_training_hyperparameters(dataset, self.training)

    def plan_training(
        self, model: TransferModel, spec: ModelSpec, parameters: int | None
    ) -> ModelTraining:
        """Return the training settings for a model.

        Args:
            spec: the model's weights.
            parameters: number of the model's parameters; None if no recipe needs it.
        """
        section = self.training
        reads: Reads = model.reads
        if section.recipe is not None and model.trained and parameters is not None:
            recipe = find_recipe(model.family, parameters, adapted=spec.adapter is not None)
            section = section.apply_recipe(recipe)
            if "reads" not in model.model_fields_set:
                # Inputs of the toolkit do not mark the labelled turn.
                has_turns = resolve_switches(section.fidelity)[1].inputs != "tlidb"
                reads = recipe.reads if has_turns or recipe.reads != "turn" else "mean"
        if model.family != "encoder":  # other models have no heads
            section = section.model_copy(update={"head_initialization": "random"})
        return ModelTraining(
            replace(spec, reads=reads),
            {name: build_training_hyperparameters(name, section) for name in self.dataset_names},
            Rounds(section.round_updates, section.patience),
        )

    def build_digest_content(self) -> dict[str, Any]:
        """Return the content that the config's digest covers.

        Keys that did not exist in earlier versions are left out at their defaults, so that digests
        of older configs stay valid.
        """
        training = {
            each.name: self.get_training_hyperparameters(each.name).identity
            for each in self.datasets
        }
        datasets = [asdict(each) for each in self.datasets]
        content = super().build_digest_content()
        # These keys came later.
        _drop_defaults(content["multi_source"], choose_by="dev")
        for model in content["models"]:
            _drop_defaults(model, trained=True, reads="pooler")
        for entry in content.get("prompted", ()):
            _drop_defaults(entry, limit_test=None, thinking_tokens=None)
        if not content["data"]["releases"]:
            del content["data"]["releases"]
        content["algorithms"] = self.planned_algorithms
        content["controls"] = self.planned_controls
        content["check_baselines"] = self.checks_baselines
        del content["references"]  # came later, and changes no other node
        added_later = ("pairs", "sources", "targets", "allow_leaks", "racing", "baseline_seeds")
        for key in (*added_later, "controls", "selectors", "check_baselines", "learning_curve"):
            if not content[key]:
                del content[key]
        if set(content["checkpoints"]["keep"]) == set(STAGE_KINDS):  # all; one kind was added later
            content["checkpoints"]["keep"] = STAGE_KINDS[:-1]
        followed = ("recipe", *ROUND_KEYS)
        more = {key: value for key in followed if (value := getattr(self.training, key))}
        return content | {"datasets": datasets, "training": training | more}

    @property
    def checks_baselines(self) -> bool:
        """True if transfers depend on ``check_baselines``, which is the default of a race.

        A race without cheap references has no check.
        """
        if "check_baselines" in self.model_fields_set:
            return self.check_baselines
        return self.racing is not None and not {*self.references}.isdisjoint(COMPARED)

    def as_largest(self) -> Self:
        """Return the config without ``check_baselines``, so that no transfer run is skipped."""
        return self.model_copy(update={"check_baselines": False})

    @classmethod
    def list_forbidden_keys(cls, document: Any) -> Mapping[str, str]:
        """Map the path of every config key that the challenge's rules forbid to a message."""
        return list_forbidden_keys(document)

    @classmethod
    def find_contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield contradictions between sections that are valid by themselves."""
        return find_contradictions(parts)


def _drop_defaults(section: dict[str, Any], **defaults: Any) -> None:
    for key, default in defaults.items():
        if section[key] == default:
            del section[key]


def get_transfer_config(study: Study) -> TransferConfig:
    """Return the config of a study of this design."""
    assert isinstance(study.config, TransferConfig)
    return study.config
