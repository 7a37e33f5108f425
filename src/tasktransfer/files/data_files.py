"""Readers of all data files: text, JSON, JSON lines and CSV, for trusted and untrusted files.

Text is UTF-8; a byte order mark at its beginning is ignored. A file that cannot be read raises
DataError with the file, the line or row, and the remedy; no other error escapes. ``fields`` checks
the values under keys. Standard library only.
"""

from __future__ import annotations

import codecs
import json
import lzma
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tasktransfer.errors import (
    DataError,
    describe_wrong_value,
    format_location,
    format_missing_columns,
    format_problem,
)
from tasktransfer.files import json_text
from tasktransfer.files.csv_file import open_csv
from tasktransfer.files.fields import Location, Table, as_table
from tasktransfer.files.safe_zip import Limits, UnsafeZipError, check_zip, describe_flaw
from tasktransfer.files.untrusted import (
    MAX_LENGTH,
    MAX_RATIO,
    RATIO_FREE_BYTES,
    TextLines,
    open_regular,
)

AGAIN = "fix it, or fetch the file again"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # UTF-32's begins with one of them, or with NULs
_ZIP = Limits(total=2**30, members=10_000, ratio=MAX_RATIO)
_CHUNK = 2**20
MAX_BYTES = 2**30
"""Maximum size of a file that is read as a whole."""


# --- bytes and text -----------------------------------------------------------------------------


def read_content(file: Path) -> bytes:
    """Read all bytes of a file. Raises DataError if it is unreadable or too large."""
    chunks, size, blank = list[bytes](), 0, 0
    try:
        with open_regular(file) as stream:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                blank = blank + len(chunk) if chunk.isspace() else 0
                if size > MAX_BYTES:
                    raise DataError(
                        f"{file}: The file is larger than {MAX_BYTES:,} bytes. Fetch the file "
                        "again."
                    )
                if blank > MAX_LENGTH:
                    raise DataError(
                        f"{file}: The file contains {blank:,} consecutive blank bytes. Fetch the "
                        "file again."
                    )
                chunks.append(chunk)
    except OSError as error:
        raise _build_read_error(file, error) from error
    return b"".join(chunks)


def _build_read_error(file: Path, error: OSError) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(f"{file}: The file is missing. Put it there.")
    return DataError(
        f"{file}: The file cannot be read ({error.strerror}). Check its permissions, or "
        "specify another file."
    )


def read_zip_member(file: Path, name: str) -> bytes:
    """Read the first file with a given name in any folder of a zip.

    Raises:
        DataError: as in ``read_content``, or the zip is unsafe or does not contain the file.
    """
    try:
        open_regular(file).close()
        archive = check_zip(file, _ZIP)
        member = next((m for m in archive.members if Path(m).name == name), None)
        if member is not None:
            return b"".join(archive.read_chunks(member))
    except UnsafeZipError as error:
        raise DataError(describe_flaw(file, error.flaw)) from None
    except OSError as error:
        raise _build_read_error(file, error) from None
    if archive.flaws:
        raise DataError(describe_flaw(file, archive.flaws[0]))
    raise DataError(f"{file}: The archive contains no {name}. Fetch the archive again.")


def read_tar_member(file: Path, name: str) -> bytes:
    """Read the first file with a given name in any folder of a tar archive.

    Raises:
        DataError: as in ``read_zip_member``.
    """
    try:
        with open_regular(file) as packed, tarfile.open(fileobj=packed) as archive:
            for member in archive:
                if Path(member.name).name == name and (stream := archive.extractfile(member)):
                    if member.size > max(RATIO_FREE_BYTES, MAX_RATIO * file.stat().st_size):
                        raise DataError(
                            f"{file}: The size of {name} is {member.size:,} bytes, more than "
                            f"{MAX_RATIO} times the size of the archive. Fetch the archive "
                            "again."
                        )
                    return stream.read()
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise _build_read_error(file, error) from None
        what = str(error).partition("\n")[0]
        raise DataError(
            f"{file}: The archive cannot be read ({what}). Fetch the archive again."
        ) from None
    raise DataError(f"{file}: The archive contains no {name}. Fetch the archive again.")


