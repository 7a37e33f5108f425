"""Functions that build the plan of a transfer study: its runs, and the stages that they share.

This module is pure and light, because the Snakefile imports it at every start. Inputs from disk
(revisions of the data, digests of the checkpoints, a selection of sources) are arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from tasktransfer.core.nodes import Data, Stage, Start
from tasktransfer.core.plan import Plan, PlanBuilder, Step
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec, Selection, Training
from tasktransfer.datasets import build_data_node, get_recipe_version, resolve_task
from tasktransfer.designs.transfer.algorithms import (
    CONTROLS,
    StudySettings,
    build_control_steps,
    build_steps,
    list_control_runs,
    order_sources,
)
from tasktransfer.designs.transfer.challenge_rules import check_challenge_rules
from tasktransfer.designs.transfer.choices import (
    COMPARED,
    MultiSource,
    Race,
    TargetName,
    group_targets_by_dataset,
    select_run_names,
)
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.config_sections import ModelTraining
from tasktransfer.designs.transfer.dataset_section import (
    DatasetConfig,
    build_short_names,
    is_foreign,
    resolve_sources,
)
from tasktransfer.designs.transfer.prompted import plan_prompted_runs
from tasktransfer.designs.transfer.references import plan_reference_runs
from tasktransfer.designs.transfer.runs import BASELINE, SAMPLES, RunName, make_run
from tasktransfer.designs.transfer.samples import build_sample_steps, list_sample_runs
from tasktransfer.designs.transfer.stage_names import derive_stage_kind, format_stage_label
from tasktransfer.errors import ConfigError
from tasktransfer.results.revisions import Revisions
from tasktransfer.selection.methods import SELECTORS
from tasktransfer.selection.nodes import StudyPairs, plan_selector_runs


def build_plan(
    config: TransferConfig,
    revisions: Revisions,
    selected: Iterable[MultiSource] = (),
    race: Race | None = None,
    learned: frozenset[TargetName] | None = None,
) -> Plan:
    """Expand a config into its plan.

    Args:
        config: a validated study.
        revisions: content digests of data and models.
        selected: multi-source targets in addition to those that the config lists.
        race: seeds of each pair; None if every pair has all seeds.
        learned: the targets that have transfers; None for all.

    Returns:
        The plan, in which every run and every distinct stage occurs once: a source's baseline is
        the stage from which its transfers start, and multitask is the first half of
        multitask_finetune.

    Raises:
        ConfigError: the study is under the challenge's rules and a run would break one.
    """
    builder, inputs = _create_builder(config), _collect_inputs(config, revisions)
    if race is not None:
        config = config.model_copy(update={"seeds": race.current_seeds})
    names = [*dict.fromkeys(_list_run_names(config, selected))]
    if learned is not None:
        names = select_run_names(names, config, learned)
    for run_name in names:
        if race is not None and not _is_in_race(race, run_name):
            continue
        if config.rules == "challenge":
            check_challenge_rules(config, run_name)
        builder.add_run(_plan_run(builder, inputs, run_name))
    if config.learning_curve:
        models = [model.name for model in config.trained_models]
        for wanted in list_sample_runs(config.datasets, models, config.seeds):
            builder.add_run(_plan_run(builder, inputs, wanted))
    for run in _plan_selector_runs(config, builder, inputs, learned):
        builder.add_run(run)
    for run in plan_prompted_runs(config, inputs.data, inputs.models):
        builder.add_run(run)
    for run in plan_reference_runs(
        *(config.references, names, inputs.data, inputs.models),
        *(inputs.get_training_hyperparameters, group_targets_by_dataset(config)),
    ):
        builder.add_run(run)
    if learned is not None:
        for run in _plan_checks(config, inputs):
            builder.add_run(run)
    for stage in _plan_candidate_stages(config, builder, inputs):
        builder.register_stage(stage)
    return builder.build_plan()


def _plan_checks(config: TransferConfig, inputs: _PlanInputs) -> Iterator[Run]:
    """Yield the references that are evaluated on the dev splits of the study's targets."""
    models = [model.name for model in config.trained_models]
    targets = group_targets_by_dataset(config)
    names = [
        (dataset, model, BASELINE, (), target, 0)
        for dataset, own in targets.items()
        for model, target in product(models, own)
    ]
    references = [name for name in config.references if name in COMPARED]
    yield from plan_reference_runs(
        *(references, names, inputs.data, inputs.models),
        *(inputs.get_training_hyperparameters, targets, "dev"),
    )


