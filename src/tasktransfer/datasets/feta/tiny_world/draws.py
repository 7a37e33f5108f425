"""Random draws that give the same values on every machine and every Python.

Only ``random.Random(str).random()`` is promised to stay the same between Python versions;
``choice``, ``shuffle`` and ``sample`` are not, so these few are written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def stream(*parts: object) -> Random:
    """Return a generator of its own for one named part of the world.

    Parts are independent: drawing more for one dialogue leaves every other one as it was.
    """
    return Random("-".join(str(part) for part in parts))


def below(rng: Random, end: int) -> int:
    """Draw an integer from 0 to ``end - 1``."""
    return int(rng.random() * end)


def pick(rng: Random, values: Sequence[T]) -> T:
    """Draw one of ``values``."""
    return values[below(rng, len(values))]


def shuffled(rng: Random, values: Sequence[T]) -> list[T]:
    """Return ``values`` in random order (Fisher-Yates)."""
    result = list(values)
    for last in range(len(result) - 1, 0, -1):
        other = below(rng, last + 1)
        result[last], result[other] = result[other], result[last]
    return result


def deck(rng: Random, values: Sequence[T]) -> Iterator[T]:
    """Deal ``values`` forever, reshuffled after each round.

    Every value is dealt before any is dealt again, so even a small split sees each of them.
    """
    while True:
        yield from shuffled(rng, values)
