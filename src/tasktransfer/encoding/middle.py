"""Removal of the middle of contexts, for tasks whose card has ``keeps: both``."""

from __future__ import annotations

from collections.abc import Sequence

from tasktransfer.encoding.tokenizer import Tokenizer

BATCH_SIZE = 512


def compute_kept_ends(count: int, room: int) -> tuple[int, int]:
    """Return how many of ``count`` tokens to keep at the start and at the end.

    Together they are at most ``room``. If the number is odd, the start has one more.
    """
    kept = max(0, min(count, room))
    return kept - kept // 2, kept // 2


def remove_middles(
    tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], context: int, max_length: int
) -> list[tuple[str, str]]:
    """Remove the middle of each context that is too long from pairs of segments.

    Args:
        context: index of the context in a pair, 0 or 1.
        max_length: maximum length of a sequence in tokens, including special tokens.
    """
    shorter: list[tuple[str, str]] = []
    for begin in range(0, len(pairs), BATCH_SIZE):
        batch = pairs[begin : begin + BATCH_SIZE]
        texts = [pair[context] for pair in batch]
        others = [pair[1 - context] for pair in batch]
        words = tokenizer(texts, add_special_tokens=False, truncation=False).encodings
        beside = tokenizer(others, add_special_tokens=False, truncation=False).encodings
        for text, other, tokens, other_tokens in zip(texts, others, words, beside, strict=True):
            special = tokenizer.num_special_tokens_to_add(pair=bool(other))
            head, tail = compute_kept_ends(
                len(tokens.ids), max_length - special - len(other_tokens.ids)
            )
            shortened = text
            if head + tail < len(tokens.ids) and tail:
                last, first = tokens.offsets[head - 1][1], tokens.offsets[-tail][0]
                shortened = f"{text[:last]} {text[first:]}"
            shorter.append((shortened, other) if context == 0 else (other, shortened))
    return shorter