def _plan_selector_runs(
    config: TransferConfig,
    builder: PlanBuilder,
    inputs: _PlanInputs,
    learned: frozenset[TargetName] | None,
) -> Iterator[Run]:
    """Yield the runs of the configured selectors on all pairs with transfers."""
    selectors = [SELECTORS[name] for name in config.selectors]
    asked = product(config.trained_models, config.seeds, config.datasets) if selectors else ()
    for model, seed, dataset in asked:
        trainings = _SelectorTrainings(builder, inputs, dataset.name, model.name, seed)
        pairs = [
            pair
            for pair in dataset.pairs
            if learned is None or (dataset.name, model.name, pair[1]) in learned
        ]
        study_pairs = StudyPairs(
            *(inputs.data[dataset.name], inputs.data, inputs.models[model.name], seed),
            pairs=pairs,
            baseline=trainings.plan_baseline,
            probe=trainings.plan_probe_stage,
        )
        yield from plan_selector_runs(study_pairs, selectors)


class _SelectorTrainings(NamedTuple):
    """Planner of the trainings of a dataset, model and seed that selectors read."""

    builder: PlanBuilder
    inputs: _PlanInputs
    dataset: str
    model: str
    seed: int

    def plan_baseline(self, task: str) -> Stage:
        """Return the stage that trains a task's baseline."""
        owner, name = resolve_task(self.dataset, task)
        run_name = (owner, self.model, BASELINE, (), name, self.seed)
        return _plan_run(self.builder, self.inputs, run_name).stages[0]

    def plan_probe_stage(self, source: str, target: str) -> Stage:
        """Return the stage that trains the transfer for one epoch, without a test split."""
        training = self.inputs.get_training_hyperparameters(self.dataset, self.model)
        short = training.limit_to_epochs(1)
        start = _build_start(self.plan_baseline(source), target, self.inputs.models[self.model])
        step = Step((target,), Selection((target,)), start=start, training=short, test_on=())
        stages = self.inputs.build_stages(self.builder, [step], self.dataset, self.model, self.seed)
        return stages[step]


def _is_in_race(race: Race, run_name: RunName) -> bool:
    """Return whether a race includes a run. Baselines and multi-source runs are always included."""
    dataset, model, algorithm, sources, target, seed = run_name
    if len(sources) != 1:
        return True
    return race.includes((dataset, model, algorithm, sources[0], target), seed)


def _plan_candidate_stages(
    config: TransferConfig, builder: PlanBuilder, inputs: _PlanInputs
) -> Iterator[Stage]:
    """Yield stages trained on pairs of sources that the mode ``auto`` may choose.

    Multitask may train on the same pairs, and its stages finish before the choice. The builder
    expects the additional selection of a round from the start, so that both can share a stage.
    """
    section = config.multi_source
    if (section.mode, section.sources_per_target) != ("auto", 2):
        return
    for model, seed, dataset in product(config.trained_models, config.seeds, config.datasets):
        for pair in combinations(dataset.tasks, 2):
            for target in [task for task in dataset.tasks if task not in pair][:1]:
                name = (dataset.name, model.name, "pretrain_finetune", pair, target, seed)
                yield _plan_run(builder, inputs, name).stages[0]


def _create_builder(config: TransferConfig) -> PlanBuilder:
    shorts = build_short_names(config.datasets)
    return PlanBuilder(
        lambda step, begin: (
            derive_stage_kind(step, begin),
            format_stage_label(step, begin, shorts),
        ),
        get_recipe_version,
    )


class _PlanInputs(NamedTuple):
    """Objects that thousands of runs share, built once.

    Attributes:
        data: dataset → its data.
        models: model → its weights.
        trainings: model → its training settings.
    """

    data: Mapping[str, Data]
    models: Mapping[str, ModelSpec]
    trainings: Mapping[str, ModelTraining]

    def get_training_hyperparameters(self, dataset: str, model: str) -> Training:
        """Return the hyperparameters of a model's trainings on a dataset."""
        return self.trainings[model].trainings[dataset]

    def build_stages(
        self, builder: PlanBuilder, steps: Sequence[Step], dataset: str, model: str, seed: int
    ) -> dict[Step, Stage]:
        """Map each step of a method to a stage with the data, a model and a seed."""
        training, rounds = (
            self.get_training_hyperparameters(dataset, model),
            self.trainings[model].rounds,
        )
        return builder.build_stages(
            steps, self.data[dataset], self.models[model], training, seed, rounds
        )


