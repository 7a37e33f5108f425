"""Token ids of prompts and answers for text-to-text models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tasktransfer.core.specs import Family
from tasktransfer.encoding.encoded import Example
from tasktransfer.encoding.middle import compute_kept_ends
from tasktransfer.encoding.tokenizer import Tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.tasks.compose import build_answer_text, build_prompt_parts, list_verbalizers

BATCH_SIZE = 512


def build_text_to_text_examples(
    tokenizer: Tokenizer,
    task: Task,
    rows: Sequence[Instance],
    max_length: int,
    family: Family,
    answer_limit: int,
) -> Iterator[Example]:
    """Yield one text-to-text example per prompt.

    There is one prompt per instance, or one per trait of an instance in a multi-output task.

    Args:
        max_length: maximum length of the prompt in tokens; in a decoder, of prompt and answer.
        answer_limit: maximum number of tokens in a generated answer.
    """
    outputs: list[int | None] = list(range(len(task.outputs))) or [None]
    prompts = [(position, row, output) for position, row in enumerate(rows) for output in outputs]
    for begin in range(0, len(prompts), BATCH_SIZE):
        batch = prompts[begin : begin + BATCH_SIZE]
        parts = [build_prompt_parts(task, row, output) for _, row, output in batch]
        encoded = tokenizer(["".join(three) for three in parts]).encodings
        answers = [build_answer_text(task, row, output) for _, row, output in batch]
        tokenised = encode_answers(tokenizer, answers, family)
        for (position, row, output), three, prompt, answer in zip(
            batch, parts, encoded, tokenised, strict=True
        ):
            # A decoder's prompt and answer share the maximum length. The reserved space does not
            # depend on the answer, and a longer answer is truncated.
            reserved = answer_limit if family == "decoder" else 0
            ids = _truncate_context(prompt, three, max_length, reserved, row, task.keeps)
            room = max_length - len(ids) if family == "decoder" else len(answer)
            if task.kind == "reply" and len(answer) > answer_limit:
                answer = [*answer[: answer_limit - 1], answer[-1]]  # noqa: PLW2901
            yield Example(position, output or 0, [ids], [len(ids)], answer[:room], [])


def _truncate_context(
    encoded: Any,
    parts: tuple[str, str, str],
    max_length: int,
    reserved: int,
    row: Instance,
    keeps: str,
) -> list[int]:
    """Return a prompt's token IDs, with the context truncated if it is too long.

    Args:
        reserved: tokens of ``max_length`` that are reserved for the answer.
        keeps: part of the context that is kept: the end, the beginning, or both ends.
    """
    ids: list[int] = encoded.ids
    excess = len(ids) - (max_length - reserved)
    if excess <= 0:
        return ids
    before, context, _ = parts
    begin, end = len(before), len(before) + len(context)
    cuttable = [i for i, (a, b) in enumerate(encoded.offsets) if begin <= a < b <= end]
    if len(cuttable) < excess:
        needed = len(ids) - len(cuttable)
        answer = f", and {reserved} are reserved for the answer" if reserved else ""
        raise ModelError(
            f"instance {row.id} of {row.task}: The question and options alone take {needed} "
            f"tokens{answer}, which is more than max_length {max_length}. Raise the model's "
            f"max_length to {needed + reserved} or more (models[].max_length), or remove the task "
            "from the study."
        )
    head = {"end": 0, "both": compute_kept_ends(len(cuttable), len(cuttable) - excess)[0]}.get(
        keeps, len(cuttable) - excess
    )
    dropped = set(cuttable[head : head + excess])
    return [token for i, token in enumerate(ids) if i not in dropped]


def encode_answers(tokenizer: Tokenizer, answers: Sequence[str], family: Family) -> list[list[int]]:
    """Tokenize answers, each with the end-of-sequence token.

    A decoder continues the prompt. An encoder-decoder begins a new sequence, with the special
    tokens of its tokenizer (BART's begins with one, T5's does not).
    """
    eos = tokenizer.eos_token_id
    if family == "decoder":
        texts = [f" {answer}" for answer in answers]
        bare: list[list[int]] = tokenizer(text_target=texts, add_special_tokens=False)["input_ids"]
        return [[*row, eos] for row in bare]
    whole: list[list[int]] = tokenizer(text_target=list(answers))["input_ids"]
    return [row if row[-1:] == [eos] else [*row, eos] for row in whole]


def get_answer_limit(tokenizer: Tokenizer, task: Task, family: Family) -> int:
    """Return the maximum number of tokens in a generated answer.

    It is the length of the longest label, or the card's limit for free text.
    """
    if task.kind in ("span", "multi_label", "reply"):
        return task.prompt.max_answer_tokens
    return max(len(ids) for ids in encode_answers(tokenizer, list_verbalizers(task), family))
