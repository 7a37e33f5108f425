"""Finished methods of a study whose models can be exported, with their scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from tasktransfer.core.fidelity import Scoring
from tasktransfer.core.nodes import Fit, Outcome, Stage
from tasktransfer.core.references import (
    ADAPTER,
    CONTRASTIVE,
    FINE_TUNING,
    FROZEN,
    MOST_FREQUENT,
    NEAREST,
    OF_A_MODEL,
    SCORING,
    SPLIT,
    SVM,
    TFIDF,
    TRANSFER,
)
from tasktransfer.core.runs import Run
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.errors import ConfigError, RecordError, suggest_name
from tasktransfer.jobs.needs import get_fit_model
from tasktransfer.results.node_folders import has_valid_record
from tasktransfer.results.records import get_selected_round, read_record
from tasktransfer.results.rows import read_record_rows, select_task_rows
from tasktransfer.results.store import read_statistic_frame
from tasktransfer.results.study import Study
from tasktransfer.stats.answers import compute_label_scores, read_label_answers
from tasktransfer.stats.bootstrap import compute_mean_confidence
from tasktransfer.stats.cells import NO_SEED, Scored, gather_cells, score_answers
from tasktransfer.tasks.card import SINGLE_LABEL, Task

FITTED = (FROZEN, TFIDF, SVM, NEAREST, CONTRASTIVE)
"""References that are exported. The most frequent label needs no model."""


EXPORTED_AS = {FINE_TUNING: "baseline", ADAPTER: "baseline"}
"""Name in the table ``methods`` → name of the run's method."""


@dataclass(frozen=True)
class ExportCandidate:
    """A finished run of a method for one task.

    Attributes:
        method: ``baseline``, an algorithm with its sources (``sequential:CRE+DNLI``), or a
            reference.
        model: name of the study's model; empty if the method reads no model.
        node: the run's training or fit.
    """

    study: Study
    method: str
    model: str
    dataset: str
    task: str
    node: Stage | Fit

    @property
    def seed(self) -> int:
        """Seed of the candidate's training, or ``NO_SEED``."""
        return self.node.seed if self.is_trained else NO_SEED

    @property
    def is_trained(self) -> bool:
        """True if the candidate's results depend on a seed."""
        return isinstance(self.node, Stage) or self.node.learner == CONTRASTIVE

    @property
    def name(self) -> str:
        """Method and model of the candidate, for messages."""
        return f"{self.method} with {self.model}" if self.model else self.method

    @property
    def card(self) -> Task:
        """Card of the candidate's task."""
        return get_task(self.dataset, self.task)

    @property
    def record(self) -> Path:
        """Path of the record of the candidate's node."""
        return Path(self.study.get_record_path(self.node))

    @cached_property
    def dev_score(self) -> float:
        """Dev score of the selected round, or NaN for a fit, which has no dev score."""
        if isinstance(self.node, Fit):
            return math.nan
        chosen = get_selected_round(read_record(self.record), self.node.select_on)
        return float(chosen.dev.get(self.task, {}).get("score", chosen.dev_score))

    @cached_property
    def scored(self) -> Scored:
        """Score of the candidate's test predictions."""
        rows = select_task_rows(read_record_rows(self.record), self.task)
        return score_answers(rows, self.card, self.scoring)

    @property
    def scoring(self) -> Scoring:
        """Scoring rules in the candidate's record."""
        if isinstance(self.node, Stage):
            return self.node.training.fidelity.scoring
        scoring: Scoring = self.node.settings.get(SCORING, "default")
        return scoring


def list_candidates(study: Study, task: str | None) -> list[ExportCandidate]:
    """Return the finished models for a task that can be exported.

    Args:
        task: ``TASK`` or ``DATASET/TASK``. None for the study's only classification task, or for
            the only one in the user's own files.

    Raises:
        ConfigError: the study has no such task, or several tasks and none is given.
        RecordError: no run for the task is finished.
    """
    planned = list(_iterate_candidates(study))
    dataset, name = _choose_task(study, planned, task)
    those = [each for each in planned if (each.dataset, each.task) == (dataset, name)]
    finished = [each for each in those if has_valid_record(study, each.node)]
    if not finished:
        raise RecordError(
            f"{study.config_file}: None of the {len(those)} planned models for {dataset}/{name} is "
            "finished. Run the study with `tasktransfer run`."
        )
    return finished


def _iterate_candidates(study: Study) -> Iterator[ExportCandidate]:
    for run in study.plan.runs:
        outcome = run.outcome
        if isinstance(outcome, Fit):
            is_on_test = SPLIT not in outcome.settings and not outcome.data.recipe
            if outcome.learner in FITTED and is_on_test:
                yield from _iterate_fit_candidates(study, outcome)
            continue
        stage = _get_single_stage(outcome)
        if stage is None or any(before.data.recipe for before in run.stages):
            continue
        (name,) = stage.select_on
        if get_task(stage.dataset, name).kind in SINGLE_LABEL:
            method = _format_method_name(run)
            yield ExportCandidate(study, method, stage.model.name, stage.dataset, name, stage)


