"""Studies with known scores, for tests of code that reads records.

Records are constructed, never trained, and exist in temporary folders only. Their tasks need not
exist, and their plans may contain runs that no config requests.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from constructed_records import constructed_record, result
from tasktransfer.core.identity import RECIPE_VERSION
from tasktransfer.core.nodes import Data, Stage, merge_selections
from tasktransfer.core.plan import Plan, PlanBuilder
from tasktransfer.core.runs import Run as PlannedRun
from tasktransfer.core.specs import Family, ModelSpec, Training
from tasktransfer.designs import load_config
from tasktransfer.designs.transfer.algorithms import build_steps
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.plan import derive_stage_kind
from tasktransfer.designs.transfer.runs import RunName as Run
from tasktransfer.designs.transfer.runs import get_run_name, make_run
from tasktransfer.results.collect import NO_RECORD, Collected, MissingResult
from tasktransfer.results.revisions import Revisions
from tasktransfer.results.schema import Record
from tasktransfer.results.state import WAITING
from tasktransfer.results.study import Study

FAMILIES: dict[str, Family] = {"bert": "encoder", "gpt2": "decoder", "t5": "encoder_decoder"}
ALGORITHMS = ("pretrain_finetune", "multitask", "multitask_finetune")
TRAINING = Training()
AS_ALL: Mapping[str, Any] = {}
PAPER = Path(__file__).resolve().parents[2] / "workflow" / "presets" / "paper.yaml"

Scorer = Callable[[Run], float]


def make_record(
    run: Run, score: float, stage_of: Mapping[str, Any] = AS_ALL, **changes: Any
) -> Record:
    """Build a valid record of a run's last stage, requested by this run alone.

    ``changes`` replace top-level keys. The stage comes from ``stage_of`` (see ``make_plan``).
    """
    stage = stage_of_run(run, **stage_of)
    return _record(stage, {run[4]: score}) | changes  # type: ignore[return-value,operator]


def _record(stage: Stage, scores: Mapping[str, float]) -> Record:
    """Build a record with two rounds, the second one chosen; dev and test scores are equal."""
    tested = {task: result(score) for task, score in scores.items()}
    record = constructed_record(stage, (0.0, 1.0), test=tested)
    for one in record["training"]["selections"]:
        (task,) = one["select_on"]
        one["dev_score"], one["scores"] = scores[task], [scores[task] / 2, scores[task]]
    for share, of_round in zip((0.5, 1.0), record["training"]["rounds"], strict=True):
        of_round["dev"] = {t: {"accuracy": share * score} for t, score in scores.items()}
    return record


def stage_of_run(run: Run, **stage_of: Any) -> Stage:
    """Return the last training of a run, with the run's selection."""
    return make_plan([run], stage_of).runs[0].stages[-1]


def record_path(run: Run, **stage_of: Any) -> str:
    """Return the path of a run's record, relative to the results folder."""
    return f"{stage_of_run(run, **stage_of).path}/metrics.json"


def make_plan(runs: Iterable[Run], stage_of: Mapping[str, Any] = AS_ALL) -> Plan:
    """Return runs with their trainings, on constructed data and models.

    For ``stage_of`` see ``_planned``.
    """
    builder = PlanBuilder(
        lambda step, starts: (derive_stage_kind(step, starts), "+".join(sorted(step.train_tasks))),
        lambda *_: stage_of.get("recipe", RECIPE_VERSION),
    )
    for run in runs:
        builder.add_run(_planned(builder, run, **stage_of))
    return builder.build_plan()


def _planned(
    builder: PlanBuilder,
    run: Run,
    *,
    training: Training = TRAINING,
    revision: str = "r1",
    few_sample: bool = True,
    weights: str | None = None,
    recipe: int = RECIPE_VERSION,
) -> PlannedRun:
    """Return a run of the plan.

    ``weights``: None for those of a folder. ``recipe`` is the builder's.
    """
    dataset, model, algorithm, sources, target, seed = run
    stages = builder.build_stages(
        build_steps(algorithm, sources, target),
        Data(dataset, revision, {"few_sample": few_sample}),
        ModelSpec(model, FAMILIES.get(model, "encoder"), weights or f"sha256:{model}", 512),
        training,
        seed,
    )
    return make_run(run, [*stages.values()][-1])


def make_study(folder: Path, plan: Plan) -> Study:
    """Return a study with results in a folder and a plan that its config need not have."""
    changed = {"study": "constructed", "results": str(folder)}
    revisions = Revisions(dict.fromkeys(_config().dataset_names, "r1"), {})
    config = _config().model_copy(update=changed)
    return Study(config, "constructed.yaml", {}, revisions, (), lambda *_: plan)


@cache
def _config() -> TransferConfig:
    config = load_config(PAPER, {"multi_source": {"mode": "off"}})
    assert isinstance(config, TransferConfig)
    return config


def single_source_runs(
    dataset: str,
    models: Iterable[str],
    tasks: Iterable[str],
    seeds: Iterable[int],
    algorithms: Iterable[str] = ALGORITHMS,
) -> list[Run]:
    """Return every baseline and every ordered pair, baselines first, as in a plan."""
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


def constructed(
    folder: Path,
    runs: Iterable[Run],
    score: Scorer,
    *,
    leave_out: Callable[[Run], bool] = lambda run: False,
    stage_of: Mapping[str, Any] = AS_ALL,
    synthetic: Container[str] = (),
) -> Collected:
    """Return what is collected from a study with these records, without writing files.

    ``leave_out`` selects planned runs without record. ``synthetic``: datasets whose dialogues are
    generated.
    """
    plan = make_plan(runs, stage_of)
    there = {run: not leave_out(get_run_name(run)) for run in plan.runs}
    done = tuple(run for run in plan.runs if there[run])
    ending: dict[str, list[PlannedRun]] = {}
    for run in done:
        ending.setdefault(run.stages[-1].digest, []).append(run)
    records: dict[str, Record] = {}
    for digest, of_stage in ending.items():
        stage = merge_selections(of_stage[0].stages[-1], [run.stages[-1] for run in of_stage])
        scores = {run.about["target"]: score(get_run_name(run)) for run in of_stage}
        records[digest] = _record(stage, scores)
        records[digest]["synthetic"] = stage.dataset in synthetic
    missing = tuple(_hole(run) for run in plan.runs if not there[run])
    return Collected(make_study(folder, plan), plan.runs, records, done, missing, (), {})


def _hole(run: PlannedRun) -> MissingResult:
    stage = run.stages[-1]
    return MissingResult(run, stage, stage, WAITING, NO_RECORD, None, "run snakemake again")
