"""Run records with known scores, for tests of everything that reads records.

These are constructed, never trained; they live in temporary folders only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from constructed_records import constructed_record, result
from tasktransfer.core.nodes import Data, Stage
from tasktransfer.core.plan import PlanBuilder
from tasktransfer.core.specs import Family, ModelSpec, Training
from tasktransfer.core.versions import RECIPE_VERSION
from tasktransfer.designs.transfer.algorithms import steps
from tasktransfer.designs.transfer.collect.planned import Expected, StudyPlan
from tasktransfer.designs.transfer.plan import kind_of
from tasktransfer.results.schema import Record

FAMILIES: dict[str, Family] = {"bert": "encoder", "gpt2": "decoder", "t5": "encoder_decoder"}
ALGORITHMS = ("pretrain_finetune", "multitask", "multitask_finetune")
TRAINING = Training()
AS_ALL: Mapping[str, Any] = {}

Run = tuple[str, str, str, tuple[str, ...], str, int]
"""dataset, model, algorithm, sources, target, seed"""
Scorer = Callable[[Run], float]


def make_record(
    run: Run,
    score: float,
    stage_of: Mapping[str, Any] = AS_ALL,
    **changes: Any,
) -> Record:
    """A valid record of a run's last stage, made of ``stage_of`` (see ``stages_of``). ``changes``
    replace top-level keys."""
    stage = stages_of(run, **stage_of)[-1]
    record = constructed_record(stage, (score / 2, score), test={run[4]: result(score)})
    return record | changes  # type: ignore[return-value,operator]


def stages_of(
    run: Run,
    *,
    training: Training = TRAINING,
    revision: str = "r1",
    few_sample: bool = True,
    weights: str | None = None,
    recipe: int = RECIPE_VERSION,
) -> tuple[Stage, ...]:
    """The trainings of a run, on constructed data and models; ``weights``: None is a folder's."""
    dataset, model, algorithm, sources, target, seed = run
    builder = PlanBuilder(lambda step, starts: (kind_of(step, starts), target), lambda *_: recipe)
    stages = builder.stages(
        steps(algorithm, sources, target),
        Data(dataset, revision, {"few_sample": few_sample}),
        ModelSpec(model, FAMILIES.get(model, "encoder"), weights or f"sha256:{model}", 512),
        training,
        seed,
    )
    return tuple(stages.values())


def record_path(run: Run) -> str:
    """Where the factory puts a run's record, relative to the results folder."""
    dataset, model, algorithm, sources, target, seed = run
    return f"stages/{dataset}/{model}/{algorithm}/{'+'.join(sources)}_{target}/{seed}/metrics.json"


def single_source_runs(
    dataset: str,
    models: Iterable[str],
    tasks: Iterable[str],
    seeds: Iterable[int],
    algorithms: Iterable[str] = ALGORITHMS,
) -> list[Run]:
    """Every baseline and every ordered pair, baselines first, as a plan lists them."""
    tasks, seeds, models = list(tasks), list(seeds), list(models)
    runs: list[Run] = []
    for model in models:
        for seed in seeds:
            runs += [(dataset, model, "baseline", (), target, seed) for target in tasks]
            runs += [
                (dataset, model, algorithm, (source,), target, seed)
                for algorithm in algorithms
                for source in tasks
                for target in tasks
                if source != target
            ]
    return runs


def write_study(
    folder: Path,
    runs: Iterable[Run],
    score: Scorer,
    *,
    leave_out: Callable[[Run], bool] = lambda run: False,
    shorts: Mapping[str, str] | None = None,
    stage_of: Mapping[str, Any] = AS_ALL,
    **changes: Any,
) -> StudyPlan:
    """Write the records of a study; gives what its tables are collected by.

    ``leave_out`` says which planned runs leave no record. Written without ``write_record``, whose
    fsync takes longer than the rest of a test; the records are checked when they are read.
    """
    runs = list(runs)
    for run in runs:
        if not leave_out(run):
            path = folder / record_path(run)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(make_record(run, score(run), stage_of, **changes)))
    return make_plan(runs, shorts, stage_of)


def make_plan(
    runs: Iterable[Run],
    shorts: Mapping[str, str] | None = None,
    stage_of: Mapping[str, Any] = AS_ALL,
) -> StudyPlan:
    """Runs whose records are where the factory puts them."""
    listed = (
        Expected(*run, record_path(run), stages_of(run, **stage_of)[-1].digest) for run in runs
    )
    return StudyPlan("constructed", "c" * 64, dict(shorts or {}), tuple(listed))
