"""Notes on fields that name the split of each row."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tasktransfer.datasets.declared.files import FORMATS, SPLIT_WORDS
from tasktransfer.datasets.guess.columns import Columns, is_null
from tasktransfer.files.csv_file import open_csv


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
