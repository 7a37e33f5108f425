"""The rows of a file, read by ``datasets`` a batch at a time: memory does not grow with the file.

Texts in JSON lines are taken as lines and parsed here, and cells of a CSV are all texts: a library
that guesses types makes dates of texts and 7 of ``007``. What cannot be read is looked for again in
the file itself, so that messages have its line.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from tasktransfer.datasets.declared.files import DataFile
from tasktransfer.errors import DataError
from tasktransfer.files import json_text
from tasktransfer.files.data_files import content_of, parsed
from tasktransfer.files.fields import Location, Table

BATCH = 1000
CHUNK = 2**20
"""Bytes of lines that are read at once; of these the library makes several copies."""
REMEDY = "mend it"
_SEPARATORS = (",", ";", "\t")
_LONGEST_HEAD = 2**20


class SourceRow(NamedTuple):
    """``number``: the line of JSON lines and CSV on which it begins, the number of the row or item
    elsewhere, from 1."""

    number: int
    values: Table
    location: Location


def read_rows(file: DataFile) -> Iterator[SourceRow]:
    """The rows of a file in their order.

    Raises:
        DataError: it cannot be read, is empty, or a row is no object; with line or row and remedy.
    """
    rows = _READERS[file.format](file.path)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{file.path}: holds no row; give a file with dialogues, or leave it out")
    yield first
    yield from rows


def hub_rows(
    name: str, config: str | None, split: str, revision: str | None
) -> Iterator[SourceRow]:
    """The rows of a split of a dataset on the hub, from the library's cache where it is there.

    Raises:
        DataError: it cannot be loaded; says what the library says.
    """
    with _told(name, "look at the name, or set HF_HUB_OFFLINE=0 where there is a network"):
        table = _library().load_dataset(name, config, split=split, revision=revision)
        yield from _of_batches(table, f"{name} ({split})")


def _library() -> Any:
    """``datasets``, which takes a second to import; without the bars that no log wants, and without
    torch, which it would import for a class that nobody needs here: 200 MB and as long again."""
    if "datasets" in sys.modules:
        return sys.modules["datasets"]
    asked = os.environ.get("USE_TORCH")
    os.environ["USE_TORCH"] = "0"
    try:
        import datasets  # noqa: PLC0415
    finally:
        del os.environ["USE_TORCH"]
        os.environ.update({} if asked is None else {"USE_TORCH": asked})
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    return datasets


def _stream(builder: str, path: Path, **options: Any) -> Any:
    """A file as batches."""
    return _library().load_dataset(
        builder, data_files=[str(path)], split="train", streaming=True, **options
    )


@contextmanager
def _told(path: Path | str, remedy: str) -> Iterator[None]:
    """What a library raises, as a DataError."""
    try:
        yield
    except (DataError, GeneratorExit, MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # whatever a library raises for a damaged file
        what = " ".join(str(error.__cause__ or error).split())
        raise DataError(f"{path}: cannot be read ({what:.200}); {remedy}") from error


# --- JSON ---------------------------------------------------------------------------------------


def _json_lines(path: Path) -> Iterator[SourceRow]:
    number = 0
    for line in _lines(path):
        number += 1
        if not line.strip():
            continue
        location = Location(str(path), row=f"line {number}", remedy="mend the line")
        try:
            values = json_text.loads(line)
        except ValueError as error:
            if "\0" in line:
                refuse_encoding(path)
            raise location.error(f"no JSON ({error})") from None
        if not isinstance(values, dict):
            raise location.error(f"found {values!r:.40}, expected an object in braces")
        yield SourceRow(number, values, location)


def _lines(path: Path) -> Iterator[str]:
    try:
        for batch in (
            _stream("text", path, encoding="utf-8-sig", chunksize=CHUNK)
            .with_format("arrow")
            .iter(BATCH)
        ):
            yield from batch["text"].to_pylist()
    except Exception as error:
        refuse_encoding(path)
        raise DataError(f"{path}: cannot be read ({error!s:.200}); copy it again") from error


def _json(path: Path) -> Iterator[SourceRow]:
    """A list of objects, alone or under one key, or objects under their names; JSON lines too,
    which many call ``.json``."""
    if _begins_with_objects(path):
        yield from _json_lines(path)
        return
    value = parsed(content_of(path), path, REMEDY)
    if isinstance(value, dict):
        value = _listed_in(value, path)
    if not isinstance(value, list):
        raise DataError(
            f"{path}, line 1: found {value!r:.40}, expected a list of objects; {REMEDY}"
        )
    for number, item in enumerate(value, start=1):
        location = Location(str(path), row=f"item {number}", remedy=REMEDY)
        if not isinstance(item, dict):
            raise location.error(f"found {item!r:.40}, expected an object in braces")
        yield SourceRow(number, item, location)


def _listed_in(value: dict[str, Any], path: Path) -> list[Any]:
    """The rows in an object: the one list of objects, or objects that it names."""
    if len(value) > 1 and all(isinstance(inner, dict) for inner in value.values()):
        return [{"id": name} | inner for name, inner in value.items()]
    lists = [key for key, inner in value.items() if _is_table(inner)]
    if len(lists) != 1:
        found = f": {', '.join(lists)}; save each as a file of its own" if lists else f"; {REMEDY}"
        raise DataError(
            f"{path}: an object with {len(lists)} lists of objects, expected a list of objects or "
            f"one under a single key{found}"
        )
    listed: list[Any] = value[lists[0]]
    return listed


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _begins_with_objects(path: Path) -> bool:
    """Whether the first line is a whole object and another line follows."""
    with opened(path) as stream:
        head = stream.read(_LONGEST_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    line, _, rest = head.partition(b"\n")
    if not line.startswith(b"{") or not rest.strip():
        return False
    try:
        return isinstance(json_text.loads(line), dict)
    except ValueError:
        return False


# --- CSV ----------------------------------------------------------------------------------------


def _csv(path: Path) -> Iterator[SourceRow]:
    separator, columns = _head(path)
    library = _library()
    features = library.Features({name: library.Value("string") for name in columns})
    options = {"sep": separator, "features": features, "keep_default_na": False}
    is_checked = False
    line = 2 + sum(name.count("\n") for name in columns)
    try:
        table = _stream("csv", path, encoding="utf-8-sig", skip_blank_lines=False, **options)
        for batch in table.with_format("arrow").iter(BATCH):
            for values in batch.to_pylist():
                texts = [text or "" for text in values.values()]
                if not texts[-1] and not is_checked:  # an empty cell, or a row that is too short
                    _refuse_csv(path, separator, len(columns))
                    is_checked = True
                if any(texts):
                    location = Location(str(path), row=f"line {line}", remedy=REMEDY)
                    yield SourceRow(line, values, location)
                line += 1 + sum(text.count("\n") for text in texts)
    except (DataError, GeneratorExit):
        raise
    except Exception as error:
        _refuse_csv(path, separator, len(columns))
        what = " ".join(str(error).split())
        raise DataError(f"{path}: no CSV ({what:.200}); {REMEDY}") from error


def _head(path: Path) -> tuple[str, list[str]]:
    """The separator and the columns that the first line names."""
    with _text(path) as stream:
        line = stream.readline(_LONGEST_HEAD)
    separator = max(_SEPARATORS, key=line.count)
    with _text(path) as stream:
        columns = next(csv.reader(stream, delimiter=separator), [])
    location = Location(
        str(path), row="line 1", remedy="mend the first line, which names the columns"
    )
    if not any(columns):
        raise location.error("no column is named")
    for name in columns:
        if not name.strip():
            raise location.error(f"an empty name among the columns {', '.join(columns)!r:.80}")
        if columns.count(name) > 1:
            raise location.error(f"two columns are named {name!r}")
    return separator, columns


def _refuse_csv(path: Path, separator: str, columns: int) -> None:
    """Name the first line that breaks a CSV."""
    with _text(path) as stream:
        reader = csv.reader(stream, delimiter=separator, strict=True)
        line = 1
        try:
            for row in reader:
                if row and len(row) != columns:
                    raise DataError(
                        f"{path}, line {line}: {len(row)} columns, and the first line names "
                        f"{columns}; put texts with {separator!r} in quotes"
                    )
                line = reader.line_num + 1
        except csv.Error as error:
            raise DataError(
                f"{path}, line {line}: no CSV ({error}); is a quotation mark left open? "
                "close it, and double those within a text"
            ) from None


# --- Arrow and its kin --------------------------------------------------------------------------


def _parquet(path: Path) -> Iterator[SourceRow]:
    with _told(path, "write it again as Parquet"):
        yield from _of_batches(_stream("parquet", path), str(path))


def _arrow(path: Path) -> Iterator[SourceRow]:
    with _told(path, "write it again as Arrow (IPC)"):
        yield from _of_batches(_stream("arrow", path), str(path))


def _saved(path: Path) -> Iterator[SourceRow]:
    with _told(path, "save it again with Dataset.save_to_disk"):
        yield from _of_batches(_library().load_from_disk(str(path)), str(path))


def _of_batches(table: Any, name: str) -> Iterator[SourceRow]:
    number = 0
    for batch in table.with_format("arrow").iter(BATCH):
        for values in batch.to_pylist():
            number += 1
            yield SourceRow(number, values, Location(name, row=f"row {number}", remedy=REMEDY))


_READERS = {
    "jsonl": _json_lines,
    "json": _json,
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
    "saved": _saved,
}


# --- texts as they lie in the file --------------------------------------------------------------


def opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """A file's bytes, decompressed. Raises DataError if it cannot be opened."""
    try:
        return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {REMEDY}") from None


@contextmanager
def _text(path: Path) -> Iterator[IO[str]]:
    try:
        with opened(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
            yield text
    except UnicodeDecodeError:
        refuse_encoding(path)
        raise
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read ({error}); copy it again") from None


def refuse_encoding(path: Path) -> None:
    """Name the first line of a file that is not UTF-8; nothing where all are."""
    try:
        with opened(path) as stream:
            _refuse_bytes(path, stream)
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read ({error}); copy it again") from None


def _refuse_bytes(path: Path, lines: Iterable[bytes]) -> None:
    for number, line in enumerate(lines, start=1):
        if line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line[:1000]:
            raise DataError(
                f"{path}, line {number}: is not UTF-8 text but UTF-16 or binary; save it as UTF-8"
            )
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, line {number}: is not UTF-8 text (byte 0x{line[error.start]:02x}; "
                "Latin-1?); save it as UTF-8"
            ) from None
