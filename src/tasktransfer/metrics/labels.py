"""Metrics of tasks whose answers are labels: tallies of instances, and metrics from sums.

A tally has one row per instance, shape (n, width). A ``compute`` function takes tallies summed over
instances, any number of sums at once (..., width), and returns the metric, 0 to 1, for each (...).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tasktransfer.core.fidelity import Scoring
from tasktransfer.errors import ConfigError
from tasktransfer.metrics.answers import CodedAnswers, Counts, index_labels
from tasktransfer.tasks.card import MetricSpec, Task, compute_fraction

Sums = npt.NDArray[np.floating]

_INVALID = -1
"""Class number of a prediction that is not a label."""


def compute_ratio(part: Sums, whole: Sums) -> Sums:
    """Compute ``part / whole`` elementwise, with 0 if the whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part, dtype=np.float64), where=whole != 0)


@dataclass(frozen=True, slots=True)
class IndexedAnswers:
    """Answers to n instances as class numbers, with -1 for answers that are not labels.

    ``right`` is true for correct answers. It is empty for multi-label tasks, whose predicted and
    gold answers are not paired.
    """

    guessed: Counts
    guessed_by: Counts
    wanted: Counts
    wanted_by: Counts
    right: npt.NDArray[np.bool_]
    instances: int
    classes: int


def index_answers(task: Task, predictions: CodedAnswers, golds: CodedAnswers) -> IndexedAnswers:
    """Return predicted and gold answers as class numbers with the index of their instance."""
    guessed, wanted = index_labels(task, predictions), index_labels(task, golds)
    paired = task.kind != "multi_label"
    return IndexedAnswers(
        guessed,
        predictions.rows,
        wanted,
        golds.rows,
        guessed == wanted if paired else np.zeros(0, bool),
        len(golds),
        task.classes,
    )


# --- accuracy: correct answers, answers ----------------------------------------------------------


def tally_accuracy(answers: IndexedAnswers) -> Sums:
    """Count each instance's correct answers and all its answers, shape (n, 2).

    Each trait of a multi-output instance is one answer.
    """
    right = np.bincount(answers.wanted_by[answers.right], minlength=answers.instances)
    totals = np.bincount(answers.wanted_by, minlength=answers.instances)
    return np.stack([right, totals], axis=1).astype(np.float64)


def compute_proportion(sums: Sums) -> Sums:
    """Return the first column divided by the second, the fraction of correct answers."""
    return compute_ratio(sums[..., 0], sums[..., 1])


# --- F1: hits, predictions and golds of each counted class ----------------------------------------


def list_counted_classes(task: Task, spec: MetricSpec, fidelity: Scoring) -> Counts:
    """Return the classes that an F1 counts. The number -1 stands for invalid predictions."""
    indices = spec.label_indices
    if indices is None:
        indices = tuple(range(_INVALID, task.classes))
    if spec.name == "multilabel_f1" or (fidelity == "default" and spec.average != "micro"):
        indices = tuple(index for index in indices if index != _INVALID)
    return np.asarray(indices, np.int64)


def count_f1_columns(task: Task, spec: MetricSpec, fidelity: Scoring) -> int:
    """Return the number of columns in the tally of an F1.

    There are three columns per class, or three columns for micro-F1.

    Raises:
        ConfigError: the card's average is not valid.
    """
    if spec.average not in ("micro", "macro", "weighted"):
        raise build_average_error(task, spec)
    return 3 if spec.average == "micro" else 3 * len(list_counted_classes(task, spec, fidelity))


def tally_f1(task: Task, spec: MetricSpec, answers: IndexedAnswers, fidelity: Scoring) -> Sums:
    """Count each instance's hits, predictions and golds, as (n, ``count_f1_columns``).

    A label that a multi-label answer repeats counts once.
    """
    counted = list_counted_classes(task, spec, fidelity)
    hits: Sums
    guesses = _count_occurrences(answers, answers.guessed_by, answers.guessed, counted)
    wanted = _count_occurrences(answers, answers.wanted_by, answers.wanted, counted)
    if spec.name == "multilabel_f1":
        guesses, wanted = guesses.clip(max=1), wanted.clip(max=1)
        hits = guesses * wanted
    else:
        right = answers.right
        hits = _count_occurrences(answers, answers.wanted_by[right], answers.wanted[right], counted)
    parts = (hits, guesses, wanted)
    if spec.average == "micro":
        return np.stack([part.sum(axis=1) for part in parts], axis=1)
    return np.concatenate(parts, axis=1)


