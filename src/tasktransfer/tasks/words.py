"""Word tokenization for the comparison of replies and for vocabularies."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"\w+|[^\w\s]+")
_CACHE_SIZE = 1 << 15


@lru_cache(maxsize=_CACHE_SIZE)
def split_words(text: str) -> tuple[str, ...]:
    """Split a text into lower-case words and runs of punctuation."""
    return tuple(_WORD.findall(text.lower()))
