"""Scores of predictions, 0 to 100. Pure: answers in, numbers out.

A prediction and a right answer ("gold") are tuples of strings, as ``Instance.target`` has them:
one label, several labels (multi-label), one answer per trait (multi-output), an option's number,
or texts (span: one predicted, one or several right ones).

Every metric is a function of sums over instances. ``tally`` says what each instance adds,
``finish`` what the sums come to; ``evaluate`` is both. A bootstrap sums resampled rows of the
tally and finishes those, so that it resamples the official score and no stand-in for it.

Two ways to count (FETA's paper and its toolkit differ):

``default``
    - A prediction that is no label is wrong: its right class misses it, it is right for no class,
      and it is no class of macro- or weighted F1. Only a card whose ``label_indices`` hold -1
      counts it as a false positive too.
    - Macro- and weighted F1 without ``label_indices`` run over the labels that occur among the
      golds or the valid predictions (scikit-learn's rule). Micro-F1 without ``label_indices`` is
      accuracy.
    - A text is unanswerable when it begins with an unanswerable phrase.
    - Micro token-F1 pools the tokens of every instance's best right answer.
``tlidb``
    The toolkit's habits: predictions that are no label form a class of their own, -1, in macro-F1
    (in weighted F1 too, where its weight is 0); a text is unanswerable when it contains an
    unanswerable phrase anywhere; of a task whose right answers it keeps as lists (question
    answering), micro token-F1 counts the last one that shares a token with the prediction instead
    of the best, and leaves an instance out when there is none, which lifts the score.

The F1 of a class that nobody predicted and nobody has is 0, as are all F1 without a true positive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from tasktransfer.core.fidelity import Scoring
from tasktransfer.errors import RecordError
from tasktransfer.metrics import bleu, labels, open_labels, ratings, replies, texts
from tasktransfer.metrics.answers import Answers, Coded, check, coded
from tasktransfer.metrics.labels import Sums
from tasktransfer.metrics.texts import normalise_answer
from tasktransfer.tasks.card import MetricSpec, Task

__all__ = [
    "Answers",
    "Coded",
    "Scoring",
    "Sums",
    "coded",
    "evaluate",
    "finish",
    "instance_scores",
    "normalise_answer",
    "score",
    "score_of_sums",
    "tally",
]

Values = TypeVar("Values", float, Sums)


def evaluate(
    task: Task, predictions: Answers, golds: Answers, *, fidelity: Scoring = "default"
) -> dict[str, float]:
    """Every metric of the task's card by its key, 0 to 100.

    ``predictions`` and ``golds`` are aligned, one entry per instance. Raises DataError when there
    is no instance (for exact match that leaves unanswerable ones out: no answerable instance),
    when lengths differ, when an entry has the wrong number of answers, or when a gold is no label
    of the task.
    """
    sums = tally(task, predictions, golds, fidelity=fidelity).sum(axis=0)
    return {key: float(value) for key, value in finish(task, sums, fidelity=fidelity).items()}


def tally(
    task: Task, predictions: Answers, golds: Answers, *, fidelity: Scoring = "default"
) -> Sums:
    """What each instance adds to the sums that the task's metrics are made of, (n, columns).

    The columns depend on the task and the fidelity alone. Raises as ``evaluate`` does.
    """
    guesses, right = coded(predictions), coded(golds)
    check(task, guesses, right)
    for spec in task.metrics:
        _width(task, spec, fidelity)  # refuses a card with an average that there is not
    if task.kind == "open_labels":
        parts = [open_labels.tally(guesses, right) for _ in task.metrics]
    elif task.kind == "reply":
        parts = [_reply_tally(spec, guesses, right) for spec in task.metrics]
    elif task.kind == "span":
        parts = _text_tallies(task, guesses, right, fidelity)
    elif task.kind == "rating":
        parts = [ratings.tally(task, spec, guesses, right) for spec in task.metrics]
    else:
        parts = _label_tallies(task, guesses, right, fidelity)
    return np.concatenate(parts, axis=1)


def finish(task: Task, sums: Sums, *, fidelity: Scoring = "default") -> dict[str, Sums]:
    """The metrics by their key, 0 to 100, of tallies summed over instances.

    Args:
        task: the task's card.
        sums: (..., columns of the tally), as many sums as one likes.
        fidelity: the one that the tally was made with.

    Returns:
        An array (...) for each metric; a metric that no instance counts for is 0.
    """
    ends = np.cumsum([_width(task, spec, fidelity) for spec in task.metrics])
    parts = np.split(np.asarray(sums, np.float64), ends[:-1], axis=-1)
    return {
        spec.key: 100.0 * _finish(task, spec, part)
        for spec, part in zip(task.metrics, parts, strict=True)
    }


def score(task: Task, metrics: Mapping[str, Values]) -> Values:
    """The task's score: the mean of the metrics that the paper's Table 1 names (section 3.3).

    A card without ``paper_metrics`` is scored by all its metrics. Raises RecordError when one is
    missing from ``metrics``.
    """
    keys = task.paper_metrics or tuple(spec.key for spec in task.metrics)
    missing = [key for key in keys if key not in metrics]
    if missing:
        raise RecordError(
            f"{task.name} is scored by {', '.join(keys)}, but {', '.join(missing)} is missing "
            f"from {sorted(metrics)}; evaluate the predictions again"
        )
    total = metrics[keys[0]]
    for key in keys[1:]:
        total = total + metrics[key]
    return total / len(keys)


def score_of_sums(task: Task, sums: Sums, *, fidelity: Scoring = "default") -> Sums:
    """The task's score, 0 to 100, of tallies summed over instances: ``score`` of ``finish``."""
    return score(task, finish(task, sums, fidelity=fidelity))


