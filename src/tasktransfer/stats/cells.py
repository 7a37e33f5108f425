"""Cells: the mean score of a kind of run over its seeds, its difference to a reference, how sure.

    of_answers, of_tallies,
    of_rank_correlation                a run's answers -> its score, on this test set and on others
    gathered, mean_of                  runs of all seeds -> cells
    cells                              cells -> a table: value, interval, p and q

Clusters (dialogues, contexts) are resampled whole: left out in turn where the score is made of sums
over instances, drawn at random where it is not (``stats.draws``). Seeds are a sample too, and of
two cells those are compared that both have, in pairs (``stats.bootstrap``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from tasktransfer import metrics
from tasktransfer.files.progress import with_progress
from tasktransfer.metrics.measures import MEASURES, Measure, Scale, spearman
from tasktransfer.results.rows import answers
from tasktransfer.stats.bootstrap import (
    Estimate,
    Trainings,
    confidence_of_mean,
    confidences,
    estimate,
)
from tasktransfer.stats.clustered import spearman_draws
from tasktransfer.stats.draws import Floats, Units, Weights, dialogues, jackknifed_scores
from tasktransfer.stats.false_discovery import false_discovery
from tasktransfer.tasks.card import Task

Key = tuple[str, ...]
"""The names of a cell."""

ENDS: Mapping[Scale, tuple[float, float]] = {
    "logit": (0.0, 100.0),
    "fisher": (-100.0, 100.0),
    "logarithm": (0.0, inf),
    "plain": (-inf, inf),
}
"""The ends of a scale in points: of a correlation hundredths, of a logarithm too."""

NO_SEED = -1
"""Of a run in which nothing was trained: it stands beside every seed of another cell."""

COLUMNS = ("against", "seeds", "value", "sd", "low", "high", "p", "clusters", "q")
"""Of the table beside a cell's names. ``against``: the reference, empty for the score itself.
``seeds``: those that both have. ``value``: mean score or mean difference; of perplexities the
geometric mean, and nats. ``sd``: the sample standard deviation of the cell's own scores over seeds,
in points of its scale; NaN with one. ``low``, ``high``: its 95 % interval; ``p``: two-sided, of its
being 0. ``clusters``: those of its test set, 0 where seeds have several test sets."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A run on a test set. ``score``: in points of its scale; ``resampled``: on other test sets,
    see ``Trainings``, NaN where one cluster does not tell how clusters differ."""

    score: float
    resampled: Floats
    units: Units
    scale: Scale


def of_tallies(
    tallies: npt.ArrayLike,
    clusters: npt.ArrayLike,
    finish: Callable[[Floats], npt.ArrayLike],
    measure: Measure,
) -> Scored:
    """A run whose score is made of sums over instances.

    Args:
        tallies: what each instance adds to the sums, (instances, columns).
        clusters: the name of each instance's cluster, (instances,).
        finish: sums (..., columns) to the measure (...).
    """
    # In the order of their names, so that clusters of any two runs are in the same order.
    names = np.asarray(clusters, str)
    order = np.argsort(names, kind="stable")
    units = _units(tuple(names[order].tolist()))
    summed = units.summed(np.asarray(tallies, np.float64)[order])

    def score(sums: Floats) -> Floats:
        values = np.asarray(finish(sums), np.float64)
        return np.asarray(100 * np.log(values)) if measure.scale == "logarithm" else values

    whole = float(score(summed.sum(axis=0)))
    return Scored(whole, jackknifed_scores(summed, score), units, measure.scale)


def of_answers(rows: pa.Table, task: Task) -> Scored:
    """A run by a task's own score.

    Args:
        rows: of one task (``results.rows``).
    """
    tallies = metrics.tally(task, answers(rows["prediction"]), answers(rows["gold"]))
    finish = partial(metrics.score_of_sums, task)
    return of_tallies(tallies, rows["cluster"].to_pylist(), finish, MEASURES["score"])


@lru_cache(maxsize=64)
def _units(names: tuple[str, ...]) -> Units:
    """Runs on one test set have them in common, so that thousands of runs need no more memory."""
    return dialogues(names)


def of_rank_correlation(predicted: Floats, gold: Floats, units: Units, weights: Weights) -> Scored:
    """A run whose score is Spearman's correlation x 100, which is made of no sums.

    Args:
        predicted, gold: (items,).
        units: what is drawn of them.
        weights: how often each item is drawn, clusters whole, (draws, items).
    """
    drawn = np.full(len(weights), np.nan)
    if units.count > 1:
        drawn = 100 * spearman_draws(predicted, gold, weights)
    return Scored(100 * spearman(predicted, gold), drawn, units, MEASURES["spearman"].scale)


@dataclass(frozen=True, slots=True)
class Cell:
    """Runs of all seeds. ``units``: what is drawn of their test set; None: they have several, and
    seeds alone say how sure the mean is."""

    trainings: Trainings
    units: Units | None
    scale: Scale

    def beside(self, other: Cell) -> Trainings:
        """The runs, once for each of the other's seeds where nothing was trained."""
        if self.trainings.seeds != (NO_SEED,):
            return self.trainings
        seeds = other.trainings.seeds
        repeated = self.trainings.of([NO_SEED] * len(seeds))
        return Trainings(seeds, repeated.scores, repeated.resampled)

    def less(self, other: Cell) -> Estimate:
        """The mean difference to another cell, over the seeds that both have."""
        units = _same(self.units, other.units)
        return estimate(self.beside(other), other.beside(self), units)


