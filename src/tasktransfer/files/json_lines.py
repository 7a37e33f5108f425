"""Files of a JSON object a line, with the numbers of their lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasktransfer.errors import DataError
from tasktransfer.files import json_text


def json_lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file, empty lines left out, with their line numbers from 1.

    Raises:
        DataError: the file cannot be read, or a line is no object; names file and line.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}); give a JSONL file") from error
    # Not splitlines(): a text may hold characters that it takes for the end of a line.
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json_text.loads(line)
        except ValueError as error:
            raise DataError(f"{file}, line {number}: no JSON ({error}); mend the line") from error
        if not isinstance(row, dict):
            raise DataError(f"{file}, line {number}: found {line[:40]!r}, expected an object")
        yield number, row
