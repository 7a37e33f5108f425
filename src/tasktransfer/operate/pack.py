"""Packing of a study's records and rows into one Parquet file, for a repository or an archive.

It has one row per node: its path below the results folder, its digest, its record as JSON, its rows
as a list, and the small files that tables are built from. Tables computed from the dialogues
themselves, and the choices on which runs depend, are included unchanged. Weights, fits, derived
data and logs are not included. The footer identifies the study and its inputs, so that tables and
figures can be built without data and models.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.errors import RecordError, format_quantity
from tasktransfer.files import replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.operate.coded_answers import remove_quotations
from tasktransfer.operate.offered_records import check_files, read_offered_record
from tasktransfer.results.node_folders import iterate_node_folders
from tasktransfer.results.rows import COLUMNS, read_rows
from tasktransfer.results.schema import PROJECTION, Record
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study

SCHEMA_VERSION = 2
FOOTER = b"tasktransfer-pack"
_ROW = pa.struct([pa.field(f.name, f.type, f.nullable) for f in COLUMNS])
_FILE = pa.struct([pa.field("name", pa.string()), pa.field("content", pa.binary())])
SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("record", pa.string(), nullable=False),
        pa.field("rows", pa.list_(_ROW), nullable=False),
        pa.field("files", pa.list_(_FILE), nullable=False),
    ]
)
"""Schema of a pack. ``digest`` and ``record`` are empty if the row is a table, not a node."""
AGAIN = "Get the file again from its author"
"""Remedy for a damaged pack."""
SMALL = (PROJECTION,)
"""Files beside a record that tables are built from."""


class PackedFile(TypedDict):
    """Name and content of a file in a pack."""

    name: str
    content: bytes


class PackedRow(TypedDict):
    """Row of a pack: a node, or a table whose ``digest`` and ``record`` are empty."""

    path: str
    digest: str
    record: str
    rows: list[dict[str, Any]]
    """Rows of the node with ``rows.COLUMNS``."""
    files: list[PackedFile]


class PackResult(TypedDict):
    """Result of packing a study.

    Attributes:
        file: path of the pack.
        packed: kind of node → number of packed nodes.
        lacking: number of the study's nodes that are not packed.
        tables: number of packed tables.
        bytes: size of the pack.
    """

    file: str
    packed: dict[str, int]
    lacking: int
    tables: int
    bytes: int


def pack_results(
    study: Study,
    out: Path,
    *,
    tables: Iterable[str] = (),
    provenance: str = "",
    by: str = "",
    with_text: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> PackResult:
    """Write the finished nodes of a study into one file, atomically.

    Args:
        study: study whose inputs are known or cached.
        out: the Parquet file.
        tables: files of tables computed from dialogues, relative to the results folder, packed if
            they exist.
        provenance: sources and licences of the data, stored in the footer.
        by: author of the records (a lab or a person); records that name an author keep it.
        with_text: include answers that are text instead of labels. Otherwise the words of spans are
            replaced by codes with the same scores (``coded_answers``), and other texts are
            rejected, since they may quote the dialogues.
        say: called with a message about the nodes left out.

    Raises:
        RecordError: nothing is finished, a record is damaged, or an answer is not a label.
    """
    wanted, results = study.plan.by_digest, Path(study.config.results)
    rows, packed = [], dict[str, int]()
    for node_folder in show_progress([*iterate_node_folders(results)], "packing"):
        node = wanted.get(node_folder.digest)
        if node is None or not (node_folder.folder / RECORD).is_file():
            continue
        record = read_offered_record(node_folder, node)
        check_files(node_folder, record)
        rows.append(
            _build_node_row(
                node_folder.folder, node_folder.path, add_author(record, by), with_text=with_text
            )
        )
        kind = record["node"]["kind"]
        packed[kind] = packed.get(kind, 0) + 1
    if not rows:
        raise RecordError(
            f"{study.config.results}: No node of {study.config_file} is finished. Run the study "
            "first."
        )
    lacking = len(study.plan.nodes) - len(rows)
    if lacking:
        say(
            f"The pack does not contain {format_quantity(lacking, 'unfinished node')} of "
            f"{study.config_file}."
        )
    there = [name for name in tables if (results / name).is_file()]
    rows += [_build_table_row(results, name) for name in there]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    facts = {
        "schema": SCHEMA_VERSION,
        "study": study.config.study,
        "data": dict(study.revisions.data),
        "models": {name: model.weights for name, model in study.revisions.models.items()},
        "parameters": {name: str(count) for name, count in study.revisions.parameters.items()},
        "brought": dict(study.revisions.brought),
        "provenance": provenance,
        "by": by,
        "sha256": {row["path"]: compute_content_digest(row) for row in _iterate_rows(table)},
    }
    table = table.replace_schema_metadata({FOOTER: json.dumps(facts)})
    out.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(out) as part:
        pq.write_table(table, part, compression="zstd", compression_level=19)
        size = part.stat().st_size
    return {
        "file": str(out),
        "packed": packed,
        "lacking": lacking,
        "tables": len(there),
        "bytes": size,
    }


def as_text(seen: PackResult) -> str:
    """Format the result of packing."""
    names = {"stage": "training", "data": "derived dataset"}
    nodes = [
        format_quantity(count, names.get(kind, kind)) for kind, count in seen["packed"].items()
    ]
    tables = [format_quantity(seen["tables"], "further file")] * (seen["tables"] > 0)
    return f"{seen['file']}: {', '.join([*nodes, *tables])}, {seen['bytes']:,} bytes\n"


def _build_node_row(folder: Path, path: str, record: Record, *, with_text: bool) -> PackedRow:
    rows = COLUMNS.empty_table()
    if record["rows"] is not None:
        file = folder / record["rows"]["file"]
        rows = read_rows(file, record["rows"])
        if not with_text:
            rows = remove_quotations(file, record, rows)
    small = [folder / name for name in SMALL if (folder / name).is_file()]
    return {
        "path": path,
        "digest": record["node"]["digest"],
        "record": json.dumps(record),
        "rows": rows.to_pylist(),
        "files": [{"name": file.name, "content": file.read_bytes()} for file in small],
    }


def add_author(record: Record, by: str) -> Record:
    """Return a record with an author, unless it already has one."""
    if not by or record["provenance"].get("made_by"):
        return record
    return {**record, "provenance": {**record["provenance"], "made_by": by}}


def _build_table_row(results: Path, name: str) -> PackedRow:
    content = (results / name).read_bytes()
    files: list[PackedFile] = [{"name": Path(name).name, "content": content}]
    return {"path": name, "digest": "", "record": "", "rows": [], "files": files}


def _iterate_rows(table: pa.Table) -> Iterator[PackedRow]:
    for batch in table.to_batches(max_chunksize=1):
        yield from batch.to_pylist()


def compute_content_digest(row: PackedRow) -> str:
    """Return the SHA-256 of a row's content, independent of the pack's file."""
    files = [
        {**each, "content": hashlib.sha256(each["content"]).hexdigest()} for each in row["files"]
    ]
    return hashlib.sha256(json.dumps({**row, "files": files}).encode()).hexdigest()