def gathered(runs: Iterable[tuple[Key, int, Scored]]) -> dict[Key, Cell]:
    """Names -> cell, in the order of their first runs.

    Args:
        runs: the names of a run's cell, its seed or ``NO_SEED``, and what it scored. Of several
            with the same seed the first counts.
    """
    every: dict[Key, dict[int, Scored]] = {}
    for key, seed, scored in runs:
        every.setdefault(key, {}).setdefault(seed, scored)
    return {key: _cell(of_seeds) for key, of_seeds in every.items()}


def _cell(of_seeds: Mapping[int, Scored]) -> Cell:
    seeds = sorted(of_seeds)
    runs = [of_seeds[seed] for seed in seeds]
    units: Units | None = runs[0].units
    for run in runs:
        units = _same(units, run.units)
    resampled = None if units is None else np.stack([run.resampled for run in runs])
    scores = np.array([run.score for run in runs])
    return Cell(Trainings(tuple(seeds), scores, resampled), units, runs[0].scale)


def _same(units: Units | None, other: Units | None) -> Units | None:
    """What is drawn of a test set that two share; None: they have two."""
    if units is None or other is None:
        return None
    return units if (units.names, units.digest) == (other.names, other.digest) else None


def mean_of(several: Sequence[Cell]) -> Cell:
    """The mean of cells whose other test sets are drawn at random, seed by seed; of the seeds that
    all of them have. Its test set is the one with the fewest clusters: degrees of freedom on the
    safe side."""
    shared = set.intersection(*(set(cell.trainings.seeds) for cell in several))
    parts = [cell.trainings.of(sorted(shared)) for cell in several]
    units = [cell.units for cell in several if cell.units is not None]
    drawn = [cell.resampled for cell in parts if cell.resampled is not None]
    known = len(units) == len(drawn) == len(several)
    trainings = Trainings(
        parts[0].seeds,
        np.mean([cell.scores for cell in parts], axis=0),
        np.mean(drawn, axis=0) if known else None,
    )
    smallest = min(units, key=lambda cell: cell.count) if known else None
    return Cell(trainings, smallest, several[0].scale)


