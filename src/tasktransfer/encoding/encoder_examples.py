"""Conversion of instances to an encoder's examples: one or two segments and labels for its head.

Spans are labelled by tokens. If truncation removes a gold answer, the example has no label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tasktransfer.core.specs import Family
from tasktransfer.encoding.encoded import IGNORED_LABEL, Example
from tasktransfer.encoding.middle import remove_middles
from tasktransfer.encoding.tokenizer import Tokenizer
from tasktransfer.tasks.card import SCALE_STEPS, Instance, Task, compute_fraction, find_answer_spans
from tasktransfer.tasks.compose import build_encoder_text, build_option_texts

BATCH_SIZE = 512
MAX_RESPONSE_FRACTION = 0.75
"""Largest fraction of an input that a too long response may take."""


def build_encoder_examples(
    tokenizer: Tokenizer,
    task: Task,
    rows: Sequence[Instance],
    max_length: int,
    lost_spans: str = "skipped",
) -> Iterator[Example]:
    """Yield one example per instance, with truncated contexts and encoded labels.

    Args:
        lost_spans: label of a gold span that truncation removed, ``skipped`` or ``first_token``.
    """
    pairs = [_build_encoder_pairs(task, row) for row in rows]
    tokenizer.truncation_side = "left" if task.keeps == "end" else "right"
    shortened = "only_second" if task.first == "query" else "only_first"
    flat = [pair for row in pairs for pair in row]
    if task.keeps == "both":
        flat = remove_middles(tokenizer, flat, int(task.first == "query"), max_length)
    encoded, texts = _encode_pairs(tokenizer, flat, max_length, shortened), iter(flat)
    for position, (row, row_pairs) in enumerate(zip(rows, pairs, strict=True)):
        results = [next(encoded) for _ in row_pairs]
        read = [next(texts) for _ in row_pairs]
        encodings = [encoding for encoding, _ in results]
        offsets = (
            _list_context_offsets(encodings[0], bool(row_pairs[0][0]))
            if task.kind == "span"
            else []
        )
        yield Example(
            instance=position,
            output=0,
            sequences=[e.ids for e in encodings],
            second_starts=[_locate_second_segment(e) for e in encodings],
            labels=_encode_labels(task, row, offsets, lost_spans),
            offsets=[edge for pair in offsets for edge in pair],
            turn_starts=_locate_turns(task, row, encodings, read),
            shortened=any(too_long for _, too_long in results),
        )


def _build_encoder_pairs(task: Task, row: Instance) -> list[tuple[str, str]]:
    """Return the pairs of query and context of an instance, in the card's order."""
    if task.kind == "multiple_choice":
        return [(query, row.context) for query in build_option_texts(task, row)]
    query, context = build_encoder_text(task, row)
    return [(query, context) if task.first == "query" else (context, query)]


def _encode_pairs(
    tokenizer: Tokenizer,
    pairs: Sequence[tuple[str, str]],
    max_length: int,
    shortened: str = "only_second",
) -> Iterator[tuple[Any, bool]]:
    """Yield the token IDs of [CLS] query [SEP] context [SEP], or of the context alone.

    The context is truncated. Pairs are encoded in batches, because tokenizers process a batch in
    parallel. Either all pairs of a task have a query, or none of them.

    Args:
        shortened: the context's position, as a truncation strategy of the tokenizer.

    Yields:
        The encoding of a pair, and whether its other segment was truncated as well.
    """
    for begin in range(0, len(pairs), BATCH_SIZE):
        batch = pairs[begin : begin + BATCH_SIZE]
        try:
            yield from (
                (encoded, False)
                for encoded in _tokenise_pairs(tokenizer, batch, max_length, shortened)
            )
        except Exception as error:
            # Fast tokenizers raise a bare Exception if a query is too long by itself. Only then
            # the query is truncated, too.
            if "Truncation error" not in str(error):
                raise
            for pair in batch:
                yield from _tokenise_pair(tokenizer, pair, max_length, shortened)


def _tokenise_pair(
    tokenizer: Tokenizer, pair: tuple[str, str], max_length: int, shortened: str
) -> list[tuple[Any, bool]]:
    try:
        return [
            (encoded, False)
            for encoded in _tokenise_pairs(tokenizer, [pair], max_length, shortened)
        ]
    except Exception as error:
        if "Truncation error" not in str(error):
            raise
    if shortened == "only_first":  # Truncate the response too, to leave space for some context.
        words = tokenizer(pair[1], add_special_tokens=False).encodings[0]
        last = words.offsets[max(1, int(MAX_RESPONSE_FRACTION * max_length)) - 1][1]
        pair, strategy = (pair[0], pair[1][:last]), shortened
    else:
        strategy = "longest_first"
    return [(encoded, True) for encoded in _tokenise_pairs(tokenizer, [pair], max_length, strategy)]


