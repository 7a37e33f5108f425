"""How the paper's toolkit (TLiDB) puts an instance as text and reads a generated text back.

What differs between tasks stands in their cards (``card.ToolkitForms``); a task that the toolkit
does not have is put as ``tasks.compose`` does.
"""

from __future__ import annotations

from dataclasses import dataclass

from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance, Task, ToolkitForms
from tasktransfer.tasks.compose import answer_text, filled, prompt_parts


@dataclass(frozen=True, slots=True)
class JoinedText:
    """The one text that an encoder reads, and where it looks for each right answer of a span task:
    character offset and length, a negative offset for an unanswerable one."""

    text: str
    answers: tuple[tuple[int, int], ...] = ()


def encoder_texts(
    forms: ToolkitForms, task: Task, instance: Instance, separator: str
) -> list[JoinedText]:
    """What an encoder reads of an instance, a text per option where there are any.

    Args:
        separator: the tokenizer's, which stands between the parts.

    Raises:
        DataError: the instance lacks a field of the form.
    """
    context = instance.context
    if forms.turns_reversed:
        context = " ".join(reversed(_turns(instance)))
    fields = {**instance.query, "context": context, "sep": separator}
    if task.kind == "multiple_choice":
        options = [{**fields, "option": option} for option in instance.options]
        return [JoinedText(filled(task, instance, forms.encoder, each)) for each in options]
    text = filled(task, instance, forms.encoder, fields)
    if task.kind != "span":
        return [JoinedText(text)]
    return [JoinedText(text, tuple(_places(forms, instance)))]


def _places(forms: ToolkitForms, instance: Instance) -> list[tuple[int, int]]:
    """Where the toolkit looks for the right answers: in a list that begins the text, or behind the
    question that does."""
    if forms.answer_in:
        return [(instance.query[forms.answer_in].find(text), len(text)) for text in instance.target]
    before = len(instance.query["question"]) + 1
    first = 1 if forms.zero_stays else 0
    return [
        (start + before if start >= first else start, len(text))
        for text, start in zip(instance.target, instance.starts, strict=True)
    ]


def prompt_text(forms: ToolkitForms, task: Task, instance: Instance, output: int | None) -> str:
    """The input of a text-to-text model; ``output`` as in ``compose.prompt_parts``."""
    head, context, prompt = prompt_parts(task, instance, output)
    if forms.most_words is not None and len(context.split()) > forms.most_words:
        context = _with_turns_left_out(forms.most_words, task, instance)
    return head + context + prompt + forms.after_prompt


def _turns(instance: Instance) -> list[str]:
    """The context's turns. Raises DataError where the instances do not say where they begin."""
    if not instance.turns:
        raise DataError(
            f"instance {instance.id!r} of {instance.task}: where its turns begin is not known, "
            "which fidelity.inputs: tlidb needs; delete the prepared instances (results/data) and "
            "prepare them again"
        )
    ends = [*(start - 1 for start in instance.turns[1:]), len(instance.context)]
    return [instance.context[a:b] for a, b in zip(instance.turns, ends, strict=True)]


def _with_turns_left_out(most: int, task: Task, instance: Instance) -> str:
    """The context without its oldest turns; of a question's, whose answer is searched in it, the
    first or last turn goes as long as the answer's is in the later or earlier half."""
    turns = _turns(instance)
    answer = None
    if task.kind == "span" and not (task.toolkit and task.toolkit.answer_in):
        # Of several right answers the last one's context is kept.
        answer = sum(start <= instance.starts[-1] for start in instance.turns) - 1
    while sum(len(turn.split()) for turn in turns) > most:
        if answer is not None and answer < len(turns) / 2:
            turns = turns[:-1]
        else:
            turns = turns[1:]
            answer = None if answer is None else answer - 1
    return " ".join(turns)


def answer_texts(task: Task, instance: Instance, output: int | None) -> list[str]:
    """The right answers' texts: personality as 0 or 1, relations in the release's order, and every
    right span."""
    if task.kind == "span":
        return list(instance.target)
    if task.kind == "multi_output":
        return [instance.target[output or 0]]
    if task.kind == "multi_label":
        words = task.prompt.label_words
        return [task.prompt.joiner.join(words.get(label, label) for label in instance.target)]
    return [answer_text(task, instance, output)]


def parse_as_toolkit(task: Task, text: str) -> tuple[str, ...]:
    """The prediction that a generated text stands for in the toolkit.

    Labels count if the text is one exactly; relations if their words are found anywhere in it, a
    fixed one if none is. A text that is no label is returned as it is, and is wrong.
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
