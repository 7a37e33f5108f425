"""Cells: mean scores over seeds, differences from references, intervals and tests.

    score_answers, score_tallies,
    score_rank_correlation       a run's answers -> its score on this and on resampled test sets
    gather_cells, compute_mean_cell   runs of all seeds -> cells
    build_cell_table             cells -> a table: value, interval, p and q

Clusters (dialogues, contexts) are resampled as units. They are left out in turn if the score is
computed from sums over instances, and resampled at random otherwise (``stats.draws``). Seeds are a
sample too. Two cells are compared on the seeds that both have, in pairs (``stats.bootstrap``).
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
from tasktransfer.core.fidelity import Scoring
from tasktransfer.files.progress import show_progress
from tasktransfer.metrics.measures import MEASURES, Measure, Scale, compute_spearman
from tasktransfer.results.rows import encode_answers
from tasktransfer.stats.bootstrap import (
    Estimate,
    Trainings,
    compute_confidences,
    compute_mean_confidence,
    compute_q_values,
    estimate_delta,
)
from tasktransfer.stats.clustered import resample_spearman
from tasktransfer.stats.draws import (
    Floats,
    Units,
    Weights,
    build_dialogue_units,
    compute_jackknife_scores,
)
from tasktransfer.tasks.card import Task

Key = tuple[str, ...]
"""Names of a cell."""

ENDS: Mapping[Scale, tuple[float, float]] = {
    "logit": (0.0, 100.0),
    "fisher": (-100.0, 100.0),
    "logarithm": (0.0, inf),
    "plain": (-inf, inf),
}
"""Ends of a scale in points; correlations and logarithms are multiplied by 100."""

NO_SEED = -1
"""Seed of a run without training, which is compared with every seed of another cell."""

COLUMNS = ("against", "seeds", "value", "sd", "low", "high", "p", "clusters", "q")
"""Columns of the table, in addition to a cell's names.

against: the reference; empty for the score itself. seeds: number of seeds that both have. value:
mean score or mean difference (for perplexities geometric mean, and difference in nats). sd: sample
standard deviation of the cell's own scores over seeds, in points of its scale; NaN for one seed.
low, high: ends of the 95 % interval. p: two-sided p of 0. clusters: number of clusters in the test
set; 0 if seeds have several test sets. q: p after false-discovery control.
"""


@dataclass(frozen=True, slots=True)
class Scored:
    """A run's score on a test set.

    Args:
        score: score in points of its scale.
        resampled: scores on resampled test sets (see ``Trainings``); NaN for a single cluster.
        units: resampled units of the test set.
        scale: scale of the score.
    """

    score: float
    resampled: Floats
    units: Units
    scale: Scale


def score_tallies(
    tallies: npt.ArrayLike,
    clusters: npt.ArrayLike,
    finish: Callable[[Floats], npt.ArrayLike],
    measure: Measure,
) -> Scored:
    """Score a run by a measure that is computed from sums over instances.

    Args:
        tallies: contribution of each instance to the sums, shape (instances, columns).
        clusters: name of each instance's cluster, shape (instances,).
        finish: function from sums (..., columns) to the measure (...).
        measure: the measure.
    """
    # Sorted by name, so that the clusters of any two runs have the same order.
    names = np.asarray(clusters, str)
    order = np.argsort(names, kind="stable")
    units = _build_units(tuple(names[order].tolist()))
    summed = units.sum_tally(np.asarray(tallies, np.float64)[order])

    def score(sums: Floats) -> Floats:
        values = np.asarray(finish(sums), np.float64)
        return np.asarray(100 * np.log(values)) if measure.scale == "logarithm" else values

    whole = float(score(summed.sum(axis=0)))
    return Scored(whole, compute_jackknife_scores(summed, score), units, measure.scale)


def score_answers(rows: pa.Table, task: Task, fidelity: Scoring = "default") -> Scored:
    """Score a run by its task's score.

    Args:
        rows: rows of one task (``results.rows``).
        task: the task.
        fidelity: scoring rules.
    """
    tallies = metrics.tally_instances(
        task, encode_answers(rows["prediction"]), encode_answers(rows["gold"]), fidelity=fidelity
    )
    finish = partial(metrics.compute_score_from_sums, task, fidelity=fidelity)
    return score_tallies(tallies, rows["cluster"].to_pylist(), finish, MEASURES["score"])


@lru_cache(maxsize=64)
def _build_units(names: tuple[str, ...]) -> Units:
    """Return a test set's units, shared by thousands of runs to save memory."""
    return build_dialogue_units(names)


