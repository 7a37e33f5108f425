"""Contexts without their middle, for tasks whose card says ``keeps: both``."""

from __future__ import annotations

from collections.abc import Sequence

from tasktransfer.encoding.tokenizer import Tokenizer

TOKENIZED_TOGETHER = 512


def keep_both_ends(count: int, room: int) -> tuple[int, int]:
    """Return how many of ``count`` tokens stay at the start and at the end, ``room`` together; the
    start has one more where the number is odd."""
    kept = max(0, min(count, room))
    return kept - kept // 2, kept // 2


def remove_middles(
    tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], context: int, max_length: int
) -> list[tuple[str, str]]:
    """Return pairs of segments whose contexts lack their middle where a pair is too long.

    Args:
        context: which segment of a pair is the context, 0 or 1.
        max_length: tokens of a sequence at most, special tokens included.
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
