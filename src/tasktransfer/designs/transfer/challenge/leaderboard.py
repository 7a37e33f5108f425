"""Many submissions against each other: ranks, intervals, and which differences are real.

The bootstrap resamples test instances within each task and computes the official metrics anew
(``analysis.bootstrap``). Every entry, and both files of an entry, meet the same draws, so that the
difference of two entries is paired. The standard error is the standard deviation over the draws.
Intervals are 1.96 of it to each side, and tests take a normal distribution too, which a mean over
7 or 10 tasks is close to. The p of all pairs of a board are adjusted together
(Benjamini-Hochberg): q.

What this says: how an entry would do on other instances of these test sets' kind. It knows nothing
of other seeds, since a submission shows one set of predictions.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from multiprocessing import get_context
from pathlib import Path
from statistics import NormalDist

import numpy as np

from tasktransfer import metrics
from tasktransfer.core.specs import Fidelity
from tasktransfer.designs.transfer.challenge.findings import visible
from tasktransfer.designs.transfer.challenge.format import BASELINE_FILE, TRANSFER_FILE
from tasktransfer.designs.transfer.challenge.golds import Golds, TaskGolds, read_golds
from tasktransfer.designs.transfer.challenge.read import Submission, read_submission
from tasktransfer.designs.transfer.challenge.score import BASELINE_SHARE, Scores
from tasktransfer.errors import SubmissionError
from tasktransfer.stats.bootstrap import (
    LEVEL,
    Floats,
    Weights,
    instance_weights,
    resampled_scores,
)
from tasktransfer.stats.false_discovery import false_discovery

ALPHA = 1 - LEVEL
"""A q below this tells two entries apart."""

_WORTH_A_PROCESS = 8
"""Archives that take longer to score than another process takes to read the release."""

_NOTHING = 1e-9
"""A standard error below this is rounding, in points."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval, in points."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Entry:
    """A valid submission on a board.

    ``rank`` counts from 1, equal scores share one. ``intervals`` has one for each of the four
    scores, by ``Scores.as_json``'s names. ``task_deltas``: task → transfer - baseline score.
    ``q_above``: of the difference to the entry above (None for the first).
    """

    rank: int
    name: str
    scores: Scores
    intervals: dict[str, Interval]
    task_deltas: dict[str, float]
    warnings: int
    q_above: float | None

    @property
    def told_from_above(self) -> bool:
        """Whether it can be told from the entry above."""
        return self.q_above is not None and self.q_above < ALPHA


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entries, the better one first: difference of their submission scores, its interval, p
    and adjusted p."""

    first: str
    second: str
    difference: float
    interval: Interval
    p: float
    q: float


@dataclass(frozen=True, slots=True)
class Invalid:
    """An archive that is on no board: its first error, and how many more there are."""

    name: str
    dataset: str
    error: str
    errors: int


@dataclass(frozen=True, slots=True)
class Board:
    """The entries of one dataset, best first."""

    dataset: str
    data_revision: str
    synthetic: bool
    tasks: tuple[str, ...]
    entries: list[Entry]
    pairs: list[Pair]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """One board for each dataset that has entries, and the archives that are invalid."""

    fidelity: Fidelity
    boards: list[Board]
    invalid: list[Invalid]


@dataclass(frozen=True, slots=True)
class _Ground:
    """What the entries of a dataset are scored on, read and drawn once."""

    golds: Golds
    weights: dict[str, Weights]


@dataclass(frozen=True, slots=True)
class _Scored:
    """An entry with its draws: (resamples,) baseline and transfer score on each."""

    dataset: str
    data_revision: str
    synthetic: bool
    name: str
    scores: Scores
    baseline_draws: Floats
    transfer_draws: Floats
    task_deltas: dict[str, float]
    warnings: int

    @property
    def submission_draws(self) -> Floats:
        return self.transfer_draws - (1 - BASELINE_SHARE) * self.baseline_draws


def make_leaderboard(
    folder: Path,
    data: Path | str,
    *,
    dataset: str | None = None,
    fidelity: Fidelity = "default",
    jobs: int = 1,
) -> Leaderboard:
    """Score every zip in ``folder`` and rank the valid ones, a board for each dataset.

    ``jobs`` processes share the archives; each reads the release once. The result does not depend
    on their number.

    Raises:
        SubmissionError: the folder cannot be read or has no zip.
        DataError: the release of a submission's dataset cannot be read.
    """
    paths = archives(folder)
    shares = min(jobs, math.ceil(len(paths) / _WORTH_A_PROCESS))
    if shares <= 1:
        scored, invalid = _score_all(paths, data, dataset, fidelity)
    else:
        scored, invalid = _score_shared(paths, data, dataset, fidelity, shares)
    datasets = sorted({entry.dataset for entry in scored})
    boards = [_board([entry for entry in scored if entry.dataset == name]) for name in datasets]
    return Leaderboard(fidelity, boards, sorted(invalid, key=lambda item: item.name))


def archives(folder: Path) -> list[Path]:
    """The zips at the top of ``folder``, by name. Raises SubmissionError if there is none."""
    try:
        found = sorted(path for path in folder.iterdir() if path.name.lower().endswith(".zip"))
    except OSError as error:
        raise SubmissionError(
            f"{folder}: cannot be listed ({error.strerror}); give a folder with submissions"
        ) from error
    if not found:
        raise SubmissionError(f"{folder}: holds no .zip; put the submissions there")
    return found


def _score_shared(
    paths: Sequence[Path], data: Path | str, dataset: str | None, fidelity: Fidelity, shares: int
) -> tuple[list[_Scored], list[Invalid]]:
    """``_score_all`` in several processes, which take turns in the list of archives."""
    scored: list[_Scored] = []
    invalid: list[Invalid] = []
    # Spawned and not forked: BLAS has threads by now, and a fork would copy none of them.
    with ProcessPoolExecutor(shares, mp_context=get_context("spawn")) as pool:
        work = [
            pool.submit(_score_share, paths[share::shares], data, dataset, fidelity)
            for share in range(shares)
        ]
        for done in work:
            entries, refused = done.result()
            scored += entries
            invalid += refused
    return scored, invalid


def _score_share(
    paths: Sequence[Path], data: Path | str, dataset: str | None, fidelity: Fidelity
) -> tuple[list[_Scored], list[Invalid]]:
    """``_score_all`` in a process of its own."""
    # Rows and golds are a million small tuples without a cycle, which the collector would visit
    # again and again: a third of the time.
    gc.disable()
    return _score_all(paths, data, dataset, fidelity)


def _score_all(
    paths: Sequence[Path], data: Path | str, dataset: str | None, fidelity: Fidelity
) -> tuple[list[_Scored], list[Invalid]]:
    """The entries with their draws, and the invalid archives, in the order of ``paths``."""
    grounds: dict[str, _Ground] = {}
    scored: list[_Scored] = []
    invalid: list[Invalid] = []

    def golds_of(name: str) -> Golds:
        if name not in grounds:
            grounds[name] = _ground(read_golds(data, name))
        return grounds[name].golds

    for path in paths:
        submission = read_submission(path, golds_of, dataset=dataset)
        if submission.valid:
            scored.append(_score(submission, grounds[submission.dataset], fidelity))
        else:
            invalid.append(_invalid(submission))
    return scored, invalid


def _ground(golds: Golds) -> _Ground:
    weights = {
        name: instance_weights(golds.dataset, name, task.instances)
        for name, task in golds.tasks.items()
    }
    return _Ground(golds, weights)


def _invalid(submission: Submission) -> Invalid:
    errors = submission.findings.errors
    return Invalid(visible(submission.name), submission.dataset, str(errors[0]), len(errors))


def _score(submission: Submission, ground: _Ground, fidelity: Fidelity) -> _Scored:
    """Scores and draws of a valid submission; every task weighs the same."""
    points: dict[str, dict[str, float]] = {}
    draws: dict[str, list[Floats]] = {BASELINE_FILE: [], TRANSFER_FILE: []}
    for name, task in ground.golds.tasks.items():
        points[name] = {}
        for file, drawn in draws.items():
            point, resampled = _resample(submission, task, file, ground.weights[name], fidelity)
            points[name][file] = point
            drawn.append(resampled)
    count = len(points)
    return _Scored(
        dataset=ground.golds.dataset,
        data_revision=ground.golds.revision,
        synthetic=ground.golds.synthetic,
        name=visible(submission.name),
        scores=Scores(
            baseline=sum(point[BASELINE_FILE] for point in points.values()) / count,
            transfer=sum(point[TRANSFER_FILE] for point in points.values()) / count,
        ),
        baseline_draws=np.mean(draws[BASELINE_FILE], axis=0),
        transfer_draws=np.mean(draws[TRANSFER_FILE], axis=0),
        task_deltas={
            name: point[TRANSFER_FILE] - point[BASELINE_FILE] for name, point in points.items()
        },
        warnings=len(submission.findings.warnings),
    )


def _resample(
    submission: Submission, task: TaskGolds, file: str, weights: Weights, fidelity: Fidelity
) -> tuple[float, Floats]:
    """A file's score, and its score on each resampled test set."""
    card = task.task
    # A valid submission answers every instance.
    predictions = [found for found in submission.files[card.name][file] if found is not None]
    tally = metrics.tally(card, predictions, task.golds, fidelity=fidelity)
    score_of = partial(metrics.score_of_sums, card, fidelity=fidelity)
    return float(score_of(tally.sum(axis=0))), resampled_scores(tally, weights, score_of)


