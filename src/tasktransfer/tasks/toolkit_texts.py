"""Texts of instances as in the paper's toolkit (TLiDB), and parsing of generated texts.

Differences between tasks are in their cards (``card.ToolkitForms``). Tasks that the toolkit does
not have use ``tasks.compose``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance, Task, ToolkitForms
from tasktransfer.tasks.compose import build_answer_text, build_prompt_parts, fill_template


@dataclass(frozen=True, slots=True)
class JoinedText:
    """The single text that an encoder reads.

    Args:
        text: the text.
        answers: (character offset, length) of each gold answer of a span task. The offset is
            negative for an unanswerable question.
    """

    text: str
    answers: tuple[tuple[int, int], ...] = ()


def build_encoder_texts(
    forms: ToolkitForms, task: Task, instance: Instance, separator: str
) -> list[JoinedText]:
    """Return an encoder's input texts as in the toolkit, one per option for multiple choice.

    Args:
        forms: input formats of the task.
        task: card of the task.
        instance: the instance.
        separator: the tokenizer's separator, between the parts.

    Raises:
        DataError: the instance has no value for a field of the template.
    """
    context = instance.context
    if forms.turns_reversed:
        context = " ".join(reversed(_split_turns(instance)))
    fields = {**instance.query, "context": context, "sep": separator}
    if task.kind == "multiple_choice":
        options = [{**fields, "option": option} for option in instance.options]
        return [JoinedText(fill_template(task, instance, forms.encoder, each)) for each in options]
    text = fill_template(task, instance, forms.encoder, fields)
    if task.kind != "span":
        return [JoinedText(text)]
    return [JoinedText(text, tuple(_locate_answers(forms, instance)))]


def _locate_answers(forms: ToolkitForms, instance: Instance) -> list[tuple[int, int]]:
    """Find each gold answer in the toolkit's encoder input, as (offset, length).

    The answers are in a query field at the start of the text (``forms.answer_in``), or in the
    context, which follows the question.
    """
    if forms.answer_in:
        return [(instance.query[forms.answer_in].find(text), len(text)) for text in instance.target]
    before = len(instance.query["question"]) + 1
    first = 1 if forms.zero_stays else 0
    return [
        (start + before if start >= first else start, len(text))
        for text, start in zip(instance.target, instance.starts, strict=True)
    ]


def build_prompt_text(
    forms: ToolkitForms, task: Task, instance: Instance, output: int | None
) -> str:
    """Return a text-to-text model's input as one text, as in the toolkit.

    ``output`` is the index of the trait of a multi-output task, and None for other kinds.
    """
    head, context, prompt = build_prompt_parts(task, instance, output)
    if forms.most_words is not None and len(context.split()) > forms.most_words:
        context = _drop_turns(forms.most_words, task, instance)
    return head + context + prompt + forms.after_prompt


def _split_turns(instance: Instance) -> list[str]:
    """Split the context into turns. Raises DataError without offsets of turns."""
    if not instance.turns:
        raise DataError(
            f"instance {instance.id!r} of {instance.task}: The turns have no character "
            "offsets, which fidelity.inputs: tlidb needs. Delete the prepared instances "
            "(results/data) and prepare them again."
        )
    ends = [*(start - 1 for start in instance.turns[1:]), len(instance.context)]
    return [instance.context[a:b] for a, b in zip(instance.turns, ends, strict=True)]


def _drop_turns(most: int, task: Task, instance: Instance) -> str:
    """Drop whole turns from the context until it has at most ``most`` words.

    The oldest turns are removed. If the gold answer is in the context, the last turn is removed
    instead while the turn with the answer is in the first half.
    """
    turns = _split_turns(instance)
    answer = None
    if task.kind == "span" and not (task.toolkit and task.toolkit.answer_in):
        # If there are several gold answers, the context of the last one is kept.
        answer = sum(start <= instance.starts[-1] for start in instance.turns) - 1
    while sum(len(turn.split()) for turn in turns) > most:
        if answer is not None and answer < len(turns) / 2:
            turns = turns[:-1]
        else:
            turns = turns[1:]
            answer = None if answer is None else answer - 1
    return " ".join(turns)


def build_answer_texts(task: Task, instance: Instance, output: int | None) -> list[str]:
    """Return the gold answers as texts, as in the toolkit.

    For a span task these are all gold spans, for multi-output the answer to the trait, and for
    multi-label one text with the labels in the release's order.
    """
    if task.kind == "span":
        return list(instance.target)
    if task.kind == "multi_output":
        return [instance.target[output or 0]]
    if task.kind == "multi_label":
        words = task.prompt.label_words
        return [task.prompt.joiner.join(words.get(label, label) for label in instance.target)]
    return [build_answer_text(task, instance, output)]


def parse_toolkit_answer(task: Task, text: str) -> tuple[str, ...]:
    """Parse a generated text to a prediction as the toolkit does.

    A label is predicted if the text is exactly its verbalizer. A relation is predicted if its words
    are anywhere in the text; if there are none, a fixed relation is predicted. Any other text is
    returned unchanged and counts as wrong.
    """
    words = task.prompt.label_words
    if task.kind == "multi_label":
        found = tuple(label for label in task.labels if words.get(label, label) in text)
        fallback = task.toolkit.fallback if task.toolkit else ""
        return found or ((fallback,) if fallback else ())
    if task.kind in ("span", "multi_output"):
        return (text.strip(),)
    by_words = {words.get(label, label): label for label in task.labels}
    return (by_words.get(text.strip(), text),)
