"""Writing a submission archive: ``format`` says what its files hold, this how they are spelled.

``csv`` (default)
    RFC 4180: a field with a comma, a quotation mark, a line break or white space at its ends stands
    in quotation marks, quotation marks inside are doubled. Every answer can be read back as it
    was. Lists are ``[0 1 0 ...]``. Read it with a CSV reader (``newline=""``), not line by line.
``tlidb``
    As the paper's toolkit writes it: no quoting, commas become spaces (here line breaks too, which
    would end the row), lists are ``[0.0 1.0 0.0 ...]``. An answer with a comma comes back changed:
    "3,000" is "3 000" then, two tokens in place of one.

csv is the default because the page asks for .csv files, every CSV reader gives back what was
predicted, and so the score of an archive is that of its records. Lines end in LF. Nothing in an
archive depends on when, where or on which machine it is made: equal records, equal bytes. Members
are stored, not compressed, since compression differs between versions of zlib.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from tasktransfer.designs.transfer.challenge.format import Value
from tasktransfer.errors import DataError
from tasktransfer.files import replacing

Strings = Literal["csv", "tlidb"]
Row = tuple[str, Value]
"""Row id and prediction."""

EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The first date that a zip can hold."""
READABLE = 0o100644 << 16


def write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    """Write files to a zip, atomically; ``members``: ``folder/file`` → content, in this order."""
    with replacing(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, EARLIEST)
            info.create_system = 3  # Unix everywhere: it is what the file's mode is read by
            info.external_attr = READABLE
            archive.writestr(info, content)


def csv_file(rows: Iterable[Row], strings: Strings) -> bytes:
    """The rows of a predictions file.

    Raises:
        DataError: ``tlidb`` cannot spell a row id, which has a comma or a line break.
    """
    spell = _spelled_csv if strings == "csv" else _spelled_tlidb
    return "".join(f"{spell(name, value)}\n" for name, value in rows).encode()


def _spelled_csv(name: str, value: Value) -> str:
    if isinstance(value, tuple):
        value = f"[{' '.join(map(str, value))}]"
    return f"{_quoted(name)},{_quoted(value) if isinstance(value, str) else value}"


def _quoted(text: str) -> str:
    if text == text.strip() and not any(mark in text for mark in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _spelled_tlidb(name: str, value: Value) -> str:
    if any(mark in name for mark in ",\r\n"):
        raise DataError(
            f"instance {name!r}: the toolkit's format has no way to write a comma or a line break "
            "in an id; write the archive with --strings csv"
        )
    if isinstance(value, tuple):
        return f"{name},[{' '.join(f'{entry:.1f}' for entry in value)}]"
    if isinstance(value, str):
        return f"{name},{value.translate(_SPACES)}"
    return f"{name},{value}"


_SPACES = str.maketrans(dict.fromkeys(",\r\n", " "))
