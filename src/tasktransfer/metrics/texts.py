"""Metrics of tasks whose answers are texts: exact match and token-F1."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tasktransfer.core.fidelity import Scoring
from tasktransfer.errors import DataError
from tasktransfer.metrics.answers import CodedAnswers
from tasktransfer.metrics.labels import Sums, build_average_error, compute_ratio
from tasktransfer.tasks.card import MetricSpec, Task

_CACHE_SIZE = 1 << 16
"""Cache size for normalised texts and compared pairs.

The same golds are scored after every epoch, by several metrics, and in every run of a study.
"""


def normalise_answer(text: str) -> str:
    """Normalise a text: lower case, single spaces, no punctuation and articles.

    This is the normalisation of SQuAD's and T5's evaluation, which the toolkit uses too.
    """
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True)
class NormalisedTexts:
    """Normalised predicted and gold texts of n instances."""

    pairs: list[tuple[str, tuple[str, ...]]]

    @cached_property
    def best(self) -> Sums:
        """Token counts (common, predicted, gold) with each best gold answer, shape (n, 3).

        The best answer has the highest F1, and is the first in a tie. An empty prediction for an
        empty gold answer counts as one correct token.
        """
        found = [
            _count_overlap(predicted, right[0])
            if len(right) == 1
            else _find_best_overlap(predicted, right)
            for predicted, right in self.pairs
        ]
        return np.array(found, np.float64)


# --- exact match: matches, instances that count --------------------------------------------------


def tally_exact_match(task: Task, spec: MetricSpec, texts: NormalisedTexts) -> Sums:
    """Return each instance's exact match (0 or 1) and a count of 1, shape (n, 2).

    Unanswerable instances are not counted if the card leaves them out.

    Raises:
        DataError: the card leaves unanswerable instances out, and all are unanswerable.
    """
    tally = np.ones((len(texts.pairs), 2))
    tally[:, 0] = [predicted in right for predicted, right in texts.pairs]
    if spec.ignore_unanswerable:
        answerable = np.array([any(right) for _, right in texts.pairs])
        if not answerable.any():
            raise DataError(
                f"{task.name}: The metric {spec.key} ignores unanswerable instances, but all "
                f"{len(texts.pairs)} instances are unanswerable. Score a split with answerable "
                "instances."
            )
        tally[~answerable] = 0
    return tally


# --- token-F1: macro: F1 and instances; micro: common, predicted and gold tokens ------------------


def count_token_f1_columns(task: Task, spec: MetricSpec) -> int:
    """Return the number of columns in the tally of a token-F1."""
    if spec.average not in ("micro", "macro"):
        raise build_average_error(task, spec)
    return 2 if spec.average == "macro" else 3


def tally_token_f1(task: Task, spec: MetricSpec, texts: NormalisedTexts, fidelity: Scoring) -> Sums:
    """Return each instance's token-F1 and its count (macro), or its numbers of tokens (micro).

    The prediction is compared with the best gold answer, or with the one that the toolkit uses.
    """
    if spec.average == "macro":
        return np.stack([compute_token_f1(texts.best), np.ones(len(texts.best))], axis=1)
    if fidelity == "tlidb" and task.toolkit is not None and task.toolkit.lists_answers:
        return np.array([_find_last_overlap(*pair) for pair in texts.pairs], np.float64)
    return texts.best


def compute_token_f1(tokens: Sums) -> Sums:
    """Return token-F1, 0 to 1, from the numbers of common, predicted and gold tokens (..., 3)."""
    return compute_ratio(2 * tokens[..., 0], tokens[..., 1] + tokens[..., 2])


# --- single instances ----------------------------------------------------------------------------


def score_texts(task: Task, predictions: CodedAnswers, golds: CodedAnswers) -> Sums:
    """Compute each instance's token-F1 with its best gold answer, shape (n,).

    If the card has no token-F1, the result is the exact match.
    """
    token_spec = next((spec for spec in task.metrics if spec.name == "token_f1"), None)
    texts = normalise_texts(token_spec or task.metrics[0], predictions, golds, "default")
    if token_spec is not None:
        return compute_token_f1(texts.best)
    return np.array([predicted in right for predicted, right in texts.pairs], np.float64)


# --- texts ----------------------------------------------------------------------------------------


def normalise_texts(
    spec: MetricSpec, predictions: CodedAnswers, golds: CodedAnswers, fidelity: Scoring
) -> NormalisedTexts:
    """Normalise texts for a metric, where unanswerable texts become "".

    The result is the same for metrics with the same unanswerable phrases.
    """
    phrases = spec.unanswerable_phrases
    plain = [_normalise_for_metric(text, phrases, fidelity) for text in predictions.texts]
    right = [_normalise_for_metric(text, phrases, fidelity) for text in golds.texts]
    guesses = map(plain.__getitem__, predictions.codes.tolist())
    wanted = golds.codes.tolist()
    if len(wanted) == len(golds):  # Each has one gold answer, so slices are not needed.
        return NormalisedTexts(
            [(p, (right[code],)) for p, code in zip(guesses, wanted, strict=True)]
        )
    starts = golds.starts.tolist()
    return NormalisedTexts(
        [
            (guess, tuple(right[code] for code in wanted[begin:end]))
            for guess, begin, end in zip(guesses, starts[:-1], starts[1:], strict=True)
        ]
    )


@lru_cache(maxsize=_CACHE_SIZE)
def _normalise_for_metric(text: str, phrases: tuple[str, ...], fidelity: Scoring) -> str:
    normal = normalise_answer(text)
    for phrase in map(normalise_answer, phrases):
        whole_words = f"{normal} ".startswith(f"{phrase} ")
        if whole_words or (fidelity == "tlidb" and phrase in normal):
            return ""
    return normal


_Overlap = tuple[int, int, int]
"""Numbers of common tokens, predicted tokens, and gold tokens."""


def _find_best_overlap(predicted: str, right: Sequence[str]) -> _Overlap:
    return max((_count_overlap(predicted, text) for text in right), key=_compute_overlap_f1)


def _find_last_overlap(predicted: str, right: Sequence[str]) -> _Overlap:
    """Return the token overlap with the last gold answer that shares a token.

    It is (0, 0, 0) if there is none. The toolkit intends to use the best gold answer.
    """
    overlaps = [_count_overlap(predicted, text) for text in right]
    return next((overlap for overlap in reversed(overlaps) if overlap[0]), (0, 0, 0))


@lru_cache(maxsize=_CACHE_SIZE)
def _count_overlap(predicted: str, right: str) -> _Overlap:
    if not predicted and not right:
        return 1, 1, 1
    guessed, wanted = predicted.split(), right.split()
    if predicted == right:
        return len(guessed), len(guessed), len(guessed)
    # Answers are short, so counting in lists is several times faster than building Counters.
    common = sum(min(guessed.count(t), wanted.count(t)) for t in {*guessed} & {*wanted})
    return common, len(guessed), len(wanted)


def _compute_overlap_f1(overlap: _Overlap) -> float:
    common, predicted, right = overlap
    return 2 * common / (predicted + right) if predicted + right else 0.0


def clear_caches() -> None:
    """Clear the caches of normalised texts and compared pairs."""
    _normalise_for_metric.cache_clear()
    _count_overlap.cache_clear()


def quotes_dialogues(task: Task) -> bool:
    """Return whether a task's answers quote dialogues, so that shared files encode them."""
    return task.kind == "span"


class WordCodes:
    """Mapping of normalised words to the codes ``w1``, ``w2`` and so on.

    Unanswerable phrases are not coded.
    """

    def __init__(self, task: Task) -> None:
        phrases = {phrase for spec in task.metrics for phrase in spec.unanswerable_phrases}
        self.phrases = sorted(map(normalise_answer, phrases))  # One order in every process.
        # The toolkit's scoring searches for phrases anywhere in an answer, so their words stay.
        self.named = {word for phrase in self.phrases for word in phrase.split()}
        self.codes: dict[str, str] = {}

    def encode_text(self, text: str) -> str:
        """Encode the words of a text, except an unanswerable phrase at its beginning."""
        normal = normalise_answer(text)
        for phrase in self.phrases:
            if f"{normal} ".startswith(f"{phrase} "):
                return phrase
        return " ".join(
            word if word in self.named else self.codes.setdefault(word, f"w{len(self.codes) + 1}")
            for word in normal.split()
        )
