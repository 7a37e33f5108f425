"""Texts as they are compared: without case and punctuation; and contexts as one text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_MARKS = re.compile(r"[^\w\s]|_")


@lru_cache(1 << 17)  # an utterance is in several contexts
def plain(text: str) -> str:
    """A text in lower case without punctuation, which parts words: ``I'm`` and ``i 'm`` are the
    same, as some releases were tokenised and others not."""
    return " ".join(_MARKS.sub(" ", text.lower()).split())


def joined(utterances: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Utterances as one context, and the character offsets at which they begin."""
    starts, start = [], 0
    for text in utterances:
        starts.append(start)
        start += len(text) + 1
    return " ".join(utterances), tuple(starts)


def parted(context: str, starts: Sequence[int]) -> tuple[str, ...]:
    """The utterances of a context, see ``joined``."""
    ends = [*(start - 1 for start in starts[1:]), len(context)]
    return tuple(context[start:end] for start, end in zip(starts, ends, strict=True))
