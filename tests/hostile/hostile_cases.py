"""Declared datasets that are damaged, unusual or malicious, each with the expected result.

A case writes its files into an empty folder and returns their names. ``OK``: read without a
message. ``NOTE``: read with a message. ``REFUSED``: an error that names the file. ``TOLD``: either
of the last two, but not silence. ``says``: regular expression that the output must match.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

Json = dict[str, Any]
Rows = list[Json]
Build = Callable[[Path], Sequence[str] | str]
Result = Literal["ok", "note", "refused", "told"]
OK: Result = "ok"
NOTE: Result = "note"
REFUSED: Result = "refused"
TOLD: Result = "told"
MIB = 2**20


@dataclass(frozen=True)
class Case:
    """A hostile dataset. ``result``: None if any result without a crash is correct."""

    name: str
    build: Build
    result: Result | None
    says: str = ""


CASES: list[Case] = []


def case(name: str, result: Result | None, build: Build, says: str = "") -> None:
    assert name not in {known.name for known in CASES}, name
    CASES.append(Case(name, build, result, says))


def dialogues(count: int = 40, **changes: Any) -> Rows:
    """Build valid dialogues; a change is a value, or a function from row number to value."""
    rows = []
    for n in range(count):
        row: Json = {
            "id": f"d{n}",
            "turns": [f"hello number {n}", f"how is item {n} today", "fine, thank you"],
            "intent": ("billing", "login")[n % 2],
        }
        for key, value in changes.items():
            row[key] = value(n) if callable(value) else value
        rows.append(row)
    return rows


ANSWER = "good day what can I do"


def hello(n: int) -> str:
    return f"hello my item number {n} is gone"


def lines(rows: Iterable[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def raw(name: str, content: bytes | str) -> Build:
    """Return a function that writes a file of these bytes."""

    def build(folder: Path) -> str:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        (folder / name).write_bytes(data)
        return name

    return build


def jsonl(rows: Rows | None = None, **changes: Any) -> Build:
    return raw("data.jsonl", lines(rows if rows is not None else dialogues(**changes)))


def table(count: int = 40) -> list[list[str]]:
    head = ["id", "text", "intent"]
    body = [[f"d{n}", f"my number {n} is gone", ("billing", "login")[n % 2]] for n in range(count)]
    return [head, *body]


def joined(rows: Iterable[Sequence[str]], mark: str = ",", end: str = "\n") -> str:
    """Join rows as text without any quoting."""
    return "".join(mark.join(row) + end for row in rows)


def written(rows: Iterable[Sequence[str]], **options: Any) -> str:
    stream = io.StringIO()
    csv.writer(stream, **{"lineterminator": "\n", **options}).writerows(rows)
    return stream.getvalue()


def changed(row: int, change: Callable[[list[str]], list[str]]) -> str:
    """Return a CSV file in which one row is changed."""
    rows = table()
    rows[row] = change(rows[row])
    return joined(rows)


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def parquet(rows: Rows | pa.Table | None = None, **options: Any) -> Build:
    def build(folder: Path) -> str:
        made = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows or dialogues())
        pq.write_table(made, folder / "data.parquet", **options)
        return "data.parquet"

    return build


def parquet_bytes(rows: Rows | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows or dialogues()), sink)
    return bytes(sink.getvalue())


def arrow_bytes(*, stream: bool = True) -> bytes:
    made, sink = pa.Table.from_pylist(dialogues()), pa.BufferOutputStream()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, made.schema) as writer:
        writer.write_table(made)
    return bytes(sink.getvalue())


def add_cases_of(make: Callable[[Any], Build]) -> Callable[..., None]:
    """Return a function that adds a case from what its file contains."""

    def add(name: str, result: Result | None, content: Any, says: str = "") -> None:
        case(name, result, make(content), says)

    return add


def changing(key: str) -> Callable[[Any], Build]:
    """Return a function that writes dialogues in which one value is changed.

    The value is a function of the row number, or a list whose items alternate.
    """

    def make(value: Any) -> Build:
        change = value if callable(value) else lambda n: value[n % len(value)]
        return jsonl(**{key: change})

    return make


csv_case, jsonl_case, json_case, gz_case, arrow_case, parquet_case = (
    add_cases_of(partial(raw, f"d.{ending}"))
    for ending in ("csv", "jsonl", "json", "jsonl.gz", "arrow", "parquet")
)
table_case = add_cases_of(parquet)
label_case, turns_case, id_case = map(add_cases_of, map(changing, ("intent", "turns", "id")))


GOOD = lines(dialogues())
GOOD_CSV = joined(table())
