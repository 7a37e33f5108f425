"""Conversion of instances to token ids as in the paper's toolkit, TLiDB (``fidelity.inputs``).

The toolkit truncates one text at its end. (``encoding.encode`` uses two segments and removes the
oldest context.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tasktransfer.core.fidelity import Fidelity
from tasktransfer.core.specs import Family
from tasktransfer.encoding.encoded import IGNORED_LABEL, Example
from tasktransfer.encoding.text import encode_answers
from tasktransfer.tasks.card import Instance, Task, ToolkitForms
from tasktransfer.tasks.toolkit_texts import (
    build_answer_texts,
    build_encoder_texts,
    build_prompt_text,
)

T5_ANSWER_TOKENS = 19
"""The library's default length of 20 without the token that begins an answer."""

Edges = tuple[int, int]


def build_encoder_examples(
    forms: ToolkitForms,
    tokenizer: Any,
    task: Task,
    rows: Sequence[Instance],
    max_length: int,
    fidelity: Fidelity,
) -> Iterator[Example]:
    """Yield one example per instance for an encoder, built as by the paper's toolkit."""
    for position, row in enumerate(rows):
        texts = build_encoder_texts(forms, task, row, tokenizer.sep_token)
        encoded = _encode_truncated(tokenizer, [joined.text for joined in texts], max_length)
        sequences = [list(sequence.ids) for sequence in encoded]
        example = Example(position, 0, sequences, [len(ids) for ids in sequences], [], [])
        if task.kind == "span":
            ranges, special = encoded[0].offsets, encoded[0].special_tokens_mask
            answers = [
                _locate_answer_tokens(ranges, start, length, fidelity.lost_spans)
                for start, length in texts[0].answers
            ]
            example.labels[:] = answers[0]
            if fidelity.several_answers == "drawn" and len(answers) > 1:
                example.answers[:] = [list(edges) for edges in answers]
            # Any token may begin or end a span. Special tokens stand for an empty text.
            for (a, b), mark in zip(ranges, special, strict=True):
                example.offsets.extend((-1, -1) if mark else (a, b))
        elif task.kind == "multi_label":
            example.labels[:] = [int(label in row.target) for label in task.labels]
        else:
            example.labels[:] = [task.labels.index(label) for label in row.target]
        yield example


def _encode_truncated(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[Any]:
    """Tokenize texts, truncated at their end.

    The tokenizer's own truncation side does not matter and stays unchanged.
    """
    side, tokenizer.truncation_side = tokenizer.truncation_side, "right"
    try:
        encodings: list[Any] = tokenizer(
            list(texts), truncation=True, max_length=max_length
        ).encodings
    finally:
        tokenizer.truncation_side = side
    return encodings


def _locate_answer_tokens(ranges: Sequence[Edges], start: int, length: int, lost: str) -> Edges:
    """Return the first and the last token of an answer.

    Each is the first token other than [CLS] that touches the answer's edge, even at the token's
    end. An edge that truncation removed becomes the first token, or the answer is ignored in the
    loss if ``lost`` is ``skipped``.
    """
    if start < 0:
        return 0, 0
    edges = [
        next((i for i, (a, b) in enumerate(ranges) if i and a <= at <= b), 0)
        for at in (start, start + length)
    ]
    if lost == "skipped" and 0 in edges:
        return IGNORED_LABEL, IGNORED_LABEL
    return edges[0], edges[1]


def build_text_to_text_examples(
    forms: ToolkitForms,
    tokenizer: Any,
    task: Task,
    rows: Sequence[Instance],
    max_length: int,
    family: Family,
    fidelity: Fidelity,
    reserved: int,
) -> Iterator[Example]:
    """Yield one text-to-text example per prompt, built as by the paper's toolkit.

    Args:
        reserved: tokens that a decoder's prompt leaves free for the generated answer. The toolkit
            reserves none, and its decoders run out of positions and stop.
    """
    room = max_length - reserved if family == "decoder" else max_length
    outputs: list[int | None] = list(range(len(task.outputs))) or [None]
    for position, row in enumerate(rows):
        for output in outputs:
            text = build_prompt_text(forms, task, row, output)
            ids = list(_encode_truncated(tokenizer, [text], room)[0].ids)
            answers = encode_answers(tokenizer, build_answer_texts(task, row, output), family)
            if family == "decoder":
                answers = [answer[: max_length - len(ids)] for answer in answers]
            several = fidelity.several_answers == "drawn" and len(answers) > 1
            yield Example(
                position,
                output or 0,
                [ids],
                [len(ids)],
                list(answers[0]),
                [],
                [list(answer) for answer in answers] if several else [],
            )


def get_answer_limit(forms: ToolkitForms, family: Family) -> int:
    """Return the toolkit's maximum number of tokens in a generated answer.

    It is a task's limit for decoders, and the library's default for encoder-decoders.
    """
    return forms.answer_tokens if family == "decoder" else T5_ANSWER_TOKENS
