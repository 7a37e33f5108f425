"""Damage to the words of a text: left out, in another order, said twice, replaced."""

from __future__ import annotations

import random
from collections.abc import Sequence

MOST_DAMAGED = 0.5
"""Share of the words that are left out or said twice, at most."""


def places(count: int, most: float, chance: random.Random) -> list[int]:
    """Distinct places of ``count``, at least one, and at most this share of them."""
    return sorted(chance.sample(range(count), chance.randint(1, max(1, int(most * count)))))


def dropped(text: str, chance: random.Random) -> str:
    """Without up to half of its words."""
    words = text.split()
    gone = places(len(words), MOST_DAMAGED, chance)
    return " ".join(word for index, word in enumerate(words) if index not in gone)


def shuffled(text: str, chance: random.Random) -> str:
    """Its words in another order, which may be the same one."""
    words = text.split()
    return " ".join(chance.sample(words, len(words)))


def repeated(text: str, chance: random.Random) -> str:
    """Up to half of its words said twice."""
    words = text.split()
    twice = places(len(words), MOST_DAMAGED, chance)
    return " ".join(f"{word} {word}" if at in twice else word for at, word in enumerate(words))


def replaced(text: str, fill: Sequence[str], most: float, chance: random.Random) -> str:
    """Words of ``fill`` in place of up to ``most`` of its words; the same text where that is less
    than one word."""
    words = text.split()
    if int(most * len(words)) < 1:
        return text
    for place in places(len(words), most, chance):
        words[place] = chance.choice([word for word in fill if word != words[place]] or fill)
    return " ".join(words)
