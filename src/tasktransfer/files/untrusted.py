"""Read untrusted files: regular files only, and texts in chunks, with gzip decompressed.

Opening a file never waits for a named pipe, never reads a device, and can refuse links. A refusal
is an OSError with a plain ``strerror``, so that callers report it like any unreadable file.

Reading a text takes bounded memory and time for every content, by limits on the length of a line,
the number of empty lines, and the compression ratio. A refusal is a DataError that names the file,
the problem and the remedy. Standard library only.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal, TextIO

from tasktransfer.errors import DataError, format_location, format_problem

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
}


def open_regular(path: Path, *, follow_links: bool = True) -> io.BufferedReader:
    """Open a regular file for reading.

    Args:
        follow_links: accept a path that is a symbolic link to a regular file.

    Raises:
        OSError: the file cannot be opened, or is a folder, a pipe, a device, a socket, or a link
            that must not be followed.
    """
    try:
        # A device is not even opened, because opening some devices has an effect.
        _refuse_irregular(path, path.stat(follow_symlinks=follow_links).st_mode)
    except ValueError as error:
        raise OSError(errno.EINVAL, "its name contains an invalid character") from error
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    descriptor = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
    try:
        # Another file may have this name by now.
        _refuse_irregular(path, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most: int | None = None, *, follow_links: bool = True) -> bytes:
    """Read the content of a regular file.

    Args:
        most: maximum number of bytes, None for no limit.
        follow_links: as in ``open_regular``.

    Raises:
        OSError: as in ``open_regular``, or the file is larger than ``most`` (EOVERFLOW).
    """
    with open_regular(path, follow_links=follow_links) as stream:
        content = stream.read(-1 if most is None else most + 1)
    if most is not None and len(content) > most:
        raise OSError(errno.EOVERFLOW, f"it is larger than {most:,} bytes", str(path))
    return content


def _refuse_irregular(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no file")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))


MAX_LENGTH = 8 * 2**20
"""Maximum number of characters of a line, a row or a JSON value."""
MAX_RATIO = 100
"""Maximum bytes per compressed byte. Dialogues as JSON have 3 to 20; gzip can have 1,032."""
RATIO_FREE_BYTES = 4 * 2**20
CHUNK_BYTES = 2**17
MAX_EMPTY_LINES, MAX_EMPTY_RUN = 1_000_000, 10_000
"""Maximum number of empty lines in a file, and in a row."""
SHOWN_LINES = 5

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # UTF-32's begins with one of them, or with NULs
_GZIP = b"\x1f\x8b"
_OTHER_FORMATS = {
    _GZIP: ("is compressed with gzip", "Let its name end in .gz"),
    b"PK\x03\x04": (
        "is a zip or a spreadsheet (.xlsx)",
        "Unpack it, or save the sheet as CSV in UTF-8",
    ),
    b"BZh": ("is compressed with bzip2", "Unpack it"),
    b"\xfd7zXZ": ("is compressed with xz", "Unpack it"),
    b"\x28\xb5\x2f\xfd": ("is compressed with Zstandard", "Unpack it"),
    b"PAR1": ("is in Parquet format", "Let its name end in .parquet"),
    b"ARROW1": ("is in Arrow format", "Let its name end in .arrow"),
    b"SQLite format 3": ("is a SQLite database", "Export its table as CSV"),
    b"%PDF": ("is a PDF", "Specify a file with the dialogues"),
    b"version https://git-lfs": ("is a pointer of Git LFS, not the content", "Run git lfs pull"),
    b"<!doctype html": ("is an HTML page", "Download the file itself"),
    b"<html": ("is an HTML page", "Download the file itself"),
}
"""First bytes (in lower case if they are text) → description of the format, and the remedy."""


class TextLines:
    r"""The lines of a file with their numbers from 1, with line ends, and notes about them.

    Args:
        newline: "\n" if only a line feed ends a line, "" if a single carriage return does, too.
    """

    def __init__(self, path: Path, newline: Literal["\n", ""] = "\n") -> None:
        self.path, self.newline = path, newline
        self._lines, self._crlf = 0, 0
        self._empty, self._run, self._last_empty = 0, 0, 0
        self._first_empty: list[int] = []
        self._has_mark = False

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield the lines. Raises DataError if the file cannot be read."""
        with open_text(self.path, self.newline) as stream:
            for line in iter(partial(stream.readline, MAX_LENGTH), ""):
                self._lines += 1
                if self._lines == 1 and line.startswith("\ufeff"):
                    self._has_mark = True
                    line = line.removeprefix("\ufeff")  # noqa: PLW2901
                if len(line) >= MAX_LENGTH:
                    raise _build_length_error(self.path, self._lines)
                if "\0" in line:
                    raise _build_binary_error(self.path, self._lines)
                if line.endswith("\r\n"):
                    self._crlf += 1
                yield self._lines, line

    def count_empty_line(self, line: int) -> None:
        """Count an empty line. Raises DataError beyond the maximum number."""
        self._empty += 1
        self._run = self._run + 1 if line == self._last_empty + 1 else 1
        self._last_empty = line
        if self._empty <= SHOWN_LINES:
            self._first_empty.append(line)
        if self._run > MAX_EMPTY_RUN or self._empty > MAX_EMPTY_LINES:
            count = self._run if self._run > MAX_EMPTY_RUN else self._empty
            where = format_location(self.path, line)
            raise DataError(
                f"{where}: The file contains {count:,} empty lines. Remove the empty lines."
            )

    def list_notes(self) -> list[str]:
        """Return notes for the user on the lines that were read."""
        notes = []
        if self._has_mark:
            where = format_location(self.path, 1)
            notes.append(f"{where}: The byte order mark at the beginning is skipped.")
        if self._crlf:
            counts = f"{self._crlf:,} of {self._lines:,} lines"
            notes.append(f"{self.path}: CRLF at the end of {counts} is read as a line end.")
        if self._empty:
            numbers = format_numbers(self._first_empty, self._empty)
            notes.append(f"{self.path}: Empty lines are skipped ({numbers}).")
        return notes