def compute_f1(spec: MetricSpec, sums: Sums) -> Sums:
    """Compute F1 = 2 hits / (predictions + golds), pooled (micro) or averaged over classes.

    Without ``label_indices`` the macro average is over the classes that occur (scikit-learn's
    rule). For a multi-label task it is over all classes.
    """
    hits, guesses, wanted = np.split(sums, 3, axis=-1)
    each = compute_ratio(2 * hits, guesses + wanted)
    if spec.average == "micro":
        return each[..., 0]
    if spec.average == "weighted":
        return compute_ratio((each * wanted).sum(axis=-1), wanted.sum(axis=-1))
    if spec.name == "f1" and spec.label_indices is None:
        occurring = np.count_nonzero(guesses + wanted, axis=-1)
        return compute_ratio(each.sum(axis=-1), occurring)
    mean: Sums = each.mean(axis=-1)
    return mean


def _count_occurrences(
    answers: IndexedAnswers, instances: Counts, numbers: Counts, counted: Counts
) -> Sums:
    """Count each class's occurrences in each instance's answers, shape (n, counted)."""
    places = answers.classes + 1
    counts = np.bincount(instances * places + numbers + 1, minlength=answers.instances * places)
    return counts.reshape(-1, places)[:, counted + 1].astype(np.float64)


def build_average_error(task: Task, spec: MetricSpec) -> ConfigError:
    """Return the error about a card whose metric has an invalid average."""
    return ConfigError(
        f"{task.name}, metrics: {spec.average!r} is not an average of {spec.name}. Use micro or "
        f"macro{'' if spec.name == 'token_f1' else ', or weighted'} in the task's card."
    )


# --- single instances ---------------------------------------------------------------------------


def score_answers(task: Task, predictions: CodedAnswers, golds: CodedAnswers) -> Sums:
    """Compute the fraction of correct answers of each instance, 0 to 1, shape (n,)."""
    return compute_proportion(tally_accuracy(index_answers(task, predictions, golds)))


def compute_label_set_f1(task: Task, predictions: CodedAnswers, golds: CodedAnswers) -> Sums:
    """Compute the F1 of predicted and gold label sets of each instance, shape (n,).

    It is 1 if both sets are empty, and is restricted to the labels of the card's first metric.
    """
    spec = replace(task.metrics[0], average="micro")
    tally = tally_f1(task, spec, index_answers(task, predictions, golds), "default")
    neither = tally[:, 1] + tally[:, 2] == 0
    each: Sums = np.where(neither, 1.0, compute_f1(spec, tally))
    return each


def compute_fractions(task: Task, answers: CodedAnswers) -> Sums:
    """Convert ratings to fractions of the scale, NaN for invalid ratings, shape (n,)."""
    return np.array([compute_fraction(task, text) for text in answers.texts])[answers.codes]


def tally_ratings(
    task: Task, spec: MetricSpec, predictions: CodedAnswers, golds: CodedAnswers
) -> Sums:
    """Return each rating's correctness (0 to 1) and a count of 1, shape (n, 2).

    For ``accuracy``, a rating is correct if it is in the same half of the scale as the gold rating.
    For ``closeness``, correctness is 1 minus the distance from the gold rating as a fraction of the
    scale. An answer that is not a rating has correctness 0.
    """
    guessed, right = compute_fractions(task, predictions), compute_fractions(task, golds)
    if spec.name == "accuracy":
        each = ((guessed >= 0.5) == (right >= 0.5)).astype(np.float64)
    else:
        each = 1 - np.abs(guessed - right)
    return np.stack([np.where(np.isnan(guessed), 0.0, each), np.ones_like(each)], axis=1)
