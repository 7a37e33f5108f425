"""Word tokenization for the comparison of replies and for vocabularies."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"\w+|[^\w\s]+")
_CACHE_SIZE = 1 << 15


@lru_cache(maxsize=_CACHE_SIZE)
def split_words(text: str) -> tuple[str, ...]:
    """Return the words and runs of punctuation of a text, in lower case."""
    return tuple(_WORD.findall(text.lower()))