def score_rank_correlation(
    predicted: Floats, gold: Floats, units: Units, weights: Weights
) -> Scored:
    """Score a run by Spearman's correlation x 100.

    Args:
        predicted, gold: values, shape (items,).
        units: resampled units of the items.
        weights: number of times that each item is resampled with its cluster, (draws, items).
    """
    drawn = np.full(len(weights), np.nan)
    if units.count > 1:
        drawn = 100 * resample_spearman(predicted, gold, weights)
    return Scored(100 * compute_spearman(predicted, gold), drawn, units, MEASURES["spearman"].scale)


@dataclass(frozen=True, slots=True)
class Cell:
    """Runs of all seeds.

    ``units`` are the resampled units of their test set. They are None if there are several test
    sets; then intervals are over seeds only.
    """

    trainings: Trainings
    units: Units | None
    scale: Scale

    def pair_seeds(self, other: Cell) -> Trainings:
        """Return the runs, repeating an untrained run for each seed of ``other``."""
        if self.trainings.seeds != (NO_SEED,):
            return self.trainings
        seeds = other.trainings.seeds
        repeated = self.trainings.select_seeds([NO_SEED] * len(seeds))
        return Trainings(seeds, repeated.scores, repeated.resampled)

    def subtract(self, other: Cell) -> Estimate:
        """Return the mean difference from another cell over the seeds of both."""
        units = get_shared_units(self.units, other.units)
        return estimate_delta(self.pair_seeds(other), other.pair_seeds(self), units)


def gather_cells(runs: Iterable[tuple[Key, int, Scored]]) -> dict[Key, Cell]:
    """Group runs into cells by name, in the order of their first runs.

    Args:
        runs: names of the run's cell, its seed (or ``NO_SEED``), and its score. Of several runs
            with the same seed, the first counts.
    """
    every: dict[Key, dict[int, Scored]] = {}
    for key, seed, scored in runs:
        every.setdefault(key, {}).setdefault(seed, scored)
    return {key: _build_cell(of_seeds) for key, of_seeds in every.items()}


def _build_cell(of_seeds: Mapping[int, Scored]) -> Cell:
    seeds = sorted(of_seeds)
    runs = [of_seeds[seed] for seed in seeds]
    units: Units | None = runs[0].units
    for run in runs:
        units = get_shared_units(units, run.units)
    resampled = None if units is None else np.stack([run.resampled for run in runs])
    scores = np.array([run.score for run in runs])
    return Cell(Trainings(tuple(seeds), scores, resampled), units, runs[0].scale)


def get_shared_units(units: Units | None, other: Units | None) -> Units | None:
    """Return the units of two sides if they share a test set, otherwise None."""
    if units is None or other is None:
        return None
    return units if (units.names, units.digest) == (other.names, other.digest) else None


def compute_mean_cell(several: Sequence[Cell]) -> Cell:
    """Return the mean of cells on one resampled test set, over their common seeds.

    Its units come from the test set with the fewest clusters, which is conservative for the degrees
    of freedom.
    """
    shared = set.intersection(*(set(cell.trainings.seeds) for cell in several))
    parts = [cell.trainings.select_seeds(sorted(shared)) for cell in several]
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


