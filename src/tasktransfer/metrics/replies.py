"""Metrics of generated replies: BLEU-2, ROUGE-L and METEOR of each sentence, 0 to 1.

A text is compared in lower case, as words and runs of punctuation. Each metric is the mean over
instances, as in Parthasarathi et al. 2021 (section 4.2, "BLEU-2, case insensitive").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from tasktransfer.metrics.answers import Coded
from tasktransfer.metrics.labels import Sums
from tasktransfer.tasks.words import words

Words = tuple[str, ...]


def tally(name: str, guesses: Coded, right: Coded) -> Sums:
    """A metric of each instance with its best right answer, and one instance, (n, 2)."""
    metric = METRICS[name]
    sums = np.ones((len(right), 2))
    for row in range(len(right)):
        (guess,) = guesses.of(row)
        sums[row, 0] = max(
            metric(words(guess), words(right_answer)) for right_answer in right.of(row)
        )
    return sums


def bleu2(hypothesis: Words, reference: Words) -> float:
    """Sentence BLEU-2 (Papineni et al. 2002, uniform weights, not smoothed): the geometric mean of
    clipped precisions of words and pairs, times the brevity penalty. 0 where no pair agrees."""
    precisions = [
        _precision(Counter(hypothesis), Counter(reference)),
        _precision(Counter(pairwise(hypothesis)), Counter(pairwise(reference))),
    ]
    if not all(precisions):
        return 0.0
    brevity = min(0.0, 1 - len(reference) / len(hypothesis))
    return math.exp(brevity) * math.sqrt(precisions[0] * precisions[1])


def bleu2_exchanged(hypothesis: Words, reference: Words) -> float:
    """BLEU-2 with hypothesis and reference exchanged, as the released code calls it."""
    return bleu2(reference, hypothesis)


def rouge_l(hypothesis: Words, reference: Words) -> float:
    """ROUGE-L F1 (Lin 2004): by the longest common subsequence."""
    common = _longest_common(hypothesis, reference)
    return 2 * common / (len(hypothesis) + len(reference)) if common else 0.0


def meteor(hypothesis: Words, reference: Words) -> float:
    """METEOR with exact matches alone (Banerjee and Lavie 2005, with the weights 0.9, 3 and 0.5):
    neither stems nor WordNet's synonyms, which need data that is not here."""
    matches = _aligned(hypothesis, reference)
    if not matches:
        return 0.0
    precision, recall = len(matches) / len(hypothesis), len(matches) / len(reference)
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    chunks = 1 + sum(b != (a[0] + 1, a[1] + 1) for a, b in pairwise(matches))
    return float(mean * (1 - 0.5 * (chunks / len(matches)) ** 3))


METRICS: dict[str, Callable[[Words, Words], float]] = {
    "bleu2": bleu2,
    "bleu2_exchanged": bleu2_exchanged,
    "rouge_l": rouge_l,
    "meteor": meteor,
}


def _precision(guessed: Counter[object], wanted: Counter[object]) -> float:
    total = guessed.total()
    return (guessed & wanted).total() / total if total else 0.0


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    lengths = [0] * (len(second) + 1)
    for word in first:
        diagonal = 0
        for index, other in enumerate(second, start=1):
            above = lengths[index]
            lengths[index] = diagonal + 1 if word == other else max(above, lengths[index - 1])
            diagonal = above
    return lengths[-1]


def _aligned(hypothesis: Words, reference: Words) -> list[tuple[int, int]]:
    """Pairs of equal words, each word once, from the end as NLTK pairs them; in order."""
    free = list(enumerate(reference))
    pairs = []
    for index in range(len(hypothesis) - 1, -1, -1):
        for at in range(len(free) - 1, -1, -1):
            if free[at][1] == hypothesis[index]:
                pairs.append((index, free.pop(at)[0]))
                break
    return pairs[::-1]