def _collect_inputs(config: TransferConfig, revisions: Revisions) -> _PlanInputs:
    names, few = config.dataset_names, {"few_sample": config.data.few_sample}
    trainings = {
        model.name: config.plan_training(model, spec, revisions.parameters.get(model.name))
        for model in config.models
        if (spec := revisions.models.get(model.name)) is not None
    }
    return _PlanInputs(
        {name: build_data_node(name, revisions.data[name], few) for name in names},
        {**revisions.models, **{name: training.model for name, training in trainings.items()}},
        trainings,
    )


def plan_run(config: TransferConfig, revisions: Revisions, run_name: RunName) -> Run:
    """Return a run of the study, even if the plan does not contain it."""
    return _plan_run(_create_builder(config), _collect_inputs(config, revisions), run_name)


def _plan_run(builder: PlanBuilder, inputs: _PlanInputs, run_name: RunName) -> Run:
    dataset, model, algorithm, sources, target, seed = run_name
    data, training = inputs.data[dataset], inputs.get_training_hyperparameters(dataset, model)
    if any(map(is_foreign, sources)):
        return make_run(run_name, _plan_across_datasets(builder, inputs, run_name))
    if algorithm in CONTROLS:
        method = build_control_steps(
            algorithm, sources, target, StudySettings(data, training, seed)
        )
    elif algorithm in SAMPLES:
        method = build_sample_steps(algorithm, target, StudySettings(data, training, seed))
    else:
        method = build_steps(algorithm, sources, target)
    stages = inputs.build_stages(builder, method, dataset, model, seed)
    return make_run(run_name, [*stages.values()][-1])


def _plan_across_datasets(builder: PlanBuilder, inputs: _PlanInputs, run_name: RunName) -> Stage:
    """Plan a run with sources from other datasets, and return its last stage.

    It trains on one task after the other, each with the data and hyperparameters of its own
    dataset. The first stage is that source's baseline; a control trains it on the control's data.
    """
    dataset, model, algorithm, sources, target, seed = run_name
    tasks = [*resolve_sources(dataset, sources), (dataset, target)]
    if len(sources) > 1 and algorithm != "sequential":
        raise ConfigError(
            f"{algorithm} of {target}: The sources {', '.join(sources)} are from other datasets "
            "than the target, but a training run reads only one dataset. Use one source, or the "
            "algorithm sequential."
        )
    before: Stage | None = None
    for owner, task in tasks:
        data, training = inputs.data[owner], inputs.get_training_hyperparameters(owner, model)
        step = Step(
            (task,), Selection((task,)), start=_build_start(before, task, inputs.models[model])
        )
        if algorithm in CONTROLS and before is None:
            step = build_control_steps(
                algorithm, (task,), target, StudySettings(data, training, seed)
            )[0]
        stages = inputs.build_stages(builder, [step], owner, model, seed)
        before = stages[step]
    assert before is not None
    return before


def _build_start(before: Stage | None, task: str, model: ModelSpec) -> Start | None:
    """Return the model of the previous stage as a start, or None for the first stage.

    The previous head is left out if it belongs to another dataset's task with the same name.
    """
    if before is None:
        return None
    has_its_head = model.family == "encoder" and task in before.tasks
    return Start(before, parts=("encoder",) if has_its_head else ())


def _list_run_names(config: TransferConfig, selected: Iterable[MultiSource]) -> Iterator[RunName]:
    """Yield the names of all runs, possibly repeatedly.

    For each model, seed and dataset, the baselines come first.
    """
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
                        sources = order_sources(algorithm, m.sources)
                        yield dataset.name, model.name, algorithm, sources, m.target, seed
                of_pairs = {target for _, target in dataset.pairs}
                studied = [task for task in dataset.tasks if task in of_pairs]
                for control, sources, target in list_control_runs(
                    config.planned_controls, studied, dataset.pairs
                ):
                    yield dataset.name, model.name, control, sources, target, seed


def _list_more_baselines(
    config: TransferConfig, model: str, multi: list[MultiSource]
) -> Iterator[RunName]:
    """Yield the baselines with the additional seeds in ``baseline_seeds``."""
    for seed in config.more_baseline_seeds:
        for dataset in config.datasets:
            targets = [m for m in multi if m.dataset == dataset.name]
            for target in _list_baseline_tasks(dataset, targets):
                yield dataset.name, model, BASELINE, (), target, seed


def _list_baseline_tasks(dataset: DatasetConfig, multi: list[MultiSource]) -> list[str]:
    """Return the tasks that need a baseline, in the config's order.

    Every task of the study needs one: targets for comparison, sources to start from.
    """
    extra = [m.target for m in multi if m.target not in dataset.tasks]
    return list(dict.fromkeys([*dataset.tasks, *extra]))
