"""Malicious shards, derived from a valid one, that must not harm an import."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.operate.pack import FOOTER, SCHEMA, compute_content_digest

ROWS, FILES = (SCHEMA.field(name).type for name in ("rows", "files"))
Rows = list[dict[str, Any]]
Make = Callable[[Path, Path], Any]
"""Function that writes a hostile file, given a valid shard and the output path."""

MAKERS: dict[str, Make] = {}
"""Kind → function that writes such a shard."""


def kind(make: Make) -> Make:
    MAKERS[make.__name__] = make
    return make


def rows_and_facts(good: Path) -> tuple[Rows, dict[str, Any]]:
    table = pq.read_table(good)
    return table.to_pylist(), json.loads(table.schema.metadata[FOOTER])


def write(out: Path, rows: Rows, facts: Any, **options: Any) -> None:
    """Write a shard with valid checksums."""
    if isinstance(facts, dict) and isinstance(facts.get("sha256"), dict):
        facts = {**facts, "sha256": {row["path"]: compute_content_digest(row) for row in rows}}
    footer = facts if isinstance(facts, bytes) else json.dumps(facts).encode()
    table = pa.Table.from_pylist(rows, schema=SCHEMA.with_metadata({FOOTER: footer}))
    pq.write_table(table, out, **{"compression": "zstd", **options})


def changed(change: Callable[[Rows, dict[str, Any]], Any]) -> Make:
    """Return a function that changes rows and facts of a valid shard, and fixes its checksums."""

    def make(good: Path, out: Path) -> None:
        rows, facts = rows_and_facts(good)
        change(rows, facts)
        write(out, rows, facts)

    return make


def kinds(**changes: Callable[[Rows, dict[str, Any]], Any]) -> None:
    MAKERS.update({name: changed(change) for name, change in changes.items()})


def record_changed(**parts: Any) -> Callable[[Rows, dict[str, Any]], Any]:
    def change(rows: Rows, _: dict[str, Any]) -> None:
        rows[0]["record"] = json.dumps({**json.loads(rows[0]["record"]), **parts})

    return change


# --- not a file -----------------------------------------------------------------------------------

MAKERS |= {
    "named_pipe": lambda good, out: os.mkfifo(out),
    "link_to_dev_zero": lambda good, out: out.symlink_to("/dev/zero"),
    "link_to_itself": lambda good, out: out.symlink_to(out.name),
    "folder_with_a_name": lambda good, out: out.mkdir(),
    "empty_file": lambda good, out: out.touch(),
}


@kind
def link_out_of_the_folder(good: Path, out: Path) -> None:
    outside = out.parent.parent / "outside.parquet"
    outside.write_bytes(good.read_bytes())
    out.symlink_to(outside)


@kind
def sparse_terabyte(_: Path, out: Path) -> None:
    with out.open("wb") as stream:
        stream.truncate(2**40)


# --- not Parquet ----------------------------------------------------------------------------------

MAKERS |= {
    "text_file": lambda good, out: out.write_text("no Parquet"),
    "magic_alone": lambda good, out: out.write_bytes(b"PAR1PAR1"),
    "footer_longer_than_the_file": lambda good, out: out.write_bytes(
        b"PAR1" + struct.pack("<I", 2**31) + b"PAR1"
    ),
    "other_parquet_file": lambda good, out: pq.write_table(pa.table({"a": [1]}), out),
}


@kind
def cut_in_the_middle(good: Path, out: Path) -> None:
    content = good.read_bytes()
    out.write_bytes(content[: len(content) // 2])


@kind
def footer_of_noise(_: Path, out: Path) -> None:
    noise = random.Random(1).randbytes(5000)
    out.write_bytes(b"PAR1" + noise + struct.pack("<I", len(noise)) + b"PAR1")


def damaged_at(seed: int) -> Make:
    def make(good: Path, out: Path) -> None:
        content, chance = bytearray(good.read_bytes()), random.Random(seed)
        length = struct.unpack("<I", content[-8:-4])[0]
        end = len(content) - 8
        begin = end - length if seed % 2 else 4  # the footer, or all
        for _ in range(1 + seed % 5):
            content[chance.randrange(begin, end)] = chance.randrange(256)
        out.write_bytes(content)

    return make


MAKERS.update({f"damaged_{seed}": damaged_at(seed) for seed in range(12)})


# --- the footer -----------------------------------------------------------------------------------


def with_footer(footer: bytes) -> Make:
    return lambda good, out: write(out, rows_and_facts(good)[0], footer)


MAKERS |= {
    name: with_footer(footer)
    for name, footer in {
        "footer_nested_deeply": b'{"schema": 2, "data": ' + b"[" * 100_000,
        "footer_not_utf8": b'{"schema": 2, "by": "\xff\xfe"}',
        "footer_is_a_list": b"[2]",
        "footer_number_of_digits": b'{"schema": ' + b"9" * 5000 + b"}",
        "footer_half_a_surrogate": b'{"schema": 2, "by": "\\ud800"}',
        "footer_of_forty_megabytes": b'{"by": "' + b"a" * 40_000_000 + b'"}',
    }.items()
}

kinds(
    schema_of_the_future=lambda rows, facts: facts.update(schema=3),
    schema_is_a_list=lambda rows, facts: facts.update(schema=[2]),
    maker_is_a_number=lambda rows, facts: facts.update(by=7),
    maker_of_a_megabyte=lambda rows, facts: facts.update(by="a" * 2**20),
    data_is_a_list=lambda rows, facts: facts.update(data=["DailyDialog"]),
    revision_is_a_number=lambda rows, facts: facts.update(data={"DailyDialog": 1}),
    revision_of_escapes=lambda rows, facts: facts.update(models={"m": "\x1b]0;x\x07"}),
    models_are_null=lambda rows, facts: facts.update(models=None),
    checksums_are_a_list=lambda rows, facts: facts.update(sha256=[1]),
)


@kind
def checksums_of_others(good: Path, out: Path) -> None:
    rows, facts = rows_and_facts(good)
    facts["sha256"] = dict.fromkeys(facts["sha256"], "0" * 64)
    table = pa.Table.from_pylist(rows, SCHEMA.with_metadata({FOOTER: json.dumps(facts)}))
    pq.write_table(table, out)


# --- columns --------------------------------------------------------------------------------------


def with_columns(change: Callable[[pa.Table], pa.Table]) -> Make:
    def make(good: Path, out: Path) -> None:
        table = pq.read_table(good)
        pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), out)

    return make


MAKERS["column_missing"] = with_columns(lambda table: table.drop_columns(["files"]))
MAKERS["column_too_many"] = with_columns(
    lambda table: table.append_column("more", pa.array([1] * len(table)))
)
MAKERS["paths_are_numbers"] = with_columns(
    lambda table: table.set_column(0, "path", pa.array([*range(len(table))]))
)
MAKERS["rows_are_texts"] = with_columns(
    lambda table: table.set_column(3, "rows", pa.array([["x"]] * len(table)))
)
MAKERS["path_not_utf8"] = with_columns(
    lambda table: table.set_column(
        0, SCHEMA.field(0), pa.array([b"\xff\xfe"] * len(table)).view(pa.string())
    )
)


# --- rows -----------------------------------------------------------------------------------------


def of_path(path: str) -> Callable[[Rows, dict[str, Any]], Any]:
    return lambda rows, facts: rows[0].update(path=path)


def as_table(path: str, content: bytes) -> Callable[[Rows, dict[str, Any]], Any]:
    files = [{"name": Path(path).name, "content": content}]
    row = {"path": path, "digest": "", "record": "", "rows": [], "files": files}
    return lambda rows, facts: rows.append(row)


def beside(name: str, content: bytes) -> Callable[[Rows, dict[str, Any]], Any]:
    return lambda rows, facts: rows[0]["files"].append({"name": name, "content": content})


def arrays(**values: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **values)
    return stream.getvalue()


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


kinds(
    path_out_of_the_folder=of_path("../../escaped"),
    path_absolute=of_path("/tmp/escaped"),
    path_empty=of_path(""),
    path_of_a_dot=of_path("."),
    path_with_nul=of_path("stages/a\0b"),
    path_of_escapes=of_path("stages/\x1b[2J"),
    path_too_long=of_path("stages/" + "a" * 300),
    path_below_a_node=lambda rows, facts: rows[1].update(path=f"{rows[0]['path']}/metrics.json/x"),
    node_twice=lambda rows, facts: rows.append(rows[0]),
    record_of_text=lambda rows, facts: rows[0].update(record="no JSON"),
    record_is_a_number=lambda rows, facts: rows[0].update(record="7"),
    record_nested_deeply=lambda rows, facts: rows[0].update(record=deep(100_000)),
    record_of_the_future=record_changed(schema=99),
    record_of_the_past=record_changed(schema=2),
    record_without_a_node=record_changed(node=None),
    record_of_five_megabytes=record_changed(more="a" * 5_000_000),
    record_of_another_node=lambda rows, facts: rows[0].update(record=rows[1]["record"]),
    rows_out_of_order=lambda rows, facts: rows[0]["rows"].reverse(),
    rows_twice=lambda rows, facts: rows[0].update(rows=rows[0]["rows"] * 2),
    score_beyond_all=lambda rows, facts: rows[0]["rows"][0].update(score=1e300),
    score_not_a_number=lambda rows, facts: rows[0]["rows"][0].update(score=float("nan")),
    table_in_place_of_a_record=as_table("stages", b"x"),
    table_that_is_none=as_table("tables/labels.parquet", b"no Parquet"),
    table_out_of_the_folder=as_table("tables/../../x.parquet", b"x"),
    file_out_of_the_folder=beside("../../../../x", b"x"),
    file_in_place_of_the_record=beside("metrics.json", b"{}"),
    arrays_of_noise=beside("projection.npz", b"PK\x03\x04 noise"),
    arrays_of_objects=beside("projection.npz", arrays(x=np.array([{}, set()], dtype=object))),
)


# --- bombs ----------------------------------------------------------------------------------------


@kind
def arrays_of_a_gigabyte(good: Path, out: Path) -> None:
    changed(beside("projection.npz", arrays(x=np.zeros(2**27))))(good, out)


@kind
def zeros_of_400_megabytes(good: Path, out: Path) -> None:
    zeros = pa.array([[{"name": "reference.csv", "content": bytes(400 * 2**20)}]], FILES)
    table = {
        "path": ["tables/reference.csv"],
        "digest": [""],
        "record": [""],
        "rows": [[]],
        "files": zeros,
    }
    quick = {"use_dictionary": False, "write_statistics": False}
    write_table(out, pa.table(table, SCHEMA), rows_and_facts(good)[1], **quick)


@kind
def dictionary_of_one_text(good: Path, out: Path) -> None:
    """Write a hundred thousand instances that share one text of a megabyte."""
    rows, facts = rows_and_facts(good)
    first, count = rows[0]["rows"][0], 100_000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), ["a" * 2**20])
    columns = [
        text if field.name == "instance_id" else pa.array([first[field.name]] * count, field.type)
        for field in ROWS.value_type
    ]
    fields = [
        field.with_type(column.type) for field, column in zip(ROWS.value_type, columns, strict=True)
    ]
    inner = pa.StructArray.from_arrays(columns, fields=fields)
    listed = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), inner)
    table = {name: [rows[0][name]] for name in ("path", "digest", "record")}
    schema = SCHEMA.set(3, SCHEMA.field("rows").with_type(listed.type))
    table = pa.table({**table, "rows": listed, "files": [[]]}, schema)
    write_table(out, table, facts, dictionary_pagesize_limit=2**22)


def write_table(out: Path, table: pa.Table, facts: Any, **options: Any) -> None:
    """Write a table without an Arrow schema; its types, read from Parquet, are those of a pack."""
    plain = {"store_schema": False, "use_compliant_nested_type": False, "compression": "zstd"}
    with pq.ParquetWriter(out, table.schema, **plain, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({FOOTER: json.dumps({**facts, "sha256": None})})


@kind
def texts_of_200_megabytes(good: Path, out: Path) -> None:
    rows, facts = rows_and_facts(good)
    facts["sha256"] = None
    first = rows[0]["rows"][0]
    rows[0]["rows"] = [{**first, "index": n, "instance_id": "b" * 10**6} for n in range(200)]
    write(out, rows, facts)


@kind
def million_of_nodes(good: Path, out: Path) -> None:
    facts = {**rows_and_facts(good)[1], "sha256": None}
    empty = {"digest": "", "record": "", "rows": [], "files": []}
    write(out, [{**empty, "path": f"tables/{n}"} for n in range(200_000)], facts)


@kind
def million_of_labs(good: Path, out: Path) -> None:
    many = {f"d{n}": "x" for n in range(200_000)}
    changed(lambda rows, facts: facts.update(data=many))(good, out)


@kind
def checksums_of_nothing(good: Path, out: Path) -> None:
    rows, facts = rows_and_facts(good)
    facts["sha256"] = {**facts["sha256"], "stages/nothing": hashlib.sha256().hexdigest()}
    table = pa.Table.from_pylist(rows, SCHEMA.with_metadata({FOOTER: json.dumps(facts)}))
    pq.write_table(table, out)