def compute_mean_over_test_sets(several: Sequence[Cell]) -> Cell:
    """Return the mean of cells on different test sets, over their common seeds.

    The same cluster may be in several test sets, and is then left out of all of them at once.
    """
    shared = sorted(set.intersection(*(set(each.trainings.seeds) for each in several)))
    parts = [each.trainings.select_seeds(shared) for each in several]
    scores = np.mean([each.scores for each in parts], axis=0)
    names: list[str] = []
    pulls: dict[str, Floats] = {}
    for cell, part in zip(several, parts, strict=True):
        if cell.units is None or part.resampled is None or cell.units.count < 2:
            return Cell(Trainings(tuple(shared), scores), None, several[0].scale)
        names += [cell.units.names[index] for index in cell.units.of_instance]
        # Scaled so that the squared contributions of clusters sum to the variance.
        pulled = part.score_changes.T / (cell.units.count - 1) ** 0.5 / len(several)
        for name, pull in zip(cell.units.names, pulled, strict=True):
            pulls[name] = pulls.get(name, np.zeros(len(shared))) + pull
    units = build_dialogue_units(names)
    together = np.stack([pulls[name] for name in units.names], axis=1)
    resampled = scores[:, None] + together * (units.count - 1) ** 0.5
    return Cell(Trainings(tuple(shared), scores, resampled), units, several[0].scale)


def build_cell_table(
    cells: Mapping[Key, Cell],
    by: Sequence[str],
    against: Mapping[str, Mapping[str, str]],
    family: Callable[[Key, str], object] = lambda *_: None,
    references: Mapping[Key, Cell] | None = None,
) -> pd.DataFrame:
    """Build a table with one row per cell and one per difference from a reference.

    Args:
        cells: names -> cell.
        by: columns of the names.
        against: reference -> names in which it differs from the cell. No cell is compared with
            itself.
        family: (names, reference) -> family within which q is adjusted by Benjamini and Hochberg;
            None for no q. The reference is empty for the score itself. A comparison of one
            training has no q, because the variation between trainings is unknown. A comparison
            without training has a q.
        references: names -> cell that others are compared with; None for ``cells``.

    Returns:
        A table with the columns ``by`` and ``COLUMNS``: first all scores, then the differences.
    """
    references = cells if references is None else references
    rows = [
        (*key, "", *_summarise_cell(cell)) for key, cell in show_progress(cells.items(), "means")
    ]
    testable = [is_testable(cell.trainings.seeds, cell) for cell in cells.values()]
    pairs = [
        (key, name, cell, references[other], cell.subtract(references[other]))
        for key, cell in cells.items()
        for name, change in against.items()
        if (other := tuple(map(change.get, by, key))) in references and other != key
    ]
    sure = compute_confidences([estimated for *_, estimated in pairs])
    for (key, name, cell, reference, estimated), confidence in zip(pairs, sure, strict=True):
        unit = 100 if cell.scale == "logarithm" else 1
        numbers = (
            estimated.delta / unit,
            _compute_sd(cell),
            confidence.low / unit,
            confidence.high / unit,
            confidence.p,
        )
        rows.append((*key, name, estimated.seeds, *numbers, _count_clusters(cell)))
        testable.append(is_testable(range(estimated.seeds), cell, reference))
    table = pd.DataFrame(rows, columns=[*by, *COLUMNS[:-1]])
    families: dict[object, list[int]] = {}
    for index, row in enumerate(rows):
        if testable[index]:
            families.setdefault(family(row[: len(by)], row[len(by)]), []).append(index)
    families.pop(None, None)
    table["q"] = np.nan
    for places in families.values():
        table.loc[places, "q"] = compute_q_values(table.loc[places, "p"])
    return table


def is_testable(seeds: Sequence[int], *compared: Cell) -> bool:
    """Return whether a difference can be tested: several seeds, or nothing trained."""
    return len(seeds) > 1 or all(cell.trainings.seeds == (NO_SEED,) for cell in compared)


def _summarise_cell(cell: Cell) -> tuple[Any, ...]:
    least, most = ENDS[cell.scale]
    trainings = cell.trainings
    sure = compute_mean_confidence(trainings, cell.units, least=least, most=most)
    numbers = np.array([trainings.scores.mean(), sure.low, sure.high])
    mean, low, high = np.exp(numbers / 100) if cell.scale == "logarithm" else numbers
    return len(trainings.seeds), mean, _compute_sd(cell), low, high, sure.p, _count_clusters(cell)


def _compute_sd(cell: Cell) -> float:
    scores = cell.trainings.scores
    return float(scores.std(ddof=1)) if len(scores) > 1 else np.nan


def _count_clusters(cell: Cell) -> int:
    return 0 if cell.units is None else cell.units.count
