"""Texts of instances for models, and parsing of generated texts.

The functions are pure and identical for all tasks: differences are in the task cards. Encoders read
two segments (query, context). Text-to-text models read ``context: <context> <prompt>`` and generate
the answer in words (FETA, Appendix B, Tables 4 and 5).

A template has its fields in braces, for example ``{question}``. These are the fields of
``Instance.query``, ``{option}`` (one option, encoders), ``{options}`` (all options, numbered from
0), ``{labels}`` (the task's verbalizers joined by "or") and ``{trait}`` (multi-output).
"""

from __future__ import annotations

import re
from functools import lru_cache

from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance, Task

_FIELD = re.compile(r"\{(\w+)\}")


def build_encoder_text(task: Task, instance: Instance) -> tuple[str, str]:
    """Return the two text segments (query, context) that an encoder reads.

    The query is empty if the encoder reads the context alone.

    Raises:
        ValueError: the task is multiple choice, which has one query per option; use
            ``build_option_texts``.
        DataError: the instance has no value for a field of the card's query.
    """
    if task.kind == "multiple_choice":
        raise ValueError(
            f"{task.name}: The function cannot build the text of a multiple-choice task. Use "
            "build_option_texts."
        )
    return fill_template(task, instance, task.query, instance.query), instance.context


def build_option_texts(task: Task, instance: Instance) -> list[str]:
    """Return the first segment ("<question> <option>") for each option of an instance.

    The second segment is ``instance.context`` for all options.

    Raises:
        ValueError: the task is not multiple choice.
        DataError: the number of options is not the card's number of labels.
    """
    _check_options(task, instance)
    return [
        fill_template(task, instance, task.query, {**instance.query, "option": option})
        for option in instance.options
    ]


def build_prompt_parts(
    task: Task, instance: Instance, output: int | None = None
) -> tuple[str, str, str]:
    """Return the three parts whose concatenation is a text-to-text model's input.

    The parts are ("context: ", the context, " " + the filled prompt), so that truncation cuts only
    the context. The input of a reply task is the context alone.

    Args:
        task: card of the task.
        instance: the instance.
        output: index of the trait of a multi-output task. None for other kinds.

    Raises:
        ValueError: ``output`` does not fit the task.
        DataError: the instance has no value for a field of the prompt.
    """
    if task.kind == "reply":
        return "", instance.context, ""
    fields = {**instance.query, "labels": " or ".join(list_verbalizers(task))}
    if task.kind == "multiple_choice":
        _check_options(task, instance)
        fields["options"] = " ".join(f"option {i}: {o}" for i, o in enumerate(instance.options))
    if (index := _check_output(task, output)) is not None:
        fields["trait"] = task.outputs[index]
    return (
        "context: ",
        instance.context,
        " " + fill_template(task, instance, task.prompt.template, fields),
    )


def build_answer_text(task: Task, instance: Instance, output: int | None = None) -> str:
    """Return the text that a text-to-text model should generate for an instance.

    This is the verbalizer of the label. For multi-label it is the verbalizers of all gold labels in
    the card's order, so that a set of labels has a single text. For multiple choice it is the
    option's number, for multi-output the answer to trait ``output``. For spans it is the first gold
    answer, which is the release's text for unanswerable instances ("Impossible answer").
    """
    index = _check_output(task, output)
    if task.kind in ("span", "reply"):
        return instance.target[0]
    words = task.prompt.label_words
    if task.kind == "multi_label":
        ordered = (label for label in task.labels if label in instance.target)
        return task.prompt.joiner.join(words.get(label, label) for label in ordered)
    label = instance.target[index or 0]
    return words.get(label, label)


def parse_answer(task: Task, text: str) -> tuple[str, ...]:
    """Parse a generated text to a prediction in the form of ``Instance.target``.

    The text is compared with the verbalizers, ignoring case and white space. For answers with one
    label (classification, multiple choice, one trait of multi-output) the prediction is the label.
    If there is none it is the raw text, an invalid label that counts as wrong. For multi-label it
    is the valid labels among the joined parts, each once, in the card's order, or () if there are
    none. For spans and replies it is the text without outer white space.
    """
    if task.kind in ("span", "reply"):
        return (text.strip(),)
    labels_by_words = {
        normalise_text(word): name
        for word, name in zip(list_verbalizers(task), task.labels, strict=True)
    }
    if task.kind != "multi_label":
        return (labels_by_words.get(normalise_text(text), text),)
    # The outer spaces also split off a joiner at the start or the end.
    parts = f" {normalise_text(text)} ".split(task.prompt.joiner.casefold())
    predicted = {labels_by_words.get(normalise_text(part)) for part in parts}
    return tuple(label for label in task.labels if label in predicted)


