"""Words of texts: tokenization, and numbers of words and tokens, also in scripts without spaces."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"\w+|[^\w\s]+")
_CACHE_SIZE = 1 << 15


@lru_cache(maxsize=_CACHE_SIZE)
def split_words(text: str) -> tuple[str, ...]:
    """Split a text into lower-case words and runs of punctuation."""
    return tuple(_WORD.findall(text.lower()))


TOKENS_PER_WORD = 1.4
"""BERT's word pieces per word, for forecasts."""
WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)
"""Characters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, kana, Han."""


def count_unspaced_characters(text: str) -> int:
    """Count characters of scripts that do not separate words by spaces."""
    return 0 if text.isascii() else len(WITHOUT_SPACES.findall(text))


def count_spaced_words(text: str) -> int:
    """Count words, where two characters count as a word in scripts without spaces."""
    return _count_other_words(text) + (count_unspaced_characters(text) + 1) // 2


def estimate_tokens(text: str) -> float:
    """Estimate the number of BERT tokens in a text.

    In scripts without spaces, a character is a token.
    """
    return _count_other_words(text) * TOKENS_PER_WORD + count_unspaced_characters(text)


def _count_other_words(text: str) -> int:
    """Count words between spaces, except in scripts without spaces."""
    if not count_unspaced_characters(text):
        return len(text.split())
    pieces = WITHOUT_SPACES.sub(" ", text).split()
    return sum(any(map(str.isalnum, piece)) for piece in pieces)