def instance_scores(task: Task, predictions: Answers, golds: Answers) -> list[float]:
    """How right each single prediction is, 0 to 100 (default fidelity).

    Classification and multiple choice: 100 or 0. Multi-output: the share of right traits.
    Multi-label: F1 of the two label sets, restricted to the labels that the card's first
    metric scores; 100 when neither has any. Spans: token-F1 with the best right answer, or exact
    match where the card has no token-F1. Ratings and replies: the card's first metric. Raises
    DataError as ``evaluate`` does for answers of a wrong shape.
    """
    guesses, right = coded(predictions), coded(golds)
    check(task, guesses, right)
    if task.kind == "open_labels":
        sums = open_labels.tally(guesses, right)
        return [float(100 * value) for value in open_labels.set_f1(sums)]
    if task.kind == "reply":
        first = task.metrics[0]
        alone = _finish(task, first, _reply_tally(first, guesses, right))
        return [float(100 * value) for value in alone]
    if task.kind == "rating":
        return [float(100 * row[0]) for row in ratings.tally(task, task.metrics[0], guesses, right)]
    each = {"span": texts.text_scores, "multi_label": labels.set_f1}.get(
        task.kind, labels.share_right
    )
    scores: list[float] = (100.0 * each(task, guesses, right)).tolist()
    return scores


def _width(task: Task, spec: MetricSpec, fidelity: Scoring) -> int:
    if task.kind == "open_labels":
        return 3
    if task.kind == "reply":
        return bleu.WIDTH if spec.name == "bleu" else 2
    if spec.name in ("accuracy", "exact_match", "closeness"):
        return 2
    if spec.name == "token_f1":
        return texts.token_f1_width(task, spec)
    return labels.f1_width(task, spec, fidelity)


def _reply_tally(spec: MetricSpec, guesses: Coded, right: Coded) -> Sums:
    if spec.name == "bleu":  # of the corpus; all others are means over replies
        return bleu.tally(guesses, right)
    return replies.tally(spec.name, guesses, right)


def _label_tallies(task: Task, predictions: Coded, golds: Coded, fidelity: Scoring) -> list[Sums]:
    answers = labels.numbered(task, predictions, golds)
    return [
        labels.accuracy_tally(answers)
        if spec.name == "accuracy"
        else labels.f1_tally(task, spec, answers, fidelity)
        for spec in task.metrics
    ]


def _text_tallies(task: Task, predictions: Coded, golds: Coded, fidelity: Scoring) -> list[Sums]:
    # Most cards have the same unanswerable phrases in all their metrics: compared once.
    seen: dict[tuple[str, ...], texts.Compared] = {}
    tallies = []
    for spec in task.metrics:
        compared = seen.get(spec.unanswerable_phrases)
        if compared is None:
            compared = texts.compared(spec, predictions, golds, fidelity)
            seen[spec.unanswerable_phrases] = compared
        if spec.name == "exact_match":
            tallies.append(texts.exact_match_tally(task, spec, compared))
        else:
            tallies.append(texts.token_f1_tally(task, spec, compared, fidelity))
    return tallies


def _finish(task: Task, spec: MetricSpec, sums: Sums) -> Sums:
    if task.kind == "open_labels":
        return open_labels.micro_f1(sums)
    match spec.name:
        case "accuracy" | "exact_match" | "closeness":
            return labels.share_finish(sums)
        case "bleu2" | "bleu2_exchanged" | "rouge_l" | "meteor":
            return labels.share_finish(sums)
        case "f1" | "multilabel_f1":
            return labels.f1_finish(spec, sums)
        case "bleu":
            return bleu.finish(sums)
        case "token_f1":
            return labels.share_finish(sums) if spec.average == "macro" else texts.token_f1(sums)
