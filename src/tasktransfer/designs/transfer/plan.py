"""Planning: builds the runs of a transfer study, and the distinct stages they share, from a config.

This module is pure and light, because the Snakefile imports it at every start. Inputs from disk
(revisions of the data, digests of the checkpoints, a selection of sources) are arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from tasktransfer.core.nodes import Data, Stage, Start
from tasktransfer.core.plan import Plan, PlanBuilder
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec, Selection, Training
from tasktransfer.core.steps import Step
from tasktransfer.datasets import build_data_node, get_recipe_version, resolve_task
from tasktransfer.designs.transfer.algorithms import in_order, steps
from tasktransfer.designs.transfer.baseline_check import (
    COMPARED,
    Target,
    list_checked_targets,
    select_run_names,
)
from tasktransfer.designs.transfer.challenge_rules import refuse_forbidden
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.config_sections import ModelTraining
from tasktransfer.designs.transfer.controls import (
    CONTROLS,
    Usual,
    build_control_steps,
    control_runs,
)
from tasktransfer.designs.transfer.dataset_section import DatasetConfig
from tasktransfer.designs.transfer.pairs import build_short_names, homes, is_foreign
from tasktransfer.designs.transfer.prompted import plan_prompted_runs
from tasktransfer.designs.transfer.racing import Race
from tasktransfer.designs.transfer.references import plan_reference_runs
from tasktransfer.designs.transfer.runs import BASELINE, SAMPLES, RunName, make_run
from tasktransfer.designs.transfer.samples import build_sample_steps, list_sample_runs
from tasktransfer.designs.transfer.selection import MultiSource
from tasktransfer.designs.transfer.stage_names import derive_stage_kind, format_stage_label
from tasktransfer.errors import ConfigError
from tasktransfer.results.revisions import Revisions
from tasktransfer.selection.methods import SELECTORS
from tasktransfer.selection.nodes import StudyPairs, plan_selector_runs


def build(
    config: TransferConfig,
    revisions: Revisions,
    selected: Iterable[MultiSource] = (),
    race: Race | None = None,
    learned: frozenset[Target] | None = None,
) -> Plan:
    """Expand a config into its plan.

    Args:
        config: a validated study.
        revisions: content digests of data and models.
        selected: multi-source targets in addition to those that the config names.
        race: seeds of each pair; None if every pair has all seeds.
        learned: the only targets with transfers; None for all.

    Returns:
        Every run once, and every distinct stage once. A source's baseline is the stage from which
        its transfers start, and multitask is the first half of multitask_finetune.

    Raises:
        ConfigError: the study is under the challenge's rules and a run would break one.
    """
    builder, given = _create_builder(config), _collect_inputs(config, revisions)
    if race is not None:
        config = config.model_copy(update={"seeds": race.seeds_now})
    names = [*dict.fromkeys(_list_run_names(config, selected))]
    if learned is not None:
        names = select_run_names(names, config, learned)
    for wanted in names:
        if race is not None and not _is_in_race(race, wanted):
            continue
        if config.rules == "challenge":
            refuse_forbidden(config, wanted)
        builder.add_run(_run(builder, given, wanted))
    if config.learning_curve:
        models = [model.name for model in config.trained_models]
        for wanted in list_sample_runs(config.datasets, models, config.seeds):
            builder.add_run(_run(builder, given, wanted))
    for run in _plan_selector_runs(config, builder, given, learned):
        builder.add_run(run)
    for run in plan_prompted_runs(config, given.data, given.models):
        builder.add_run(run)
    simple = config.references
    for run in plan_reference_runs(
        simple, names, given.data, given.models, given.get_training_hyperparameters
    ):
        builder.add_run(run)
    if learned is not None:
        for run in _plan_checks(config, given):
            builder.add_run(run)
    for stage in _plan_candidate_stages(config, builder, given):
        builder.register_stage(stage)
    return builder.build_plan()


def _plan_checks(config: TransferConfig, given: _Given) -> Iterator[Run]:
    """Yield the references that predict the dev splits of the study's targets."""
    models = [model.name for model in config.trained_models]
    names = [
        (dataset, model, BASELINE, (), target, 0)
        for dataset, targets in list_checked_targets(config).items()
        for model, target in product(models, targets)
    ]
    references = [name for name in config.references if name in COMPARED]
    yield from plan_reference_runs(
        references, names, given.data, given.models, given.get_training_hyperparameters, "dev"
    )


