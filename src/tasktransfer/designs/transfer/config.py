"""Config of a transfer study: sections beyond the common ones, and checks across sections.

A key is declared once, with type, default and description in its section's class. Names of datasets
and tasks are looked up when a config is read, so that they include those of plugins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    model_validator,
)

from tasktransfer.config import (
    ALL,
    CheckpointConfig,
    CommonConfig,
    EndpointConfig,
)
from tasktransfer.config.fidelity import resolve_switches
from tasktransfer.config.fields import DISTINCT, LIST, Seeds
from tasktransfer.config.models import check_unique_names
from tasktransfer.config.recipes import find_recipe
from tasktransfer.config.training import OF_ROUNDS
from tasktransfer.core.references import REFERENCES
from tasktransfer.core.specs import FAMILIES, ModelSpec, Reads, Rounds, Training
from tasktransfer.core.validation import Problem
from tasktransfer.designs.names import OneOf
from tasktransfer.designs.transfer.algorithms import (
    ALGORITHMS,
    PAPER_ALGORITHMS,
    STAGE_KINDS,
)
from tasktransfer.designs.transfer.challenge.rules import Rules, list_forbidden_keys
from tasktransfer.designs.transfer.config_sections import (
    ModelTraining,
    TransferCheckpoints,
    TransferData,
    TransferModel,
    TransferTraining,
    training_on,
)
from tasktransfer.designs.transfer.controls import CONTROLS, LONGER_BASELINE
from tasktransfer.designs.transfer.dataset_section import (
    DatasetConfig,
    DatasetSection,
    DeclaredSection,
    dataset_configs,
)
from tasktransfer.designs.transfer.multi_source_section import (
    MultiSourceConfig,
    chooser_problems,
    multi_source_problems,
)
from tasktransfer.designs.transfer.pairs import (
    Asked,
    Leak,
    Pairs,
    Patterns,
    across,
    refused_together,
)
from tasktransfer.designs.transfer.prompted_section import Prompted, prompted_problems
from tasktransfer.designs.transfer.racing import RacingConfig
from tasktransfer.designs.transfer.selectors.registry import SELECTORS
from tasktransfer.results.study import Study

AlgorithmName = Annotated[str, OneOf("algorithm", lambda dataset: ALGORITHMS)]
SelectorName = Annotated[str, OneOf("selector", lambda dataset: SELECTORS)]
ReferenceName = Annotated[str, OneOf("reference", lambda dataset: REFERENCES)]
ControlName = Annotated[str, OneOf("control", lambda dataset: CONTROLS)]


def _expand_algorithms(names: Any) -> Any:
    return list(PAPER_ALGORITHMS) if names == ALL else names


def _order_algorithms(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in ALGORITHMS if name in {"baseline", *names})


class TransferConfig(CommonConfig):
    """A validated transfer study."""

    data: TransferData = Field(default=TransferData(), description="dialogues of the study")
    training: TransferTraining = Field(
        default=TransferTraining(), description="hyperparameters (paper, Appendix B)"
    )
    datasets: Annotated[
        tuple[DatasetConfig, ...],
        PlainValidator(
            dataset_configs,
            json_schema_input_type=Annotated[
                dict[str, DatasetSection | DeclaredSection], Field(min_length=1)
            ],
        ),
    ] = Field(
        exclude=True,
        description="the datasets: those of the package with their tasks, and your own with their "
        "files",
    )
    models: Annotated[
        tuple[TransferModel, ...], LIST, Field(min_length=1), AfterValidator(check_unique_names)
    ] = Field(description="the models, each a checkpoint with its family")
    algorithms: Annotated[
        tuple[AlgorithmName, ...],
        LIST,
        Field(min_length=1),
        DISTINCT,
        AfterValidator(_order_algorithms),
        BeforeValidator(
            _expand_algorithms,
            json_schema_input_type=Literal["all"]
            | Annotated[list[AlgorithmName], Field(min_length=1)],
        ),
    ] = Field(
        default=PAPER_ALGORITHMS,
        description="the algorithms, or all of the paper; baseline is always run",
    )
    controls: Annotated[
        tuple[ControlName, ...],
        LIST,
        DISTINCT,
        AfterValidator(lambda names: tuple(name for name in CONTROLS if name in names)),
    ] = Field(
        default=(),
        description="controls with which every single-source transfer is compared, in addition to "
        "the baseline; default: longer_baseline in studies of multitask_finetune with a recipe, "
        "otherwise none",
    )
    references: Annotated[
        tuple[ReferenceName, ...],
        LIST,
        DISTINCT,
        AfterValidator(lambda names: tuple(name for name in REFERENCES if name in names)),
    ] = Field(
        default=(),
        description="simple predictors on the same instances; the report compares each baseline "
        "with them, with an interval",
    )
    selectors: Annotated[
        tuple[SelectorName, ...],
        LIST,
        DISTINCT,
        AfterValidator(lambda names: tuple(name for name in SELECTORS if name in names)),
    ] = Field(
        default=(),
        description="methods that rank the sources of each target before training; they are "
        "evaluated with the finished transfers (docs/selection.md)",
    )
    racing: RacingConfig | None = Field(
        default=None,
        description="pairs with low dev scores on few seeds get no more seeds; null: all pairs "
        "have all seeds",
    )
    baseline_seeds: Seeds | None = Field(
        default=None,
        description="seeds of the baselines; must include `seeds`; extra ones help because every "
        "cell of a target depends on its baseline; null: the same as `seeds`",
    )
    pairs: Pairs = Field(
        default=None,
        description="pairs of any datasets: all, or a list of source and target as Dataset/task; "
        "null: within each dataset, unless sources or targets are given",
    )
    sources: Patterns | None = Field(
        default=None, description="source tasks from any datasets, as Dataset/*"
    )
    targets: Patterns | None = Field(default=None, description="target tasks from any datasets")
    allow_leaks: Annotated[tuple[Leak, ...], LIST, DISTINCT] = Field(
        default=(),
        description="'Source > Target': pairs of datasets in which the source may train on test "
        "dialogues of the target",
    )
    checkpoints: TransferCheckpoints = Field(
        default=TransferCheckpoints(),
        description="files that stay on disk in addition to records and predictions",
    )
    multi_source: MultiSourceConfig = Field(
        default=MultiSourceConfig(), description="runs with several sources (paper, section 6.2)"
    )
    prompted: Prompted = Field(
        default=(),
        description="language models that are prompted without training, for comparison with the "
        "baselines",
    )
    rules: Rules = Field(
        default="free",
        description="challenge: refuse settings that the FETA challenge forbids; free: allow them, "
        "but the records cannot be submitted",
    )

    @model_validator(mode="after")
    def _resolve_sections(self) -> Self:
        multi_source = self.multi_source.in_force(self.algorithms)
        datasets, _ = across(Asked(self.pairs, self.sources, self.targets), self.datasets)
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
        """Endpoints of the prompted models that do not run locally, by model name."""
        return {each.model: each for each in reversed(self.prompted) if each.endpoint}

    @property
    def more_baseline_seeds(self) -> tuple[int, ...]:
        """Baseline seeds in addition to the study's seeds."""
        return tuple(seed for seed in self.baseline_seeds or () if seed not in self.seeds)

    @property
    def planned_controls(self) -> tuple[str, ...]:
        """The controls of the file, or ``longer_baseline`` by default for multitask_finetune.

        Reproductions have no default control. Neither have races, which no control can join.
        """
        if "controls" in self.model_fields_set:
            return self.controls
        learns = self.training.recipe is not None and self.racing is None
        trains_longer = "multitask_finetune" in self.algorithms and self.rules != "challenge"
        return (LONGER_BASELINE,) if learns and trains_longer else ()

    @property
    def needs_model_sizes(self) -> bool:
        """True if the study uses a recipe, which depends on model sizes."""
        return self.training.recipe is not None

    def training_for(self, dataset: str) -> Training:
        """Return the hyperparameters that the file sets for all trainings on a dataset."""
        return training_on(dataset, self.training)

    def plan_training(
        self, model: TransferModel, spec: ModelSpec, parameters: int | None
    ) -> ModelTraining:
        """Return the training settings of a model.

        Args:
            spec: the model's weights.
            parameters: number of the model's parameters; None if no recipe needs it.
        """
        section = self.training
        reads: Reads = model.reads
        if section.recipe is not None and model.trained and parameters is not None:
            recipe = find_recipe(model.family, parameters, adapted=spec.adapter is not None)
            section = section.follow(recipe)
            reads = model.reads if "reads" in model.model_fields_set else recipe.reads
        return ModelTraining(
            replace(spec, reads=reads),
            {name: training_on(name, section) for name in self.dataset_names},
            Rounds(section.round_updates, section.patience),
        )

    def content(self) -> dict[str, Any]:
        """Return the content as for any config, with ``training`` by dataset as in the stages."""
        training = {each.name: self.training_for(each.name).identity for each in self.datasets}
        datasets = [asdict(each) for each in self.datasets]
        content = super().content()
        if content["multi_source"]["choose_by"] == "dev":  # came later
            del content["multi_source"]["choose_by"]
        for model in content["models"]:
            if model["trained"]:  # came later
                del model["trained"]
            if model["reads"] == "pooler":  # came later
                del model["reads"]
        if not self.prompted:
            del content["prompted"]
        for entry in content.get("prompted", ()):
            for key in ("limit_test", "thinking_tokens"):  # came later
                if entry[key] is None:
                    del entry[key]
        if not content["data"]["releases"]:  # came later
            del content["data"]["releases"]
        content["controls"] = self.planned_controls
        if not self.planned_controls:
            del content["controls"]
        del content["references"]  # came later, and changes no other node
        if not self.selectors:  # came later
            del content["selectors"]
        for key in ("pairs", "sources", "targets", "allow_leaks"):
            if not content[key]:
                del content[key]
        if self.racing is None:
            del content["racing"]
        if self.baseline_seeds is None:
            del content["baseline_seeds"]
        if set(content["checkpoints"]["keep"]) == set(STAGE_KINDS):  # all; one kind was added later
            content["checkpoints"]["keep"] = STAGE_KINDS[:-1]
        followed = ("recipe", *OF_ROUNDS)
        more = {key: value for key in followed if (value := getattr(self.training, key))}
        return content | {"datasets": datasets, "training": training | more}

    @classmethod
    def list_forbidden_keys(cls, document: Any) -> Mapping[str, str]:
        """Return what the challenge's rules forbid, if the study is under them."""
        return list_forbidden_keys(document)

    @classmethod
    def find_contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield conflicts between sections that are valid by themselves."""
        datasets: tuple[DatasetConfig, ...] = parts.get("datasets", ())
        algorithms: tuple[str, ...] = parts.get("algorithms", ())
        asked = Asked(*(parts.get(key) for key in ("pairs", "sources", "targets")))
        if isinstance(asked.pairs, tuple) and (asked.sources or asked.targets):
            yield Problem("pairs", "cannot be combined with sources and targets: remove one")
        if datasets:
            datasets, problems = across(asked, datasets)
            yield from problems
            mode = parts["multi_source"].mode if "multi_source" in parts else "off"
            yield from refused_together(asked, datasets, algorithms, mode)
        if len(algorithms) > 1 and asked.is_open:
            yield from _find_missing_pairs(datasets)
        if parts.get("racing"):
            yield from _find_race_problems(parts)
        if parts.get("baseline_seeds"):
            yield from _find_missing_baseline_seeds(parts["baseline_seeds"], parts.get("seeds", ()))
        if "training" in parts:
            yield from _find_budget_problems(parts["training"], datasets)
            yield from _rate_without_heads(parts["training"], parts.get("models", ()))
        if "checkpoints" in parts and "pretrain_finetune" in algorithms:
            yield from _find_missing_checkpoints(parts["checkpoints"])
        if parts.get("prompted") and "models" in parts:
            yield from prompted_problems(parts["prompted"], parts["models"])
        if "models" in parts and not parts.get("prompted", True):
            yield from _find_idle_study(parts["models"])
        if "multi_source" in parts:
            yield from multi_source_problems(parts["multi_source"], datasets, algorithms)
            trained = (model for model in parts.get("models", ()) if model.trained)
            families = frozenset(model.family for model in trained) or frozenset(FAMILIES)
            yield from chooser_problems(parts["multi_source"], parts.get("selectors", ()), families)


# --- conflicts between sections -------------------------------------------------------------------


def _find_idle_study(models: Sequence[TransferModel]) -> Iterator[Problem]:
    """Yield a problem if the study neither trains nor prompts a model."""
    if not any(model.trained for model in models):
        message = "none is trained or prompted: remove trained: false, or add one to prompted"
        yield Problem("models", message)


def _find_missing_pairs(datasets: tuple[DatasetConfig, ...]) -> Iterator[Problem]:
    for dataset in datasets:
        if not dataset.pairs:
            yield Problem(
                f"datasets.{dataset.name}",
                "has no pair of a source and another task as its target: name two tasks or more, "
                "or set algorithms: [baseline]",
            )


def _find_race_problems(parts: Mapping[str, Any]) -> Iterator[Problem]:
    last, seeds = parts["racing"].seeds[-1], parts.get("seeds", ())
    if last > len(seeds):
        yield Problem(
            "racing.seeds",
            f"its last round has {last} seeds, and seeds has {len(seeds)}: set seeds: {last}",
        )
    if parts.get("controls"):
        yield Problem(
            "racing", "cannot be combined with controls, which run for every pair: remove one"
        )
    if "multi_source" in parts and parts["multi_source"].mode == "auto":
        yield Problem(
            "racing",
            "cannot be combined with multi_source.mode: auto, which chooses from all pairs: set "
            "mode to named or off, or remove racing",
        )


def _find_missing_baseline_seeds(
    baseline_seeds: tuple[int, ...], seeds: tuple[int, ...]
) -> Iterator[Problem]:
    missing = [str(seed) for seed in seeds if seed not in baseline_seeds]
    if missing:
        yield Problem(
            "baseline_seeds",
            f"does not contain {', '.join(missing)} of seeds: add it, because transfers start from "
            "the baselines of their own seeds",
        )


def _find_budget_problems(
    training: TransferTraining, datasets: tuple[DatasetConfig, ...]
) -> Iterator[Problem]:
    """Yield problems with the length of training, and with recipes in reproductions."""
    if training.recipe and resolve_switches(training.fidelity)[0] != "default":
        yield Problem(
            "training.recipe",
            "cannot be combined with fidelity: paper or tlidb, which have their own: remove one",
        )
    if training.updates is not None:
        for key in ("epochs", "min_updates"):
            if key in training.keys_in_file:
                message = "cannot be combined with updates, which replace it: remove one"
                yield Problem(f"training.{key}", message)
        return
    if training.recipe and not training.has_own_budget:
        return
    epochs = training.epochs
    missing = [d.name for d in datasets if isinstance(epochs, dict) and d.name not in epochs]
    for name in missing:
        yield Problem("training.epochs", f"has no value for {name}: add {name}: 20")


def _rate_without_heads(
    training: TransferTraining, models: Sequence[TransferModel]
) -> Iterator[Problem]:
    """Yield a problem if heads have a learning rate but no model has heads."""
    trained = [model for model in models if model.trained]
    if (
        training.head_learning_rate is not None
        and trained
        and all(model.family != "encoder" for model in trained)
    ):
        yield Problem(
            "training.head_learning_rate",
            "has no effect, because no encoder is trained and other families have no heads: "
            "remove it",
        )


def _find_missing_checkpoints(checkpoints: CheckpointConfig) -> Iterator[Problem]:
    if "baseline" not in checkpoints.keep:
        yield Problem(
            "checkpoints.keep",
            f"found [{', '.join(checkpoints.keep)}] without 'baseline', which pretrain_finetune "
            "starts from: add it",
        )


def transfer_config(study: Study) -> TransferConfig:
    """Return the config of a study of this design."""
    assert isinstance(study.config, TransferConfig)
    return study.config
