"""The four scores of a submission, and the report of a valid or an invalid one.

Baseline score BS and transfer score TS are means over the dataset's tasks, score delta
SD = TS - BS, submission score SD + 0.1 BS (the challenge's scoring; feta-spec, challenge). A task's
score is that of the run records: ``metrics.evaluate`` and ``metrics.score`` on the test split.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer import metrics
from tasktransfer.core.specs import Fidelity
from tasktransfer.designs.transfer.challenge.findings import Findings, listed, refuse, visible
from tasktransfer.designs.transfer.challenge.format import BASELINE_FILE, TRANSFER_FILE
from tasktransfer.designs.transfer.challenge.golds import SYNTHETIC, Golds, TaskGolds, read_golds
from tasktransfer.designs.transfer.challenge.read import Submission, id_mismatches, read_submission
from tasktransfer.files import replacing

REPORT_VERSION = 1
BASELINE_SHARE = 0.1
"""What the baseline score adds to the submission score."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The challenge's four scores; baseline and transfer are 0-100."""

    baseline: float
    transfer: float

    @property
    def delta(self) -> float:
        """Score delta SD = TS - BS."""
        return self.transfer - self.baseline

    @property
    def submission(self) -> float:
        """SD + 0.1 BS, which submissions are ranked by."""
        return self.delta + BASELINE_SHARE * self.baseline

    def as_json(self) -> dict[str, float]:
        """The four scores by the names that the challenge gives them."""
        return {
            "baseline_score": self.baseline,
            "transfer_score": self.transfer,
            "score_delta": self.delta,
            "submission_score": self.submission,
        }


@dataclass(frozen=True, slots=True)
class FileScore:
    """One prediction file: metric → value, their score, and how many instances have -1."""

    metrics: dict[str, float]
    score: float
    no_answers: int


@dataclass(frozen=True, slots=True)
class TaskScore:
    """Both files of a task, on ``scored`` of its ``instances`` (fewer with ``shared_ids`` only)."""

    baseline: FileScore
    transfer: FileScore
    instances: int
    scored: int


@dataclass(frozen=True, slots=True)
class Report:
    """A submission with its scores; ``tasks`` is empty and ``scores`` None if it is invalid."""

    submission: Submission
    fidelity: Fidelity
    data_revision: str
    synthetic: bool | None
    """Whether the release is generated, as its metadata says; None: no release was read."""
    tasks: dict[str, TaskScore]
    scores: Scores | None


def score_file(
    path: Path,
    data: Path | str,
    *,
    dataset: str | None = None,
    fidelity: Fidelity = "default",
    shared_ids: bool = False,
) -> Report:
    """Validate and score the zip or folder ``path`` against the release under ``data``.

    Raises DataError where the release cannot be read. An invalid submission raises nothing: its
    report has findings and no scores.
    """
    read: dict[str, Golds] = {}

    def golds_of(name: str) -> Golds:
        return read.setdefault(name, read_golds(data, name))

    submission = read_submission(path, golds_of, dataset=dataset, shared_ids=shared_ids)
    golds = read.get(submission.dataset)
    if golds is None:
        return Report(submission, fidelity, "", None, {}, None)
    return score_submission(submission, golds, fidelity)


def score_submission(submission: Submission, golds: Golds, fidelity: Fidelity) -> Report:
    """The scores of a valid submission; an invalid one has none. A task of which no instance is
    left (``shared_ids`` only) makes it invalid."""
    said = golds.revision, golds.synthetic
    if not submission.valid:
        return Report(submission, fidelity, *said, {}, None)
    tasks: dict[str, TaskScore] = {}
    for name, task in golds.tasks.items():
        scored = _score_task(submission, task, fidelity)
        if scored is None:
            submission.findings.error(name, None, "no-shared-id", "has no id of this release")
        else:
            tasks[name] = scored
    if not submission.valid:
        return Report(submission, fidelity, *said, {}, None)
    scores = Scores(
        baseline=sum(task.baseline.score for task in tasks.values()) / len(tasks),
        transfer=sum(task.transfer.score for task in tasks.values()) / len(tasks),
    )
    return Report(submission, fidelity, *said, tasks, scores)


def _score_task(submission: Submission, task: TaskGolds, fidelity: Fidelity) -> TaskScore | None:
    """Both files on the instances that both answer, so that their difference means something."""
    card = task.task
    files = submission.files[card.name]
    pairs = list(zip(files[BASELINE_FILE], files[TRANSFER_FILE], task.answers, strict=True))
    kept = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
    if not kept:
        return None
    golds = task.golds if len(kept) == len(pairs) else metrics.coded([gold for *_, gold in kept])

    def score_of(side: int, file: str) -> FileScore:
        predictions = [pair[side] for pair in kept]
        values = metrics.evaluate(card, predictions, golds, fidelity=fidelity)  # type: ignore[arg-type]
        return FileScore(
            values, metrics.score(card, values), submission.no_answers(card.name, file)
        )

    return TaskScore(
        baseline=score_of(0, BASELINE_FILE),
        transfer=score_of(1, TRANSFER_FILE),
        instances=len(pairs),
        scored=len(kept),
    )


