"""What a study expects of its results folder: its runs, and the trainings behind each of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tasktransfer.core.plan import Plan
from tasktransfer.designs.transfer.runs import TransferRun, transfer_runs
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study

BASELINE = "baseline"
TABLES_VERSION = 1
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
    def key(self) -> RunKey:
        source = "+".join(self.sources)
        return (self.dataset, self.model, self.algorithm, source, self.target, self.seed)


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


def plan_file(study: Study, plan: Plan) -> dict[str, Any]:
    """What the analysis needs to know of a plan, as ``store.read_plan`` reads it."""
    return {
        "tables_version": TABLES_VERSION,
        "study": study.config.study,
        "config_digest": study.config.digest,
        "shorts": {name: short for d in study.config.datasets for name, short in d.shorts},
        "runs": [
            {
                **run.identity,
                "record": f"{run.scored.path}/{RECORD}",
                "digest": run.scored.digest,
                "stages": [stage.path for stage in run.stages],
            }
            for run in transfer_runs(plan)
        ],
    }
