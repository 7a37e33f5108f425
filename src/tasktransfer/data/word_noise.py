"""Noise on the words of a text: dropped, shuffled, repeated or replaced words."""

from __future__ import annotations

import random
from collections.abc import Sequence

MAX_DAMAGED_FRACTION = 0.5
"""Maximum fraction of the words that are dropped or repeated."""


def sample_positions(count: int, most: float, chance: random.Random) -> list[int]:
    """Sample distinct positions from 0 to ``count`` - 1, in order.

    At least one position is sampled, and at most the fraction ``most`` of all positions.
    """
    return sorted(chance.sample(range(count), chance.randint(1, max(1, int(most * count)))))


def drop_words(text: str, chance: random.Random) -> str:
    """Drop up to half of a text's words at random."""
    words = text.split()
    gone = sample_positions(len(words), MAX_DAMAGED_FRACTION, chance)
    return " ".join(word for index, word in enumerate(words) if index not in gone)


def shuffle_words(text: str, chance: random.Random) -> str:
    """Shuffle the words of a text."""
    words = text.split()
    return " ".join(chance.sample(words, len(words)))


def repeat_words(text: str, chance: random.Random) -> str:
    """Repeat up to half of a text's words, each of them once."""
    words = text.split()
    twice = sample_positions(len(words), MAX_DAMAGED_FRACTION, chance)
    return " ".join(f"{word} {word}" if at in twice else word for at, word in enumerate(words))


def replace_words(text: str, fill: Sequence[str], most: float, chance: random.Random) -> str:
    """Replace up to a fraction ``most`` of a text's words by words of ``fill``.

    The text is unchanged if this fraction is less than one word.
    """
    words = text.split()
    if int(most * len(words)) < 1:
        return text
    for place in sample_positions(len(words), most, chance):
        words[place] = chance.choice([word for word in fill if word != words[place]] or fill)
    return " ".join(words)