def _tokenise_pairs(
    tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], max_length: int, strategy: str
) -> list[Any]:
    queries, contexts = [query for query, _ in pairs], [context for _, context in pairs]
    if any(queries):
        encoded = tokenizer(queries, contexts, truncation=strategy, max_length=max_length)
    else:
        encoded = tokenizer(contexts, truncation=True, max_length=max_length)
    encodings: list[Any] = encoded.encodings
    return encodings


def _locate_second_segment(encoded: Any) -> int:
    """Return the index of the second segment's first token, or the length without one."""
    types: list[int] = encoded.type_ids
    if 1 in types:
        return types.index(1)
    segments: list[int | None] = encoded.sequence_ids  # These exist without token types.
    return segments.index(1) if 1 in segments else len(types)


def _locate_turns(
    task: Task, row: Instance, encodings: Sequence[Any], texts: Sequence[tuple[str, str]]
) -> list[int]:
    """Return, for each sequence of an instance, the index of the labelled turn's first token.

    The index is 0 if truncation removed the turn, so that all tokens are averaged. The list is
    empty if the instance has no labelled turn.

    Args:
        texts: pair of texts of each sequence, with shortened contexts.
    """
    turn = len(row.context) - row.focus
    if not turn:
        return []
    place = int(task.first == "query")
    starts = []
    for encoded, pair in zip(encodings, texts, strict=True):
        segment = place if pair[0] else 0
        begin = len(pair[place]) - turn  # Contexts are shortened before the turn.
        tokens = enumerate(zip(encoded.offsets, encoded.sequence_ids, strict=True))
        starts.append(next((i for i, ((_, b), s) in tokens if s == segment and b > begin), 0))
    return starts


def _list_context_offsets(encoded: Any, has_query: bool) -> list[tuple[int, int]]:
    """Return each token's character range in the context, or (-1, -1) outside it."""
    context = 1 if has_query else 0
    return [
        edges if segment == context else (-1, -1)
        for edges, segment in zip(encoded.offsets, encoded.sequence_ids, strict=True)
    ]


def _encode_labels(
    task: Task, row: Instance, offsets: list[tuple[int, int]], lost_spans: str
) -> list[int]:
    if task.kind == "span":
        return _encode_span_labels(task, row, offsets, lost_spans)
    if task.kind == "multi_label":
        return [int(label in row.target) for label in task.labels]
    if task.kind == "rating":
        return [round(compute_fraction(task, row.target[0]) * SCALE_STEPS)]
    return [task.labels.index(label) for label in row.target]


def _encode_span_labels(
    task: Task, row: Instance, offsets: list[tuple[int, int]], lost: str
) -> list[int]:
    """Return the first and last token of the first gold answer in the input.

    (0, 0), the first token, means "no answer" and is used only for unanswerable instances. An
    answer that truncation removed is ignored in the loss, or also gets (0, 0) if ``lost`` is
    ``first_token``.
    """
    if all(start < 0 for start in row.starts) and _is_unanswerable(row):
        return [0, 0]
    for start, end in find_answer_spans(task, row):
        inside = [i for i, (a, b) in enumerate(offsets) if a >= 0 and a < end and b > start]
        if inside and offsets[inside[0]][0] <= start and offsets[inside[-1]][1] >= end:
            return [inside[0], inside[-1]]
    return [0, 0] if lost == "first_token" else [IGNORED_LABEL, IGNORED_LABEL]


def measure_longest_span(examples: Sequence[Example]) -> int:
    """Return the length in tokens of the longest gold span, which limits predicted spans."""
    return max((last - first + 1 for first, last in (e.labels for e in examples)), default=1)


def count_lost_answers(task: Task, family: Family, examples: Sequence[Example]) -> int:
    """Count the gold answers that truncation removes from an encoder's inputs."""
    if family != "encoder" or task.kind != "span":
        return 0
    return sum(example.labels[0] == IGNORED_LABEL for example in examples)


def _is_unanswerable(row: Instance) -> bool:
    return "impossible" in row.target[0].lower() if row.target else True
