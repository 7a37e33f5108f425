"""Config to plan: the runs of a study and the distinct stages that they share.

Pure and light, since the Snakefile imports it at every start. What it needs from
the disk (revisions of the data, digests of the checkpoints, a selection of sources) is handed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tasktransfer.core.stage import ModelSpec, Run, Stage
from tasktransfer.designs.transfer import algorithms
from tasktransfer.designs.transfer.challenge.rules import broken
from tasktransfer.designs.transfer.config import DatasetConfig, TransferConfig
from tasktransfer.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Revisions:
    """What the disk says of the inputs: data revision per dataset, model spec per model name."""

    data: Mapping[str, str]
    models: Mapping[str, ModelSpec]


@dataclass(frozen=True, slots=True)
class MultiSource:
    """A target with all the sources that one run trains on (paper, section 6.2)."""

    dataset: str
    target: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The runs of a study and its distinct stages, parents before children."""

    runs: tuple[Run, ...]
    stages: tuple[Stage, ...]

    @property
    def run_of(self) -> dict[str, Run]:
        """Digest of a scored stage → the run that it scores."""
        return {run.scored.digest: run for run in self.runs}

    @property
    def by_digest(self) -> dict[str, Stage]:
        """Digest (first 12 hex digits, as in paths) → stage."""
        return {stage.digest[:12]: stage for stage in self.stages}

    def counts(self) -> dict[str, int]:
        """Runs per algorithm, single- and multi-source apart."""
        return dict(
            Counter(
                run.algorithm if len(run.sources) < 2 else f"{run.algorithm} (multi-source)"
                for run in self.runs
            )
        )


def build(
    config: TransferConfig, revisions: Revisions, selected: Iterable[MultiSource] = ()
) -> Plan:
    """Expand a config into its plan.

    Args:
        config: a validated study.
        revisions: content digests of data and models.
        selected: multi-source targets beyond those that the config names (``auto``).

    Returns:
        Every run once, and every distinct stage once: the baseline of a source is the stage that
        its transfers start from, and multitask is the first half of multitask_finetune.

    Raises:
        ConfigError: the study is under the challenge's rules and a run would break one.
    """
    plan = _Builder(config, revisions)
    for run in _wanted(config, selected):
        if config.rules == "challenge":
            _refuse_forbidden(config, run)
        plan.add(*run)
    return Plan(tuple(plan.runs.values()), tuple(plan.stages.values()))


def _refuse_forbidden(config: TransferConfig, run: Wanted) -> None:
    """The config is checked when it is read; this holds for plans however they come about."""
    dataset, model, algorithm, sources, target, _ = run
    found = broken(
        dataset,
        sources,
        target,
        few_sample=config.data.few_sample,
        limit_test=config.training_for(dataset).limit_test,
    )
    if found:
        raise ConfigError(
            f"study {config.study}, {algorithm} of {target} with {model}: {found[0]}; mend the "
            "config, or set rules: free (records of a free study cannot be submitted)"
        )


Wanted = tuple[str, str, str, tuple[str, ...], str, int]


def _wanted(config: TransferConfig, selected: Iterable[MultiSource]) -> Iterator[Wanted]:
    """(dataset, model, algorithm, sources, target, seed) of every run, baselines first."""
    multi = [*(MultiSource(m.dataset, m.target, m.sources) for m in config.multi_source.named)]
    multi += [m for m in selected if m not in multi]
    for model in config.models:
        for seed in config.seeds:
            for dataset in config.datasets:
                here = [m for m in multi if m.dataset == dataset.name]
                for target in _baseline_tasks(dataset, here):
                    yield dataset.name, model.name, "baseline", (), target, seed
                for algorithm in config.algorithms:
                    if algorithm == "baseline":
                        continue
                    for source, target in dataset.pairs:
                        yield dataset.name, model.name, algorithm, (source,), target, seed
                for algorithm in config.multi_source.algorithms:
                    for m in here:
                        sources = tuple(sorted(m.sources))
                        yield dataset.name, model.name, algorithm, sources, m.target, seed


def _baseline_tasks(dataset: DatasetConfig, multi: list[MultiSource]) -> list[str]:
    """Every task that is studied needs its baseline: a target to compare with, a source to start
    from. In the order of the config."""
    extra = [m.target for m in multi if m.target not in dataset.tasks]
    return list(dict.fromkeys([*dataset.tasks, *extra]))


def run_of(stage: Stage) -> Run | None:
    """The run that ends with a stage, read off the stage and its ancestors; None where none does.

    It does not ask whether a study wants that run: the first half of a multitask_finetune scores
    as the multitask run that it is, so that asking for that run later trains nothing again.
    """
    chain: list[Stage] = [stage]
    while chain[0].parent is not None:
        chain.insert(0, chain[0].parent)
    if len(stage.select_on) != 1:
        return None
    (target,) = stage.select_on
    sources = tuple(sorted({task for link in chain for task in link.train_tasks} - {target}))
    taken = tuple(algorithms.Step(link.train_tasks, link.select_on) for link in chain)
    for algorithm in algorithms.ALGORITHMS:
        if (algorithm == "baseline") != (not sources):
            continue
        if algorithms.steps(algorithm, sources, target) == taken:
            model = stage.model
            return Run(
                stage.dataset, model.name, model.family, algorithm, sources, target, stage.seed,
                tuple(chain),
            )  # fmt: skip
    return None


class _Builder:
    """Collects runs and interns stages, so that equal stages are one object."""

    def __init__(self, config: TransferConfig, revisions: Revisions) -> None:
        self.config = config
        self.revisions = revisions
        self.shorts = {d.name: dict(d.shorts) for d in config.datasets}
        self.training = {d.name: config.training_for(d.name) for d in config.datasets}
        self.runs: dict[Wanted, Run] = {}
        self.stages: dict[str, Stage] = {}

    def add(
        self,
        dataset: str,
        model: str,
        algorithm: str,
        sources: tuple[str, ...],
        target: str,
        seed: int,
    ) -> None:
        key = (dataset, model, algorithm, sources, target, seed)
        if key in self.runs:
            return
        parent: Stage | None = None
        chain: list[Stage] = []
        for step in algorithms.steps(algorithm, sources, target):
            parent = self._intern(self._stage(dataset, model, step, parent, seed))
            chain.append(parent)
        family = self.revisions.models[model].family
        self.runs[key] = Run(dataset, model, family, algorithm, sources, target, seed, tuple(chain))

    def _stage(
        self, dataset: str, model: str, step: algorithms.Step, parent: Stage | None, seed: int
    ) -> Stage:
        return Stage(
            dataset=dataset,
            data_revision=self.revisions.data[dataset],
            few_sample=self.config.data.few_sample,
            model=self.revisions.models[model],
            train_tasks=step.train_tasks,
            select_on=step.select_on,
            parent=parent,
            training=self.training[dataset],
            seed=seed,
            task_shorts=self.shorts[dataset],
        )

    def _intern(self, stage: Stage) -> Stage:
        return self.stages.setdefault(stage.digest, stage)
