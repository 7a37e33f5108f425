"""Many submissions against each other: ranks, intervals, and which differences are real.

The bootstrap draws whole dialogues of each task's test set and computes the official metrics anew
(``stats.draws``). Every entry, and both files of an entry, meet the same draws, so that the
difference of two entries is paired. The standard error is the standard deviation over the draws.
Intervals are 1.96 of it to each side, and tests take a normal distribution too, which a mean over
7 or 10 tasks is close to. The p of all pairs of a board are adjusted together
(Benjamini-Hochberg): q.

What this says: how an entry would do on other dialogues of these test sets' kind. It knows nothing
of other seeds, since a submission shows one set of predictions.
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
from tasktransfer.designs.transfer.challenge.golds import Golds, read_golds
from tasktransfer.designs.transfer.challenge.read import read_submission
from tasktransfer.designs.transfer.challenge.score import (
    BASELINE_SHARE,
    FileScore,
    Report,
    Scores,
    score_submission,
)
from tasktransfer.errors import SubmissionError, escape_line
from tasktransfer.files.progress import with_progress
from tasktransfer.stats.bootstrap import LEVEL
from tasktransfer.stats.draws import Floats, Weights, resampled_scores, unit_weights
from tasktransfer.stats.false_discovery import false_discovery
from tasktransfer.tasks.card import Task

ALPHA = 1 - LEVEL
"""A q below this tells two entries apart."""

_WORTH_A_PROCESS = 8
"""Archives that take longer to score than another process takes to read the release."""

_NOTHING = 1e-9
"""A standard error below this is rounding, in points."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A valid submission on a board.

    ``draws``: (resamples,) of each of the four scores, by ``Scores.as_json``'s names.
    ``task_deltas``: task → transfer - baseline score. ``rank`` counts from 1, equal scores share
    one. ``q_above``: of the difference to the entry above (None for the first).
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
    def told_from_above(self) -> bool:
        """Whether it can be told from the entry above."""
        return self.q_above is not None and self.q_above < ALPHA

    def interval(self, score: str) -> tuple[float, float]:
        """Low and high end of the 95 % interval of one of the four scores; NaN where some task's
        test instances are all of one dialogue, which does not tell how dialogues differ."""
        return _interval(self.scores.as_json()[score], self.draws[score])


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entries, the better one first: difference of their submission scores, its 95 % interval,
    p and adjusted p."""

    dataset: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    q: float = math.nan


@dataclass(frozen=True, slots=True)
class Invalid:
    """An archive that is on no board: its name, number of errors, and the first of them."""

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
    """One board for each dataset that has entries, and the archives that are invalid."""

    fidelity: Scoring
    boards: list[Board]
    invalid: list[Invalid]


def make_leaderboard(
    folder: Path,
    data: Path | str,
    *,
    dataset: str | None = None,
    fidelity: Scoring = "default",
    jobs: int = 1,
) -> Leaderboard:
    """Score every zip in ``folder`` and rank the valid ones, a board for each dataset.

    ``jobs`` processes share the archives; each reads the release once. The result does not depend
    on their number.

    Raises:
        SubmissionError: the folder cannot be read or has no zip.
        DataError: the release of a submission's dataset cannot be read.
    """
    paths = _archives(folder)
    score = partial(_score_all, data=data, dataset=dataset, fidelity=fidelity)
    shares = min(jobs, math.ceil(len(paths) / _WORTH_A_PROCESS))
    if shares <= 1:
        scored = score(paths)
    else:
        # Spawned and not forked: BLAS has threads by now, and a fork would copy none of them.
        # Rows and golds are a million small tuples without a cycle, which the garbage collector
        # would visit again and again: a third of the time.
        context = get_context("spawn")
        with ProcessPoolExecutor(shares, context, initializer=gc.disable) as pool:
            parts = pool.map(score, [paths[share::shares] for share in range(shares)])
            scored = [item for part in parts for item in part]
    entries = [item for item in scored if isinstance(item, Entry)]
    invalid = [item for item in scored if isinstance(item, Invalid)]
    boards = [
        _board(name, [entry for entry in entries if entry.dataset == name])
        for name in sorted({entry.dataset for entry in entries})
    ]
    return Leaderboard(fidelity, boards, sorted(invalid, key=lambda item: item.entry))


def _archives(folder: Path) -> list[Path]:
    """The zips at the top of ``folder``, by name."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.lower().endswith(".zip"))
    except OSError as error:
        raise SubmissionError(
            f"{folder}: cannot be listed ({error.strerror}); give a folder with submissions"
        ) from error
    if not paths:
        raise SubmissionError(f"{folder}: holds no .zip; put the submissions there")
    return paths


