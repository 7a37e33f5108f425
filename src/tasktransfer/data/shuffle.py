"""Instances whose labels say nothing: the answers of a split, permuted among its instances.

Every answer is given as often as before, so that label frequencies, label words and lengths stay,
and only which text has which answer is lost. Places are decided by digests, not by a random number
generator: they depend on seed, task, split and position alone, and on no library's version.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

from tasktransfer.tasks.card import Instance

_WORD = re.compile(r"\S+")

UNANSWERABLE = -1
"""The place of a span's answer that is not in its context (``Instance.starts``)."""


def shuffled(instances: Sequence[Instance], *key: object) -> list[Instance]:
    """The same instances in the same order, each with the answer of another or, by chance, its own.

    Args:
        instances: of one task and split. Labels, options' numbers and answers per trait are taken
            over whole. A span is a piece of its own context and cannot be taken over: an instance
            gets the number of words of the other's answers, at a place drawn from its own context,
            and is unanswerable if the other is.
        key: what the permutation depends on beside the positions.
    """
    order = sorted(range(len(instances)), key=lambda place: _number(*key, "order", place))
    return [
        _answered_as(instance, instances[order[place]], (*key, place))
        for place, instance in enumerate(instances)
    ]


def _answered_as(instance: Instance, other: Instance, key: tuple[object, ...]) -> Instance:
    if not other.starts:
        return replace(instance, target=other.target)
    answers = [
        (text, UNANSWERABLE)
        if start == UNANSWERABLE
        else _drawn(instance.context, len(text.split()), (*key, number))
        for number, (text, start) in enumerate(zip(other.target, other.starts, strict=True))
    ]
    texts, starts = zip(*answers, strict=True)
    return replace(instance, target=texts, starts=starts)


def _drawn(context: str, words: int, key: tuple[object, ...]) -> tuple[str, int]:
    """So many words of a context, or all if it has fewer, and where they begin."""
    found = list(_WORD.finditer(context))
    count = min(max(1, words), len(found))
    first = _number(*key, "span") % (len(found) - count + 1)
    start, end = found[first].start(), found[first + count - 1].end()
    return context[start:end], start


def _number(*key: object) -> int:
    """A number that nothing but the key decides."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:16], "big")
