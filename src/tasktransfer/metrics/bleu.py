"""AVG BLEU: the mean of cumulative corpus BLEU-1 to -4 with one reference per reply.

It is defined in section 5.1 of Rashkin et al. BLEU-n is the geometric mean of the precisions of 1-
to n-grams, times the brevity penalty of the corpus. It is computed from sums over replies: correct
n-grams, all n-grams, and words.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

import numpy as np

from tasktransfer.metrics.answers import CodedAnswers
from tasktransfer.metrics.labels import Sums

ORDERS = 4
WIDTH = 2 * ORDERS + 2
"""Number of columns: correct n-grams and n-grams per order, words of reply and reference."""

_WORD = re.compile(r"\w+|[^\w\s]")


@lru_cache(maxsize=1 << 16)
def split_words(text: str) -> tuple[str, ...]:
    """Split a text into lower-case words and single punctuation marks."""
    return tuple(_WORD.findall(text.lower()))


def tally_ngrams(predictions: CodedAnswers, golds: CodedAnswers) -> Sums:
    """Return each reply's terms in the sums of corpus BLEU, shape (n, ``WIDTH``)."""
    pairs = zip(range(len(predictions)), range(len(golds)), strict=True)
    rows = [
        _build_ngram_row(
            split_words(predictions.get_answers(i)[0]), split_words(golds.get_answers(j)[0])
        )
        for i, j in pairs
    ]
    return np.array(rows, np.float64).reshape(len(rows), WIDTH)


def _build_ngram_row(reply: tuple[str, ...], reference: tuple[str, ...]) -> list[int]:
    correct, totals = [], []
    for order in range(1, ORDERS + 1):
        predicted, gold = (Counter(_list_grams(text, order)) for text in (reply, reference))
        correct.append(sum((predicted & gold).values()))
        totals.append(max(0, len(reply) - order + 1))
    return [*correct, *totals, len(reply), len(reference)]


def _list_grams(text: tuple[str, ...], order: int) -> list[tuple[str, ...]]:
    return [text[i : i + order] for i in range(len(text) - order + 1)]


def compute_mean_bleu(sums: Sums) -> Sums:
    """Compute AVG BLEU, 0 to 1, from summed tallies (..., ``WIDTH``)."""
    mean: Sums = compute_bleu_by_order(sums).mean(axis=-1)
    return mean


def compute_bleu_by_order(sums: Sums) -> Sums:
    """Compute BLEU-1 to BLEU-4, 0 to 1, of shape (..., 4).

    They are 0 for orders without correct n-grams.
    """
    correct, totals = sums[..., :ORDERS], sums[..., ORDERS : 2 * ORDERS]
    reply_words, reference_words = sums[..., -2:-1], sums[..., -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(totals > 0, correct / totals, 0.0))
        brevity = np.minimum(0.0, 1 - reference_words / reply_words)
        means = np.cumsum(logs, axis=-1) / np.arange(1, ORDERS + 1)
    return np.where(reply_words > 0, np.exp(means + brevity), 0.0)
