"""Config to plan: the runs of a transfer study and the distinct stages that they share.

Pure and light, since the Snakefile imports it at every start. What it needs from
the disk (revisions of the data, digests of the checkpoints, a selection of sources) is handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import NamedTuple

from tasktransfer.core.nodes import Data, Stage, Start
from tasktransfer.core.plan import Choice, Plan, PlanBuilder
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec, Selection, Training
from tasktransfer.core.steps import Step
from tasktransfer.datasets import data_of, recipe_of, task_of
from tasktransfer.designs.transfer.algorithms import in_order, steps
from tasktransfer.designs.transfer.challenge.rules import broken
from tasktransfer.designs.transfer.config import ModelTraining, TransferConfig
from tasktransfer.designs.transfer.controls import CONTROLS, Usual, control_runs, control_steps
from tasktransfer.designs.transfer.dataset_section import DatasetConfig
from tasktransfer.designs.transfer.multi_source_section import SPLITS_THAT_CHOOSE
from tasktransfer.designs.transfer.pairs import homes, is_foreign, shorts_of
from tasktransfer.designs.transfer.prompted import prompted_runs
from tasktransfer.designs.transfer.racing import Race, choice_name, race_of
from tasktransfer.designs.transfer.runs import BASELINE, RunName, run_of
from tasktransfer.designs.transfer.selection import SELECTION, MultiSource, read_selection
from tasktransfer.designs.transfer.selectors.nodes import Studied, selector_runs
from tasktransfer.designs.transfer.selectors.registry import SELECTORS
from tasktransfer.errors import ConfigError
from tasktransfer.results.revisions import Revisions


def plan(config: TransferConfig, revisions: Revisions) -> Plan:
    """The plan of a study, with what ``auto`` has picked by now.

    Raises:
        ConfigError: the study is under the challenge's rules and a run would break one.
        RecordError: the file of what ``auto`` picked is damaged, or of another question.
    """
    if config.racing is not None:
        return _race(config, revisions)
    if config.multi_source.mode != "auto" or not config.trained_models:
        return build(config, revisions)
    single_source = build(config, revisions)
    read = build(config.model_copy(update={"controls": (), "prompted": ()}), revisions)
    picked = read_selection(config)
    like = _like_several_sources(config, revisions)
    chosen_by_split = config.multi_source.choose_by in SPLITS_THAT_CHOOSE
    after = read.stages if chosen_by_split else read.nodes
    choice = Choice(SELECTION, after, made=picked is not None, like=like)
    grown = single_source if picked is None else build(config, revisions, picked)
    return replace(grown, choices=(choice,))


def _race(config: TransferConfig, revisions: Revisions) -> Plan:
    """The plan of a race as far as its rounds are over. What a later round adds are stages of the
    kinds that are there."""
    assert config.racing is not None
    race = race_of(config.racing, config.seeds, config.results)
    racing = config.model_copy(update={"selectors": ()})
    rounds = range(1, min(len(race.kept) + 2, len(race.seeds)))
    choices = [
        Choice(
            choice_name(number),
            build(racing, revisions, race=race.before(number - 1)).stages,
            made=number <= len(race.kept),
        )
        for number in rounds
    ]
    return replace(build(config, revisions, race=race), choices=tuple(choices))


def _like_several_sources(config: TransferConfig, revisions: Revisions) -> tuple[Stage, ...]:
    """Stages of each multi-source algorithm, for the first tasks of the study."""
    dataset, model = config.datasets[0], config.trained_models[0].name
    target, *others = dataset.tasks
    sources = tuple(others[: config.multi_source.sources_per_target])
    builder, given = _builder(config), _given(config, revisions)
    stages: list[Stage] = []
    for algorithm in config.multi_source.algorithms:
        ordered = in_order(algorithm, sources)
        run = _run(builder, given, (dataset.name, model, algorithm, ordered, target, 0))
        stages += run.stages
    return tuple(stages)


def build(
    config: TransferConfig,
    revisions: Revisions,
    selected: Iterable[MultiSource] = (),
    race: Race | None = None,
) -> Plan:
    """Expand a config into its plan.

    Args:
        config: a validated study.
        revisions: content digests of data and models.
        selected: multi-source targets beyond those that the config names.
        race: which pairs have which seeds; None: all of them all.

    Returns:
        Every run once, and every distinct stage once: the baseline of a source is the stage that
        its transfers start from, and multitask is the first half of multitask_finetune.

    Raises:
        ConfigError: the study is under the challenge's rules and a run would break one.
    """
    builder, given = _builder(config), _given(config, revisions)
    if race is not None:
        config = config.model_copy(update={"seeds": race.seeds_now})
    for wanted in dict.fromkeys(_wanted(config, selected)):
        if race is not None and not _in_race(race, wanted):
            continue
        if config.rules == "challenge":
            _refuse_forbidden(config, wanted)
        builder.add(_run(builder, given, wanted))
    for run in _selectors(config, builder, given):
        builder.add(run)
    for run in prompted_runs(config, given.data, given.models):
        builder.add(run)
    for stage in _perhaps_chosen(config, builder, given):
        builder.expect(stage)
    return builder.plan()


def _selectors(config: TransferConfig, builder: PlanBuilder, given: _Given) -> Iterator[Run]:
    """The runs of the selectors that the config names."""
    selectors = [SELECTORS[name] for name in config.selectors]
    asked = product(config.trained_models, config.seeds, config.datasets) if selectors else ()
    for model, seed, dataset in asked:
        of = _Of(builder, given, dataset.name, model.name, seed)
        studied = Studied(
            *(given.data[dataset.name], given.data, given.models[model.name], seed),
            pairs=dataset.pairs,
            baseline=of.baseline,
            probe=of.probe,
        )
        yield from selector_runs(studied, selectors)


class _Of(NamedTuple):
    """The trainings of a dataset, model and seed that selectors read."""

    builder: PlanBuilder
    given: _Given
    dataset: str
    model: str
    seed: int

    def baseline(self, task: str) -> Stage:
        home, name = task_of(self.dataset, task)
        wanted = (home, self.model, BASELINE, (), name, self.seed)
        return _run(self.builder, self.given, wanted).stages[0]

    def probe(self, source: str, target: str) -> Stage:
        """One epoch of the transfer, which no test split is told of."""
        short = self.given.training(self.dataset, self.model).limit_to_epochs(1)
        start = _start(self.baseline(source), target, self.given.models[self.model])
        step = Step((target,), Selection((target,)), start=start, training=short, test_on=())
        stages = self.given.stages(self.builder, [step], self.dataset, self.model, self.seed)
        return stages[step]


def _in_race(race: Race, wanted: RunName) -> bool:
    """Whether a run is made: baselines and runs of several sources are no part of a race."""
    dataset, model, algorithm, sources, target, seed = wanted
    if len(sources) != 1:
        return True
    return race.runs((dataset, model, algorithm, sources[0], target), seed)


def _perhaps_chosen(config: TransferConfig, builder: PlanBuilder, given: _Given) -> Iterator[Stage]:
    """Pre-trainings on the pairs of sources that ``auto`` may pick. Where pairs are trained on for
    multitask, these are the same trainings, over before the choice is made: they keep a round for
    it from the start."""
    asked = config.multi_source
    if (asked.mode, asked.sources_per_target) != ("auto", 2):
        return
    for model, seed, dataset in product(config.trained_models, config.seeds, config.datasets):
        for pair in combinations(dataset.tasks, 2):
            for target in [task for task in dataset.tasks if task not in pair][:1]:
                name = (dataset.name, model.name, "pretrain_finetune", pair, target, seed)
                yield _run(builder, given, name).stages[0]


def _builder(config: TransferConfig) -> PlanBuilder:
    shorts = shorts_of(config.datasets)
    return PlanBuilder(
        lambda step, begin: (kind_of(step, begin), label_of(step, begin, shorts)), recipe_of
    )


class _Given(NamedTuple):
    """What thousands of runs share, made once: by name of the dataset or model."""

    data: Mapping[str, Data]
    models: Mapping[str, ModelSpec]
    trainings: Mapping[str, ModelTraining]

    def training(self, dataset: str, model: str) -> Training:
        """Return the hyperparameters of a model's trainings on a dataset."""
        return self.trainings[model].trainings[dataset]

    def stages(
        self, builder: PlanBuilder, steps: Sequence[Step], dataset: str, model: str, seed: int
    ) -> dict[Step, Stage]:
        """Return the stage of each step of a method, with what a dataset and a model share."""
        training, rounds = self.training(dataset, model), self.trainings[model].rounds
        return builder.stages(steps, self.data[dataset], self.models[model], training, seed, rounds)