def _iterate_fit_candidates(study: Study, fit: Fit) -> Iterator[ExportCandidate]:
    model = ""
    if fit.learner in OF_A_MODEL:
        spec = get_fit_model(study, fit)
        if spec.family != "encoder":
            return
        model = spec.name
    for name in fit.tasks:
        if get_task(fit.data.name, name).kind in SINGLE_LABEL:
            yield ExportCandidate(study, fit.learner, model, fit.data.name, name, fit)


def _get_single_stage(outcome: Outcome) -> Stage | None:
    """Return the stage whose best round is a run's outcome, if it is a single encoder."""
    if len(outcome.starts) != 1 or not outcome.starts[0].is_plain or outcome.combine is not None:
        return None
    stage = outcome.starts[0].stage
    if stage is None or stage.model.family != "encoder" or len(stage.select_on) != 1:
        return None
    return stage


def _format_method_name(run: Run) -> str:
    sources = run.about.get("sources") or ()
    return f"{run.method}:{'+'.join(sources)}" if sources else run.method


def choose_task(study: Study, task: str | None) -> tuple[str, str]:
    """Return the dataset and the name of the task whose models can be exported.

    Args:
        task: as in ``list_candidates``.

    Raises:
        ConfigError: the study has no such task, or several tasks and none is given.
    """
    return _choose_task(study, list(_iterate_candidates(study)), task)


def _choose_task(
    study: Study, planned: Sequence[ExportCandidate], task: str | None
) -> tuple[str, str]:
    tasks = list(dict.fromkeys((each.dataset, each.task) for each in planned))
    names = [f"{dataset}/{name}" for dataset, name in tasks]
    if not tasks:
        raise ConfigError(
            f"{study.config_file}: The study trains no encoder and fits no reference for a "
            f"task with one label per input ({', '.join(SINGLE_LABEL)}). Choose another "
            f"study.{_describe_unexported_tasks(study, ())}"
        )
    if task is None:
        own = [pair for pair in tasks if DATASETS[pair[0]].has_own_files]
        if len(tasks) == 1 or len(own) == 1:
            return tasks[0] if len(tasks) == 1 else own[0]
        raise ConfigError(
            f"--task: The study has {len(tasks)} tasks whose models can be exported. Choose "
            f"one of {', '.join(names)}.{_describe_unexported_tasks(study, tasks)}"
        )
    fitting = [pair for pair, name in zip(tasks, names, strict=True) if task in (name, pair[1])]
    if len(fitting) != 1:
        problem = (
            "Several tasks have this name."
            if fitting
            else "The study has no such task with a model for export."
        )
        raise ConfigError(
            f"--task {task}: {problem}{suggest_name(task, names)} Choose one of "
            f"{', '.join(names)}.{_describe_unexported_tasks(study, tasks)}"
        )
    return fitting[0]


def _describe_unexported_tasks(study: Study, exported: Container[tuple[str, str]]) -> str:
    """Describe why a study's other tasks have no exported model.

    The text is empty if there are no other tasks.
    """
    stages = study.plan.stages
    trained = [(stage.dataset, task) for stage in stages for task in stage.tested]
    fitted = [(fit.data.name, task) for fit in study.plan.fits for task in fit.tasks]
    prompted = [(node.data.name, node.task) for node in study.plan.evaluations]
    rest = [p for p in dict.fromkeys([*trained, *fitted, *prompted]) if p not in exported]
    if not rest:
        return ""
    reasons = [
        f"{dataset}/{name} ({_explain_missing_model(study, dataset, name)})"
        for dataset, name in rest
    ]
    return f" Other tasks have no such model: {', '.join(reasons)}."


def _explain_missing_model(study: Study, dataset: str, task: str) -> str:
    """Explain why a task has no model that can be exported."""
    kind = get_task(dataset, task).kind
    if kind not in SINGLE_LABEL:
        return f"its kind is {kind}"
    models = list_unexported_models(study, dataset, task)
    return f"no encoder is trained on it, only {', '.join(models)}" if models else "not trained"


def list_unexported_models(study: Study, dataset: str, task: str) -> list[str]:
    """Return the trained decoders and encoder-decoders of a task, which cannot be exported."""
    models = {
        f"{stage.model.name} ({stage.model.family.replace('_', '-')})": None
        for stage in study.plan.stages
        if stage.dataset == dataset and task in stage.tested and stage.model.family != "encoder"
    }
    return list(models)


