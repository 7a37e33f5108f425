"""Random sampling with identical values on all machines and Python versions.

Python guarantees this only for ``random.Random(str).random()``, not for ``choice``, ``shuffle`` and
``sample``, so this module implements them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def create_generator(*parts: object) -> Random:
    """Create a random generator for a named part of the generated data.

    Parts are independent, so more samples for one dialogue do not change the others.
    """
    return Random("-".join(str(part) for part in parts))


def sample_integer(rng: Random, end: int) -> int:
    """Return a random integer from 0 to ``end - 1``."""
    return int(rng.random() * end)


def sample_value(rng: Random, values: Sequence[T]) -> T:
    """Return a random element of ``values``."""
    return values[sample_integer(rng, len(values))]


def shuffle_values(rng: Random, values: Sequence[T]) -> list[T]:
    """Return ``values`` in random order (Fisher-Yates)."""
    result = list(values)
    for last in range(len(result) - 1, 0, -1):
        other = sample_integer(rng, last + 1)
        result[last], result[other] = result[other], result[last]
    return result


def cycle_shuffled(rng: Random, values: Sequence[T]) -> Iterator[T]:
    """Yield ``values`` endlessly, and shuffle them before each pass.

    Each value occurs once per pass, so even a small split has all of them.
    """
    while True:
        yield from shuffle_values(rng, values)
