"""Reading of untrusted packs within limits, and writing of their nodes to a results folder.

Size, footer, columns, paths and checksums are checked, and the file is read row by row. The Parquet
library itself still parses untrusted bytes, so this code runs in a separate process (``isolated``).
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, skip_sync
from tasktransfer.files.untrusted import read_regular
from tasktransfer.operate.pack import (
    AGAIN,
    FOOTER,
    SCHEMA,
    SCHEMA_VERSION,
    SMALL,
    PackedRow,
    compute_content_digest,
)
from tasktransfer.results.node_folders import compute_node_path
from tasktransfer.results.records import parse_record, write_record
from tasktransfer.results.rows import COLUMNS, write_rows_table
from tasktransfer.results.schema import PROJECTION
from tasktransfer.results.state import RECORD

MOST_BYTES = 64 * 2**20
"""Largest size of a pack in bytes. The shipped matrix of 1,176 nodes has 2 MiB."""
MOST_UNPACKED = 2**29
"""Largest size of all rows of a pack in bytes, unpacked. The shipped matrix has 140 MB."""
MOST_ROWS = 100_000
"""Largest number of nodes and tables in a pack."""
MOST_TEXT = 16 * 2**20
"""Largest size of a text in the footer in bytes: the SHA-256 of 100,000 rows."""
MOST_INPUTS = 1000
"""Largest number of datasets and models in a footer."""
MOST_LETTERS = 1000
"""Largest length of a name or revision in the footer."""
_SHA256 = re.compile("[0-9a-f]{64}")
_LESS = "Pack less into one file"


@dataclass(frozen=True, slots=True)
class Pack:
    """An open pack. ``sha256``: SHA-256 of the file. ``facts``: its validated footer."""

    file: Path
    sha256: str
    facts: Mapping[str, Any]
    parquet: pq.ParquetFile

    @property
    def table(self) -> pa.Table:
        """All rows as one table, for small packs."""
        return self.parquet.read(use_threads=False)

    def iterate_rows(self) -> Iterator[PackedRow]:
        """Yield the rows of the pack one by one.

        Raises:
            RecordError: the rows take more than ``MOST_UNPACKED`` bytes.
        """
        size = 0
        for batch in self.parquet.iter_batches(batch_size=1, use_threads=False):
            size += batch.nbytes
            if size > MOST_UNPACKED:
                raise RecordError(_describe_size_limit(self.file))
            yield from batch.to_pylist()


def read_pack(file: Path, *, follow_links: bool = True) -> Pack:
    """Open a pack and check its footer and columns.

    Args:
        follow_links: whether the file may be a symbolic link.

    Raises:
        RecordError: the file cannot be read, is too large, or was not written by ``pack``.
    """
    try:
        content = read_regular(file, MOST_BYTES, follow_links=follow_links)
    except OSError as error:
        raise RecordError(
            f"{file}: The pack cannot be read ({error.strerror}). Check the path and permissions "
            "of the file."
        ) from error
    try:
        parquet = pq.ParquetFile(
            pa.BufferReader(content),
            pre_buffer=False,
            thrift_string_size_limit=MOST_TEXT,
            thrift_container_size_limit=MOST_ROWS,
        )
        schema, metadata = parquet.schema_arrow, parquet.metadata
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RecordError(
            f"{file}: The pack cannot be read as Parquet ({_extract_first_line(error)}). {AGAIN}."
        ) from error
    unpacked = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    if metadata.num_rows > MOST_ROWS or unpacked > MOST_UNPACKED:
        raise RecordError(_describe_size_limit(file))
    facts = _read_facts(file, schema)
    _check_columns(file, schema)
    return Pack(file, hashlib.sha256(content).hexdigest(), facts, parquet)


def _describe_size_limit(file: Path) -> str:
    limits = f"{MOST_UNPACKED // 2**20:,} MiB or {MOST_ROWS:,} rows"
    return f"{file}: The pack unpacks to more than {limits}. {_LESS}."


def _extract_first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _read_facts(file: Path, schema: pa.Schema) -> dict[str, Any]:
    """Read a pack's footer. Entries that older packs lack are empty or None."""
    try:
        facts = json_text.loads((schema.metadata or {})[FOOTER])
    except (KeyError, ValueError) as error:
        raise RecordError(
            f"{file}: The file was not written by `tasktransfer pack`. Specify a pack."
        ) from error
    if not isinstance(facts, dict) or facts.get("schema") != SCHEMA_VERSION:
        version = facts.get("schema") if isinstance(facts, dict) else None
        raise RecordError(
            f"{file}: The pack has schema {version!r:.40} instead of {SCHEMA_VERSION}, because "
            "another version of tasktransfer wrote it. Use that version, or pack the results "
            "again."
        )
    known: dict[str, Any] = {key: facts.get(key, default) for key, (default, _) in _FACTS.items()}
    for key, (_, is_right) in _FACTS.items():
        if not is_right(known[key]):
            raise RecordError(f"{file}: The entry {key} in the footer is damaged. {AGAIN}.")
    return {"schema": facts["schema"], **known}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_LETTERS


def _has_valid_checksums(value: Any) -> bool:
    """Return whether the rows have checksums, or come from an old release without checksums."""
    if value is None:
        return True
    return isinstance(value, dict) and all(
        isinstance(text, str) and _SHA256.fullmatch(text) for text in value.values()
    )