def _given(config: TransferConfig, revisions: Revisions) -> _Given:
    names, few = config.dataset_names, {"few_sample": config.data.few_sample}
    trainings = {
        model.name: config.plan_training(model, spec, revisions.parameters.get(model.name))
        for model in config.models
        if (spec := revisions.models.get(model.name)) is not None
    }
    return _Given(
        {name: data_of(name, revisions.data[name], few) for name in names},
        {**revisions.models, **{name: training.model for name, training in trainings.items()}},
        trainings,
    )


def _run(builder: PlanBuilder, given: _Given, wanted: RunName) -> Run:
    dataset, model, algorithm, sources, target, seed = wanted
    data, training = given.data[dataset], given.training(dataset, model)
    if any(map(is_foreign, sources)):
        return run_of(wanted, _across(builder, given, wanted))
    if algorithm in CONTROLS:
        method = control_steps(algorithm, sources, target, Usual(data, training, seed))
    else:
        method = steps(algorithm, sources, target)
    stages = given.stages(builder, method, dataset, model, seed)
    return run_of(wanted, [*stages.values()][-1])


def _across(builder: PlanBuilder, given: _Given, wanted: RunName) -> Stage:
    """The last stage of a run with sources of other datasets: one task after the other, each with
    the data and hyperparameters of its own dataset. The first is that source's baseline; a control
    has it on its own data."""
    dataset, model, algorithm, sources, target, seed = wanted
    tasks = [*homes(dataset, sources), (dataset, target)]
    if len(sources) > 1 and algorithm != "sequential":
        raise ConfigError(
            f"{algorithm} of {target} on sources of other datasets ({', '.join(sources)}): a "
            "training reads one dataset; use one source, or algorithm sequential"
        )
    before: Stage | None = None
    for home, task in tasks:
        data, training = given.data[home], given.training(home, model)
        step = Step((task,), Selection((task,)), start=_start(before, task, given.models[model]))
        if algorithm in CONTROLS and before is None:
            step = control_steps(algorithm, (task,), target, Usual(data, training, seed))[0]
        stages = given.stages(builder, [step], home, model, seed)
        before = stages[step]
    assert before is not None
    return before


