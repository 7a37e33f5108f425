"""What a study expects of its results folder: its runs, and the trainings behind each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tasktransfer.core.plan import Plan
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.config import transfer_config
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.runs import name_of
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study

SOURCES_CHOSEN_BY = "sources_chosen_by"
MORE_BASELINE_SEEDS = "more_baseline_seeds"
"""Keys in the tables' facts, see ``StudyPlan``."""
TABLES_VERSION = 3
"""Raise this when the columns of the collected tables change: they are collected again then. It is
not with the columns because the Snakefile must not import pandas."""

RunKey = tuple[str, str, str, str, str, int]
"""dataset, model, algorithm, source (joined), target, seed: the values of ``columns.KEYS``."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A planned run and where its record belongs, relative to the results folder."""

    dataset: str
    model: str
    algorithm: str
    sources: tuple[str, ...]
    target: str
    seed: int
    record: str
    digest: str = ""
    """Of the stage that scores it; empty: the plan does not say."""
    stages: tuple[str, ...] = ()
    """The folders of its trainings in their order, the scored one last; empty: not known."""

    @property
    def is_control(self) -> bool:
        """Whether algorithms are held against it, and it is none itself."""
        return self.algorithm in CONTROLS

    @property
    def key(self) -> RunKey:
        source = "+".join(self.sources)
        return (self.dataset, self.model, self.algorithm, source, self.target, self.seed)


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """What the tables are collected by."""

    study: str
    config_digest: str
    shorts: Mapping[str, str]
    runs: tuple[Expected, ...]
    sources_chosen_by: str = ""
    """The scores that chose the targets and sources of multi-source runs, dev or test, or
    ``config``; empty: not known, or there are none."""
    cuts: str = ""
    """The limits of instances a split, see ``tables.metadata.Metadata``."""
    more_baseline_seeds: tuple[int, ...] = ()
    """Of the baselines that were asked for beside those of the runs' seeds."""

    @property
    def order(self) -> dict[str, list[str]]:
        """Names in the order in which the plan first has them; tasks as targets before sources."""
        sources = [source for run in self.runs for source in run.sources]
        return {
            "dataset": list(dict.fromkeys(run.dataset for run in self.runs)),
            "model": list(dict.fromkeys(run.model for run in self.runs)),
            "algorithm": list(
                dict.fromkeys(run.algorithm for run in self.runs if not run.is_control)
            ),
            "task": list(dict.fromkeys([*(run.target for run in self.runs), *sources])),
        }


def identity(dataset: str, model: str, algorithm: str, sources: Iterable[str]) -> tuple[Any, ...]:
    """The first six columns of every table of runs."""
    listed = list(sources)
    return dataset, model, algorithm, listed, "+".join(listed), len(listed)


def spell(key: RunKey) -> str:
    """A run in one line, for messages."""
    dataset, model, algorithm, source, target, seed = key
    origin = f"{source} -> " if source else ""
    return f"{dataset} {model} {algorithm} {origin}{target} seed {seed}"


def expected_run(run: Run) -> Expected:
    """A run of a plan, as the analysis looks for it."""
    return Expected(
        *name_of(run),
        record=f"{run.stages[-1].path}/{RECORD}",
        digest=run.stages[-1].digest,
        stages=tuple(stage.path for stage in run.stages),
    )


def shorts_of(study: Study) -> dict[str, str]:
    """Task → short name, of all tasks of the study's datasets."""
    datasets = transfer_config(study).datasets
    return {task: short for dataset in datasets for task, short in dataset.shorts}


def study_plan(study: Study, plan: Plan) -> StudyPlan:
    """What the tables are collected by."""
    asked = transfer_config(study).multi_source
    return StudyPlan(
        study.config.study,
        study.config.digest,
        shorts_of(study),
        tuple(expected_run(run) for run in plan.runs),
        {"off": "", "named": "config", "auto": asked.choose_by}[asked.mode],
        study.config.training.cuts,
        transfer_config(study).more_baseline_seeds,
    )
