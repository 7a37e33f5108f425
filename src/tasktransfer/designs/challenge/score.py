"""The four scores of a submission, and reports of valid and invalid submissions.

Baseline score BS and transfer score TS are means over the dataset's tasks. Score delta is
SD = TS - BS, and submission score is SD + 0.1 BS (the challenge's scoring; feta-spec, challenge).
A task's score is computed as in the run records: ``metrics.evaluate_predictions`` and
``metrics.compute_task_score`` on the test split.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.designs.challenge.findings import format_findings
from tasktransfer.designs.challenge.format import BASELINE_FILE, TRANSFER_FILE
from tasktransfer.designs.challenge.golds import SYNTHETIC, Golds, TaskGolds, read_golds
from tasktransfer.designs.challenge.parse import Prediction
from tasktransfer.designs.challenge.read import ID_MISMATCHES, Submission, read_submission
from tasktransfer.errors import SubmissionError, escape_line
from tasktransfer.files import replace_file
from tasktransfer.metrics import Sums
from tasktransfer.present.columns import format_table

REPORT_VERSION = 1
BASELINE_SHARE = 0.1
"""Weight of the baseline score in the submission score."""


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
        """Submission score SD + 0.1 BS, by which submissions are ranked."""
        return self.delta + BASELINE_SHARE * self.baseline

    def as_json(self) -> dict[str, float]:
        """Return the four scores, named as in the challenge."""
        return {
            "baseline_score": self.baseline,
            "transfer_score": self.transfer,
            "score_delta": self.delta,
            "submission_score": self.submission,
        }


@dataclass(frozen=True, slots=True)
class FileScore:
    """Scores of one prediction file.

    Attributes:
        metrics: metric → value.
        score: the task's score, 0-100.
        no_answers: number of instances with -1.
        tally: (instances, columns), from which the metrics are computed.
    """

    metrics: dict[str, float]
    score: float
    no_answers: int
    tally: Sums


@dataclass(frozen=True, slots=True)
class TaskScore:
    """Scores of a task on ``scored`` of its ``instances`` (fewer only with ``shared_ids``)."""

    instances: int
    scored: int
    baseline: FileScore
    transfer: FileScore

    @property
    def delta(self) -> float:
        """Gain of transfer over the baseline, in points."""
        return self.transfer.score - self.baseline.score


@dataclass(frozen=True, slots=True)
class Report:
    """A submission with its scores; ``tasks`` is empty and ``scores`` None if it is invalid.

    ``synthetic``: whether the release is generated according to its metadata; None if no release
    was read.
    """

    submission: Submission
    fidelity: Scoring
    data_revision: str
    synthetic: bool | None
    tasks: dict[str, TaskScore]
    scores: Scores | None


def score_file(
    path: Path,
    data: Path | str,
    *,
    dataset: str | None = None,
    fidelity: Scoring = "default",
    shared_ids: bool = False,
) -> Report:
    """Validate and score the zip or folder ``path`` against the release under ``data``.

    An invalid submission raises no error: its report has findings and no scores.

    Raises:
        DataError: the release cannot be read.
    """
    read: dict[str, Golds] = {}

    def load_golds(name: str) -> Golds:
        return read.setdefault(name, read_golds(data, name))

    submission = read_submission(path, load_golds, dataset=dataset, shared_ids=shared_ids)
    if submission.dataset not in read:
        return Report(submission, fidelity, "", None, {}, None)
    return score_submission(submission, read[submission.dataset], fidelity)


def score_submission(submission: Submission, golds: Golds, fidelity: Scoring) -> Report:
    """Score a submission. The report of an invalid submission has no scores.

    A task without any remaining instance (only with ``shared_ids``) makes it invalid.
    """
    tasks: dict[str, TaskScore] = {}
    for name, task in golds.tasks.items() if submission.is_valid else ():
        score = _score_task(submission, task, fidelity)
        if score is None:
            text = (
                "No row has an id of this release. Score the submission on the release for which "
                "it was created."
            )
            submission.findings.add_error(name, None, "no-shared-id", text)
        else:
            tasks[name] = score
    scores = None
    if submission.is_valid:
        scores = Scores(
            baseline=sum(task.baseline.score for task in tasks.values()) / len(tasks),
            transfer=sum(task.transfer.score for task in tasks.values()) / len(tasks),
        )
    return Report(
        submission, fidelity, golds.revision, golds.synthetic, tasks if scores else {}, scores
    )


def _score_task(submission: Submission, task: TaskGolds, fidelity: Scoring) -> TaskScore | None:
    """Score baseline and transfer on the instances that both answer, so that they are comparable.

    None if there is no such instance.
    """
    card, files = task.task, submission.files[task.task.name]
    answered = [
        (before, after, gold)
        for before, after, gold in zip(
            files[BASELINE_FILE], files[TRANSFER_FILE], task.answers, strict=True
        )
        if before is not None and after is not None
    ]
    if not answered:
        return None
    baseline, transfer, answers = zip(*answered, strict=True)
    golds = task.golds if len(answered) == len(task.answers) else metrics.encode_answers(answers)

    def score_predictions(file: str, predictions: tuple[Prediction, ...]) -> FileScore:
        tally = metrics.tally_instances(card, predictions, golds, fidelity=fidelity)
        sums = metrics.compute_metrics_from_sums(card, tally.sum(axis=0), fidelity=fidelity)
        values = {key: float(value) for key, value in sums.items()}
        no_answers = submission.count_no_answers(card.name, file)
        return FileScore(values, metrics.compute_task_score(card, values), no_answers, tally)

    return TaskScore(
        instances=len(task.answers),
        scored=len(answered),
        baseline=score_predictions(BASELINE_FILE, baseline),
        transfer=score_predictions(TRANSFER_FILE, transfer),
    )


# --- report --------------------------------------------------------------------------------------


class FileJson(TypedDict):
    """Scores of one prediction file, as in ``FileScore``."""

    metrics: dict[str, float]
    score: float
    no_answers: int


class TaskJson(TypedDict):
    """Scores of a task, as in ``TaskScore``."""

    instances: int
    scored: int
    baseline: FileJson
    transfer: FileJson
    delta: float


class ReportJson(TypedDict):
    """Report of a submission; ``report`` is the version of its form.

    ``errors`` and ``warnings`` have the fields of ``findings.Finding``. ``scores`` is None if the
    submission is invalid, and other values are None if they are unknown.
    """

    report: int
    submission: str
    dataset: str | None
    data_revision: str | None
    synthetic: bool | None
    notes: list[str]
    fidelity: Scoring
    valid: bool
    errors: list[dict[str, str | int | None]]
    warnings: list[dict[str, str | int | None]]
    tasks: dict[str, TaskJson]
    scores: dict[str, float] | None


def as_json(report: Report) -> ReportJson:
    """Return the whole report: every finding, every metric, and the four scores."""
    submission = report.submission
    return {
        "report": REPORT_VERSION,
        "submission": escape_line(submission.name),
        "dataset": submission.dataset or None,
        "data_revision": report.data_revision or None,
        "synthetic": report.synthetic,
        "notes": [SYNTHETIC] if report.synthetic else [],
        "fidelity": report.fidelity,
        "valid": submission.is_valid,
        "errors": [asdict(finding) for finding in submission.findings.errors],
        "warnings": [asdict(finding) for finding in submission.findings.warnings],
        "tasks": {name: _build_task_json(task) for name, task in report.tasks.items()},
        "scores": report.scores.as_json() if report.scores else None,
    }


def _build_task_json(task: TaskScore) -> TaskJson:
    return {
        "instances": task.instances,
        "scored": task.scored,
        "baseline": _build_file_json(task.baseline),
        "transfer": _build_file_json(task.transfer),
        "delta": task.delta,
    }


def _build_file_json(file: FileScore) -> FileJson:
    return {"metrics": file.metrics, "score": file.score, "no_answers": file.no_answers}


def write_json(report: Report, path: Path) -> None:
    """Write the report atomically."""
    with replace_file(path) as part:
        text = json.dumps(as_json(report), indent=1, ensure_ascii=False, allow_nan=False)
        part.write_text(f"{text}\n", encoding="utf-8")


def as_text(report: Report) -> str:
    """Format the report on a valid submission: the metrics of every task, then the four scores.

    Raises:
        ValueError: the submission is invalid.
    """
    submission, scores = report.submission, report.scores
    if scores is None:
        raise ValueError(
            "The submission is invalid and has no scores. Call raise_submission_errors to list "
            "the errors of the submission."
        )
    instances = sum(task.scored for task in report.tasks.values())
    rows = [row for name, task in report.tasks.items() for row in _format_task_rows(name, task)]
    lines = [
        *([SYNTHETIC] if report.synthetic else []),
        f"{escape_line(submission.name)}: {submission.dataset}, {len(report.tasks)} tasks, "
        f"{instances:,} instances, fidelity {report.fidelity}",
        "",
        *format_table(rows, left=("task", "metric")),
        "",
        f"baseline score    BS  {scores.baseline:9.4f}",
        f"transfer score    TS  {scores.transfer:9.4f}",
        f"score delta       SD  {scores.delta:+9.4f}   TS - BS",
        f"submission score      {scores.submission:+9.4f}   SD + {BASELINE_SHARE} BS",
    ]
    return "\n".join(lines)


def _format_task_rows(name: str, task: TaskScore) -> list[dict[str, str]]:
    before, after = task.baseline, task.transfer
    values = {"score": (before.score, after.score)}
    values |= {metric: (value, after.metrics[metric]) for metric, value in before.metrics.items()}
    rows = [(metric, f"{b:.2f}", f"{a:.2f}", f"{a - b:+.2f}") for metric, (b, a) in values.items()]
    if before.no_answers or after.no_answers:
        rows.append(("instances with -1", str(before.no_answers), str(after.no_answers), ""))
    if task.scored < task.instances:
        rows.append((f"only {task.scored:,} of {task.instances:,} instances", "", "", ""))
    columns = ("metric", "baseline", "transfer", "delta")
    return [
        {"task": "" if index else name, **dict(zip(columns, row, strict=True))}
        for index, row in enumerate(rows)
    ]


def format_warnings(report: Report) -> list[str]:
    """Return the warnings as lines to print."""
    return [
        f"warning: {line.strip()}" for line in format_findings(report.submission.findings.warnings)
    ]


def raise_submission_errors(report: Report, *, hint: bool = True) -> None:
    """Raise SubmissionError for an invalid submission, with the first errors of each file.

    ``hint``: whether to suggest ``--shared-ids``.
    """
    errors = report.submission.findings.errors
    if not errors:
        return
    count = f"{len(errors):,} error{'s' * (len(errors) != 1)}"
    lines = [
        f"{escape_line(report.submission.name)}: The submission is invalid and has {count}. Fix "
        f"{'it' if len(errors) == 1 else 'them'}, and score it again."
    ]
    lines += format_findings(errors)
    if hint and all(error.kind in ID_MISMATCHES for error in errors):
        lines.append(
            "Only the ids differ. If the submission is for another version of the release, add "
            "--shared-ids to score the instances that both versions have."
        )
    raise SubmissionError("\n".join(lines))
