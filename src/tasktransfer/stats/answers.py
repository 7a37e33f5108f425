"""Statistics of a run's answers: collapsed runs, scores of single labels, and confused labels.

The 95 % intervals of precision, recall and F1 leave out each dialogue in turn, and add the
variation between seeds, as those of other scores do (``stats.bootstrap``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tasktransfer.metrics.answers import index_labels
from tasktransfer.metrics.labels import compute_ratio
from tasktransfer.results.rows import encode_answers
from tasktransfer.stats.bootstrap import Trainings, compute_mean_confidences
from tasktransfer.stats.draws import Floats, Units, build_dialogue_units, compute_jackknife_scores
from tasktransfer.tasks.card import Task, compute_fraction, format_ratings

LEAST_SHARE = 0.99
"""Minimum fraction of one answer for a collapsed run."""

RATING_RANGE = 0.01
"""Largest distance between a rating and the median rating, as a fraction of the scale, at which
both count as the same answer."""

Labels = npt.NDArray[np.int64]

MEASURES = ("precision", "recall", "f1")


def find_most_frequent_answer(predictions: pa.ChunkedArray) -> tuple[str, float]:
    """Find the most frequent answer in a column of lists, and its fraction, 0-1.

    The parts of the answer are joined by ", ". If several answers are equally frequent, the first
    one is returned.
    """
    counts = pc.value_counts(pc.binary_join(predictions, ", "))
    times = counts.field("counts").to_numpy()
    best = int(times.argmax())
    return counts.field("values")[best].as_py(), float(times[best] / len(predictions))


def find_common_answer(predictions: pa.ChunkedArray, card: Task | None) -> tuple[str, float]:
    """Find the answer by which a run is judged as collapsed, and its fraction, 0-1.

    It is the most frequent answer. Ratings are numbers with many digits, so in a rating task it is
    their median, and all ratings within ``RATING_RANGE`` of the scale around it count.

    Args:
        predictions: answers, a column of lists.
        card: card of the task; None if the task has no ratings.
    """
    if card is None or card.kind != "rating":
        return find_most_frequent_answer(predictions)
    texts = pc.binary_join(predictions, ", ").to_pylist()
    fractions = np.array([compute_fraction(card, text) for text in texts])
    median = float(np.nanmedian(fractions)) if np.isfinite(fractions).any() else 0.0
    share = np.mean(np.abs(fractions - median) <= RATING_RANGE)
    ((text,),) = format_ratings(card, [median])
    return text, float(share)


def is_collapsed(
    predictions: pa.ChunkedArray, card: Task | None = None, *, empty: bool = False
) -> bool:
    """Return whether a run gives one answer in at least ``LEAST_SHARE`` of all cases.

    Args:
        predictions: answers, a column of lists.
        card: card of the task; None if the task has no ratings.
        empty: true if an empty list counts as an answer, as for sets of labels. Rows of a
            perplexity have empty answers.
    """
    if not len(predictions):
        return False
    answer, share = find_common_answer(predictions, card)
    return (empty or bool(answer)) and share >= LEAST_SHARE


@dataclass(frozen=True)
class LabelAnswers:
    """A run's answers to a task with one label per input.

    Attributes:
        seed: seed of the run.
        predicted, gold: label numbers, (instances,); -1 for a prediction that is not a label.
        dialogues: dialogue of each instance.
        labels: number of labels.
    """

    seed: int
    predicted: Labels
    gold: Labels
    dialogues: tuple[str, ...]
    labels: int

    @cached_property
    def units(self) -> Units:
        """Dialogues as the units that are resampled."""
        return build_dialogue_units(self.dialogues)

    @cached_property
    def counts(self) -> Floats:
        """Numbers of hits, predictions and golds by label and dialogue, (labels, dialogues, 3)."""
        every = np.arange(self.labels)
        predicted, gold = self.predicted[:, None] == every, self.gold[:, None] == every
        tally = np.stack([predicted & gold, predicted, gold], axis=-1).astype(np.float64)
        return self.units.sum_tally(tally.transpose(1, 0, 2))


@dataclass(frozen=True, slots=True)
class LabelScores:
    """Scores of one label, means over seeds, in points.

    Attributes:
        label: number of the label.
        support: instances with the label.
        predicted: instances that are predicted to have it, mean over seeds.
        measures: measure → value and ends of its 95 % interval. They are NaN if unknown.
    """

    label: int
    support: int
    predicted: float
    measures: dict[str, tuple[float, float, float]]


def read_label_answers(rows: pa.Table, task: Task, seed: int) -> LabelAnswers:
    """Read label answers from the rows of a task (``results.rows``)."""
    predicted = index_labels(task, encode_answers(rows["prediction"]))
    gold = index_labels(task, encode_answers(rows["gold"]))
    names = [
        f"instance {number}" if name is None else name
        for number, name in enumerate(rows["cluster"].to_pylist())
    ]
    return LabelAnswers(seed, predicted, gold, tuple(names), len(task.labels))


def compute_label_scores(runs: Sequence[LabelAnswers]) -> Iterator[LabelScores]:
    """Yield the scores of each label over runs with different seeds.

    Precision is undefined for a label that is never predicted, and recall for a label without
    instances. Their values are NaN.
    """
    shared = len({(run.dialogues, run.gold.tobytes()) for run in runs}) == 1
    units = runs[0].units if shared else None
    totals = np.stack([run.counts.sum(axis=1) for run in runs])  # (seeds, labels, 3)
    occurring = np.flatnonzero(totals[..., 1:].sum(axis=(0, 2)))
    scores = _compute_measures(totals)
    resampled = None
    if shared:
        resampled = np.stack(
            [
                [
                    compute_jackknife_scores(run.counts, partial(_compute_measure, n))
                    for n in range(len(MEASURES))
                ]
                for run in runs
            ]
        )  # (seeds, measures, labels, dialogues)
    seeds = tuple(run.seed for run in runs)
    trainings = [
        Trainings(seeds, scores[:, label, n], None if resampled is None else resampled[:, n, label])
        for label in occurring
        for n in range(len(MEASURES))
    ]
    sure = iter(compute_mean_confidences([(each, units) for each in trainings]))
    of = iter(trainings)
    for label in occurring:
        predicted, gold = totals[:, label, 1], totals[:, label, 2]
        defined = (bool(predicted.all()), bool(gold.all()), True)
        measures = {}
        for name, is_defined in zip(MEASURES, defined, strict=True):
            value, confidence = float(next(of).scores.mean()), next(sure)
            numbers = (value, confidence.low, confidence.high)
            measures[name] = numbers if is_defined else (np.nan, np.nan, np.nan)
        yield LabelScores(int(label), round(gold.mean()), float(predicted.mean()), measures)


def _compute_measure(number: int, sums: Floats) -> Floats:
    return _compute_measures(sums)[..., number]


def _compute_measures(sums: Floats) -> Floats:
    """Compute precision, recall and F1 in points, (..., 3), from summed counts."""
    hits, predicted, gold = np.moveaxis(sums, -1, 0)
    parts = [(hits, predicted), (hits, gold), (2 * hits, predicted + gold)]
    return np.asarray(
        100 * np.stack([compute_ratio(part, whole) for part, whole in parts], axis=-1), np.float64
    )


def count_confusions(runs: Sequence[LabelAnswers]) -> Counter[tuple[int, int]]:
    """Count pairs of gold and predicted labels over runs, with -1 for invalid labels."""
    counts: Counter[tuple[int, int]] = Counter()
    for run in runs:
        counts.update(zip(run.gold.tolist(), run.predicted.tolist(), strict=True))
    return counts
