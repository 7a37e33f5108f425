"""Parser of a row's second column to a prediction, by the task's type of value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tasktransfer.designs.challenge.findings import quote_excerpt
from tasktransfer.designs.challenge.format import NO_ANSWER, get_value_kind
from tasktransfer.tasks.card import Task

INVALID = ""
"""Label for -1. It is not a label of any card, so it counts as wrong."""

MAX_TEXT = 100_000
"""Maximum number of characters of a predicted text; the longest scene has about 12,000."""

_INTEGER = re.compile(r"([+-]?[0-9]{1,9})(?:\.0*)?")
_LIST = re.compile(r"\[(.*)\]|([^\[\]]*)", re.DOTALL)
_ZERO_OR_ONE = re.compile(r"([01])(?:\.0*)?(?:e[+-]?00?)?")

Prediction = tuple[str, ...]
"""Prediction for an instance in the form that ``metrics.evaluate_predictions`` takes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Reason why a text is not a prediction: the kind of error, and a message with the remedy."""

    kind: str
    text: str


def parse_prediction(task: Task, text: str) -> Prediction | Fault:
    """Parse the text of one row, which predicts an instance or one of its traits.

    Returns:
        The predicted labels or text, or a ``Fault`` if the text is not a valid prediction.
    """
    match get_value_kind(task):
        case "string":
            return _parse_string(text)
        case "integer":
            return _parse_integer(task, text.strip())
        case "list":
            return _parse_list(task, text.strip())


def is_dotted_integer(task: Task, text: str) -> bool:
    """Return whether a valid answer is an integer with a decimal point, such as ``4.0``."""
    return get_value_kind(task) == "integer" and "." in text


def _parse_string(text: str) -> Prediction | Fault:
    if len(text) > MAX_TEXT:
        message = (
            f"The text has {len(text):,} characters. Shorten the text to at most {MAX_TEXT:,} "
            "characters."
        )
        return Fault("too-long", message)
    return (text,)


def _parse_integer(task: Task, text: str) -> Prediction | Fault:
    remedy = f"Write an integer from 0 to {task.classes - 1}."
    integer = _INTEGER.fullmatch(text)
    if integer is None:
        if not text:
            return Fault("wrong-type", f"The row has no prediction. {remedy}")
        if text in task.labels:
            number = task.labels.index(text)
            message = (
                f"{quote_excerpt(text)} is the name of a label. Write the label's number, {number}."
            )
            return Fault("wrong-type", message)
        return Fault("wrong-type", f"{quote_excerpt(text)} is not an integer. {remedy}")
    number = int(integer[1])
    if number == NO_ANSWER:
        return (INVALID,)
    if not 0 <= number < task.classes:
        return Fault("out-of-range", f"{quote_excerpt(integer[1])} is out of range. {remedy}")
    return (task.labels[number],)


def _parse_list(task: Task, text: str) -> Prediction | Fault:
    remedy = f"Write {task.classes} zeros and ones, as in [0 1 0 ...]."
    inside = _LIST.fullmatch(text)
    if inside is None:
        return Fault("wrong-type", f"{quote_excerpt(text)} has unpaired brackets. {remedy}")
    entries = re.split(r"[\s,]+", (inside[1] or inside[2] or "").strip(" ,\t\n"))
    if entries == [""]:
        return Fault("wrong-type", f"The row has no list. {remedy}")
    bits = [_ZERO_OR_ONE.fullmatch(entry) for entry in entries]
    if None in bits:
        index = bits.index(None)
        return Fault(
            "wrong-type",
            f"Entry {index} of the list is {quote_excerpt(entries[index])}. {remedy}",
        )
    if len(bits) != task.classes:
        return Fault("list-length", f"The list has {len(bits)} entries. {remedy}")
    labels = zip(task.labels, bits, strict=True)
    return tuple(label for label, bit in labels if bit and bit[1] == "1")
