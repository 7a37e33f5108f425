"""Scores of predictions, 0 to 100. Pure functions from answers to numbers.

A prediction and a gold answer are tuples of strings, as in ``Instance.target``: one label, several
labels (multi-label), one answer per trait (multi-output), an option's number, or texts (span: one
predicted text, and one or several gold texts).

Every metric is a function of sums over instances. ``tally_instances`` returns the
contribution of each instance, ``compute_metrics_from_sums`` computes the metrics from sums, and
``evaluate_predictions`` does both. A bootstrap sums resampled rows of the tally and computes the
metrics from these sums, so it resamples the official score.

There are two ways to count, because FETA's paper and its toolkit differ:

``default``
    - A prediction that is not a label is wrong: a false negative of the gold class, and not a class
      of its own in macro- or weighted F1. It is also a false positive only if the card's
      ``label_indices`` contain -1.
    - Macro- and weighted F1 without ``label_indices`` are over the labels that occur in the golds
      or the valid predictions (scikit-learn's rule). Micro-F1 without ``label_indices`` is
      accuracy.
    - A text is unanswerable if it begins with an unanswerable phrase.
    - Micro token-F1 pools the tokens of every instance's best gold answer.
``tlidb``
    - As in the toolkit, predictions that are not labels form a class, -1, in macro-F1 (and in
      weighted F1, where its weight is 0).
    - A text is unanswerable if it contains an unanswerable phrase anywhere.
    - For a task whose gold answers the toolkit keeps as lists (question answering), micro token-F1
      uses the last gold answer that shares a token with the prediction, instead of the best one. It
      leaves an instance out if there is none, which raises the score.

The F1 of a class that is neither predicted nor gold is 0, as is every F1 without a true positive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from tasktransfer.core.fidelity import Scoring
from tasktransfer.errors import RecordError
from tasktransfer.metrics import bleu, labels, open_labels, replies, texts
from tasktransfer.metrics.answers import Answers, CodedAnswers, check_answers, encode_answers
from tasktransfer.metrics.labels import Sums
from tasktransfer.metrics.texts import normalise_answer
from tasktransfer.tasks.card import MetricSpec, Task

__all__ = [
    "Answers",
    "CodedAnswers",
    "Scoring",
    "Sums",
    "compute_metrics_from_sums",
    "compute_score_from_sums",
    "compute_task_score",
    "encode_answers",
    "evaluate_predictions",
    "normalise_answer",
    "score_instances",
    "tally_instances",
]

Values = TypeVar("Values", float, Sums)


def evaluate_predictions(
    task: Task, predictions: Answers, golds: Answers, *, fidelity: Scoring = "default"
) -> dict[str, float]:
    """Compute every metric of the task's card, 0 to 100, by key.

    ``predictions`` and ``golds`` are aligned, with one entry per instance.

    Raises:
        DataError: there is no instance (or no answerable one, for an exact match without
            unanswerable instances), lengths differ, an entry has the wrong number of answers, or a
            gold is not a label of the task.
    """
    sums = tally_instances(task, predictions, golds, fidelity=fidelity).sum(axis=0)
    return {
        key: float(value)
        for key, value in compute_metrics_from_sums(task, sums, fidelity=fidelity).items()
    }


def tally_instances(
    task: Task, predictions: Answers, golds: Answers, *, fidelity: Scoring = "default"
) -> Sums:
    """Return each instance's terms in the sums of the task's metrics, shape (n, columns).

    The columns depend only on the task and the fidelity.

    Raises:
        DataError: as in ``evaluate_predictions``.
    """
    guesses, right = encode_answers(predictions), encode_answers(golds)
    check_answers(task, guesses, right)
    for spec in task.metrics:
        _get_width(task, spec, fidelity)  # Raises an error if the card's average is not valid.
    if task.kind == "open_labels":
        parts = [open_labels.tally_label_sets(guesses, right) for _ in task.metrics]
    elif task.kind == "reply":
        parts = [_tally_replies(spec, guesses, right) for spec in task.metrics]
    elif task.kind == "span":
        parts = _tally_texts(task, guesses, right, fidelity)
    elif task.kind == "rating":
        parts = [labels.tally_ratings(task, spec, guesses, right) for spec in task.metrics]
    else:
        parts = _tally_labels(task, guesses, right, fidelity)
    return np.concatenate(parts, axis=1)


def compute_metrics_from_sums(
    task: Task, sums: Sums, *, fidelity: Scoring = "default"
) -> dict[str, Sums]:
    """Compute the metrics, 0 to 100, from tallies summed over instances.

    Args:
        task: the task's card.
        sums: any number of sums, shape (..., columns of the tally).
        fidelity: fidelity of the tally.

    Returns:
        Metric's key → array of shape (...). A metric to which no instance contributes is 0.
    """
    ends = np.cumsum([_get_width(task, spec, fidelity) for spec in task.metrics])
    parts = np.split(np.asarray(sums, np.float64), ends[:-1], axis=-1)
    return {
        spec.key: 100.0 * _compute_metric(task, spec, part)
        for spec, part in zip(task.metrics, parts, strict=True)
    }


def compute_task_score(task: Task, metrics: Mapping[str, Values]) -> Values:
    """Compute the task's score, the mean of its metrics in the paper's Table 1.

    A card without ``paper_metrics`` is scored by all its metrics.

    Raises:
        RecordError: a metric is missing from ``metrics``.
    """
    keys = task.paper_metrics or tuple(spec.key for spec in task.metrics)
    missing = [key for key in keys if key not in metrics]
    if missing:
        raise RecordError(
            f"{task.name}: The task is scored by the metrics {', '.join(keys)}, but the metric "
            f"{', '.join(missing)} is missing from {sorted(metrics)}. Evaluate the predictions "
            "again."
        )
    total = metrics[keys[0]]
    for key in keys[1:]:
        total = total + metrics[key]
    return total / len(keys)


def compute_score_from_sums(task: Task, sums: Sums, *, fidelity: Scoring = "default") -> Sums:
    """Compute the task's score, 0 to 100, from tallies summed over instances."""
    return compute_task_score(task, compute_metrics_from_sums(task, sums, fidelity=fidelity))


