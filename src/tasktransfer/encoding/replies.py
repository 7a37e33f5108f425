"""Token ids of contexts and replies, for models that encode them separately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tasktransfer.encoding.encoded import Example
from tasktransfer.encoding.tokenizer import Tokenizer
from tasktransfer.tasks.card import Instance, Task


def encode_contexts_separately(
    tokenizers: Sequence[Tokenizer],
    task: Task,
    rows: Sequence[Instance],
    max_length: int,
    *,
    candidates: bool,
) -> Iterator[Example]:
    """Yield one example per instance, with context and reply encoded separately.

    Each tokenizer yields its own sequences. Labels are class indices. Replies have no labels.

    Args:
        candidates: whether to include replies.
    """
    with_reply = candidates and task.kind == "reply"
    columns: list[list[list[int]]] = []
    for tokenizer in tokenizers:
        tokenizer.truncation_side = "left" if task.keeps == "end" else "right"
        columns.append(_tokenise_texts(tokenizer, [row.context for row in rows], max_length))
        if with_reply:
            columns.append(_tokenise_texts(tokenizer, [row.target[0] for row in rows], max_length))
    for position, row in enumerate(rows):
        sequences = [column[position] for column in columns]
        labels = [task.labels.index(label) for label in row.target] if task.labels else []
        yield Example(position, 0, sequences, [len(ids) for ids in sequences], labels, [])


def add_second_encoding(
    examples: Iterator[Example],
    tokenizer: Tokenizer,
    task: Task,
    rows: Sequence[Instance],
    most: int,
) -> Iterator[Example]:
    """Yield the examples with their contexts also encoded by a second tokenizer."""
    others = encode_contexts_separately([tokenizer], task, rows, most, candidates=False)
    for example, other in zip(examples, others, strict=True):
        both = [*example.sequences, *other.sequences]
        yield replace(example, sequences=both, second_starts=[len(ids) for ids in both])


def _tokenise_texts(tokenizer: Tokenizer, texts: list[str], max_length: int) -> list[list[int]]:
    if not texts:
        return []
    ids: list[list[int]] = tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
    return ids