def _score_all(
    paths: Sequence[Path], data: Path | str, dataset: str | None, fidelity: Scoring
) -> list[Entry | Invalid]:
    """The archives scored, in the order of ``paths``; each release is read and drawn once."""
    golds: dict[str, Golds] = {}
    weights: dict[str, dict[str, Weights]] = {}

    def golds_of(name: str) -> Golds:
        if name not in golds:
            golds[name] = read_golds(data, name)
            weights[name] = {
                task: unit_weights(name, task, of_task.units.count)
                for task, of_task in golds[name].tasks.items()
            }
        return golds[name]

    scored: list[Entry | Invalid] = []
    for path in with_progress(paths, "scoring submissions"):
        submission = read_submission(path, golds_of, dataset=dataset)
        errors = submission.findings.errors
        if errors:
            name = escape_line(submission.name)
            scored.append(Invalid(name, submission.dataset, len(errors), str(errors[0])))
        else:
            of_dataset = golds[submission.dataset]
            report = score_submission(submission, of_dataset, fidelity)
            scored.append(_entry(report, of_dataset, weights[submission.dataset]))
    return scored


def _entry(report: Report, golds: Golds, weights: dict[str, Weights]) -> Entry:
    """A valid submission with its draws; every task weighs the same."""
    assert report.scores is not None, "only valid submissions come here"

    def resampled(card: Task, file: FileScore) -> Floats:
        score_of = partial(metrics.score_of_sums, card, fidelity=report.fidelity)
        tally = golds.tasks[card.name].units.summed(file.tally)
        return resampled_scores(tally, weights[card.name], score_of)

    tasks = [(golds.tasks[name].task, score) for name, score in report.tasks.items()]
    baseline = np.mean([resampled(card, score.baseline) for card, score in tasks], axis=0)
    transfer = np.mean([resampled(card, score.transfer) for card, score in tasks], axis=0)
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


def _board(dataset: str, entries: Sequence[Entry]) -> Board:
    ordered = sorted(entries, key=lambda entry: (-entry.scores.submission, entry.name))
    pairs = _pairs(dataset, ordered)
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


def _pairs(dataset: str, ordered: Sequence[Entry]) -> list[Pair]:
    """All pairs of a board, each from its paired draws, adjusted together."""
    pairs = []
    for better, worse in combinations(ordered, 2):
        difference = better.scores.submission - worse.scores.submission
        draws = better.draws["submission_score"] - worse.draws["submission_score"]
        interval = _interval(difference, draws)
        pairs.append(
            Pair(dataset, better.name, worse.name, difference, *interval, _p(difference, draws))
        )
    adjusted = false_discovery([pair.p for pair in pairs])
    return [replace(pair, q=float(q)) for pair, q in zip(pairs, adjusted, strict=True)]


def _interval(point: float, draws: Floats) -> tuple[float, float]:
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * float(draws.std(ddof=1))
    return point - reach, point + reach


def _p(difference: float, draws: Floats) -> float:
    """Two-sided p of no difference; 1 for entries that no draw tells apart."""
    error = float(draws.std(ddof=1))
    if error < _NOTHING:
        return 1.0 if abs(difference) < _NOTHING else 0.0
    return math.erfc(abs(difference) / error / math.sqrt(2))
