"""Comparison of submissions: ranks, intervals and significance of differences.

The bootstrap resamples whole dialogues of each task's test set and recomputes the official metrics
(``stats.draws``). Every entry, and both files of an entry, use the same resamples, so the
difference of two entries is paired. The standard error is the standard deviation over resamples.
Intervals extend 1.96 standard errors to each side. Tests assume a normal distribution, which a mean
over 7 or 10 tasks approximates. The p of all pairs of a board are adjusted together
(Benjamini-Hochberg) to q.

Intervals and tests cover other dialogues like those of the test sets. They do not cover other
seeds, because a submission has one set of predictions.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from statistics import NormalDist

import numpy as np

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.designs.challenge.golds import Golds, read_golds
from tasktransfer.designs.challenge.read import read_submission
from tasktransfer.designs.challenge.score import (
    BASELINE_SHARE,
    FileScore,
    Report,
    Scores,
    score_submission,
)
from tasktransfer.errors import SubmissionError, escape_line
from tasktransfer.files.progress import show_progress
from tasktransfer.stats.bootstrap import LEVEL, compute_q_values
from tasktransfer.stats.draws import Floats, Weights, resample_scores, sample_unit_weights
from tasktransfer.tasks.card import Task

ALPHA = 1 - LEVEL
"""Two entries differ significantly if q is below this."""

_ARCHIVES_PER_PROCESS = 8
"""Number of archives that take longer to score than another process takes to read the release."""

_ROUNDING_ERROR = 1e-9
"""A standard error below this is rounding, in points."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A valid submission on a board.

    Attributes:
        draws: name of a score in ``Scores.as_json`` → its resampled values, (resamples,).
        task_deltas: task → transfer score minus baseline score.
        warnings: number of warnings.
        rank: rank from 1; equal scores share a rank.
        q_above: q of the difference from the entry above; None for the first entry.
    """

    dataset: str
    data_revision: str
    synthetic: bool
    name: str
    scores: Scores
    draws: dict[str, Floats] = field(repr=False, compare=False)
    task_deltas: dict[str, float]
    warnings: int
    rank: int = 0
    q_above: float | None = None

    @property
    def differs_from_above(self) -> bool:
        """True if the difference from the entry above is significant."""
        return self.q_above is not None and self.q_above < ALPHA

    def compute_interval(self, score: str) -> tuple[float, float]:
        """Return both ends of the 95 % interval of one of the four scores.

        NaN if all test instances of a task are from one dialogue, because the variation between
        dialogues is unknown then.
        """
        return _compute_interval(self.scores.as_json()[score], self.draws[score])


@dataclass(frozen=True, slots=True)
class Pair:
    """Difference of two entries' submission scores, the better one first.

    It has its 95 % interval, p and adjusted p.
    """

    dataset: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    q: float = math.nan


@dataclass(frozen=True, slots=True)
class InvalidArchive:
    """An invalid archive: its name, its dataset, the number of errors, and the first error."""

    entry: str
    dataset: str
    errors: int
    error: str


@dataclass(frozen=True, slots=True)
class Board:
    """The entries of one dataset, best first."""

    dataset: str
    entries: list[Entry]
    pairs: list[Pair]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """One board per dataset with entries, and the invalid archives."""

    fidelity: Scoring
    boards: list[Board]
    invalid: list[InvalidArchive]


def make_leaderboard(
    folder: Path,
    data: Path | str,
    *,
    dataset: str | None = None,
    fidelity: Scoring = "default",
    jobs: int = 1,
) -> Leaderboard:
    """Score every zip in ``folder`` and rank the valid ones, with one board per dataset.

    ``jobs`` processes share the archives, and each reads the release once. The result does not
    depend on the number of processes.

    Raises:
        SubmissionError: the folder cannot be read or has no zip.
        DataError: the release of a submission's dataset cannot be read.
    """
    paths = _list_archives(folder)
    score = partial(_score_archives, data=data, dataset=dataset, fidelity=fidelity)
    shares = min(jobs, math.ceil(len(paths) / _ARCHIVES_PER_PROCESS))
    if shares <= 1:
        scored = score(paths)
    else:
        # Spawn instead of fork: BLAS has threads by now, and a fork would not copy them.
        # Rows and golds are a million small tuples without cycles. Visiting them repeatedly would
        # cost the garbage collector a third of the time.
        context = get_context("spawn")
        with ProcessPoolExecutor(shares, context, initializer=gc.disable) as pool:
            parts = pool.map(score, [paths[share::shares] for share in range(shares)])
            scored = [item for part in parts for item in part]
    entries = [item for item in scored if isinstance(item, Entry)]
    invalid = [item for item in scored if isinstance(item, InvalidArchive)]
    boards = [
        _build_board(name, [entry for entry in entries if entry.dataset == name])
        for name in sorted({entry.dataset for entry in entries})
    ]
    return Leaderboard(fidelity, boards, sorted(invalid, key=lambda item: item.entry))


def _list_archives(folder: Path) -> list[Path]:
    """Return the zips at the top of ``folder``, sorted by name."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.lower().endswith(".zip"))
    except OSError as error:
        raise SubmissionError(
            f"{folder}: The folder cannot be listed ({error.strerror}). Specify a folder with "
            "submissions."
        ) from error
    if not paths:
        raise SubmissionError(
            f"{folder}: The folder contains no .zip file. Put the submissions there."
        )
    return paths