def read_recommendation(study: Study, dataset: str, task: str) -> Mapping[str, Any] | None:
    """Read the row of a task's recommended method from the study's table ``methods``.

    None if the table is missing, or if no method is recommended.
    """
    path = Path(study.tables, "methods.parquet")
    if not path.is_file():
        return None
    table = read_statistic_frame(path)
    rows = table[(table["dataset"] == dataset) & (table["target"] == task) & table["recommended"]]
    return None if rows.empty else {str(key): value for key, value in rows.iloc[0].items()}


def list_recommended_candidates(
    candidates: Sequence[ExportCandidate], row: Mapping[str, Any]
) -> list[ExportCandidate]:
    """Return the candidates of a recommended method, with one candidate per seed.

    The list is empty if the method has no finished model that can be exported.

    Args:
        candidates: finished candidates of the task.
        row: result of ``read_recommendation``.
    """
    method = row["variant"] if row["method"] == TRANSFER else row["method"]
    method = EXPORTED_AS.get(method, method)
    model = row["model"] if isinstance(row["model"], str) else ""
    return [each for each in candidates if (each.method, each.model) == (method, model)]


def select_candidate(
    candidates: Sequence[ExportCandidate],
    method: str | None,
    model: str | None,
    score_fit: Callable[[ExportCandidate], float],
) -> ExportCandidate:
    """Select the method with the best mean dev score, and its run with the best dev score.

    Args:
        method: name of a method, with or without its sources; None for all.
        model: name of a model; None for all.
        score_fit: function candidate → dev score, for references.

    Raises:
        ConfigError: no candidate has this method and model.
    """
    names = list(dict.fromkeys(each.method for each in candidates))
    method = EXPORTED_AS.get(method, method) if method else None
    some = [c for c in candidates if method in (None, c.method, c.method.partition(":")[0])]
    if method == MOST_FREQUENT:
        raise ConfigError(
            f"--method {method}: The method always predicts the same label, so there is no model "
            f"to export. Choose one of {', '.join(names)}."
        )
    if not some:
        raise ConfigError(
            f"--method {method}: The method is not a finished method for "
            f"{candidates[0].task}.{suggest_name(str(method), names)} Choose one of "
            f"{', '.join(names)}."
        )
    models = list(dict.fromkeys(each.model for each in some if each.model))
    some = [each for each in some if model in (None, each.model)]
    if not some:
        raise ConfigError(
            f"--model {model}: The method was not run with this "
            f"model.{suggest_name(str(model), models)} Choose one of "
            f"{', '.join(models) or 'its models (it has none)'}."
        )
    groups = group_candidates(some)
    if len(groups) == 1 and len(next(iter(groups.values()))) == 1:
        return some[0]
    scores = {
        each.node.digest: score_fit(each) if isinstance(each.node, Fit) else each.dev_score
        for each in some
    }
    best = max(groups.values(), key=lambda group: fmean(scores[each.node.digest] for each in group))
    return max(best, key=lambda each: scores[each.node.digest])


def group_candidates(
    candidates: Iterable[ExportCandidate],
) -> dict[tuple[str, str], list[ExportCandidate]]:
    """Group the candidates by method and model, with all seeds of each."""
    groups: dict[tuple[str, str], list[ExportCandidate]] = {}
    for each in candidates:
        groups.setdefault((each.method, each.model), []).append(each)
    return groups


def describe_scores(candidates: Sequence[ExportCandidate]) -> dict[str, float | int]:
    """Return a method's mean test score over seeds, its 95 % interval and number of seeds.

    An end of the interval that is not finite is omitted.
    """
    cells = gather_cells([(("",), each.seed, each.scored) for each in candidates])
    (cell,) = cells.values()
    confidence = compute_mean_confidence(cell.trainings, cell.units, least=0.0, most=100.0)
    scores = cell.trainings.scores
    numbers = {"score": float(scores.mean()), "low": confidence.low, "high": confidence.high}
    rounded = {key: round(value, 2) for key, value in numbers.items() if math.isfinite(value)}
    return {**rounded, "seeds": len(scores)}


def describe_label_scores(candidate: ExportCandidate) -> list[dict[str, Any]]:
    """Return one table row of test scores per label.

    A measure is a list of its value and the two ends of its interval. A number that is not finite
    is None.
    """
    rows = select_task_rows(read_record_rows(candidate.record), candidate.task)
    answers = read_label_answers(rows, candidate.card, candidate.seed)
    return [
        {
            "label": candidate.card.labels[scores.label],
            "instances": scores.support,
            "predicted": round(scores.predicted),
            **{
                name: [round(value, 1) if math.isfinite(value) else None for value in numbers]
                for name, numbers in scores.measures.items()
            },
        }
        for scores in compute_label_scores([answers])
    ]