# --- ranks, intervals, pairs ---------------------------------------------------------------------


def _board(scored: Sequence[_Scored]) -> Board:
    """The board of one dataset."""
    ranked = sorted(scored, key=lambda entry: (-entry.scores.submission, entry.name))
    pairs = _pairs(ranked)
    places = range(len(ranked))
    q_of = dict(zip(combinations(places, 2), (pair.q for pair in pairs), strict=True))
    above = [None, *(q_of[neighbours] for neighbours in pairwise(places))]
    entries = [
        Entry(
            rank=1 + sum(other.scores.submission > entry.scores.submission for other in ranked),
            name=entry.name,
            scores=entry.scores,
            intervals=_intervals(entry),
            task_deltas=entry.task_deltas,
            warnings=entry.warnings,
            q_above=q,
        )
        for entry, q in zip(ranked, above, strict=True)
    ]
    any_entry = ranked[0]
    return Board(
        dataset=any_entry.dataset,
        data_revision=any_entry.data_revision,
        synthetic=any_entry.synthetic,
        tasks=tuple(any_entry.task_deltas),
        entries=entries,
        pairs=pairs,
    )


def _intervals(entry: _Scored) -> dict[str, Interval]:
    draws: Mapping[str, Floats] = {
        "baseline_score": entry.baseline_draws,
        "transfer_score": entry.transfer_draws,
        "score_delta": entry.transfer_draws - entry.baseline_draws,
        "submission_score": entry.submission_draws,
    }
    points = entry.scores.as_json()
    return {name: _interval(points[name], drawn) for name, drawn in draws.items()}


def _interval(point: float, draws: Floats) -> Interval:
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * float(draws.std(ddof=1))
    return Interval(point - reach, point + reach)


def _pairs(ranked: Sequence[_Scored]) -> list[Pair]:
    """All pairs of a board, each from its paired draws, adjusted together."""
    draws = [entry.submission_draws for entry in ranked]
    found: list[tuple[int, int, float, Interval, float]] = []
    for a, b in combinations(range(len(ranked)), 2):
        difference = ranked[a].scores.submission - ranked[b].scores.submission
        apart = draws[a] - draws[b]
        found.append((a, b, difference, _interval(difference, apart), _p(difference, apart)))
    adjusted = false_discovery([p for *_, p in found])
    return [
        Pair(ranked[a].name, ranked[b].name, difference, interval, p, float(q))
        for (a, b, difference, interval, p), q in zip(found, adjusted, strict=True)
    ]


def _p(difference: float, draws: Floats) -> float:
    """Two-sided p of no difference; 1 for entries that no draw tells apart."""
    error = float(draws.std(ddof=1))
    if error < _NOTHING:
        return 1.0 if abs(difference) < _NOTHING else 0.0
    return math.erfc(abs(difference) / error / math.sqrt(2))
