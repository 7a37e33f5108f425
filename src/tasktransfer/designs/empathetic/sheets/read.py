"""Reader of raters' answers, which are checked with the key of their sheets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tasktransfer.designs.empathetic.human import CHOICES, RATINGS
from tasktransfer.designs.empathetic.sheets.items import KINDS, Meaning, list_questions
from tasktransfer.designs.empathetic.sheets.write import SCHEMA, SheetKey
from tasktransfer.errors import DataError, format_quantity
from tasktransfer.files import json_text
from tasktransfer.files.data_files import read_json_lines
from tasktransfer.files.fields import Location, Table, get_member, get_text

Row = tuple[str, ...]
KEY_REMEDY = "Specify the key.json that was written with the sheets"


@dataclass(frozen=True, slots=True)
class RaterAnswers:
    """Answers of a rater.

    Attributes:
        rater: name of the sheet.
        answered: number of answered items, with attention checks.
        items: number of items of the sheet.
        failed: number of attention checks with a wrong answer or without one.
        rows: lines of the ratings or choices, without attention checks.
    """

    rater: str
    answered: int
    items: int
    failed: int
    rows: list[Row]

    @property
    def summary(self) -> str:
        """Line with the rater's numbers of answered items and failed attention checks."""
        items = format_quantity(self.items, "item")
        line = f"{self.rater}: {self.answered:,} of {items} answered"
        if not self.failed:
            return line
        checks = format_quantity(self.failed, "attention check")
        return f"{line}; left out, because {checks} failed"


def read_key(file: Path) -> SheetKey:
    """Return the content of a key file.

    Raises:
        DataError: the file is missing, or is not a key.
    """
    try:
        key = json_text.read(file)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{file}: The file cannot be read as a key ({error}). {KEY_REMEDY}."
        ) from error
    parts = ("key", "kind", "sheets", "items")
    if not isinstance(key, dict) or key.get("schema") != SCHEMA or not key.keys() >= {*parts}:
        raise DataError(f"{file}: The file is not a key file for rating sheets. {KEY_REMEDY}.")
    if key["kind"] not in KINDS:
        raise DataError(
            f"{file}, kind: The value {key['kind']!r} is not a kind of rating sheets. {KEY_REMEDY}."
        )
    return cast(SheetKey, key)


def list_columns(key: SheetKey) -> tuple[str, ...]:
    """Return the columns of the CSV file for a key's sheets."""
    return RATINGS if key["kind"] == "ratings" else CHOICES


def read_answers(files: Sequence[Path], key: SheetKey) -> list[RaterAnswers]:
    """Return the answers of each rater who has answered an item, in the order of the key.

    Raises:
        DataError: a line is not an answer to an item of its sheet, or an item is answered twice.
    """
    answers: dict[str, dict[str, dict[str, str]]] = {}
    places: dict[tuple[str, str], str] = {}
    for file in files:
        for line, row, location in read_json_lines(file):
            sheet, item = _read_sheet_and_item(row, key, location)
            if (sheet, item) in places:
                problem = f"{item!r} of {sheet} is also answered in {places[sheet, item]}"
                raise location.at("item").error(problem, "remove one of the two lines")
            places[sheet, item] = f"{file}:{line}"
            answers.setdefault(sheet, {})[item] = _read_answer(row, key, location)
    return [_check_answers(name, answers[name], key) for name in key["sheets"] if name in answers]


def _read_sheet_and_item(row: Table, key: SheetKey, location: Location) -> tuple[str, str]:
    """Return the sheet and the item that a line of answers belongs to."""
    found = get_text(row, "key", location)
    if found != key["key"]:
        problem = f"{found!r:.60} is not {key['key']!r}, so the sheet belongs to another key"
        raise location.at("key").error(problem, "specify the key.json of this sheet")
    sheet, item = get_text(row, "sheet", location), get_text(row, "item", location)
    if sheet not in key["sheets"]:
        raise location.at("sheet").error(
            f"the sheet {sheet!r:.60} is not listed in the key file", "correct it"
        )
    if item not in key["sheets"][sheet]:
        raise location.at("item").error(
            f"the item {item!r:.60} is not in the sheet {sheet}", "correct it"
        )
    return sheet, item


def _read_answer(row: Table, key: SheetKey, location: Location) -> dict[str, str]:
    """Read a rater's answer to an item as a mapping from question to answer."""
    questions, allowed = list_questions(key["kind"])
    answer = {name: str(get_member(row, name, location)) for name in questions}
    for name, value in answer.items():
        if value not in allowed:
            problem = f"{value!r:.60} is not an answer to this question"
            raise location.at(name).error(problem, f"write one of {', '.join(allowed)}")
    return answer


def _check_answers(sheet: str, answers: dict[str, dict[str, str]], key: SheetKey) -> RaterAnswers:
    items, names = key["items"], key["sheets"][sheet]
    checks = {name: items[name]["check"] for name in names if "check" in items[name]}
    failed = sum(answers.get(name) != right for name, right in checks.items())
    rows = [
        row
        for name in names
        if name in answers and name not in checks
        for row in _list_rows(sheet, items[name], answers[name])
    ]
    return RaterAnswers(sheet, len(answers), len(names), failed, rows)


def _list_rows(rater: str, item: Meaning, answer: dict[str, str]) -> Iterator[Row]:
    if "models" in item:
        for model in item["models"]:
            yield model, item["instance"], rater, *answer.values()
    else:
        yield item["first"], item["second"], item["instance"], rater, *answer.values()


def select_rows(raters: Sequence[RaterAnswers], source: str) -> list[Row]:
    """Return the rows of the raters who pass all attention checks.

    Raises:
        DataError: no rater passes them, or a rater answered only attention checks.
    """
    rows = [row for rater in raters if not rater.failed for row in rater.rows]
    if not rows:
        counts = Counter(bool(rater.failed) for rater in raters)
        raise DataError(
            f"{source}: No answer is left, because {counts[True]} of "
            f"{format_quantity(len(raters), 'rater')} failed an attention check. Add raters."
        )
    return rows
