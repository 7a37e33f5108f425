"""Rows of a JSON file.

The file contains a list of objects, alone or under one key, or objects under their names. It may
also contain consecutive objects, each on one line or on several.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasktransfer.datasets.declared.row_fields import FIX_REMEDY, SourceRow, build_row
from tasktransfer.errors import DataError, describe_wrong_value
from tasktransfer.files.fields import Location
from tasktransfer.files.json_stream import JsonCursor, TooLongError, open_json
from tasktransfer.files.untrusted import open_text

HEAD_CHARACTERS = 2**16
MAX_ROW_KEYS = 20
MAX_DEPTH = 4


def has_single_value(path: Path) -> bool:
    """Return whether a file that looks like JSON lines contains a single JSON value.

    This is a list, or an object over several lines.

    Raises:
        DataError: the file cannot be read.
    """
    with open_text(path) as stream:
        line, _, rest = stream.read(HEAD_CHARACTERS).lstrip("\ufeff \t\r\n").partition("\n")
    return line.strip() in ("[", "{", "[{") or (line.startswith("[") and not rest.strip())


def read_json_rows(path: Path, notes: list[str]) -> Iterator[SourceRow]:
    """Yield the rows of a JSON file.

    Raises:
        DataError: the file is damaged, contains no list of objects or several, or is a table by
            columns. The message names the line or item.
    """
    if path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        notes.append(f"{path}: The file is read as .json, because a value spans several lines.")
    with open_json(path) as cursor:
        if cursor.peek() == "[":
            yield from _number_rows(path, cursor.iterate_items())
            _check_end(cursor)
            return
        if cursor.peek() != "{":
            problem = (
                describe_wrong_value(cursor.read_value(), "a list of objects")
                if cursor.peek()
                else "the file is empty"
            )
            raise cursor.build_error(problem, FIX_REMEDY)
        if _has_several_objects(path):
            yield from _read_sequence(path, cursor)
            return
    yield from _read_members(path)


def _number_rows(path: Path, items: Iterator[Any]) -> Iterator[SourceRow]:
    for number, item in enumerate(items, start=1):
        location = Location(str(path), row=f"item {number}", remedy=FIX_REMEDY)
        yield build_row(number, item, location)


def _check_end(cursor: JsonCursor) -> None:
    if cursor.peek():
        raise cursor.build_error(
            "the first value is followed by another value, but a JSON file must contain exactly "
            "one value",
            "write one list, or one object per line (.jsonl)",
        )


def _has_several_objects(path: Path) -> bool:
    """Return whether a second object follows the first, as in JSON lines."""
    with open_json(path) as cursor:
        try:
            cursor.read_value()
        except TooLongError:
            return False
        return cursor.peek() != ""


def _read_sequence(path: Path, cursor: JsonCursor) -> Iterator[SourceRow]:
    while cursor.peek():
        line = cursor.line
        location = Location(str(path), line=line, remedy="fix the line")
        value = cursor.read_value()
        yield build_row(line, value, location)


# --- one object ---------------------------------------------------------------------------------


def _read_members(path: Path) -> Iterator[SourceRow]:
    """Yield the rows in an object: the items of its only list, or its members."""
    table = _find_row_list(path)
    with open_json(path) as cursor:
        if table is None:
            yield from _number_rows(
                path, ({"id": key} | cursor.read_value() for key in cursor.iterate_members())
            )
            return
        for key in cursor.iterate_members():
            if key == table:
                yield from _number_rows(path, cursor.iterate_items())
            else:
                cursor.skip_value()


@dataclass
class _Members:
    """Members of an object.

    Args:
        path: the file.
        count: number of members.
        objects: number of members that are objects.
        tables: keys whose values are lists of objects.
        lists: keys whose values are lists of lists.
        inner: keys that lead to the longest list of objects within members, and its length.
        names: first keys.
        first: first member that is an object.
        are_columns: whether all members so far are flat objects with the same keys.
    """

    path: Path
    count: int = 0
    objects: int = 0
    tables: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    inner: tuple[tuple[str, ...], int] = ((), 0)
    names: list[str] = field(default_factory=list)
    first: Mapping[str, Any] | None = None
    are_columns: bool = True

    def add(self, key: str, value: Any) -> None:
        self.count += 1
        if len(self.names) <= MAX_ROW_KEYS:
            self.names.append(key)
        if not isinstance(value, dict):
            return
        self.objects += 1
        self.inner = max(self.inner, _find_longest_list(value, (key,)), key=lambda found: found[1])
        self.first = value if self.first is None else self.first
        if self.are_columns:
            is_flat = not any(isinstance(inner, dict | list) for inner in value.values())
            self.are_columns = is_flat and value.keys() == self.first.keys()

    @property
    def is_by_columns(self) -> bool:
        """True if the members are columns, each a mapping from row name to value."""
        if self.first is None or not self.are_columns or self.count != self.objects:
            return False
        are_numbers = all(key.lstrip("-").isdecimal() for key in self.first)
        if are_numbers and not all(name.lstrip("-").isdecimal() for name in self.names):
            return True
        return len(self.first) > MAX_ROW_KEYS and len(self.first) > 2 * self.count


def _find_row_list(path: Path) -> str | None:
    """Return the key of the list of rows, or None if the object's members are the rows.

    Raises:
        DataError: there is no such list, or there are several.
    """
    members = _Members(path)
    with open_json(path) as cursor:
        for key in cursor.iterate_members():
            if cursor.peek() != "[":
                members.add(key, cursor.read_value())
                continue
            items, objects, lists = 0, 0, 0
            for item in cursor.iterate_items():
                items, objects = items + 1, objects + isinstance(item, dict)
                lists += isinstance(item, list)
            members.add(key, [])
            if objects and objects == items:
                members.tables.append(key)
            elif lists and lists == items:
                members.lists.append(key)
        _check_end(cursor)
    if members.is_by_columns:
        raise _build_columns_error(path, "columns")
    if {"columns", "data"} <= {*members.names} <= {"columns", "data", "index"}:
        raise _build_columns_error(path, "split")
    if members.count > 1 and members.objects == members.count:
        return None
    if len(members.tables or members.lists) == 1:
        return (members.tables or members.lists)[0]
    count = len(members.tables or members.lists)
    raise DataError(
        f"{path}: The file contains an object with {count} lists of rows, but it must contain a "
        f"list of objects, or an object with a single list. {_suggest_split_command(members)}"
    )


def _suggest_split_command(members: _Members) -> str:
    """Return a remedy for an object in which the rows are ambiguous.

    It is a command that writes each list of rows to its own file, if possible.
    """
    keys = members.tables or members.lists
    load = f"import json; d = json.load(open({json.dumps(str(members.path))}))"
    if keys and all(re.fullmatch(r"\w[\w-]*", key) for key in keys):
        code = f'{load}; [json.dump(d[k], open(k + ".json", "w")) for k in {json.dumps(keys)}]'
        listed = ", ".join(keys)
        return f"Write each list ({listed}) to its own file with `python -c {shlex.quote(code)}`."
    if keys:
        return f"Write each list ({', '.join(keys)}) to its own file."
    inner, count = members.inner
    if not inner:
        return "Write the rows as one list."
    place = "".join(f"[{json.dumps(key)}]" for key in inner)
    code = f'{load}; json.dump(d{place}, open("rows.json", "w"))'
    where = ".".join(inner)
    return f"Write the {count:,} rows of {where} to a file with `python -c {shlex.quote(code)}`."


def _find_longest_list(
    value: Mapping[str, Any], keys: tuple[str, ...]
) -> tuple[tuple[str, ...], int]:
    """Return the path of the longest list of objects in an object, and the list's length."""
    best: tuple[tuple[str, ...], int] = ((), 0)
    for key, inner in value.items():
        if isinstance(inner, list) and inner and all(isinstance(item, dict) for item in inner):
            best = max(best, ((*keys, key), len(inner)), key=lambda found: found[1])
        elif isinstance(inner, dict) and len(keys) < MAX_DEPTH:
            best = max(best, _find_longest_list(inner, (*keys, key)), key=lambda found: found[1])
    return best


def _build_columns_error(path: Path, orient: str) -> DataError:
    name = path.with_name(f"{path.name.partition('.')[0]}.jsonl")
    code = (
        f"import pandas; pandas.read_json({str(path)!r}, orient={orient!r}, dtype=False, "
        f"convert_axes=False, convert_dates=False).to_json({str(name)!r}, orient='records', "
        "lines=True, force_ascii=False)"
    )
    return DataError(
        f"{path}: The file is a table by columns, as pandas.to_json(orient={orient!r}) writes it, "
        "instead of one object per row. Write it with orient='records', or convert it with "
        f"`python -c {shlex.quote(code)}`."
    )