def _plan_selector_runs(
    config: TransferConfig,
    builder: PlanBuilder,
    given: _Given,
    learned: frozenset[Target] | None,
) -> Iterator[Run]:
    """Yield the runs of the configured selectors, on the pairs that have transfers."""
    selectors = [SELECTORS[name] for name in config.selectors]
    asked = product(config.trained_models, config.seeds, config.datasets) if selectors else ()
    for model, seed, dataset in asked:
        of = _Of(builder, given, dataset.name, model.name, seed)
        pairs = [
            pair
            for pair in dataset.pairs
            if learned is None or (dataset.name, model.name, pair[1]) in learned
        ]
        study_pairs = StudyPairs(
            *(given.data[dataset.name], given.data, given.models[model.name], seed),
            pairs=pairs,
            baseline=of.plan_baseline,
            probe=of.plan_probe_stage,
        )
        yield from plan_selector_runs(study_pairs, selectors)


class _Of(NamedTuple):
    """Trainings of a dataset, model and seed that selectors read."""

    builder: PlanBuilder
    given: _Given
    dataset: str
    model: str
    seed: int

    def plan_baseline(self, task: str) -> Stage:
        home, name = resolve_task(self.dataset, task)
        wanted = (home, self.model, BASELINE, (), name, self.seed)
        return _run(self.builder, self.given, wanted).stages[0]

    def plan_probe_stage(self, source: str, target: str) -> Stage:
        """Return the stage that trains one epoch of the transfer, without a test split."""
        short = self.given.get_training_hyperparameters(self.dataset, self.model).limit_to_epochs(1)
        start = _start(self.plan_baseline(source), target, self.given.models[self.model])
        step = Step((target,), Selection((target,)), start=start, training=short, test_on=())
        stages = self.given.stages(self.builder, [step], self.dataset, self.model, self.seed)
        return stages[step]


def _is_in_race(race: Race, wanted: RunName) -> bool:
    """Return whether a run is in the plan; baselines and multi-source runs do not race."""
    dataset, model, algorithm, sources, target, seed = wanted
    if len(sources) != 1:
        return True
    return race.runs((dataset, model, algorithm, sources[0], target), seed)


def _plan_candidate_stages(
    config: TransferConfig, builder: PlanBuilder, given: _Given
) -> Iterator[Stage]:
    """Yield the pre-training stages on pairs of sources that ``auto`` may pick.

    If multitask trains on these pairs too, the stages are identical and finish before the
    selection. So they keep a round for the selection from the start.
    """
    asked = config.multi_source
    if (asked.mode, asked.sources_per_target) != ("auto", 2):
        return
    for model, seed, dataset in product(config.trained_models, config.seeds, config.datasets):
        for pair in combinations(dataset.tasks, 2):
            for target in [task for task in dataset.tasks if task not in pair][:1]:
                name = (dataset.name, model.name, "pretrain_finetune", pair, target, seed)
                yield _run(builder, given, name).stages[0]


def _create_builder(config: TransferConfig) -> PlanBuilder:
    shorts = build_short_names(config.datasets)
    return PlanBuilder(
        lambda step, begin: (
            derive_stage_kind(step, begin),
            format_stage_label(step, begin, shorts),
        ),
        get_recipe_version,
    )


class _Given(NamedTuple):
    """Objects shared by thousands of runs, built once, by name of the dataset or model."""

    data: Mapping[str, Data]
    models: Mapping[str, ModelSpec]
    trainings: Mapping[str, ModelTraining]

    def get_training_hyperparameters(self, dataset: str, model: str) -> Training:
        """Return the hyperparameters of a model's trainings on a dataset."""
        return self.trainings[model].trainings[dataset]

    def stages(
        self, builder: PlanBuilder, steps: Sequence[Step], dataset: str, model: str, seed: int
    ) -> dict[Step, Stage]:
        """Return the stage of each step of a method, with what a dataset and a model share."""
        training, rounds = (
            self.get_training_hyperparameters(dataset, model),
            self.trainings[model].rounds,
        )
        return builder.build_stages(
            steps, self.data[dataset], self.models[model], training, seed, rounds
        )


def _collect_inputs(config: TransferConfig, revisions: Revisions) -> _Given:
    names, few = config.dataset_names, {"few_sample": config.data.few_sample}
    trainings = {
        model.name: config.plan_training(model, spec, revisions.parameters.get(model.name))
        for model in config.models
        if (spec := revisions.models.get(model.name)) is not None
    }
    return _Given(
        {name: build_data_node(name, revisions.data[name], few) for name in names},
        {**revisions.models, **{name: training.model for name, training in trainings.items()}},
        trainings,
    )


def plan_run(config: TransferConfig, revisions: Revisions, wanted: RunName) -> Run:
    """Return one run of a study, whether or not its plan has the run."""
    return _run(_create_builder(config), _collect_inputs(config, revisions), wanted)


