"""Format and writer of the challenge's files.

An archive has one folder per task of one dataset, named after the task, with two files each:
``baseline_predictions.csv`` and ``predictions.csv``. They have no header and two columns,
``instance id`` and ``prediction``, in UTF-8. A prediction is

- an integer, the label's place in the card's order (multiple choice: the option's number),
- a string (spans), or
- a list of zeros and ones, one per label (multi-label).

Multi-output tasks have one row per instance and trait, ``<instance id>_<trait>``, with 0 or 1.

Rows and instances
    There is one row for every instance of the test split, in the split's order. The release repeats
    some instance ids (14 in the test split of relation extraction, two speakers in that of
    personality detection), and so do the rows: the k-th row with an id answers the k-th instance
    with that id, in the split's order. The toolkit's example submission does the same.

No valid answer
    A text-to-text model may generate text that is not a label. Its row is -1, as in the paper's
    toolkit and in the release's metric settings, and counts as wrong. Any label instead would earn
    credit for (or be blamed as) a guess that the model did not make (docs/decisions/0006).

Spelling
    ``csv`` (default): RFC 4180. A field with a comma, a quotation mark, a line break or white
    space at its ends is quoted, and quotation marks inside are doubled. Every answer can be read
    back unchanged. Lists are ``[0 1 0 ...]``. Read it with a CSV reader, not line by line.

    ``tlidb``: as in the paper's toolkit. There is no quoting, commas become spaces (here line
    breaks too, which would end the row), and lists are ``[0.0 1.0 0.0 ...]``. An answer with a
    comma changes: "3,000" becomes "3 000", two tokens instead of one.

csv is the default because every CSV reader returns the exact predictions, so that the score of an
archive equals that of its records. Lines end in LF. An archive does not depend on time, place or
machine: identical records give identical bytes. Members are stored, not compressed, because
compression differs between versions of zlib.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from tasktransfer.errors import DataError
from tasktransfer.files import replace_file
from tasktransfer.tasks.card import Task

BASELINE_FILE = "baseline_predictions.csv"
TRANSFER_FILE = "predictions.csv"
FILES = (BASELINE_FILE, TRANSFER_FILE)

NO_ANSWER = -1
"""Value in integer columns if the model gave no valid label."""

Value = int | str | tuple[int, ...]
"""Prediction in a row: integer, string or list of zeros and ones."""

ValueKind = Literal["integer", "string", "list"]
Strings = Literal["csv", "tlidb"]
SubmittedRow = tuple[str, Value]
"""Row id and prediction."""


def get_value_kind(task: Task) -> ValueKind:
    """Return the type of values in the second column of a task's files.

    Integers (except NO_ANSWER) are below ``task.classes``, and lists have ``task.classes`` entries.
    """
    if task.kind == "span":
        return "string"
    return "list" if task.kind == "multi_label" else "integer"


def list_row_ids(task: Task, instance_id: str) -> tuple[str, ...]:
    """Return the IDs of the rows that answer one instance: one row, or one row per trait."""
    if task.kind == "multi_output":
        return tuple(f"{instance_id}_{trait}" for trait in task.outputs)
    return (instance_id,)


def to_values(task: Task, prediction: Sequence[str]) -> tuple[Value, ...]:
    """Return the values of a prediction, one per row ID."""
    if task.kind == "span":
        return tuple(prediction)
    if task.kind == "multi_label":
        return (tuple(int(label in prediction) for label in task.labels),)
    number_of = {label: number for number, label in enumerate(task.labels)}
    return tuple(number_of.get(answer, NO_ANSWER) for answer in prediction)


def format_csv(rows: Iterable[SubmittedRow], strings: Strings) -> bytes:
    """Return the content of a predictions file.

    Raises:
        DataError: ``tlidb`` cannot represent a row id with a comma or a line break.
    """
    spell = _format_csv_line if strings == "csv" else _format_tlidb_line
    return "".join(f"{spell(name, value)}\n" for name, value in rows).encode()


def _format_csv_line(name: str, value: Value) -> str:
    text = f"[{' '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
    return f"{_quote_text(name)},{_quote_text(text)}"


def _quote_text(text: str) -> str:
    if text == text.strip() and not any(mark in text for mark in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


_SPACES = str.maketrans(dict.fromkeys(",\r\n", " "))


def _format_tlidb_line(name: str, value: Value) -> str:
    if name != name.translate(_SPACES):
        raise DataError(
            f"Instance {name!r}: The toolkit's format cannot represent a comma or a line "
            "break in an ID. Write the archive with --strings csv."
        )
    if isinstance(value, tuple):
        return f"{name},[{' '.join(f'{entry:.1f}' for entry in value)}]"
    return f"{name},{str(value).translate(_SPACES)}"


def write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    """Write files to a zip, atomically. ``members`` maps ``folder/file`` to content, in order."""
    with replace_file(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)  # dated 1980, the first year that a zip can hold
            info.create_system = 3  # Unix on every machine; readers interpret the mode by it
            info.external_attr = 0o100644 << 16
            archive.writestr(info, content)
