"""Normalised texts for comparison (lower case, no punctuation), and contexts as one text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_MARKS = re.compile(r"[^\w\s]|_")


@lru_cache(1 << 17)  # an utterance is in several contexts
def normalise_text(text: str) -> str:
    """Return a text in lower case, with punctuation replaced by spaces.

    ``I'm`` and ``i 'm`` become the same, because some releases are tokenised and others are not.
    """
    return " ".join(_MARKS.sub(" ", text.lower()).split())


def join_utterances(utterances: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Join utterances into one context, and return it with each utterance's character offset."""
    starts, start = [], 0
    for text in utterances:
        starts.append(start)
        start += len(text) + 1
    return " ".join(utterances), tuple(starts)


def split_context(context: str, starts: Sequence[int]) -> tuple[str, ...]:
    """Split a context into its utterances (the inverse of ``join_utterances``)."""
    ends = [*(start - 1 for start in starts[1:]), len(context)]
    return tuple(context[start:end] for start, end in zip(starts, ends, strict=True))