def decode_utf8(content: bytes, file: str | Path) -> str:
    """Decode UTF-8 without a byte order mark. Raises DataError for other encodings."""
    if content.startswith(_WIDE) or b"\0" in content[:1000]:
        raise DataError(
            f"{file}: The file is UTF-16 or binary, not UTF-8 text. Save the file as UTF-8."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{format_location(file, line)}: The text is not UTF-8 (byte "
            f"0x{content[error.start]:02x} at {error.start:,}; Latin-1?). Save the file as "
            "UTF-8."
        ) from None


def read_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines of a file (from 1), reading it in chunks.

    Only a line feed ends a line: texts may contain other characters that end lines elsewhere.

    Raises:
        DataError: as in ``open_text``, or a line is too long, or too many lines are empty.
    """
    lines = TextLines(file)
    for number, line in lines:
        text = line.removesuffix("\n").removesuffix("\r")
        if not text:
            lines.count_empty_line(number)
        yield number, text


# --- JSON ---------------------------------------------------------------------------------------


def parse_json(content: bytes, file: str | Path, remedy: str = "fetch the file again") -> Any:
    """Parse a JSON text. Raises DataError with line and column."""
    text = decode_utf8(content, file)
    try:
        return json_text.loads(text)
    except json.JSONDecodeError as error:
        what = "the file is empty" if not text.strip() else f"the JSON is broken ({error.msg})"
        location = format_location(file, error.lineno, error.colno)
        raise DataError(format_problem(location, what, remedy)) from None
    except ValueError as error:
        problem = f"The text is not valid JSON ({error})"
        raise DataError(format_problem(file, problem, remedy)) from None


def read_json_object(file: Path, remedy: str = AGAIN) -> tuple[Table, Location]:
    """Read a JSON file that contains an object, and return it with its location."""
    location = Location(str(file), remedy=remedy)
    return as_table(parse_json(read_content(file), file), location), location


def read_json_objects(file: Path, remedy: str = AGAIN) -> Iterator[tuple[Table, Location]]:
    """Yield the objects in a JSON file's list with their locations.

    Raises:
        DataError: the file is not a list of objects, or the list is empty.
    """
    location = Location(str(file), remedy=remedy)
    values = parse_json(read_content(file), file)
    if not isinstance(values, list) or not values:
        raise location.error(describe_wrong_value(values, "a list of objects"))
    for number, value in enumerate(values):
        spot = location.locate_row(f"item {number}")
        yield as_table(value, spot), spot


def read_json_lines(
    file: Path, remedy: str = "fix the line"
) -> Iterator[tuple[int, Table, Location]]:
    """Yield the objects of a JSON lines file with line number and location.

    Lines are numbered from 1. Empty lines are skipped.

    Raises:
        DataError: the file cannot be read, or a line is not an object.
    """
    for number, line in read_lines(file):
        if not line.strip():
            continue
        location = Location(str(file), line=number, remedy=remedy)
        try:
            value = json_text.loads(line)
        except ValueError as error:
            raise location.error(f"the text is not valid JSON ({error})") from None
        yield number, as_table(value, location), location


# --- CSV ----------------------------------------------------------------------------------------


def read_csv_rows(file: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line of each row, and its cells in given columns.

    The header may have the columns in any order. Other columns and empty rows are skipped.

    Raises:
        DataError: as in ``open_csv``, or a column is missing.
    """
    csv = open_csv(file)
    if missing := [column for column in columns if column not in csv.columns]:
        raise DataError(
            f"{format_location(file, csv.header_line)}: {format_missing_columns(missing)} The "
            f"header has the columns {', '.join(csv.columns)!r:.80} ({csv.dialect}), but it must "
            f"include {', '.join(columns)}. Fix the line."
        )
    places = [csv.columns.index(column) for column in columns]
    return ((line, [row[place] for place in places]) for line, row in csv.rows())
