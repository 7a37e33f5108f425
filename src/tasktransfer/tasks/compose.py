"""How an instance is put to a model as text, and how a generated text is read back.

Pure and the same for every task: what differs between tasks stands in their cards. Encoders read
two segments (query, context); text-to-text models read ``context: <context> <prompt>`` and write
the answer in words (FETA, Appendix B, Tables 4 and 5).

A template names its fields in braces, for example ``{question}``. Besides the fields of
``Instance.query`` these are ``{option}`` (one option, encoders), ``{options}`` (all, numbered from
0), ``{labels}`` (the task's label words joined by "or") and ``{trait}`` (multi-output).
"""

from __future__ import annotations

import re

from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance, Task

_FIELD = re.compile(r"\{(\w+)\}")


def encoder_text(task: Task, instance: Instance) -> tuple[str, str]:
    """The two segments that an encoder reads: (query, context).

    The query is "" where the context alone is read. Multiple choice has one query per option:
    see ``encoder_option_texts``; asking for it here raises ValueError. Raises DataError when the
    instance lacks a field of the card's query.
    """
    if task.kind == "multiple_choice":
        raise ValueError(f"{task.name} is multiple choice: use encoder_option_texts")
    return filled(task, instance, task.query, instance.query), instance.context


def encoder_option_texts(task: Task, instance: Instance) -> list[str]:
    """The first segment for each option of a multiple-choice instance: "<question> <option>".

    The second segment is ``instance.context`` for all of them. Raises ValueError for other kinds
    of task, and DataError when the number of options is not the card's number of labels.
    """
    _check_options(task, instance)
    return [
        filled(task, instance, task.query, {**instance.query, "option": option})
        for option in instance.options
    ]


def prompt_parts(task: Task, instance: Instance, output: int | None = None) -> tuple[str, str, str]:
    """The input of a text-to-text model in three parts, to be joined as they are.

    The parts are ("context: ", the context, " " + the filled prompt), so that truncation can cut
    the context and nothing else; of a reply the context is all. ``output`` is the index of the
    trait that a multi-output task is asked about, one at a time; other kinds take none (ValueError
    otherwise). Raises DataError
    when the instance lacks a field of the prompt.
    """
    if task.kind == "reply":
        return "", instance.context, ""
    fields = {**instance.query, "labels": " or ".join(label_words(task))}
    if task.kind == "multiple_choice":
        _check_options(task, instance)
        fields["options"] = " ".join(f"option {i}: {o}" for i, o in enumerate(instance.options))
    if (index := _checked_output(task, output)) is not None:
        fields["trait"] = task.outputs[index]
    return "context: ", instance.context, " " + filled(task, instance, task.prompt.template, fields)


def answer_text(task: Task, instance: Instance, output: int | None = None) -> str:
    """The text that a text-to-text model should generate for an instance.

    The label's words; for multi-label the words of all right labels in the card's order, so that
    one set of labels is one text; for multiple choice the option's number; for multi-output the
    answer to trait ``output``; for spans the first right answer, which for an unanswerable
    instance is the release's text for it ("Impossible answer").
    """
    index = _checked_output(task, output)
    if task.kind in ("span", "reply"):
        return instance.target[0]
    words = task.prompt.label_words
    if task.kind == "multi_label":
        ordered = (label for label in task.labels if label in instance.target)
        return task.prompt.joiner.join(words.get(label, label) for label in ordered)
    label = instance.target[index or 0]
    return words.get(label, label)


def parse_answer(task: Task, text: str) -> tuple[str, ...]:
    """The prediction that a generated text stands for, as ``metrics.evaluate`` takes it.

    A text is compared with the label words without regard to case and white space. One-label
    answers (classification, multiple choice, one trait of multi-output): the label, or the raw
    text, which is then an invalid label and counts as wrong. Multi-label: the valid labels among
    the joined parts, each once, in the card's order; () when there is none. Spans: the text
    without white space around it.
    """
    if task.kind in ("span", "reply"):
        return (text.strip(),)
    label_of = {
        plain(word): name for word, name in zip(label_words(task), task.labels, strict=True)
    }
    if task.kind != "multi_label":
        return (label_of.get(plain(text), text),)
    # A space on either side lets a joiner at the start or the end be cut off too.
    parts = f" {plain(text)} ".split(task.prompt.joiner.casefold())
    named = {label_of.get(plain(part)) for part in parts}
    return tuple(label for label in task.labels if label in named)


def label_words(task: Task) -> tuple[str, ...]:
    """The words of each label, in the order of ``task.labels``."""
    return tuple(task.prompt.label_words.get(label, label) for label in task.labels)


def plain(text: str) -> str:
    """A text without regard to case and white space."""
    return " ".join(text.split()).casefold()


def filled(task: Task, instance: Instance, template: str, fields: dict[str, str]) -> str:
    """A template with its fields, in one pass: braces inside a field's text stay as they are."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in fields:
            raise DataError(
                f"instance {instance.id!r} of {task.name}: the template {template!r} needs the "
                f"field {name!r}, and the instance has {sorted(fields) or 'no fields'}; "
                "read the release again, or mend the card's template"
            )
        return fields[name]

    return _FIELD.sub(value, template)


def _check_options(task: Task, instance: Instance) -> None:
    if task.kind != "multiple_choice":
        raise ValueError(f"{task.name} is {task.kind} and has no options: use encoder_text")
    if len(instance.options) != task.classes:
        raise DataError(
            f"instance {instance.id!r} of {task.name} has {len(instance.options)} options, and "
            f"the task has {task.classes}; mend the release's data"
        )


def _checked_output(task: Task, output: int | None) -> int | None:
    if task.kind != "multi_output":
        if output is not None:
            raise ValueError(f"{task.name} is {task.kind}: it takes no output, got {output}")
        return None
    if output is None or not 0 <= output < len(task.outputs):
        raise ValueError(
            f"{task.name} is asked one trait at a time: output must be an index below "
            f"{len(task.outputs)}, got {output}"
        )
    return output
