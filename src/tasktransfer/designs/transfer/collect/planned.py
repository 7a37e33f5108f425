"""What a study expects of its results folder: its runs, and the trainings behind each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.core.plan import Plan
from tasktransfer.designs.transfer.config import transfer_config
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.runs import TransferRun, all_runs
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study

BASELINE = "baseline"
CUTS = "cuts"
SOURCES_CHOSEN_BY = "sources_chosen_by"
MORE_BASELINE_SEEDS = "more_baseline_seeds"
"""Keys in a plan file and in the tables' facts, see ``StudyPlan``."""
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
    """The part of a plan file that the tables are collected by."""

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


def expected_run(run: TransferRun) -> Expected:
    """A run of a plan, as the analysis looks for it."""
    return Expected(
        dataset=run.dataset,
        model=run.model,
        algorithm=run.algorithm,
        sources=run.sources,
        target=run.target,
        seed=run.seed,
        record=f"{run.scored.path}/{RECORD}",
        digest=run.scored.digest,
        stages=tuple(stage.path for stage in run.stages),
    )


def shorts_of(study: Study) -> dict[str, str]:
    """Task → short name, of all tasks of the study's datasets."""
    datasets = transfer_config(study).datasets
    return {task: short for dataset in datasets for task, short in dataset.shorts}


def plan_file(study: Study, plan: Plan) -> dict[str, Any]:
    """What the analysis needs to know of a plan, as ``read_plan`` reads it."""
    asked = transfer_config(study).multi_source
    return {
        "tables_version": TABLES_VERSION,
        "study": study.config.study,
        "config_digest": study.config.digest,
        "shorts": shorts_of(study),
        CUTS: study.config.training.cuts,
        MORE_BASELINE_SEEDS: list(transfer_config(study).more_baseline_seeds),
        SOURCES_CHOSEN_BY: {"off": "", "named": "config", "auto": asked.choose_by}[asked.mode],
        "runs": [
            {
                **run.identity,
                "record": f"{run.scored.path}/{RECORD}",
                "digest": run.scored.digest,
                "stages": [stage.path for stage in run.stages],
            }
            for run in all_runs(plan)
        ],
    }


def read_plan(path: Path) -> StudyPlan:
    """Read a plan file.

    It is a JSON object ``{"study": str, "config_digest": str, "shorts": {task: short name},
    "runs": [{"dataset", "model", "algorithm", "sources": [task], "target", "seed", "record"}]}``;
    ``record`` is the path of the run's record relative to the results folder. A run may also have
    ``digest``, of the stage that scores it, and ``stages``, the folders of its trainings in their
    order, relative to the results folder; further keys are left alone. The order of the
    runs is the order of rows, panels and axes.

    Raises:
        RecordError: the file is absent or no such object; names the key.
    """
    try:
        value = json_text.loads(path.read_bytes())
        runs = tuple(_expected(run) for run in value["runs"])
        return StudyPlan(
            value["study"],
            value["config_digest"],
            value["shorts"],
            runs,
            value.get(SOURCES_CHOSEN_BY, ""),
            value.get(CUTS, ""),
            tuple(value.get(MORE_BASELINE_SEEDS, ())),
        )
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"{path}: not a plan file: {error}; write it again") from error
    except KeyError as error:
        raise RecordError(f"{path}: not a plan file: no key {error}; write it again") from error


def _expected(run: Mapping[str, Any]) -> Expected:
    return Expected(
        dataset=run["dataset"],
        model=run["model"],
        algorithm=run["algorithm"],
        sources=tuple(run["sources"]),
        target=run["target"],
        seed=run["seed"],
        record=run["record"],
        digest=run.get("digest", ""),
        stages=tuple(run.get("stages", ())),
    )
