"""Read the values of a JSON text one by one, so that memory does not grow with the file.

Standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from tasktransfer.errors import DataError, format_location, format_problem
from tasktransfer.files import json_text
from tasktransfer.files.untrusted import MAX_LENGTH, open_text

CHUNK = 2**20
_BLANK = re.compile(r"[ \t\r\n]*")


class TooLongError(DataError):
    """A value is longer than ``MAX_LENGTH`` characters."""


@contextmanager
def open_json(path: Path) -> Iterator[JsonCursor]:
    """Open a JSON file at its first value. Raises DataError as ``open_text`` does."""
    with open_text(path) as stream:
        yield JsonCursor(path, stream)


class JsonCursor:
    """A cursor in a JSON text, which reads the values that follow it."""

    def __init__(self, path: Path, stream: TextIO) -> None:
        self._path, self._stream = path, stream
        self._buffer, self._at, self._is_last = "", 0, False
        self._line, self._column, self._counted = 1, 1, 0
        self._read_more()
        self._at = 1 if self._buffer.startswith("\ufeff") else 0

    @property
    def line(self) -> int:
        """Line number of the cursor, from 1."""
        self._count(self._at)
        return self._line

    def peek(self) -> str:
        """Return the first character of the next value, or "" at the end."""
        skipped = 0
        while True:
            match = _BLANK.match(self._buffer, self._at)
            assert match is not None
            skipped += match.end() - self._at
            self._at = match.end()
            if self._at < len(self._buffer) or self._is_last:
                return self._buffer[self._at : self._at + 1]
            if skipped > MAX_LENGTH:
                raise self.build_error(
                    f"the file has more than {MAX_LENGTH:,} consecutive spaces and line breaks",
                    "remove them",
                )
            self._read_more()

    def take_mark(self, marks: str) -> str:
        """Consume the next character, which must be one of ``marks``, and return it."""
        found = self.peek()
        if not found or found not in marks:
            expected = " or ".join(map(repr, marks))
            what = f"{found!r} follows" if found else "the file ends"
            raise self.build_error(f"the JSON is broken ({what} instead of {expected})", "fix it")
        self._at += 1
        return found

    def read_value(self) -> Any:
        """Parse the value at the cursor and move behind it.

        Raises:
            DataError: the value is broken (with line and column), or too long (``TooLongError``).
        """
        if not self.peek():
            raise self.build_error("the JSON is broken (the file ends before a value)", "fix it")
        while True:
            try:
                value, end = json_text.decode(self._buffer, self._at)
            except json_text.DuplicateKeyError as error:
                raise self._build_syntax_error(error) from None
            except json.JSONDecodeError as error:
                if self._is_last:
                    raise self._build_syntax_error(error) from None
                if len(self._buffer) - self._at > MAX_LENGTH:
                    raise self._build_length_error() from None
            except ValueError as error:
                raise self.build_error(f"the text is not valid JSON ({error})", "fix it") from None
            else:
                if end < len(self._buffer) or self._is_last:
                    self._at = end
                    return value
            self._read_more()

    def iterate_items(self) -> Iterator[Any]:
        """Yield the items of the list at the cursor and move behind it."""
        self.take_mark("[")
        if self.peek() == "]":
            self.take_mark("]")
            return
        while True:
            yield self.read_value()
            if self.take_mark(",]") == "]":
                return

    def iterate_members(self) -> Iterator[str]:
        """Yield the keys of the object at the cursor, with the cursor at each key's value.

        The caller skips the value. Raises DataError if a key occurs twice.
        """
        self.take_mark("{")
        if self.peek() == "}":
            self.take_mark("}")
            return
        lines: dict[str, int] = {}
        while True:
            if self.peek() != '"':
                self.take_mark('"')
            line, key = self.line, self.read_value()
            if key in lines:
                problem = f"the key {key!r:.60} is already on line {lines[key]}"
                raise self.build_error(problem, "rename one of the two")
            lines[key] = line
            self.take_mark(":")
            self.peek()
            yield key
            if self.take_mark(",}") == "}":
                return

    def skip_value(self) -> None:
        """Skip the value at the cursor."""
        if self.peek() != "[":
            self.read_value()
            return
        for _ in self.iterate_items():
            pass

    def build_error(self, problem: str, remedy: str) -> DataError:
        """Return an error that names the cursor's line."""
        return DataError(format_problem(format_location(self._path, self.line), problem, remedy))

    def _build_syntax_error(self, error: json.JSONDecodeError) -> DataError:
        self._count(error.pos)
        what = (
            "the file is empty" if not self._buffer.strip() else f"the JSON is broken ({error.msg})"
        )
        location = format_location(self._path, self._line, self._column)
        return DataError(format_problem(location, what, "fix it"))

    def _build_length_error(self) -> TooLongError:
        beginning = self._buffer[self._at : self._at + 40]
        return TooLongError(
            f"{format_location(self._path, self.line)}: The value that begins with {beginning!r} "
            f"is longer than {MAX_LENGTH:,} characters, or broken. Write one object per row, as "
            "pandas.to_json(orient='records', lines=True) does."
        )

    def _count(self, place: int) -> None:
        """Move the cursor to a place in the buffer, and count lines and columns."""
        place = max(place, self._counted)
        lines = self._buffer.count("\n", self._counted, place)
        self._line += lines
        if lines:
            self._column = place - self._buffer.rfind("\n", self._counted, place)
        else:
            self._column += place - self._counted
        self._counted = place

    def _read_more(self) -> None:
        """Read at least as much as is buffered, so that a long value is rarely parsed again."""
        self._count(self._at)
        rest = self._buffer[self._at :]
        chunk = self._stream.read(max(CHUNK, len(rest)))
        self._is_last = not chunk
        self._buffer, self._at, self._counted = rest + chunk, 0, 0