def _start(before: Stage | None, task: str, model: ModelSpec) -> Start | None:
    """Where a stage starts: all of the stage before, but for the head of a task of another dataset
    that has the same name."""
    if before is None:
        return None
    has_its_head = model.family == "encoder" and task in before.tasks
    return Start(before, parts=("encoder",) if has_its_head else ())


def kind_of(step: Step, starts: tuple[Start, ...]) -> str:
    """What a training is called in paths and logs, read off the step and not off the algorithm, so
    that equal trainings of two algorithms have one name. ``control``: a training that no algorithm
    has, on other data or with other hyperparameters; its checkpoint is of no use beyond the study's
    own runs."""
    if starts:
        return "finetune"
    if step.data is not None or step.training is not None:
        return "control"
    return "baseline" if len(step.train_tasks) == 1 else "multitask"


def label_of(step: Step, starts: tuple[Start, ...], shorts: Mapping[str, str]) -> str:
    """A readable name: ``DNLI``, ``CRE+DNLI``, ``DNLI_from_CRE``; of controls ``DNLI_60_epochs``,
    ``DNLI_permuted_answers``."""
    text = "+".join(shorts[task] for task in sorted(step.train_tasks))
    if step.training is not None:
        text += f"_{step.training.budget}"
    if step.data is not None:
        text += f"_{step.data.recipe}"
    parents = [start.stage.label for start in starts if start.stage]
    if starts and starts[0].merged:
        return f"{text}_from_{starts[0].merged}_of_{'+'.join(parents)}"
    return "_from_".join([text, *parents])


def _refuse_forbidden(config: TransferConfig, wanted: RunName) -> None:
    """The config is checked when it is read; this holds for plans however they come about."""
    dataset, model, algorithm, sources, target, _ = wanted
    problems = broken(
        dataset,
        sources,
        target,
        few_sample=config.data.few_sample,
        limit_test=config.training_for(dataset).limit_test,
    )
    if problems:
        raise ConfigError(
            f"study {config.study}, {algorithm} of {target} with {model}: {problems[0]}; mend the "
            "config, or set rules: free (records of a free study cannot be submitted)"
        )


def _wanted(config: TransferConfig, selected: Iterable[MultiSource]) -> Iterator[RunName]:
    """Every run, baselines first; one that is asked for twice comes twice."""
    multi = [*(MultiSource(m.dataset, m.target, m.sources) for m in config.multi_source.named)]
    multi += [m for m in selected if m not in multi]
    for model in config.trained_models:
        yield from _more_baselines(config, model.name, multi)
        for seed in config.seeds:
            for dataset in config.datasets:
                targets = [m for m in multi if m.dataset == dataset.name]
                for target in _baseline_tasks(dataset, targets):
                    yield dataset.name, model.name, BASELINE, (), target, seed
                for algorithm in config.algorithms:
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
                    config.controls, studied, dataset.pairs
                ):
                    yield dataset.name, model.name, control, sources, target, seed


def _more_baselines(
    config: TransferConfig, model: str, multi: list[MultiSource]
) -> Iterator[RunName]:
    """Baselines of seeds that no transfer has (``baseline_seeds``)."""
    for seed in config.more_baseline_seeds:
        for dataset in config.datasets:
            targets = [m for m in multi if m.dataset == dataset.name]
            for target in _baseline_tasks(dataset, targets):
                yield dataset.name, model, BASELINE, (), target, seed


def _baseline_tasks(dataset: DatasetConfig, multi: list[MultiSource]) -> list[str]:
    """Every task that is studied needs its baseline: a target to compare with, a source to start
    from. In the order of the config."""
    extra = [m.target for m in multi if m.target not in dataset.tasks]
    return list(dict.fromkeys([*dataset.tasks, *extra]))
