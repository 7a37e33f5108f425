"""Removal of the middle of contexts, for tasks whose card has ``keeps: both``."""

from __future__ import annotations

from collections.abc import Sequence

from tasktransfer.encoding.tokenizer import Tokenizer

TOKENIZED_TOGETHER = 512


def keep_both_ends(count: int, room: int) -> tuple[int, int]:
    """Return the numbers of tokens, out of ``count``, to keep at the start and at the end.

    Together they are at most ``room``. If the number is odd, the start has one more.
    """
    kept = max(0, min(count, room))
    return kept - kept // 2, kept // 2


def remove_middles(
    tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], context: int, max_length: int
) -> list[tuple[str, str]]:
    """Remove the middle of the context from pairs of segments that are too long.

    Args:
        context: index of the context in a pair, 0 or 1.
        max_length: maximum length of a sequence in tokens, including special tokens.
    """
    shorter: list[tuple[str, str]] = []
    for begin in range(0, len(pairs), TOKENIZED_TOGETHER):
        some = pairs[begin : begin + TOKENIZED_TOGETHER]
        texts = [pair[context] for pair in some]
        others = [pair[1 - context] for pair in some]
        words = tokenizer(texts, add_special_tokens=False, truncation=False).encodings
        beside = tokenizer(others, add_special_tokens=False, truncation=False).encodings
        for text, other, mine, its in zip(texts, others, words, beside, strict=True):
            special = tokenizer.num_special_tokens_to_add(pair=bool(other))
            head, tail = keep_both_ends(len(mine.ids), max_length - special - len(its.ids))
            left = text
            if head + tail < len(mine.ids) and tail:
                last, first = mine.offsets[head - 1][1], mine.offsets[-tail][0]
                left = f"{text[:last]} {text[first:]}"
            shorter.append((left, other) if context == 0 else (other, left))
    return shorter