def mean_over_test_sets(several: Sequence[Cell]) -> Cell:
    """The mean of cells with a test set each, in which the same cluster may be: it is left out of
    all of them at once. Of the seeds that all of them have."""
    shared = sorted(set.intersection(*(set(each.trainings.seeds) for each in several)))
    parts = [each.trainings.of(shared) for each in several]
    scores = np.mean([each.scores for each in parts], axis=0)
    names: list[str] = []
    pulls: dict[str, Floats] = {}
    for cell, part in zip(several, parts, strict=True):
        if cell.units is None or part.resampled is None or cell.units.count < 2:
            return Cell(Trainings(tuple(shared), scores), None, several[0].scale)
        names += [cell.units.names[index] for index in cell.units.of_instance]
        # So that the squares of what clusters pull sum up to the variance.
        pulled = part.moved.T / (cell.units.count - 1) ** 0.5 / len(several)
        for name, pull in zip(cell.units.names, pulled, strict=True):
            pulls[name] = pulls.get(name, np.zeros(len(shared))) + pull
    units = dialogues(names)
    together = np.stack([pulls[name] for name in units.names], axis=1)
    resampled = scores[:, None] + together * (units.count - 1) ** 0.5
    return Cell(Trainings(tuple(shared), scores, resampled), units, several[0].scale)


def cells(
    told: Mapping[Key, Cell],
    by: Sequence[str],
    against: Mapping[str, Mapping[str, str]],
    family: Callable[[Key, str], object] = lambda *_: None,
    references: Mapping[Key, Cell] | None = None,
) -> pd.DataFrame:
    """A row for each cell, and one for its difference to each reference that is there.

    Args:
        told: names -> cell.
        by: what the names are names of.
        against: reference -> in which names it differs from the cell. No cell is compared with
            itself.
        family: names and reference (empty: the score itself) -> what q is adjusted within, by
            Benjamini and Hochberg; None: no q. Of one training there is none either, since how
            much trainings differ is not known; where nothing was trained there is.
        references: names -> cell that others are compared with; None: ``told``.

    Returns:
        Columns ``by`` and ``COLUMNS``; first all scores, then the differences.
    """
    references = told if references is None else references
    rows = [(*key, "", *_mean(cell)) for key, cell in with_progress(told.items(), "means")]
    testable = [_is_testable(cell.trainings.seeds, cell) for cell in told.values()]
    pairs = [
        (key, name, cell, references[other], cell.less(references[other]))
        for key, cell in told.items()
        for name, change in against.items()
        if (other := tuple(map(change.get, by, key))) in references and other != key
    ]
    sure = confidences([estimated for *_, estimated in pairs])
    for (key, name, cell, reference, estimated), confidence in zip(pairs, sure, strict=True):
        unit = 100 if cell.scale == "logarithm" else 1
        numbers = (
            estimated.delta / unit,
            _sd(cell),
            confidence.low / unit,
            confidence.high / unit,
            confidence.p,
        )
        rows.append((*key, name, estimated.seeds, *numbers, _clusters(cell)))
        testable.append(_is_testable(range(estimated.seeds), cell, reference))
    table = pd.DataFrame(rows, columns=[*by, *COLUMNS[:-1]])
    families: dict[object, list[int]] = {}
    for index, row in enumerate(rows):
        if testable[index]:
            families.setdefault(family(row[: len(by)], row[len(by)]), []).append(index)
    families.pop(None, None)
    table["q"] = np.nan
    for places in families.values():
        table.loc[places, "q"] = false_discovery(table.loc[places, "p"])
    return table


def _is_testable(seeds: Sequence[int], *compared: Cell) -> bool:
    """Return whether other trainings are known: there are several, or nothing was trained."""
    return len(seeds) > 1 or all(cell.trainings.seeds == (NO_SEED,) for cell in compared)


def _mean(cell: Cell) -> tuple[Any, ...]:
    least, most = ENDS[cell.scale]
    trainings = cell.trainings
    sure = confidence_of_mean(trainings, cell.units, least=least, most=most)
    numbers = np.array([trainings.scores.mean(), sure.low, sure.high])
    mean, low, high = np.exp(numbers / 100) if cell.scale == "logarithm" else numbers
    return len(trainings.seeds), mean, _sd(cell), low, high, sure.p, _clusters(cell)


def _sd(cell: Cell) -> float:
    scores = cell.trainings.scores
    return float(scores.std(ddof=1)) if len(scores) > 1 else np.nan


def _clusters(cell: Cell) -> int:
    return 0 if cell.units is None else cell.units.count
