"""Texts as words: what replies are compared by, and what vocabularies are counted from."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"\w+|[^\w\s]+")
_REMEMBERED = 1 << 15


@lru_cache(maxsize=_REMEMBERED)
def words(text: str) -> tuple[str, ...]:
    """Words and runs of punctuation, in lower case."""
    return tuple(_WORD.findall(text.lower()))
