"""Scores of predictions, 0 to 100. Pure: answers in, numbers out.

A prediction and a right answer ("gold") are tuples of strings, as ``Instance.target`` has them:
one label, several labels (multi-label), one answer per trait (multi-output), an option's number,
or texts (span: one predicted, one or several right ones).

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
    unanswerable phrase anywhere; where a task has several right answers, micro token-F1 counts
    the last one that shares a token with the prediction instead of the best, and leaves an
    instance out when there is none (which lifts question answering).

The F1 of a class that nobody predicted and nobody has is 0, as are all F1 without a true positive.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from .errors import ConfigError, DataError, RecordError
from .tasks.card import MetricName, MetricSpec, Task

Fidelity = Literal["default", "tlidb"]
Answers = Sequence[tuple[str, ...]]
_Counts = npt.NDArray[np.int64]

_INVALID = -1
"""The class number of a prediction that is no label."""

_REMEMBERED = 1 << 16
"""How many normalised texts and compared pairs are kept: the same golds are scored after every
epoch, by several metrics each time."""


def evaluate(
    task: Task, predictions: Answers, golds: Answers, *, fidelity: Fidelity = "default"
) -> dict[str, float]:
    """Every metric of the task's card by its key, 0 to 100.

    ``predictions`` and ``golds`` are aligned, one entry per instance. Raises DataError when there
    is no instance (for exact match that leaves unanswerable ones out: no answerable instance),
    when lengths differ, when an entry has the wrong number of answers, or when a gold is no label
    of the task.
    """
    _check(task, predictions, golds)
    return {
        spec.key: 100.0 * _METRICS[spec.name](task, spec, predictions, golds, fidelity)
        for spec in task.metrics
    }


def score(task: Task, metrics: Mapping[str, float]) -> float:
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
    return sum(metrics[key] for key in keys) / len(keys)


def instance_scores(task: Task, predictions: Answers, golds: Answers) -> list[float]:
    """How right each single prediction is, 0 to 100 (default fidelity).

    Classification and multiple choice: 100 or 0. Multi-output: the share of right traits.
    Multi-label: F1 of the two label sets, restricted to the labels that the card's first
    metric scores; 100 when neither has any. Spans: token-F1 with the best right answer, or exact
    match where the card has no token-F1. Raises DataError as ``evaluate`` does for answers of a
    wrong shape.
    """
    _check(task, predictions, golds)
    if task.kind == "span":
        return _span_scores(task, predictions, golds)
    if task.kind == "multi_label":
        scored = frozenset(_scored_labels(task, task.metrics[0]))
        return [
            100.0 * _set_f1(scored.intersection(prediction), scored.intersection(gold))
            for prediction, gold in zip(predictions, golds, strict=True)
        ]
    return [
        100.0 * sum(p == g for p, g in zip(prediction, gold, strict=True)) / len(gold)
        for prediction, gold in zip(predictions, golds, strict=True)
    ]


def normalise_answer(text: str) -> str:
    """``text`` in lower case, without punctuation and articles, white space collapsed.

    The normalisation of SQuAD's and T5's evaluation, which the toolkit uses as well.
    """
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


# --- classes ---------------------------------------------------------------------------------


def _accuracy(
    task: Task, spec: MetricSpec, predictions: Answers, golds: Answers, fidelity: Fidelity
) -> float:
    """Share of right answers; every trait of a multi-output instance is one answer."""
    right = sum(
        p == g
        for prediction, gold in zip(predictions, golds, strict=True)
        for p, g in zip(prediction, gold, strict=True)
    )
    return right / sum(map(len, golds))


def _f1(
    task: Task, spec: MetricSpec, predictions: Answers, golds: Answers, fidelity: Fidelity
) -> float:
    """F1 over classes. Counts are held by class number + 1, so that place 0 is _INVALID."""
    number_of = {label: number for number, label in enumerate(task.labels)}
    predicted = _class_numbers(number_of, predictions)
    right = _class_numbers(number_of, golds)
    places = task.classes + 1
    hits = np.bincount(right[right == predicted] + 1, minlength=places)
    guesses = np.bincount(predicted + 1, minlength=places)
    wanted = np.bincount(right + 1, minlength=places)
    if spec.label_indices is not None:
        counted = np.asarray(spec.label_indices, dtype=np.int64) + 1
    elif spec.average == "micro":
        counted = np.arange(places)
    else:
        counted = np.flatnonzero(guesses + wanted)
    if fidelity == "default" and spec.average != "micro":
        counted = counted[counted != _INVALID + 1]
    return _average_f1(task, spec, hits[counted], guesses[counted], wanted[counted])


def _multilabel_f1(
    task: Task, spec: MetricSpec, predictions: Answers, golds: Answers, fidelity: Fidelity
) -> float:
    """F1 over the scored labels; what is no label is no guess at any."""
    labels = _scored_labels(task, spec)
    hits, guesses, wanted = Counter[str](), Counter[str](), Counter[str]()
    for prediction, gold in zip(predictions, golds, strict=True):
        predicted, right = set(prediction), set(gold)
        hits.update(predicted & right)
        guesses.update(predicted)
        wanted.update(right)

    def counts(counter: Counter[str]) -> _Counts:
        return np.asarray([counter[label] for label in labels], dtype=np.int64)

    return _average_f1(task, spec, counts(hits), counts(guesses), counts(wanted))


def _average_f1(
    task: Task, spec: MetricSpec, hits: _Counts, guesses: _Counts, wanted: _Counts
) -> float:
    """F1 = 2 hits / (guesses + wanted), pooled (micro), or averaged over classes."""
    if spec.average == "micro":
        return _ratio(2 * int(hits.sum()), int(guesses.sum() + wanted.sum()))
    per_class = [
        _ratio(2 * int(h), int(g + w)) for h, g, w in zip(hits, guesses, wanted, strict=True)
    ]
    if spec.average == "macro":
        return _ratio(sum(per_class), len(per_class))
    if spec.average == "weighted":
        weighted = sum(f1 * int(w) for f1, w in zip(per_class, wanted, strict=True))
        return _ratio(weighted, int(wanted.sum()))
    raise _no_average(task, spec)


def _class_numbers(number_of: Mapping[str, int], answers: Answers) -> _Counts:
    numbers = (number_of.get(label, _INVALID) for answer in answers for label in answer)
    return np.fromiter(numbers, dtype=np.int64)


def _scored_labels(task: Task, spec: MetricSpec) -> tuple[str, ...]:
    """The labels that a multi-label metric counts; -1 is no label there."""
    if spec.label_indices is None:
        return task.labels
    return tuple(task.labels[index] for index in spec.label_indices if index != _INVALID)


def _set_f1(predicted: frozenset[str], right: frozenset[str]) -> float:
    if not predicted and not right:
        return 1.0
    return 2 * len(predicted & right) / (len(predicted) + len(right))


# --- spans -----------------------------------------------------------------------------------


def _exact_match(
    task: Task, spec: MetricSpec, predictions: Answers, golds: Answers, fidelity: Fidelity
) -> float:
    """Share of instances whose prediction equals one of the right answers."""
    pairs = list(_comparable(spec, predictions, golds, fidelity))
    if spec.ignore_unanswerable:
        pairs = [(predicted, right) for predicted, right in pairs if any(right)]
        if not pairs:
            raise DataError(
                f"{task.name}: {spec.key} leaves unanswerable instances out, and all "
                f"{len(golds)} are unanswerable; score a split with answerable ones"
            )
    return sum(predicted in right for predicted, right in pairs) / len(pairs)


def _token_f1(
    task: Task, spec: MetricSpec, predictions: Answers, golds: Answers, fidelity: Fidelity
) -> float:
    """Macro: mean over instances of the F1 with the best right answer. Micro: F1 of the pooled
    tokens; the best right answer of an instance is the one with the highest F1, the first on a
    tie, and an empty prediction that agrees with an empty gold counts as one token got right."""
    pairs = list(_comparable(spec, predictions, golds, fidelity))
    if spec.average == "macro":
        return sum(_overlap_f1(_best_overlap(*pair)) for pair in pairs) / len(pairs)
    if spec.average == "micro":
        # The toolkit keeps several right answers as a list, for all instances of a task or none.
        if fidelity == "tlidb" and any(len(gold) > 1 for gold in golds):
            return _pooled_f1(_last_overlap(*pair) for pair in pairs)
        return _pooled_f1(_best_overlap(*pair) for pair in pairs)
    raise _no_average(task, spec)


def _span_scores(task: Task, predictions: Answers, golds: Answers) -> list[float]:
    token_f1 = next((spec for spec in task.metrics if spec.name == "token_f1"), None)
    spec = token_f1 or task.metrics[0]
    pairs = _comparable(spec, predictions, golds, "default")
    if token_f1 is None:
        return [100.0 * (predicted in right) for predicted, right in pairs]
    return [100.0 * _overlap_f1(_best_overlap(predicted, right)) for predicted, right in pairs]


def _comparable(
    spec: MetricSpec, predictions: Answers, golds: Answers, fidelity: Fidelity
) -> Iterable[tuple[str, list[str]]]:
    """Predicted and right texts, normalised; unanswerable ones are the empty string."""
    phrases = spec.unanswerable_phrases
    for (predicted,), right in zip(predictions, golds, strict=True):
        yield (
            _plain(predicted, phrases, fidelity),
            [_plain(text, phrases, fidelity) for text in right],
        )


@lru_cache(maxsize=_REMEMBERED)
def _plain(text: str, phrases: tuple[str, ...], fidelity: Fidelity) -> str:
    normal = normalise_answer(text)
    for phrase in map(normalise_answer, phrases):
        whole_words = f"{normal} ".startswith(f"{phrase} ")
        if whole_words or (fidelity == "tlidb" and phrase in normal):
            return ""
    return normal


_Overlap = tuple[int, int, int]
"""Tokens in common, tokens predicted, tokens of the right answer."""


def _best_overlap(predicted: str, right: Sequence[str]) -> _Overlap:
    return max((_overlap(predicted, text) for text in right), key=_overlap_f1)


def _last_overlap(predicted: str, right: Sequence[str]) -> _Overlap:
    """The toolkit means to keep the best right answer, and keeps the last with any overlap."""
    overlaps = [_overlap(predicted, text) for text in right]
    return next((overlap for overlap in reversed(overlaps) if overlap[0]), (0, 0, 0))


@lru_cache(maxsize=_REMEMBERED)
def _overlap(predicted: str, right: str) -> _Overlap:
    if not predicted and not right:
        return 1, 1, 1
    guessed, wanted = predicted.split(), right.split()
    # Answers are short: counting in lists is several times faster than building Counters.
    common = sum(min(guessed.count(t), wanted.count(t)) for t in {*guessed} & {*wanted})
    return common, len(guessed), len(wanted)


def _overlap_f1(overlap: _Overlap) -> float:
    common, predicted, right = overlap
    return _ratio(2 * common, predicted + right)


def _pooled_f1(overlaps: Iterable[_Overlap]) -> float:
    columns = zip(*overlaps, strict=True)
    common, predicted, right = (sum(column) for column in columns)
    return _overlap_f1((common, predicted, right))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


# --- checks ----------------------------------------------------------------------------------


def _check(task: Task, predictions: Answers, golds: Answers) -> None:
    if len(predictions) != len(golds):
        raise DataError(
            f"{task.name}: {len(predictions)} predictions for {len(golds)} instances; "
            "predict every instance once"
        )
    if not golds:
        raise DataError(f"{task.name}: no instances to score; check the split and its id file")
    if task.kind != "multi_label":
        expected = len(task.outputs) if task.kind == "multi_output" else 1
        _check_sizes(task, "prediction", predictions, expected)
        if task.kind == "span":
            _check_right_texts(task, golds)
        else:
            _check_sizes(task, "gold", golds, expected)
    if task.kind != "span":
        _check_gold_labels(task, golds)


def _check_sizes(task: Task, side: str, answers: Answers, expected: int) -> None:
    for position, answer in enumerate(answers):
        if len(answer) != expected:
            raise DataError(
                f"{task.name}: {side} {position} has {len(answer)} answers {answer!r}, and a "
                f"{task.kind} instance has {expected}"
            )


def _check_right_texts(task: Task, golds: Answers) -> None:
    for position, gold in enumerate(golds):
        if not gold:
            raise DataError(
                f"{task.name}: gold {position} has no right answer; an unanswerable instance has "
                "the release's text for it, or the empty string"
            )


def _check_gold_labels(task: Task, golds: Answers) -> None:
    known = set(task.labels)
    for position, gold in enumerate(golds):
        if not known.issuperset(gold):
            raise DataError(
                f"{task.name}: gold {position} is {gold!r}, and the labels are "
                f"{', '.join(task.labels)}; mend the data or the card"
            )


def _no_average(task: Task, spec: MetricSpec) -> ConfigError:
    return ConfigError(
        f"the card of {task.name} gives {spec.name} the average {spec.average!r}; "
        "it has to be micro, macro or weighted (token_f1: micro or macro)"
    )


_Metric = Callable[[Task, MetricSpec, Answers, Answers, Fidelity], float]

_METRICS: dict[MetricName, _Metric] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "multilabel_f1": _multilabel_f1,
    "exact_match": _exact_match,
    "token_f1": _token_f1,
}
