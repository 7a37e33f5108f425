"""Metrics of replies on cases that are computed by hand."""

from __future__ import annotations

from math import exp, sqrt

import pytest

from tasktransfer.metrics.replies import (
    compute_bleu2,
    compute_bleu2_exchanged,
    compute_meteor,
    compute_rouge_l,
)
from tasktransfer.tasks.compose import split_words


def test_bleu2_by_hand() -> None:
    # Words: the, cat, sat of 4 are there (3/4); pairs: the cat, cat sat of 3 (2/3).
    assert compute_bleu2(
        split_words("the cat sat down"), split_words("the cat sat on it")
    ) == pytest.approx(exp(1 - 5 / 4) * sqrt(3 / 4 * 2 / 3))
    # Longer than the reference: no brevity penalty; 3 of 5 words, 2 of 4 pairs.
    assert compute_bleu2(
        split_words("the cat sat on it"), split_words("the cat sat down")
    ) == pytest.approx(sqrt(3 / 5 * 2 / 4))


def test_repeated_words_are_clipped() -> None:
    assert compute_bleu2(split_words("the the the"), split_words("the cat the")) == 0.0
    assert compute_bleu2(split_words("the cat the cat"), split_words("the cat")) == pytest.approx(
        sqrt(2 / 4 * 1 / 3)
    )


def test_exchanged_is_the_other_way_round() -> None:
    first, second = split_words("a b c d"), split_words("a b x")
    assert (
        compute_bleu2_exchanged(first, second)
        == compute_bleu2(second, first)
        != compute_bleu2(first, second)
    )


def test_case_does_not_count_and_nothing_scores_nothing() -> None:
    assert compute_bleu2(
        split_words("Hello There !"), split_words("hello there !")
    ) == pytest.approx(1.0)
    assert (
        compute_bleu2((), split_words("a b"))
        == compute_bleu2(split_words("a"), split_words("a"))
        == 0.0
    )


def test_rouge_l_by_hand() -> None:
    # Longest common subsequence of 3 (a c d): F1 = 2 * 3 / (4 + 5).
    assert compute_rouge_l(split_words("a b c d"), split_words("a x c y d")) == pytest.approx(6 / 9)
    assert compute_rouge_l((), split_words("a")) == 0.0


def test_meteor_by_hand() -> None:
    # All four words in one chunk: 1 - 0.5 (1/4)^3.
    assert compute_meteor(split_words("a b c d"), split_words("a b c d")) == pytest.approx(
        1 - 0.5 / 64
    )
    # Three of three words of four, in two chunks: P = 1, R = 3/4.
    mean = 0.75 / (0.9 * 1 + 0.1 * 0.75)
    assert compute_meteor(split_words("a b d"), split_words("a b c d")) == pytest.approx(
        mean * (1 - 0.5 * (2 / 3) ** 3)
    )


@pytest.mark.parametrize(
    ("hypothesis", "reference", "by_nltk", "exchanged_by_nltk"),
    [
        (
            "the train leaves at 17:15 and the price is 10 pounds",
            "the train leaves at 17:15",
            0.5188745217,
            0.4243728457,
        ),
        ("you are welcome", "you are very welcome , goodbye !", 0.1863913239, 0.2672612419),
    ],
)
def test_bleu2_is_nltks(
    hypothesis: str, reference: str, by_nltk: float, exchanged_by_nltk: float
) -> None:
    """``sentence_bleu`` of NLTK 3.10.4 on the same words, weights (0.5, 0.5), without smoothing."""
    ours = compute_bleu2(split_words(hypothesis), split_words(reference))
    assert ours == pytest.approx(by_nltk, abs=1e-9)
    exchanged = compute_bleu2_exchanged(split_words(hypothesis), split_words(reference))
    assert exchanged == pytest.approx(exchanged_by_nltk, abs=1e-9)
