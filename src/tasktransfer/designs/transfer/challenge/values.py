"""From the text of a row's second column to a prediction, by the kind of the task's column."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tasktransfer.designs.transfer.challenge.findings import excerpt
from tasktransfer.designs.transfer.challenge.format import (
    NO_ANSWER,
    Column,
    Value,
    column,
    from_values,
)
from tasktransfer.tasks.card import Task

MAX_TEXT = 100_000
"""Most characters of one predicted text; the longest scene has about 12,000."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_WHOLE_FLOAT = re.compile(r"([+-]?[0-9]{1,9})\.0*")
_LIST = re.compile(r"\[(.*)\]|([^\[\]]*)", re.DOTALL)
_ZERO_OR_ONE = re.compile(r"([01])(?:\.0*)?(?:e[+-]?00?)?")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A prediction as ``metrics.evaluate`` takes it, or None with the kind of error and what is
    wrong. ``quirk``: accepted, and worth a warning."""

    prediction: tuple[str, ...] | None
    kind: str = ""
    problem: str = ""
    quirk: str = ""


def parser(task: Task) -> Callable[[str], Parsed]:
    """Text → prediction, for the rows of ``task``. Equal texts but of spans are parsed once."""
    asked = column(task)
    if asked.kind == "string":
        return _text
    parse = _integer if asked.kind == "integer" else _list
    seen: dict[str, Parsed] = {}

    def remembered(text: str) -> Parsed:
        found = seen.get(text)
        if found is None:
            found = seen[text] = parse(task, asked, text)
        return found

    return remembered


def _text(text: str) -> Parsed:
    if len(text) > MAX_TEXT:
        problem = f"is a text of {len(text):,} characters; at most {MAX_TEXT:,} are read"
        return Parsed(None, "too-long", problem)
    return Parsed((text,))


def _integer(task: Task, asked: Column, text: str) -> Parsed:
    bare = text.strip()
    quirk = ""
    if whole := _WHOLE_FLOAT.fullmatch(bare):
        bare = whole.group(1)
        quirk = "whole numbers are written with a decimal point; write integers"
    if not _INTEGER.fullmatch(bare):
        return Parsed(None, "wrong-type", _not_integer(task, asked, text.strip()))
    number = int(bare)
    if number != NO_ANSWER and not 0 <= number < asked.size:
        problem = f"{excerpt(bare)} is out of range; integers from 0 to {asked.size - 1} are labels"
        return Parsed(None, "out-of-range", problem)
    return _done(task, number, quirk)


def _not_integer(task: Task, asked: Column, text: str) -> str:
    expected = f"expected an integer from 0 to {asked.size - 1}"
    if not text:
        return f"has no prediction; {expected}"
    if text in task.labels:
        return f"{excerpt(text)} is a label's name; {expected}, here {task.labels.index(text)}"
    return f"{excerpt(text)} is no integer; {expected}"


def _list(task: Task, asked: Column, text: str) -> Parsed:
    expected = f"expected a list of {asked.size} zeros and ones, [0 1 0 ...]"
    inside = _LIST.fullmatch(text.strip())
    if inside is None:
        return Parsed(None, "wrong-type", f"{excerpt(text)} has unpaired brackets; {expected}")
    entries = re.split(r"[\s,]+", (inside.group(1) or inside.group(2) or "").strip(" ,\t\n"))
    if entries == [""]:
        return Parsed(None, "wrong-type", f"has no list; {expected}")
    bits: list[int] = []
    for place, entry in enumerate(entries):
        bit = _ZERO_OR_ONE.fullmatch(entry)
        if bit is None:
            problem = f"entry {place} of the list is {excerpt(entry)}; {expected}"
            return Parsed(None, "wrong-type", problem)
        bits.append(int(bit.group(1)))
    if len(bits) != asked.size:
        return Parsed(None, "list-length", f"is a list of {len(bits)} entries; {expected}")
    return _done(task, tuple(bits), "")


def _done(task: Task, value: Value, quirk: str) -> Parsed:
    return Parsed(from_values(task, (value,)), quirk=quirk)
