"""Metrics of generated replies: BLEU-2, ROUGE-L and METEOR of each sentence, 0 to 1.

Texts are compared in lower case, as words and runs of punctuation. Each metric is the mean over
instances, as in Parthasarathi et al. 2021 (section 4.2, "BLEU-2, case insensitive").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from tasktransfer.metrics.answers import CodedAnswers
from tasktransfer.metrics.labels import Sums
from tasktransfer.tasks.compose import split_words

Words = tuple[str, ...]


def tally_replies(name: str, guesses: CodedAnswers, right: CodedAnswers) -> Sums:
    """Score each reply against its best gold answer, with a count of 1, shape (n, 2)."""
    metric = METRICS[name]
    sums = np.ones((len(right), 2))
    for row in range(len(right)):
        (guess,) = guesses.get_answers(row)
        sums[row, 0] = max(
            metric(split_words(guess), split_words(right_answer))
            for right_answer in right.get_answers(row)
        )
    return sums


def compute_bleu2(hypothesis: Words, reference: Words) -> float:
    """Compute sentence BLEU-2 (Papineni et al. 2002, uniform weights, not smoothed).

    It is the geometric mean of clipped precisions of unigrams and bigrams, times the brevity
    penalty. It is 0 if no bigram matches.
    """
    precisions = [
        _compute_precision(Counter(hypothesis), Counter(reference)),
        _compute_precision(Counter(pairwise(hypothesis)), Counter(pairwise(reference))),
    ]
    if not all(precisions):
        return 0.0
    brevity = min(0.0, 1 - len(reference) / len(hypothesis))
    return math.exp(brevity) * math.sqrt(precisions[0] * precisions[1])


def compute_bleu2_exchanged(hypothesis: Words, reference: Words) -> float:
    """Compute BLEU-2 with hypothesis and reference exchanged, as in the released code."""
    return compute_bleu2(reference, hypothesis)


def compute_rouge_l(hypothesis: Words, reference: Words) -> float:
    """Compute ROUGE-L F1 (Lin 2004), from the longest common subsequence."""
    common = _measure_common_subsequence(hypothesis, reference)
    return 2 * common / (len(hypothesis) + len(reference)) if common else 0.0


def compute_meteor(hypothesis: Words, reference: Words) -> float:
    """Compute METEOR with exact matches (Banerjee and Lavie 2005, weights 0.9, 3 and 0.5).

    Stems and WordNet's synonyms are not used, because they need data that is not available.
    """
    matches = _align_words(hypothesis, reference)
    if not matches:
        return 0.0
    precision, recall = len(matches) / len(hypothesis), len(matches) / len(reference)
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    chunks = 1 + sum(b != (a[0] + 1, a[1] + 1) for a, b in pairwise(matches))
    return float(mean * (1 - 0.5 * (chunks / len(matches)) ** 3))


METRICS: dict[str, Callable[[Words, Words], float]] = {
    "bleu2": compute_bleu2,
    "bleu2_exchanged": compute_bleu2_exchanged,
    "rouge_l": compute_rouge_l,
    "meteor": compute_meteor,
}


def _compute_precision(guessed: Counter[object], wanted: Counter[object]) -> float:
    total = guessed.total()
    return (guessed & wanted).total() / total if total else 0.0


def _measure_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    lengths = [0] * (len(second) + 1)
    for word in first:
        diagonal = 0
        for index, other in enumerate(second, start=1):
            above = lengths[index]
            lengths[index] = diagonal + 1 if word == other else max(above, lengths[index - 1])
            diagonal = above
    return lengths[-1]


def _align_words(hypothesis: Words, reference: Words) -> list[tuple[int, int]]:
    """Align equal words, and return their positions (hypothesis, reference) in order.

    Each word is used once. The search begins at the end, as in NLTK.
    """
    free = list(enumerate(reference))
    pairs = []
    for index in range(len(hypothesis) - 1, -1, -1):
        for at in range(len(free) - 1, -1, -1):
            if free[at][1] == hypothesis[index]:
                pairs.append((index, free.pop(at)[0]))
                break
    return pairs[::-1]
