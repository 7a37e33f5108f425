"""Random draws with identical values on every machine and Python version.

Python guarantees this only for ``random.Random(str).random()``, not for ``choice``, ``shuffle`` and
``sample``, so this module implements them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def stream(*parts: object) -> Random:
    """Return a separate generator for a named part of the world.

    Parts are independent: more draws for one dialogue do not change the others.
    """
    return Random("-".join(str(part) for part in parts))


def draw_below(rng: Random, end: int) -> int:
    """Draw an integer from 0 to ``end - 1``."""
    return int(rng.random() * end)


def pick(rng: Random, values: Sequence[T]) -> T:
    """Draw one of ``values``."""
    return values[draw_below(rng, len(values))]


def shuffle_values(rng: Random, values: Sequence[T]) -> list[T]:
    """Return ``values`` in random order (Fisher-Yates)."""
    result = list(values)
    for last in range(len(result) - 1, 0, -1):
        other = draw_below(rng, last + 1)
        result[last], result[other] = result[other], result[last]
    return result


def draw_forever(rng: Random, values: Sequence[T]) -> Iterator[T]:
    """Yield ``values`` forever, reshuffled after each pass.

    Each value occurs once per pass, so even a small split has all of them.
    """
    while True:
        yield from shuffle_values(rng, values)
