"""Detection of fields that name dialogues or splits."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tasktransfer.datasets.declared.files import FORMATS, SPLIT_WORDS
from tasktransfer.datasets.guess.columns import (
    MIN_FRACTION,
    Columns,
    is_mostly_true,
    is_null,
    split_field_name,
)
from tasktransfer.datasets.guess.turn_fields import find_restarting_counter
from tasktransfer.files.csv_file import open_csv

ID_NAMES = (
    *("id", "dialogue_id", "dialog_id", "conversation_id", "conv_id", "ticket_id", "session_id"),
    *("thread_id", "chat_id", "root", "dialogue", "conversation"),
)
DIALOGUE_WORDS = frozenset(
    (
        *("dialogue", "dialog", "conversation", "conv", "ticket", "session", "thread", "chat"),
        *("root", "call", "case", "scene"),
    )
)
"""Words in the names of fields that name dialogues."""
NUMBER_WORDS = frozenset({"nr", "no", "num", "number", "index", "idx", "key", "name", "ref", "ts"})
"""Words in the names of fields that name or number things; Slack's ``thread_ts`` is a time."""
PEOPLE_WORDS = frozenset(
    (
        *("user", "speaker", "author", "from", "sender", "annotator", "worker", "rater", "agent"),
        *("customer", "actor", "participant", "recipient"),
    )
)
"""Words in the names of fields that name people instead of dialogues."""
NON_ID_WORDS = frozenset(
    (
        *("paid", "valid", "invalid", "said", "avoid", "hybrid", "grid", "solid", "void", "mid"),
        *("aid", "bid", "kid", "fluid", "rapid", "vivid", "liquid", "covid", "unpaid", "forbid"),
    )
)
MIN_GROUPS = 10
"""Minimum number of values of a field that may name dialogues."""


def find_dialogue_id(columns: Columns, rows: int, *, repeats: bool) -> str | None:
    """Find the field that names dialogues, or return None.

    Args:
        columns: columns of the rows.
        rows: number of rows.
        repeats: whether rows are utterances, so that consecutive rows share a name.
    """
    candidates = sorted(filter(is_id_name, columns), key=lambda name: not _is_dialogue_name(name))
    for name in candidates:
        named = [value for value in columns[name] if _is_name(value)]
        if len(named) < MIN_FRACTION * rows or (split_field_name(name) & PEOPLE_WORDS and repeats):
            continue
        changes = 1 + sum(before != after for before, after in pairwise(named))
        distinct = len(set(named))
        stays = distinct > 1 and changes < len(named)
        if distinct >= MIN_FRACTION * changes and (stays or not repeats or rows == 1):
            return name
    # If such a field repeats in rows that are not consecutive, this is an error of the file, but
    # the field is not a label.
    known = [
        n for n in candidates if n.lower() in ID_NAMES and is_mostly_true(map(_is_name, columns[n]))
    ]
    known = [n for n in known if not repeats or _has_repeats(columns[n])]
    if known:
        return known[0]
    return _find_named_grouping_field(columns, rows) if repeats else None


def _find_named_grouping_field(columns: Columns, rows: int) -> str | None:
    """Find a field that names dialogues and has equal values in consecutive rows, or return None.

    The field names dialogues if its own name is a word such as ``conv``, or if the numbers of turns
    restart wherever the field's value changes.
    """
    grouping = find_grouping_field(columns, rows)
    if grouping is None:
        return None
    name, _ = grouping
    if split_field_name(name) <= DIALOGUE_WORDS | NUMBER_WORDS:
        return name
    counter = find_restarting_counter(columns)
    if counter is None or len(columns[counter]) < rows:
        return None
    numbers, names = columns[counter], columns[name]
    restarts = (number == numbers[0] for number in numbers[1:])
    changes = (before != after for before, after in pairwise(names))
    return name if all(a == b for a, b in zip(restarts, changes, strict=True)) else None


def find_grouping_field(columns: Columns, rows: int) -> tuple[str, int] | None:
    """Find a field with equal values in consecutive rows, and count its values, or return None.

    The field does not have the name of an id, but it may name the dialogues of rows that are turns.
    A field with fewer than ``MIN_GROUPS`` values may be a label by which the rows are sorted.
    """
    for name, values in columns.items():
        named = [value for value in values if _is_name(value) and not is_null(value)]
        distinct = len(set(named))
        if len(named) < rows or not MIN_GROUPS <= distinct <= rows / 2:
            continue
        if 1 + sum(before != after for before, after in pairwise(named)) == distinct:
            return name, distinct
    return None


def is_id_name(name: str) -> bool:
    """Return whether a field is named like an ID."""
    low = name.lower()
    return low in ID_NAMES or (low.endswith("id") and not split_field_name(name) & NON_ID_WORDS)


def _is_dialogue_name(name: str) -> bool:
    return any(word in name.lower() for word in DIALOGUE_WORDS)


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _has_repeats(values: Sequence[Any]) -> bool:
    named = [value for value in values if _is_name(value) and not is_null(value)]
    return 2 <= len(set(named)) <= len(named) / 2


def are_split_names(values: Sequence[Any]) -> bool:
    """Return whether values name splits, in words such as train, dev and test."""
    found = {str(value).strip().lower() for value in values if not is_null(value)}
    return len({SPLIT_WORDS.get(word, word) for word in found}) > 1 and found <= SPLIT_WORDS.keys()


def describe_split_fields(columns: Columns, path: Path) -> Iterator[str]:
    """Yield a note for each field with split names, and a command that divides the file.

    Args:
        columns: fields of the rows.
        path: the file of the rows.
    """
    for key, values in columns.items():
        if are_split_names(values):
            yield (
                f"{key} names the split of each row, but is not used. Write the rows of each split "
                f"to their own file{_suggest_division(key, path)}, and name all of these files "
                "instead."
            )


def _suggest_division(key: str, path: Path) -> str:
    """Return a command in brackets that writes each split's rows to a separate file.

    The text is empty for formats other than CSV and JSON lines.
    """
    stem, ending = path.with_name(path.name.partition(".")[0]), path.suffix
    file, start, end = (json.dumps(str(part), ensure_ascii=False) for part in (path, stem, ending))
    file_format = FORMATS.get(ending.lower())
    if file_format == "csv":
        options = f"sep={json.dumps(open_csv(path).dialect.separator)}"
        code = (
            f'import pandas; [rows.to_csv({start} + "-" + split + {end}, {options}, index=False) '
            f"for split, rows in pandas.read_csv({file}, {options}, dtype=str, "
            f"keep_default_na=False).groupby({json.dumps(key)})]"
        )
    elif file_format == "jsonl":
        keys = "".join(f"[{json.dumps(part)}]" for part in key.split("."))
        code = (
            f"import json, itertools; get = lambda line: str(json.loads(line){keys}); "
            f'lines = [line for line in open({file}, encoding="utf-8-sig") if line.strip()]; '
            f'[open({start} + "-" + split + {end}, "w", encoding="utf-8").writelines(group) '
            "for split, group in itertools.groupby(sorted(lines, key=get), get)]"
        )
    else:
        return ""
    return f" (`python -c {shlex.quote(code)}`)"