# --- report --------------------------------------------------------------------------------------


def as_json(report: Report) -> dict[str, Any]:
    """The whole report: every finding, every metric, the four scores (null if invalid)."""
    submission = report.submission
    return {
        "report": REPORT_VERSION,
        "submission": visible(submission.name),
        "dataset": submission.dataset or None,
        "data_revision": report.data_revision or None,
        "synthetic": report.synthetic,
        "notes": [SYNTHETIC] if report.synthetic else [],
        "fidelity": report.fidelity,
        "valid": submission.valid,
        "errors": [finding.as_json() for finding in submission.findings.errors],
        "warnings": [finding.as_json() for finding in submission.findings.warnings],
        "tasks": {name: _task_json(task) for name, task in report.tasks.items()},
        "scores": report.scores.as_json() if report.scores else None,
    }


def _task_json(task: TaskScore) -> dict[str, Any]:
    files = {"baseline": task.baseline, "transfer": task.transfer}
    return {
        "instances": task.instances,
        "scored": task.scored,
        **{
            name: {"metrics": file.metrics, "score": file.score, "no_answers": file.no_answers}
            for name, file in files.items()
        },
        "delta": task.transfer.score - task.baseline.score,
    }


def write_json(report: Report, path: Path) -> None:
    """Write the report atomically."""
    with replacing(path) as part:
        text = json.dumps(as_json(report), indent=1, ensure_ascii=False, allow_nan=False)
        part.write_text(f"{text}\n", encoding="utf-8")


def as_text(report: Report) -> str:
    """A valid submission's report for reading: metrics of every task, then the four scores."""
    scores = report.scores
    if scores is None:
        raise ValueError("an invalid submission has no scores; see refuse_invalid")
    submission = report.submission
    instances = sum(task.scored for task in report.tasks.values())
    lines = [
        *([SYNTHETIC] if report.synthetic else []),
        f"{visible(submission.name)}: {submission.dataset}, {len(report.tasks)} tasks, "
        f"{instances:,} instances, fidelity {report.fidelity}",
        "",
        _row("task", "metric", "baseline", "transfer", "delta"),
    ]
    for name, task in report.tasks.items():
        lines += _task_lines(name, task)
    lines += [
        "",
        f"baseline score    BS  {scores.baseline:9.4f}",
        f"transfer score    TS  {scores.transfer:9.4f}",
        f"score delta       SD  {scores.delta:+9.4f}   TS - BS",
        f"submission score      {scores.submission:+9.4f}   SD + {BASELINE_SHARE} BS",
    ]
    return "\n".join(lines)


def _row(*cells: str) -> str:
    task, metric, *numbers = cells
    return f"{task:<52}{metric:<20}" + "".join(f"{number:>10}" for number in numbers)


def _task_lines(name: str, task: TaskScore) -> list[str]:
    def row(metric: str, before: float, after: float, first: str = "") -> str:
        return _row(first, metric, f"{before:.2f}", f"{after:.2f}", f"{after - before:+.2f}")

    lines = [row("score", task.baseline.score, task.transfer.score, name)]
    lines += [
        row(metric, value, task.transfer.metrics[metric])
        for metric, value in task.baseline.metrics.items()
    ]
    missing = task.baseline.no_answers, task.transfer.no_answers
    if any(missing):
        lines.append(_row("", "instances with -1", *(str(number) for number in missing), ""))
    if task.scored < task.instances:
        lines.append(_row("", f"only {task.scored:,} of {task.instances:,} instances"))
    return lines


def warnings_text(findings: Findings) -> list[str]:
    """The warnings as lines to print."""
    return [f"warning: {line.strip()}" for line in listed(findings.warnings)]


def refuse_invalid(report: Report, *, hint: bool = True) -> None:
    """Raise SubmissionError for an invalid submission, with what may help."""
    submission = report.submission
    extra: list[str] = []
    mismatches = id_mismatches(submission.findings)
    if hint and mismatches and mismatches.total() == len(submission.findings.errors):
        extra.append(
            "Only ids do not fit: if it was made with another version of the release, --shared-ids "
            "scores the instances that both have"
        )
    refuse(submission.name, submission.findings, extra)
