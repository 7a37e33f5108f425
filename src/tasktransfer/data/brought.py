"""Files with the answers of a user's own system: one JSON object per item of a study.

A rater's line is ``{"set": ..., "item": ..., "value": number}``, a replier's line is
``{"item": ..., "reply": text}``. Other keys are ignored, so an answer can be added to each line
that `tasktransfer items` writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tasktransfer.errors import DataError, describe_wrong_value, format_quantity
from tasktransfer.files.data_files import read_json_lines
from tasktransfer.files.fields import Location, Table, find_nearest, get_member, get_text
from tasktransfer.tasks.card import Instance

ITEMS_REMEDY = "List the items with `tasktransfer items`"
Answer = TypeVar("Answer")


def read_ratings(file: Path, instances: Sequence[Instance]) -> list[float]:
    """Read the rating of each instance, in the order of the instances.

    Raises:
        DataError: the file cannot be read, an item is unknown, repeated or missing, a rating is
            not a finite number, or an item belongs to another set.
    """
    return _read_answers(file, instances, _read_value)


def read_replies(file: Path, instances: Sequence[Instance]) -> list[str]:
    """Read the reply to each instance, in the order of the instances. Replies may be empty.

    Raises:
        DataError: the file cannot be read, an item is unknown, repeated or missing, or a reply is
            not a text.
    """

    def read_reply(row: Table, item: str, location: Location) -> str:
        return get_text(row, "reply", location).strip()

    return _read_answers(file, instances, read_reply)


def get_rated_set_name(item: str) -> str:
    """Return the name of an item's rated set, e.g. ``Market_Tiny`` for ``Market_Tiny-7``."""
    return item.rpartition("-")[0]


def _read_value(row: Table, item: str, location: Location) -> float:
    rated = get_text(row, "set", location)
    if rated != get_rated_set_name(item):
        problem = f"the set is {rated!r:.60}, but {item} is an item of {get_rated_set_name(item)}"
        raise location.at("set").error(problem, "correct the set or the item")
    value = get_member(row, "value", location)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        problem = describe_wrong_value(value, "a finite number")
        raise location.at("value").error(problem, f"give the rating of {item} as a number")
    return float(value)


def _read_answers(
    file: Path, instances: Sequence[Instance], read: Callable[[Table, str, Location], Answer]
) -> list[Answer]:
    """Read the answer to each instance, in the order of the instances.

    Raises:
        DataError: the file cannot be read, an item is unknown or has two lines, or items are
            missing. The message has file, line, item and remedy.
    """
    known = {instance.id for instance in instances}
    lines: dict[str, int] = {}
    answers: dict[str, Answer] = {}
    for line, row, location in read_json_lines(file):
        item = get_text(row, "item", location)
        if item not in known:
            nearest = find_nearest(item, known)
            problem = (
                f"{item!r:.60} is not an item of the study (the most similar item is {nearest})"
            )
            raise location.at("item").error(
                problem, f"remove the line, or correct it. {ITEMS_REMEDY}"
            )
        if item in answers:
            problem = f"{item!r} is in line {lines[item]} too"
            raise location.at("item").error(problem, "remove one of the two lines")
        answers[item], lines[item] = read(row, item, location), line
    missing = [instance.id for instance in instances if instance.id not in answers]
    if missing:
        raise DataError(
            f"{file}: The file lacks answers to {len(missing):,} of "
            f"{format_quantity(len(known), 'item')}, for example to the item {missing[0]!r}. Add "
            f"a line for each item without an answer. {ITEMS_REMEDY}."
        )
    return [answers[instance.id] for instance in instances]