def _score_archives(
    paths: Sequence[Path], data: Path | str, dataset: str | None, fidelity: Scoring
) -> list[Entry | InvalidArchive]:
    """Score the archives in the order of ``paths``, reading and resampling each release once."""
    golds: dict[str, Golds] = {}
    weights: dict[str, dict[str, Weights]] = {}

    def load_golds(name: str) -> Golds:
        if name not in golds:
            golds[name] = read_golds(data, name)
            weights[name] = {
                task: sample_unit_weights(name, task, of_task.units.count)
                for task, of_task in golds[name].tasks.items()
            }
        return golds[name]

    scored: list[Entry | InvalidArchive] = []
    for path in show_progress(paths, "scoring submissions"):
        submission = read_submission(path, load_golds, dataset=dataset)
        errors = submission.findings.errors
        if errors:
            name = escape_line(submission.name)
            scored.append(InvalidArchive(name, submission.dataset, len(errors), str(errors[0])))
        else:
            of_dataset = golds[submission.dataset]
            report = score_submission(submission, of_dataset, fidelity)
            scored.append(_build_entry(report, of_dataset, weights[submission.dataset]))
    return scored


def _build_entry(report: Report, golds: Golds, weights: dict[str, Weights]) -> Entry:
    """Return the leaderboard entry of a valid submission, with resampled mean scores over tasks."""
    assert report.scores is not None, "only valid submissions come here"

    def resample_file(card: Task, file: FileScore) -> Floats:
        score_of = partial(metrics.compute_score_from_sums, card, fidelity=report.fidelity)
        tally = golds.tasks[card.name].units.sum_tally(file.tally)
        return resample_scores(tally, weights[card.name], score_of)

    tasks = [(golds.tasks[name].task, score) for name, score in report.tasks.items()]
    baseline = np.mean([resample_file(card, score.baseline) for card, score in tasks], axis=0)
    transfer = np.mean([resample_file(card, score.transfer) for card, score in tasks], axis=0)
    return Entry(
        dataset=golds.dataset,
        data_revision=golds.revision,
        synthetic=golds.synthetic,
        name=escape_line(report.submission.name),
        scores=report.scores,
        draws={
            "baseline_score": baseline,
            "transfer_score": transfer,
            "score_delta": transfer - baseline,
            "submission_score": transfer - (1 - BASELINE_SHARE) * baseline,
        },
        task_deltas={name: score.delta for name, score in report.tasks.items()},
        warnings=len(report.submission.findings.warnings),
    )


# --- ranks, intervals, pairs ---------------------------------------------------------------------


def _build_board(dataset: str, entries: Sequence[Entry]) -> Board:
    ordered = sorted(entries, key=lambda entry: (-entry.scores.submission, entry.name))
    pairs = _compare_pairs(dataset, ordered)
    places = combinations(range(len(ordered)), 2)
    neighbours = [pair.q for (a, b), pair in zip(places, pairs, strict=True) if b == a + 1]
    ranked = [
        replace(
            entry,
            rank=1 + sum(other.scores.submission > entry.scores.submission for other in ordered),
            q_above=q,
        )
        for entry, q in zip(ordered, (None, *neighbours), strict=True)
    ]
    return Board(dataset, ranked, pairs)


def _compare_pairs(dataset: str, ordered: Sequence[Entry]) -> list[Pair]:
    """Compare every pair of entries on paired resamples, and adjust the p-values jointly."""
    pairs = []
    for better, worse in combinations(ordered, 2):
        difference = better.scores.submission - worse.scores.submission
        draws = better.draws["submission_score"] - worse.draws["submission_score"]
        interval = _compute_interval(difference, draws)
        pairs.append(
            Pair(
                dataset,
                better.name,
                worse.name,
                difference,
                *interval,
                _compute_p(difference, draws),
            )
        )
    adjusted = compute_q_values([pair.p for pair in pairs])
    return [replace(pair, q=float(q)) for pair, q in zip(pairs, adjusted, strict=True)]


def _compute_interval(point: float, draws: Floats) -> tuple[float, float]:
    """Return a normal interval around an estimate, with the resamples' standard deviation."""
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * float(draws.std(ddof=1))
    return point - reach, point + reach


def _compute_p(difference: float, draws: Floats) -> float:
    """Return the two-sided p-value for no difference, which is 1 if all resamples are identical."""
    error = float(draws.std(ddof=1))
    if error < _ROUNDING_ERROR:
        return 1.0 if abs(difference) < _ROUNDING_ERROR else 0.0
    return math.erfc(abs(difference) / error / math.sqrt(2))