def _is_revision_table(value: Any) -> bool:
    """Return whether a value is a mapping from names to valid revisions."""
    if not isinstance(value, dict) or len(value) > MOST_INPUTS:
        return False
    texts = [*value.keys(), *value.values()]
    return all(_is_name(text) and text.isprintable() for text in texts)


_FACTS: dict[str, tuple[Any, Callable[[Any], bool]]] = {
    "study": ("", _is_name),
    "by": ("", _is_name),
    "data": ({}, _is_revision_table),
    "models": ({}, _is_revision_table),
    "parameters": ({}, _is_revision_table),
    "brought": ({}, _is_revision_table),
    "provenance": ("", _is_text),
    "sha256": (None, _has_valid_checksums),
}
"""Key of a footer → its default for older releases, and its check."""


def _check_columns(file: Path, schema: pa.Schema) -> None:
    if not schema.remove_metadata().equals(SCHEMA):
        raise RecordError(f"{file}: The columns do not match schema {SCHEMA_VERSION}. {AGAIN}.")


# --- its nodes ----------------------------------------------------------------------------------


def write_nodes(pack: Pack, results: Path) -> None:
    """Write the nodes and tables of a pack into an empty results folder.

    Raises:
        RecordError: a row is damaged, missing, duplicated, or belongs in another folder.
    """
    seen = set[str]()
    with skip_sync():
        for row in pack.iterate_rows():
            place = results / _check_inner_path(pack.file, row["path"])
            if row["path"] in seen:
                raise RecordError(f"{pack.file}: The file {row['path']} is packed twice. {AGAIN}.")
            seen.add(row["path"])
            _check_content(pack, row)
            if row["record"]:
                _write_node(pack.file, place, row)
            else:
                _write_table(pack.file, place, row)
    lost = [path for path in pack.facts["sha256"] or () if path not in seen]
    if lost:
        raise RecordError(
            f"{pack.file}: The file {lost[0]} was packed but is missing now. {AGAIN}."
        )


def _check_content(pack: Pack, row: PackedRow) -> None:
    """Raise RecordError if the content of a row does not match its checksum.

    Older packs have no checksums and are not checked.
    """
    expected = pack.facts["sha256"]
    if expected is not None and expected.get(row["path"]) != compute_content_digest(row):
        raise RecordError(
            f"{pack.file}: The SHA-256 of {row['path']} does not match the pack, so the file was "
            f"damaged or changed. {AGAIN}."
        )


def _check_inner_path(file: Path, path: str) -> PurePosixPath:
    """Return a row's path, or raise an error if it leaves the results folder."""
    inner = PurePosixPath(path)
    if inner.is_absolute() or not inner.parts or ".." in inner.parts or str(inner) != path:
        raise RecordError(f"{file}: The path {path!r} is outside the results folder. {AGAIN}.")
    if not path.isprintable() or any(len(part.encode()) > 255 for part in inner.parts):
        raise RecordError(
            f"{file}: The path {path!r:.80} is not a path that `pack` writes. {AGAIN}."
        )
    return inner


def _write_table(file: Path, place: Path, row: PackedRow) -> None:
    if len(row["files"]) != 1:
        raise RecordError(
            f"{file}: The table {row['path']} is packed with other files, but a table must be a "
            f"single file. {AGAIN}."
        )
    content = row["files"][0]["content"]
    if place.suffix == ".parquet":
        _check_table(f"{file}: {row['path']}", content)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def _check_table(where: str, content: bytes) -> None:
    """Raise RecordError if a table is not completely readable as Parquet."""
    try:
        parquet = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
        for _ in parquet.iter_batches(batch_size=1000, use_threads=False):
            pass
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RecordError(
            f"{where}: The content is not a table ({_extract_first_line(error)}). {AGAIN}."
        ) from error


def _write_node(file: Path, folder: Path, row: PackedRow) -> None:
    record = parse_record(file / row["path"], row["record"].encode())
    # The path needs all parts of the identity. ``merge`` compares it with the folder.
    compute_node_path(record)
    folder.mkdir(parents=True)
    for beside in row["files"]:
        if beside["name"] not in SMALL:
            raise RecordError(
                f"{file}: The node {row['path']} has an unexpected file {beside['name']!r:.40}. "
                f"{AGAIN}."
            )
        _check_arrays(f"{file}: {row['path']}", beside["content"])
        (folder / beside["name"]).write_bytes(beside["content"])
    if record["rows"] is not None:
        node, count = record["node"], record["rows"]["rows"]
        written = write_rows_table(
            folder,
            pa.Table.from_pylist(row["rows"], schema=COLUMNS),
            digest=node["digest"],
            dataset=node["dataset"],
        )
        record["rows"] = {**written, "rows": count}
    write_record(folder / RECORD, record)


def _check_arrays(where: str, content: bytes) -> None:
    """Raise RecordError if a file of arrays needs pickle or is not readable by numpy."""
    import numpy as np  # noqa: PLC0415

    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            for name in arrays.files:
                _ = arrays[name]
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        what = _extract_first_line(error)
        raise RecordError(
            f"{where}: The file {PROJECTION} cannot be read ({what}). {AGAIN}."
        ) from error