def list_verbalizers(task: Task) -> tuple[str, ...]:
    """Return the verbalizer of each label, in the order of ``task.labels``."""
    return tuple(task.prompt.label_words.get(label, label) for label in task.labels)


def normalise_text(text: str) -> str:
    """Normalise a text to case-folded words with single spaces."""
    return " ".join(text.split()).casefold()


def list_fields(template: str) -> list[str]:
    """Return the names of a template's fields."""
    return _FIELD.findall(template)


def fill_template(task: Task, instance: Instance, template: str, fields: dict[str, str]) -> str:
    """Fill in the fields of a template.

    It is filled in one pass, so that braces in a field's text are not taken for fields.
    """

    def get_field(match: re.Match[str]) -> str:
        name = match[1]
        if name not in fields:
            raise DataError(
                f"instance {instance.id!r} of {task.name}: The template {template!r} needs the "
                f"field {name!r}, but the instance has "
                f"{'only ' + ', '.join(sorted(fields)) if fields else 'no fields'}. Read the "
                "release again, or fix the template of the task card."
            )
        return fields[name]

    return _FIELD.sub(get_field, template)


def _check_options(task: Task, instance: Instance) -> None:
    if task.kind != "multiple_choice":
        raise ValueError(
            f"{task.name}: A task of kind {task.kind} has no options. Use build_encoder_text."
        )
    if len(instance.options) != task.classes:
        raise DataError(
            f"instance {instance.id!r} of {task.name}: The instance has "
            f"{len(instance.options)} options, but the task has {task.classes}. Fix the "
            "release's data."
        )


def _check_output(task: Task, output: int | None) -> int | None:
    if task.kind != "multi_output":
        if output is not None:
            raise ValueError(
                f"{task.name}: A task of kind {task.kind} has a single output, but the argument "
                f"output is {output}. Remove the argument."
            )
        return None
    if output is None or not 0 <= output < len(task.outputs):
        raise ValueError(
            f"{task.name}: The output {output} is not the index of a trait. Use an index below "
            f"{len(task.outputs)}, because the task has one prompt per trait."
        )
    return output


PREFIX_FIELD, LABEL_FIELD = "prefix", "emotion"
"""Query fields of an instance with a reply: the words in front of it, and its emotion label."""


def get_gold_answers(instance: Instance) -> tuple[str, ...]:
    """Return the gold reply without its prefix, followed by its label (if any)."""
    label = instance.query.get(LABEL_FIELD)
    return (strip_reply_prefix(instance), *([label] if label else []))


def strip_reply_prefix(instance: Instance) -> str:
    """Strip the prefix words from a gold reply."""
    return instance.target[0].removeprefix(instance.query.get(PREFIX_FIELD, "")).lstrip()


_WORD = re.compile(r"\w+|[^\w\s]+")
_CACHE_SIZE = 1 << 15


@lru_cache(maxsize=_CACHE_SIZE)
def split_words(text: str) -> tuple[str, ...]:
    """Split a text into lower-case words and runs of punctuation."""
    return tuple(_WORD.findall(text.lower()))


TOKENS_PER_WORD = 1.4
"""BERT's word pieces per word, for forecasts."""
WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)
"""Characters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, kana, Han."""


def count_unspaced_characters(text: str) -> int:
    """Count characters of scripts that do not separate words by spaces."""
    return 0 if text.isascii() else len(WITHOUT_SPACES.findall(text))


def count_spaced_words(text: str) -> int:
    """Count words, where two characters count as a word in scripts without spaces."""
    return _count_other_words(text) + (count_unspaced_characters(text) + 1) // 2


def estimate_tokens(text: str) -> float:
    """Estimate the number of BERT tokens in a text.

    In scripts without spaces, a character is a token.
    """
    return _count_other_words(text) * TOKENS_PER_WORD + count_unspaced_characters(text)


def _count_other_words(text: str) -> int:
    """Count words between spaces, except in scripts without spaces."""
    if not count_unspaced_characters(text):
        return len(text.split())
    pieces = WITHOUT_SPACES.sub(" ", text).split()
    return sum(any(map(str.isalnum, piece)) for piece in pieces)