def format_numbers(first: Sequence[int], count: int) -> str:
    """Format the first numbers, with the total count if some are omitted."""
    listed = ", ".join(map(str, first[:SHOWN_LINES]))
    return f"{listed}, ... ({count:,})" if count > min(len(first), SHOWN_LINES) else listed


@contextmanager
def open_text(path: Path, newline: Literal["\n", ""] = "\n") -> Iterator[TextIO]:
    """Open a file as decompressed UTF-8 text, which may begin with a byte order mark.

    Raises:
        DataError: the file cannot be read, has another format, or is not UTF-8 text.
    """
    try:
        with (
            open_bytes(path) as stream,
            io.TextIOWrapper(stream, "utf-8", newline=newline) as text,
        ):
            yield text
    except UnicodeDecodeError:
        check_utf8(path)
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise _build_damage_error(path, error) from None


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open the bytes of a file, decompressed for names that end in ``.gz``.

    Raises:
        DataError: the file cannot be opened, or its first bytes indicate another format.
    """
    is_gzip = path.suffix.lower() == ".gz"
    try:
        with open_regular(path) as packed:
            _refuse_other_format(path, packed.read(64), is_gzip)
            packed.seek(0)
            if is_gzip:
                with gzip.GzipFile(fileobj=packed) as content:
                    yield io.BufferedReader(_Limited(path, content, packed), CHUNK_BYTES)
            else:
                yield packed
    except (OSError, EOFError, zlib.error) as error:
        raise _build_damage_error(path, error) from None


class _Limited(io.RawIOBase):
    """A stream of decompressed bytes, at most ``MAX_RATIO`` per compressed byte."""

    def __init__(self, path: Path, content: gzip.GzipFile, packed: BinaryIO) -> None:
        self.path, self.content, self.packed, self.count = path, content, packed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer
        chunk = self.content.read1(len(buffer))
        buffer[: len(chunk)] = chunk
        self.count += len(chunk)
        if self.count > max(RATIO_FREE_BYTES, MAX_RATIO * self.packed.tell()):
            raise DataError(
                f"{self.path}: The file decompresses to more than {MAX_RATIO} times its size, "
                "which is implausible for dialogues. If the file is valid, use the decompressed "
                "file."
            )
        return len(chunk)


def _refuse_other_format(path: Path, head: bytes, is_gzip: bool) -> None:
    if is_gzip:
        if head.startswith(_GZIP):
            return
        if not head:
            raise DataError(f"{path}: The file is empty. Fetch the file again.")
        raise DataError(
            f"{path}: The file is not compressed with gzip, although its name ends in .gz. Remove "
            ".gz from the name."
        )
    for beginning, (what, remedy) in _OTHER_FORMATS.items():
        if head.lower().startswith(beginning.lower()):
            raise DataError(format_problem(path, f"The file {what}", remedy))


def _build_damage_error(path: Path, error: Exception) -> DataError:
    if isinstance(error, EOFError):
        return DataError(
            f"{path}: The file is truncated, because its gzip data end too early. Fetch or "
            "compress it again."
        )
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        return DataError(
            f"{path}: The file contains damaged gzip data ({error}). Fetch or compress it again."
        )
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: The file is missing. Put it there.")
    reason = getattr(error, "strerror", None) or error
    return DataError(
        f"{path}: The file cannot be read ({reason}). Check its permissions, or specify another "
        "file."
    )


def check_utf8(path: Path) -> None:
    """Raise DataError for the first line of a file that is not valid UTF-8."""
    with open_bytes(path) as stream:
        lines = iter(partial(stream.readline, MAX_LENGTH), b"")
        for number, line in enumerate(lines, start=1):
            if line.startswith(_WIDE) or b"\0" in line:
                raise _build_binary_error(path, number)
            if len(line) == MAX_LENGTH:
                raise _build_length_error(path, number)
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{format_location(path, number)}: The text is not UTF-8 (byte "
                    f"0x{line[error.start]:02x} at {error.start:,} of the line; Latin-1?). "
                    "Save the file as UTF-8."
                ) from None


def _build_binary_error(path: Path, line: int) -> DataError:
    return DataError(
        f"{format_location(path, line)}: The file is UTF-16 or binary, not UTF-8 text. Save it as "
        "UTF-8."
    )


def _build_length_error(path: Path, line: int) -> DataError:
    return DataError(
        f"{format_location(path, line)}: The line is longer than {MAX_LENGTH:,} characters. Write "
        "one row per line."
    )