def _run(builder: PlanBuilder, given: _Given, wanted: RunName) -> Run:
    dataset, model, algorithm, sources, target, seed = wanted
    data, training = given.data[dataset], given.get_training_hyperparameters(dataset, model)
    if any(map(is_foreign, sources)):
        return make_run(wanted, _plan_across_datasets(builder, given, wanted))
    if algorithm in CONTROLS:
        method = build_control_steps(algorithm, sources, target, Usual(data, training, seed))
    elif algorithm in SAMPLES:
        method = build_sample_steps(algorithm, target, Usual(data, training, seed))
    else:
        method = steps(algorithm, sources, target)
    stages = given.stages(builder, method, dataset, model, seed)
    return make_run(wanted, [*stages.values()][-1])


def _plan_across_datasets(builder: PlanBuilder, given: _Given, wanted: RunName) -> Stage:
    """Return the last stage of a run with sources from other datasets.

    It trains on one task after the other, each with the data and hyperparameters of its own
    dataset. The first stage is that source's baseline; a control trains it on the control's data.
    """
    dataset, model, algorithm, sources, target, seed = wanted
    tasks = [*homes(dataset, sources), (dataset, target)]
    if len(sources) > 1 and algorithm != "sequential":
        raise ConfigError(
            f"{algorithm} of {target}: The sources {', '.join(sources)} are of other "
            "datasets, but a training reads only one dataset. Use one source, or the "
            "algorithm sequential."
        )
    before: Stage | None = None
    for home, task in tasks:
        data, training = given.data[home], given.get_training_hyperparameters(home, model)
        step = Step((task,), Selection((task,)), start=_start(before, task, given.models[model]))
        if algorithm in CONTROLS and before is None:
            step = build_control_steps(algorithm, (task,), target, Usual(data, training, seed))[0]
        stages = given.stages(builder, [step], home, model, seed)
        before = stages[step]
    assert before is not None
    return before


def _start(before: Stage | None, task: str, model: ModelSpec) -> Start | None:
    """Return the start of a stage: the whole previous stage, if there is one.

    The head of a task with the same name from another dataset is left out.
    """
    if before is None:
        return None
    has_its_head = model.family == "encoder" and task in before.tasks
    return Start(before, parts=("encoder",) if has_its_head else ())


def _list_run_names(config: TransferConfig, selected: Iterable[MultiSource]) -> Iterator[RunName]:
    """Yield every run, baselines first; a run that is requested twice is yielded twice."""
    multi = [*(MultiSource(m.dataset, m.target, m.sources) for m in config.multi_source.named)]
    multi += [m for m in selected if m not in multi]
    for model in config.trained_models:
        yield from _list_more_baselines(config, model.name, multi)
        for seed in config.seeds:
            for dataset in config.datasets:
                targets = [m for m in multi if m.dataset == dataset.name]
                for target in _list_baseline_tasks(dataset, targets):
                    yield dataset.name, model.name, BASELINE, (), target, seed
                for algorithm in config.planned_algorithms:
                    if algorithm == BASELINE:
                        continue
                    for source, target in dataset.pairs:
                        yield dataset.name, model.name, algorithm, (source,), target, seed
                for algorithm in config.multi_source.algorithms:
                    for m in targets:
                        sources = in_order(algorithm, m.sources)
                        yield dataset.name, model.name, algorithm, sources, m.target, seed
                of_pairs = {target for _, target in dataset.pairs}
                studied = [task for task in dataset.tasks if task in of_pairs]
                for control, sources, target in control_runs(
                    config.planned_controls, studied, dataset.pairs
                ):
                    yield dataset.name, model.name, control, sources, target, seed


def _list_more_baselines(
    config: TransferConfig, model: str, multi: list[MultiSource]
) -> Iterator[RunName]:
    """Yield baselines of the seeds that no transfer has (``baseline_seeds``)."""
    for seed in config.more_baseline_seeds:
        for dataset in config.datasets:
            targets = [m for m in multi if m.dataset == dataset.name]
            for target in _list_baseline_tasks(dataset, targets):
                yield dataset.name, model, BASELINE, (), target, seed


def _list_baseline_tasks(dataset: DatasetConfig, multi: list[MultiSource]) -> list[str]:
    """Return the tasks that need a baseline, in the order of the config.

    Every task of the study needs one: targets for comparison, sources to start from.
    """
    extra = [m.target for m in multi if m.target not in dataset.tasks]
    return list(dict.fromkeys([*dataset.tasks, *extra]))