def score_instances(task: Task, predictions: Answers, golds: Answers) -> list[float]:
    """Score each prediction from 0 to 100, with the default fidelity settings.

    - Classification and multiple choice: 100 or 0.
    - Multi-output: the percentage of correct traits.
    - Multi-label: F1 of the two label sets, restricted to the labels of the card's first metric;
      100 if both are empty.
    - Spans: token-F1 with the best gold answer, or exact match if the card has no token-F1.
    - Ratings and replies: the card's first metric.

    Raises:
        DataError: the answers do not have the shape that the task's kind requires.
    """
    guesses, right = encode_answers(predictions), encode_answers(golds)
    check_answers(task, guesses, right)
    if task.kind == "open_labels":
        sums = open_labels.tally_label_sets(guesses, right)
        return [float(100 * value) for value in open_labels.compute_label_set_f1(sums)]
    if task.kind == "reply":
        first = task.metrics[0]
        alone = _compute_metric(task, first, _tally_replies(first, guesses, right))
        return [float(100 * value) for value in alone]
    if task.kind == "rating":
        return [
            float(100 * row[0])
            for row in labels.tally_ratings(task, task.metrics[0], guesses, right)
        ]
    by_kind = {"span": texts.score_texts, "multi_label": labels.compute_label_set_f1}
    compute_scores = by_kind.get(task.kind, labels.score_answers)
    scores: list[float] = (100.0 * compute_scores(task, guesses, right)).tolist()
    return scores


def _get_width(task: Task, spec: MetricSpec, fidelity: Scoring) -> int:
    if task.kind == "open_labels":
        return 3
    if task.kind == "reply":
        return bleu.WIDTH if spec.name == "bleu" else 2
    if spec.name in ("accuracy", "exact_match", "closeness"):
        return 2
    if spec.name == "token_f1":
        return texts.count_token_f1_columns(task, spec)
    return labels.count_f1_columns(task, spec, fidelity)


def _tally_replies(spec: MetricSpec, guesses: CodedAnswers, right: CodedAnswers) -> Sums:
    if spec.name == "bleu":  # This is a corpus metric. All others are means over replies.
        return bleu.tally_ngrams(guesses, right)
    return replies.tally_replies(spec.name, guesses, right)


def _tally_labels(
    task: Task, predictions: CodedAnswers, golds: CodedAnswers, fidelity: Scoring
) -> list[Sums]:
    answers = labels.index_answers(task, predictions, golds)
    return [
        labels.tally_accuracy(answers)
        if spec.name == "accuracy"
        else labels.tally_f1(task, spec, answers, fidelity)
        for spec in task.metrics
    ]


def _tally_texts(
    task: Task, predictions: CodedAnswers, golds: CodedAnswers, fidelity: Scoring
) -> list[Sums]:
    # Most cards have the same unanswerable phrases in all metrics, so texts are compared once.
    seen: dict[tuple[str, ...], texts.NormalisedTexts] = {}
    tallies = []
    for spec in task.metrics:
        compared = seen.get(spec.unanswerable_phrases)
        if compared is None:
            compared = texts.normalise_texts(spec, predictions, golds, fidelity)
            seen[spec.unanswerable_phrases] = compared
        if spec.name == "exact_match":
            tallies.append(texts.tally_exact_match(task, spec, compared))
        else:
            tallies.append(texts.tally_token_f1(task, spec, compared, fidelity))
    return tallies


def _compute_metric(task: Task, spec: MetricSpec, sums: Sums) -> Sums:
    if task.kind == "open_labels":
        return open_labels.compute_micro_f1(sums)
    match spec.name:
        case "accuracy" | "exact_match" | "closeness":
            return labels.compute_proportion(sums)
        case "bleu2" | "bleu2_exchanged" | "rouge_l" | "meteor":
            return labels.compute_proportion(sums)
        case "f1" | "multilabel_f1":
            return labels.compute_f1(spec, sums)
        case "bleu":
            return bleu.compute_mean_bleu(sums)
        case "token_f1":
            return (
                labels.compute_proportion(sums)
                if spec.average == "macro"
                else texts.compute_token_f1(sums)
            )
