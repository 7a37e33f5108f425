"""Declared datasets that are damaged, unusual or malicious, each with the expected result.

A case writes its files into an empty folder and returns their names. ``OK``: read without a
message. ``NOTE``: read with a message. ``REFUSED``: an error that names the file. ``TOLD``: either
of the last two, but not silence. ``says``: regular expression that the output must match.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import random
import socket
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
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


GOOD = lines(dialogues())
GOOD_CSV = joined(table())

# --- common valid files --------------------------------------------------------------------------

case("good JSON lines", OK, jsonl(), "# 40 train dialogues, 120 turns")
case("good JSON", OK, raw("data.json", json.dumps(dialogues())), "# 40 train dialogues, 120 turns")
case("good CSV", NOTE, raw("data.csv", GOOD_CSV), "# 40 train dialogues")
case("good TSV", NOTE, raw("data.tsv", joined(table(), "\t")), "# 40 train dialogues")
case("good Parquet", OK, parquet(), "# 40 train dialogues, 120 turns")
case("good Arrow stream", OK, raw("data.arrow", arrow_bytes()), "# 40 train dialogues, 120")
case(
    "good Arrow file", OK, raw("data.arrow", arrow_bytes(stream=False)), "# 40 train dialogues, 120"
)
case("good gz", OK, raw("data.jsonl.gz", packed(GOOD.encode())), "# 40 train dialogues, 120")
case("good CSV in gz", NOTE, raw("data.csv.gz", packed(GOOD_CSV.encode())), "# 40 train dialogues")

# --- encodings -----------------------------------------------------------------------------------

for kind, text in (("jsonl", GOOD), ("csv", GOOD_CSV)):
    accent = text.replace("number", "numéro")
    passes = OK if kind == "jsonl" else NOTE
    case(f"byte order mark, {kind}", NOTE, raw(f"d.{kind}", "\ufeff" + text), "# 40 train")
    for codec in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        case(f"{codec}, {kind}", REFUSED, raw(f"d.{kind}", text.encode(codec)))
    for codec in ("latin-1", "cp1252", "cp037"):
        content = accent.encode(codec).replace(b"\\u00e9", b"\xe9")
        result = None if kind == "jsonl" and codec != "cp037" else REFUSED
        case(f"{codec}, {kind}", result, raw(f"d.{kind}", content))
    case(f"a byte of no character, {kind}", REFUSED, raw(f"d.{kind}", text.encode() + b"\xff\n"))
    half = text.encode() + "é".encode()[:1]
    case(f"half a character at the end, {kind}", REFUSED, raw(f"d.{kind}", half))
    surrogates = text.encode().replace(b"number", b"\xed\xa0\x80\xed\xb0\x80")
    case(f"surrogates in UTF-8, {kind}", REFUSED, raw(f"d.{kind}", surrogates))
    case(
        f"overlong UTF-8, {kind}",
        REFUSED,
        raw(f"d.{kind}", text.encode().replace(b"fine", b"\xc0\xaf").replace(b"gone", b"\xc0\xaf")),
    )
    case(f"NUL bytes, {kind}", REFUSED, raw(f"d.{kind}", text.replace("number", "num\0ber")))
    case(f"NUL bytes late, {kind}", REFUSED, raw(f"d.{kind}", text + text[:-3] + "\0\n"))
    case(f"Windows line ends, {kind}", NOTE, raw(f"d.{kind}", text.replace("\n", "\r\n")), "# 40")
    case(f"old Macintosh line ends, {kind}", None, raw(f"d.{kind}", text.replace("\n", "\r")))
    case(f"no line end at the end, {kind}", passes, raw(f"d.{kind}", text.rstrip("\n")), "# 40")
    odd = text.replace("number", "a\u2028b\u2029c\x0bd\x0ce\x85f")
    case(
        f"line ends of Unicode in texts, {kind}",
        None if kind == "jsonl" else NOTE,
        raw(f"d.{kind}", odd),
    )
    control = text.replace(
        "number", "\x1b[2J\u202e\u200b\x07" if kind == "csv" else "\\u001b[2J\u202e\u200b\\u0007"
    )
    case(f"terminal escapes in texts, {kind}", passes, raw(f"d.{kind}", control), "# 40")

case("halves of surrogate pairs", REFUSED, raw("d.jsonl", GOOD.replace("number", "\\ud800")))
case("NUL as an escape", None, raw("d.jsonl", GOOD.replace("number", "\\u0000")))
case("emojis and scripts", OK, jsonl(turns=lambda n: [f"👩‍💻 {n} 好 שלום", "مرحبا é"]), "# 40")

# --- CSV -----------------------------------------------------------------------------------------

case(
    "one cell more in every row",
    REFUSED,
    raw("d.csv", joined([table()[0], *([*row, "x"] for row in table()[1:])])),
    "d.csv:2",
)
case(
    "one cell more in a row", REFUSED, raw("d.csv", changed(9, lambda row: [*row, "x"])), "d.csv:10"
)
case("one cell less in a row", REFUSED, raw("d.csv", changed(9, lambda row: row[:2])), "d.csv:10")
case(
    "comma in a text without quotes",
    REFUSED,
    raw("d.csv", changed(9, lambda row: [row[0], "a, b", row[2]])),
    "d.csv:10",
)
case(
    "quotation mark left open",
    REFUSED,
    raw("d.csv", changed(9, lambda row: [row[0], '"open', row[2]])),
)
case(
    "two stray quotation marks",
    None,
    raw(
        "d.csv",
        GOOD_CSV.replace("my number 3 ", '"my number 3 ').replace(
            "my number 9 is gone", 'my number 9 is gone"'
        ),
    ),
)
case("a stray quotation mark within", None, raw("d.csv", GOOD_CSV.replace("number 3", 'numb"er 3')))
case(
    "backslash before a quotation mark",
    None,
    raw("d.csv", written(table(), quoting=csv.QUOTE_ALL).replace("number 3", 'a \\"b\\" c')),
)
case(
    "quotes doubled",
    NOTE,
    raw("d.csv", written([[c.replace("number", '"number"') for c in row] for row in table()])),
    "# 40",
)
case(
    "line ends in quotes",
    NOTE,
    raw(
        "d.csv",
        written(
            [table()[0], *([c.replace("number", "num\nber") for c in row] for row in table()[1:])]
        ),
    ),
    "# 40",
)
case("semicolons", NOTE, raw("d.csv", joined(table(), ";")), "# 40")
case("bars", None, raw("d.csv", joined(table(), "|")))
case("tabs in .csv", NOTE, raw("d.csv", joined(table(), "\t")), "# 40")
case("commas in .tsv", None, raw("d.tsv", GOOD_CSV))
case(
    "header of commas, rows of semicolons",
    REFUSED,
    raw("d.csv", joined(table()[:1]) + joined(table()[1:], ";")),
)
case("no header", None, raw("d.csv", joined(table()[1:])))
case("header alone", REFUSED, raw("d.csv", joined(table()[:1])))
case("empty CSV", REFUSED, raw("d.csv", ""))
case("blank CSV", REFUSED, raw("d.csv", "\n\n  \n"))
case("commas alone", REFUSED, raw("d.csv", ",,\n" * 20))
case("blank lines between rows", NOTE, raw("d.csv", GOOD_CSV.replace("\n", "\n\n")), "# 40")
case(
    "a column twice", REFUSED, raw("d.csv", GOOD_CSV.replace("id,text,intent", "text,text,intent"))
)
case("a column without a name", None, raw("d.csv", GOOD_CSV.replace("id,text", ",text")))
case(
    "index of pandas",
    NOTE,
    raw(
        "d.csv",
        "".join(
            f"{'' if n == 0 else n - 1},{line}\n" for n, line in enumerate(GOOD_CSV.splitlines())
        ),
    ),
    "# 40",
)
case("comma after the header", REFUSED, raw("d.csv", GOOD_CSV.replace("intent", "intent,", 1)))
case("first line of Excel", None, raw("d.csv", "sep=,\n" + GOOD_CSV))
case("comment before the header", None, raw("d.csv", "# exported today\n" + GOOD_CSV))
case(
    "blanks around names of columns",
    None,
    raw("d.csv", GOOD_CSV.replace("id,text,intent", " id , text , intent ")),
)
case(
    "control characters in names of columns",
    None,
    raw("d.csv", GOOD_CSV.replace("id,text,intent", "id,\x1b[2Jtext,intent")),
)
case(
    "cell of 200,000 characters",
    None,
    raw("d.csv", GOOD_CSV.replace("number 3 ", "number " + "a" * 200_000 + " ")),
)
case(
    "cell of five million characters",
    None,
    raw("d.csv", GOOD_CSV.replace("number 3 ", "number " + "a" * 5_000_000 + " ")),
)
case(
    "10,000 columns",
    None,
    raw("d.csv", joined([[f"c{n}" for n in range(10_000)], *[["x"] * 10_000] * 3])),
)
case("a million commas", REFUSED, raw("d.csv", "," * 1_000_000 + "\n"), "20,000 cells")
case("a million quotation marks", None, raw("d.csv", '"' * 1_000_000))
case("a CSV file of one line", REFUSED, raw("d.csv", "x" * 1_000_000))
case(
    "formulas in cells",
    NOTE,
    raw("d.csv", GOOD_CSV.replace("my number", "=cmd|' /C calc'!A0")),
    "# 40",
)
case("JSON in .csv", REFUSED, raw("d.csv", json.dumps(dialogues())))
case(
    "HTML in .csv",
    REFUSED,
    raw("d.csv", "<!DOCTYPE html>\n<html><body>404, not found</body></html>\n"),
)
case("20,000 rows", None, raw("d.csv", joined(table(20_000))))

# --- JSON ----------------------------------------------------------------------------------------

case(
    "a key twice",
    REFUSED,
    raw("d.jsonl", GOOD.replace('"id": "d3"', '"id": "x", "id": "d3"')),
    "d.jsonl:4",
)
case(
    "a key twice in an object of JSON",
    REFUSED,
    raw("d.json", '{"a": [{"text": "b"}], "a": [{"text": "c"}]}'),
)
case(
    "NaN and infinity",
    None,
    raw(
        "d.jsonl", GOOD.replace('"id": "d3"', '"id": NaN').replace('"id": "d4"', '"id": -Infinity')
    ),
)
case("float beyond all", None, raw("d.jsonl", GOOD.replace('"id": "d3"', '"id": 1e999')))
case(
    "number of 5,000 digits",
    REFUSED,
    raw("d.jsonl", GOOD.replace('"id": "d3"', f'"id": {"9" * 5000}')),
)
case("lists nested deeply", REFUSED, raw("d.json", "[" * 100_000 + "]" * 100_000))
case(
    "objects nested deeply",
    REFUSED,
    raw("d.jsonl", '{"a": ' * 100_000 + "1" + "}" * 100_000 + "\n"),
)
case(
    "turns nested deeply",
    None,
    raw(
        "d.jsonl", GOOD.replace('["hello number 3"', "[" * 500 + "]" * 500 + ', ["hello number 3"')
    ),
)
case("JSON cut off", REFUSED, raw("d.json", json.dumps(dialogues())[:-20]))
case("JSON lines cut off", REFUSED, raw("d.jsonl", GOOD[:-20]))
case("comma at the end", REFUSED, raw("d.json", json.dumps(dialogues())[:-1] + ",]"))
case("comments in JSON", REFUSED, raw("d.json", "// mine\n" + json.dumps(dialogues())))
case("Python's quotes", REFUSED, raw("d.json", str(dialogues())))
case("two JSON texts", REFUSED, raw("d.json", json.dumps(dialogues()) * 2))
for value in (
    '"text"',
    "7",
    "null",
    "true",
    "[]",
    "{}",
    '["a", "b"]',
    "[[1], [2]]",
    "[null]",
    "[{}]",
    '[{"a": 1}]',
    "",
):
    case(f"JSON of {value or 'nothing'}", REFUSED, raw("d.json", value))
    case(f"JSON lines of {value or 'nothing'}", REFUSED, raw("d.jsonl", value + "\n"))
case("blank lines in JSON lines", NOTE, raw("d.jsonl", GOOD.replace("\n", "\n\n \n")), "# 40")
case(
    "a bad line in the middle",
    REFUSED,
    raw("d.jsonl", GOOD.replace('{"id": "d7"', '{"id" "d7"')),
    "d.jsonl:8",
)
case("a list among the lines", REFUSED, raw("d.jsonl", GOOD + "[1, 2]\n"), "d.jsonl:41")
case("several objects on a line", REFUSED, raw("d.jsonl", GOOD.replace("\n", " ", 1)))
case("a JSON list in .jsonl", None, raw("d.jsonl", json.dumps(dialogues())))
case("JSON lines in .json", None, raw("d.json", GOOD))
case(
    "raw control characters in texts",
    REFUSED,
    raw("d.jsonl", GOOD.replace("number 3", "num\tber 3")),
)
case("keys that are empty", None, jsonl(**{"": "x"}))
case("keys with dots and brackets", None, jsonl(**{"a.b[]": "x", "c[0]": lambda n: "xy"[n % 2]}))
case("keys with line ends", None, jsonl(**{"a\nb: !!python": lambda n: "xy"[n % 2]}))
case("keys of 100,000 letters", None, jsonl(**{"k" * 100_000: lambda n: "xy"[n % 2]}))
case("5,000 keys", None, jsonl(count=5, **{f"k{n}": "x" for n in range(5000)}))
case(
    "keys in another order in each row",
    OK,
    raw(
        "d.jsonl",
        lines(
            [
                dict(random.Random(n).sample(sorted(row.items()), 3))
                for n, row in enumerate(dialogues())
            ]
        ),
    ),
    "# 40",
)
case("a key of other types", REFUSED, jsonl(intent=lambda n: [7, "a", None, [1], {"a": 1}][n % 5]))
case("a line of 20 megabytes", None, raw("d.jsonl", GOOD.replace("number 3", "a" * 20_000_000)))
case("a line without an end", REFUSED, raw("d.jsonl", '{"a": "' + "b" * 30_000_000))

# --- compression ---------------------------------------------------------------------------------


def bomb(name: str, unit: bytes, count: int) -> Build:
    """Return a function that writes a small file which unpacks to ``count`` MiB."""

    def build(folder: Path) -> str:
        with gzip.open(folder / name, "wb", compresslevel=1) as stream:
            for _ in range(count):
                stream.write(unit)
        return name

    return build


PACKED = packed(GOOD.encode())
case("gz that is none", REFUSED, raw("d.jsonl.gz", GOOD))
case("gz cut off", REFUSED, raw("d.jsonl.gz", PACKED[: len(PACKED) // 2]))
case("gz without its end", REFUSED, raw("d.jsonl.gz", PACKED[:-4]))
case(
    "gz with another checksum", REFUSED, raw("d.jsonl.gz", PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:])
)
case("gz of noise", REFUSED, raw("d.jsonl.gz", PACKED[:20] + random.Random(1).randbytes(500)))
case("gz and more behind it", None, raw("d.jsonl.gz", PACKED + b"more"))
case(
    "gz of several members",
    OK,
    raw(
        "d.jsonl.gz",
        packed(lines(dialogues()[:20]).encode()) + packed(lines(dialogues()[20:]).encode()),
    ),
    "# 40",
)
case("gz of gz", REFUSED, raw("d.jsonl.gz", packed(PACKED)))
case("empty gz", REFUSED, raw("d.jsonl.gz", b""))
case("gz of nothing", REFUSED, raw("d.jsonl.gz", packed(b"")))
case("gz of empty lines", REFUSED, bomb("d.jsonl.gz", b"\n" * MIB, 400))
case("gz of blanks", REFUSED, bomb("d.jsonl.gz", b" " * MIB, 1000))
case("gz of zeros", REFUSED, bomb("d.jsonl.gz", bytes(MIB), 1000))
case("gz of one text", REFUSED, bomb("d.json.gz", b"a" * MIB, 1000))
case("gz of a bracket", REFUSED, bomb("d.json.gz", b"[" * MIB, 400))
case("gz of rows of CSV", None, bomb("d.csv.gz", (b"a,b,c\n" * MIB)[: 6 * (MIB // 6)], 600))
case("gz of a quotation mark", REFUSED, bomb("d.csv.gz", b'"' + b"a" * (MIB - 1), 600))
case("gz of good rows", None, bomb("d.jsonl.gz", GOOD.encode() * (MIB // len(GOOD) + 1), 3))
for name, pack in (("bz2", bz2.compress), ("xz", lzma.compress), ("zz", zlib.compress)):
    case(f".jsonl.{name}", REFUSED, raw(f"d.jsonl.{name}", pack(GOOD.encode())))
case("a zip", REFUSED, raw("d.zip", b"PK\x03\x04" + bytes(100)))
case("a packed file without .gz", REFUSED, raw("d.jsonl", PACKED))
case("a packed Parquet file", None, raw("d.parquet.gz", packed(parquet_bytes())))

# --- Parquet and Arrow ---------------------------------------------------------------------------

WHOLE, STREAM, FILE = parquet_bytes(), arrow_bytes(), arrow_bytes(stream=False)
case("Parquet cut off", REFUSED, raw("d.parquet", WHOLE[: len(WHOLE) // 2]))
case("Parquet without its beginning", REFUSED, raw("d.parquet", WHOLE[len(WHOLE) // 2 :]))
case("Parquet of text", REFUSED, raw("d.parquet", GOOD))
case("empty Parquet file", REFUSED, raw("d.parquet", b""))
case("Parquet's magic alone", REFUSED, raw("d.parquet", b"PAR1PAR1"))
case(
    "Parquet with a long footer",
    REFUSED,
    raw("d.parquet", b"PAR1" + struct.pack("<I", 2**31 - 1) + b"PAR1"),
)
for seed in range(12):
    spoiled, chance = bytearray(WHOLE), random.Random(seed)
    for _ in range(3):
        spoiled[chance.randrange(4, len(spoiled))] = chance.randrange(256)
    case(f"Parquet with other bytes, {seed}", None, raw("d.parquet", bytes(spoiled)))
    spoiled = bytearray(STREAM if seed % 2 else FILE)
    for _ in range(3):
        spoiled[chance.randrange(8, len(spoiled))] = chance.randrange(256)
    case(f"Arrow with other bytes, {seed}", None, raw("d.arrow", bytes(spoiled)))
case("Arrow stream cut off", REFUSED, raw("d.arrow", STREAM[: len(STREAM) // 2]))
case("Arrow file cut off", REFUSED, raw("d.arrow", FILE[: len(FILE) // 2]))
case("Arrow of text", REFUSED, raw("d.arrow", GOOD))
case("empty Arrow file", REFUSED, raw("d.arrow", b""))
case(
    "Arrow that announces exabytes",
    REFUSED,
    raw("d.arrow", b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1)),
)
case("Parquet without rows", REFUSED, parquet(pa.Table.from_pylist(dialogues()).slice(0, 0)))
case("Parquet without columns", REFUSED, parquet(pa.table({})))
case(
    "labels as a dictionary",
    OK,
    parquet(
        pa.Table.from_pylist(dialogues()).set_column(
            2, "intent", pa.array(["a", "b"] * 20).dictionary_encode()
        )
    ),
    "# 40",
)
case(
    "texts as bytes",
    None,
    parquet(
        pa.Table.from_pylist(dialogues()).set_column(2, "intent", pa.array([b"\xff", b"b"] * 20))
    ),
)
case(
    "texts of bytes that are no characters",
    REFUSED,
    parquet(
        pa.Table.from_pylist(dialogues()).set_column(
            2, "intent", pa.array([b"\xff", b"b"] * 20).view(pa.string())
        )
    ),
)
case(
    "dates, decimals and times",
    None,
    parquet(
        pa.Table.from_pylist(dialogues())
        .append_column("d", pa.array([0] * 40).cast(pa.timestamp("ns", "UTC")))
        .append_column("e", pa.array([1] * 40).cast(pa.decimal128(30, 2)))
        .append_column("f", pa.array([0] * 40, pa.int32()).cast(pa.date32()))
    ),
)
case(
    "durations and maps",
    None,
    parquet(
        pa.Table.from_pylist(dialogues())
        .append_column("m", pa.array([[("a", 1)]] * 40, pa.map_(pa.string(), pa.int32())))
        .append_column("t", pa.array([1] * 40).cast(pa.duration("s")))
    ),
)
case(
    "turns as structs",
    OK,
    parquet(
        dialogues(
            turns=lambda n: [
                {"speaker": "a", "text": f"hello {n}"},
                {"speaker": "b", "text": "good day"},
            ]
        )
    ),
    "# 40 train dialogues, 80",
)
case("columns of nulls", None, parquet(dialogues(more=None)))
case(
    "one column twice in Parquet",
    TOLD,
    parquet(
        pa.Table.from_arrays(
            [pa.array(["hello"] * 40), pa.array(["a", "b"] * 20)], names=["text", "text"]
        )
    ),
)
case("3,000 columns of Parquet", None, parquet(pa.table({f"c{n}": ["x"] for n in range(3000)})))
case(
    "names of labels that are no list",
    None,
    parquet(
        pa.Table.from_pylist(dialogues()).replace_schema_metadata(
            {
                b"huggingface": b'{"info": {"features": {"intent": '
                b'{"_type": "ClassLabel", "names": 7}}}}'
            }
        )
    ),
)
case(
    "a number beyond the names of labels",
    TOLD,
    parquet(
        pa.Table.from_pylist(dialogues(intent=lambda n: n % 5)).replace_schema_metadata(
            {
                b"huggingface": json.dumps(
                    {"info": {"features": {"intent": {"_type": "ClassLabel", "names": ["a", "b"]}}}}
                ).encode()
            }
        )
    ),
)
case(
    "metadata that are nested deeply",
    None,
    parquet(
        pa.Table.from_pylist(dialogues()).replace_schema_metadata({b"huggingface": b"[" * 100_000})
    ),
)


def zeros_of_400_megabytes(folder: Path) -> str:
    zeros = pa.table({"text": [bytes(400 * MIB).decode()], "label": ["a"]})
    return parquet(zeros, use_dictionary=False, write_statistics=False)(folder)


case("zeros of 400 megabytes in Parquet", REFUSED, zeros_of_400_megabytes)


def one_text_often(folder: Path) -> str:
    """Write a dictionary with one text of a megabyte, and 20,000 rows that refer to it."""
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), ["a " * (MIB // 2)])
    made = pa.table({"text": text, "label": pa.array(["a", "b"] * 10_000)})
    pq.write_table(made, folder / "d.parquet", store_schema=False, dictionary_pagesize_limit=2**22)
    return "d.parquet"


def many_nulls(folder: Path) -> str:
    pq.write_table(pa.table({"text": pa.nulls(20_000_000, pa.string())}), folder / "d.parquet")
    return "d.parquet"


case("a dictionary of one text", REFUSED, one_text_often)
case("twenty million nulls", REFUSED, many_nulls)

# --- paths ---------------------------------------------------------------------------------------


def named(name: str, content: str = GOOD) -> Build:
    return raw(name, content)


def nothing(folder: Path) -> str:
    return "nowhere.jsonl"


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "d.jsonl")
    return "d.jsonl"


def device(folder: Path) -> str:
    (folder / "d.jsonl").symlink_to("/dev/zero")
    return "d.jsonl"


def random_device(folder: Path) -> str:
    (folder / "d.parquet").symlink_to("/dev/urandom")
    return "d.parquet"


def a_socket(folder: Path) -> str:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(folder)
        try:
            server.bind("d.jsonl")
        finally:
            os.chdir(here)
    return "d.jsonl"


def link_to_itself(folder: Path) -> str:
    (folder / "d.jsonl").symlink_to("d.jsonl")
    return "d.jsonl"


def link(folder: Path) -> str:
    (folder / "real.jsonl").write_text(GOOD)
    (folder / "d.jsonl").symlink_to("real.jsonl")
    return "d.jsonl"


def empty_folder(folder: Path) -> str:
    (folder / "d").mkdir()
    return "d"


def folder_of_everything(folder: Path) -> str:
    place = folder / "d"
    place.mkdir()
    (place / "a.jsonl").write_text(GOOD)
    (place / "b.csv").write_text(GOOD_CSV)
    (place / "c.bin").write_bytes(bytes(100))
    os.mkfifo(place / "e.jsonl")
    return "d"


def folder_called_jsonl(folder: Path) -> str:
    (folder / "d.jsonl").mkdir()
    return "d.jsonl"


def deep_folder(folder: Path) -> str:
    place = folder
    for _ in range(200):
        place /= "d"
    place.mkdir(parents=True)
    (place / "a.jsonl").write_text(GOOD)
    return "d"


def looped_folder(folder: Path) -> str:
    (folder / "d").mkdir()
    (folder / "d" / "a.jsonl").write_text(GOOD)
    (folder / "d" / "again").symlink_to("../d")
    return "d"


def saved_folder(state: str) -> Build:
    """Return a function that writes a ``Dataset.save_to_disk`` folder with another state."""

    def build(folder: Path) -> str:
        place = folder / "d"
        place.mkdir()
        (place / "state.json").write_text(state)
        (place / "dataset_info.json").write_text("{}")
        (place / "data-00000-of-00001.arrow").write_bytes(STREAM)
        (folder / "secret.arrow").write_bytes(STREAM)
        return "d"

    return build


def bytes_in_name(folder: Path) -> str:
    name = b"d\xff\xfe.jsonl"
    (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).write_text(GOOD)
    return os.fsdecode(name)


case("no such file", REFUSED, nothing, "nowhere.jsonl")
case("a pipe", REFUSED, pipe)
case("/dev/zero", REFUSED, device)
case("/dev/urandom", REFUSED, random_device)
case("a socket", REFUSED, a_socket)
case("a link to itself", REFUSED, link_to_itself)
case("a link to a file", OK, link, "# 40")
case("an empty folder", REFUSED, empty_folder)
case("a folder of everything", None, folder_of_everything)
case("a folder with the name of a file", REFUSED, folder_called_jsonl)
case("a deep folder", None, deep_folder)
case("a folder in itself", None, looped_folder)
case(
    "a saved dataset",
    None,
    saved_folder('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}'),
)
case(
    "a saved dataset that leads out",
    None,
    saved_folder('{"_data_files": [{"filename": "../secret.arrow"}]}'),
)
case(
    "a saved dataset of an absolute path",
    None,
    saved_folder('{"_data_files": [{"filename": "/dev/zero"}]}'),
)
case("a saved dataset of nothing", REFUSED, saved_folder('{"_data_files": []}'))
case("a saved dataset of something else", REFUSED, saved_folder("[7]"))
case("a saved dataset that is damaged", REFUSED, saved_folder("{"))
for name in (
    "d.JSONL",
    "d d.jsonl",
    "d'd.jsonl",
    'd"d.jsonl',
    "d[1].jsonl",
    "d*.jsonl",
    "d?.jsonl",
    "-d.jsonl",
    "d{x}.jsonl",
    "d$HOME.jsonl",
    "d;ls.jsonl",
    "~d.jsonl",
    "ü.jsonl",
    "d#.jsonl",
    "d:d.jsonl",
    "d%20.jsonl",
    "d\\d.jsonl",
):
    case(
        f"called {name}",
        None if name[0] in "-~" else OK,
        named(name),
        "" if name[0] in "-~" else "# 40",
    )
case("called with a line end", None, named("d\nd.jsonl"))
case("called with an escape", None, named("d\x1b[2J.jsonl"))
case("called with bytes", None, bytes_in_name)
for name in ("d", "d.txt", "d.xlsx", "d.json.jsonl.csv.exe", "d.pkl", "d.py"):
    case(f"of no format, {name}", REFUSED, named(name))

# --- labels --------------------------------------------------------------------------------------

case("one label alone", None, jsonl(intent="billing"))
case("a label for each dialogue", None, jsonl(intent=lambda n: f"label {n}"))
case("labels that are null", None, jsonl(intent=lambda n: None if n % 4 == 0 else "ab"[n % 2]))
case("labels that are empty", None, jsonl(intent=lambda n: "" if n % 4 == 0 else "ab"[n % 2]))
case("labels that are true and false", None, jsonl(intent=lambda n: n % 2 == 0))
case("labels that are numbers", None, jsonl(intent=lambda n: n % 3))
case("labels 1, 1.0 and '1'", TOLD, jsonl(intent=lambda n: [1, 1.0, "1", 2][n % 4]))
case("labels true and 1", TOLD, jsonl(intent=lambda n: [True, 1, "true"][n % 3]))
case(
    "labels that are digits of all kinds",
    None,
    jsonl(intent=lambda n: ["²", "--1", "１", "Ⅷ", "1e5"][n % 5]),
)
case("labels of 5,000 digits", None, jsonl(intent=lambda n: "9" * 5000 if n % 2 else "1"))
case("labels of a megabyte", None, jsonl(intent=lambda n: ("a" * MIB) if n == 3 else "ab"[n % 2]))
case(
    "labels that are YAML",
    None,
    jsonl(
        intent=lambda n: [
            "z\n  missing: skip #",
            "null",
            "~",
            "{a: b}",
            "- x",
            "!!python/object:os.system",
        ][n % 6]
    ),
)
case(
    "labels that are Jinja",
    None,
    jsonl(intent=lambda n: ["{{ 7 * 7 }}", "{% for x in y %}"][n % 2]),
)
case(
    "labels that differ in form",
    TOLD,
    jsonl(intent=lambda n: ["caf\u00e9", "cafe\u0301", "tea"][n % 3]),
)
case("labels that differ in blanks", TOLD, jsonl(intent=lambda n: ["a", "a ", " a", "b"][n % 4]))
case(
    "labels that differ in case", None, jsonl(intent=lambda n: ["Joy", "joy", "JOY", "sad"][n % 4])
)
case("labels without a width", TOLD, jsonl(intent=lambda n: ["a", "a\u200b", "b"][n % 3]))
case("labels with escapes", OK, jsonl(intent=lambda n: ["\x1b[31mred", "blue\x07"][n % 2]))
case("labels from right to left", None, jsonl(intent=lambda n: ["\u202egnillib", "login"][n % 2]))
case("labels that are formulas", None, jsonl(intent=lambda n: ["=1+1", "@SUM(A1)"][n % 2]))
case("labels that are lists", None, jsonl(intent=lambda n: [["a"], ["a", "b"], []][n % 3]))
case("labels that are objects", None, jsonl(intent=lambda n: {"name": "ab"[n % 2]}))
case("labels as text of a list", None, jsonl(intent=lambda n: ["['a', 'b']", "['a']"][n % 2]))
case("labels with commas and bars", None, jsonl(intent=lambda n: ["a, b", "a | b", "a;b"][n % 3]))
case("2,000 labels", None, jsonl(count=4000, intent=lambda n: f"label {n % 2000}"))
case("labels of paths", None, jsonl(intent=lambda n: ["../../x", "/etc/passwd"][n % 2]))
case("a label seen once", None, jsonl(intent=lambda n: "rare" if n == 7 else "ab"[n % 2]))
case(
    "labels in a part of the rows",
    None,
    jsonl(
        [
            {k: v for k, v in row.items() if k != "intent" or n % 3}
            for n, row in enumerate(dialogues())
        ]
    ),
)

# --- structure -----------------------------------------------------------------------------------

case("no dialogue has a turn", REFUSED, jsonl(turns=[]))
case(
    "a dialogue without turns",
    None,
    jsonl(
        turns=lambda n: (
            [] if n == 3 else [f"hello my item number {n} is gone", "good day what can I do"]
        )
    ),
)
case(
    "turns that are null",
    None,
    jsonl(
        turns=lambda n: (
            None if n == 3 else [f"hello my item number {n} is gone", "good day what can I do"]
        )
    ),
)
case(
    "a turn that is null",
    None,
    jsonl(
        turns=lambda n: [
            f"hello my item number {n} is gone",
            None if n == 3 else "good day what can I do",
        ]
    ),
)
case(
    "turns that are empty texts",
    None,
    jsonl(turns=lambda n: [f"hello my item number {n} is gone", ""]),
)
case("turns that are blanks", REFUSED, jsonl(turns=lambda n: [" ", "\u00a0"]))
case("turns that are numbers", None, jsonl(turns=lambda n: [n, n + 1]))
case("turns that are a number", None, jsonl(turns=lambda n: n))
case(
    "turns as one text",
    None,
    jsonl(turns=lambda n: f"A: hello my item number {n} is gone\nB: good day what can I do"),
)
case(
    "turns as JSON in a text",
    None,
    jsonl(
        turns=lambda n: json.dumps([f"hello my item number {n} is gone", "good day what can I do"])
    ),
)
case(
    "turns as Python in a text",
    None,
    jsonl(turns=lambda n: str([f"hello my item number {n} is gone", "good day what can I do"])),
)
case(
    "turns as a call in a text",
    None,
    jsonl(turns=lambda n: "[__import__('os').system('touch canary')]"),
)
case(
    "turns of other shapes",
    None,
    jsonl(turns=lambda n: [["a", "b"], [{"text": "a"}], "a", None][n % 4]),
)
case("turns without a text", None, jsonl(turns=lambda n: [{"speaker": "a"}, {"speaker": "b"}]))
case(
    "turns with two texts",
    None,
    jsonl(
        turns=lambda n: (
            [{"text": f"hello my item number {n} is gone", "translation": f"hallo {n}"}] * 2
        )
    ),
)
case(
    "turns numbered backwards",
    None,
    jsonl(
        turns=lambda n: [
            {"turn": 2, "text": "bye"},
            {"turn": 1, "text": f"hello my item number {n} is gone"},
        ]
    ),
)
case(
    "a dialogue of 50,000 turns", None, jsonl(turns=lambda n: ["hello"] * (50_000 if n == 3 else 2))
)
case(
    "a turn of ten megabytes",
    None,
    jsonl(
        turns=lambda n: [
            "a " * (5 * MIB) if n == 3 else f"hello my item number {n} is gone",
            "good day what can I do",
        ]
    ),
)
case("a row alone", None, jsonl(count=1))
case("two rows", None, jsonl(count=2))
case("the same dialogue forty times", None, jsonl([dialogues(1)[0]] * 40))
case("ids that repeat", None, jsonl(id="same"))
case("ids that are null", None, jsonl(id=lambda n: None if n % 2 else f"d{n}"))
case("ids that are floats", None, jsonl(id=lambda n: n + 0.5))
case("ids that are lists", None, jsonl(id=lambda n: [n]))
case("ids that are texts of a megabyte", None, jsonl(id=lambda n: f"{n}" + "a" * MIB))
case(
    "a row for each turn",
    None,
    raw(
        "d.csv",
        joined(
            [
                ["dialogue_id", "turn", "text", "emotion"],
                *(
                    [
                        f"{n // 4}",
                        f"{n % 4}",
                        f"hello my item number {n} is gone",
                        ("joy", "anger")[n % 2],
                    ]
                    for n in range(160)
                ),
            ]
        ),
    ),
    "# 40",
)
case(
    "rows of dialogues in a mix",
    None,
    raw(
        "d.csv",
        joined(
            [
                ["dialogue_id", "turn", "text", "emotion"],
                *(
                    [
                        f"{n % 40}",
                        f"{n // 40}",
                        f"hello my item number {n} is gone",
                        ("joy", "anger")[n % 2],
                    ]
                    for n in range(160)
                ),
            ]
        ),
    ),
)
case(
    "a row for each turn, and turns twice",
    None,
    raw(
        "d.csv",
        joined(
            [
                ["dialogue_id", "turn", "text", "emotion"],
                *(
                    [f"{n // 4}", "1", f"hello my item number {n} is gone", ("joy", "anger")[n % 2]]
                    for n in range(160)
                ),
            ]
        ),
    ),
)
case(
    "turns that answer themselves",
    None,
    jsonl(
        turns=lambda n: (
            [{"id": "a", "reply_to": "a", "text": f"hello my item number {n} is gone"}] * 2
        )
    ),
)
case(
    "numbers alone",
    REFUSED,
    raw("d.csv", joined([["a", "b"], *([str(n), str(n * n)] for n in range(40))])),
)
case("texts without a label", REFUSED, jsonl([{"turns": row["turns"]} for row in dialogues()]))
case("labels without a text", REFUSED, jsonl([{"intent": row["intent"]} for row in dialogues()]))
case(
    "a list that one row has",
    None,
    jsonl([{**row, "members": ["a", "b"]} if n == 3 else row for n, row in enumerate(dialogues())]),
)
case(
    "objects in objects",
    None,
    jsonl(
        turns=lambda n: {"a": {"b": {"c": [{"d": {"text": f"hello my item number {n} is gone"}}]}}}
    ),
)
case(
    "a tree of keys",
    None,
    jsonl(
        count=3,
        more=lambda n: {
            f"a{i}": {f"b{j}": {f"c{k}": "x" for k in range(12)} for j in range(12)}
            for i in range(12)
        },
    ),
)

# --- splits --------------------------------------------------------------------------------------


def files(**contents: str) -> Build:
    def build(folder: Path) -> list[str]:
        for name, content in contents.items():
            (folder / f"{name}.jsonl").write_text(content)
        return [f"{name}.jsonl" for name in contents]

    return build


TRAIN, DEV, TEST = (lines(dialogues(60)[n : n + 20]) for n in (0, 20, 40))
case("three splits", OK, files(train=TRAIN, dev=DEV, test=TEST), "# 20 train.*20 dev.*20 test")
case("test is train", None, files(train=TRAIN, dev=DEV, test=TRAIN))
case("an empty dev file", REFUSED, files(train=TRAIN, dev="", test=TEST))
case("train alone is empty", REFUSED, files(train="", test=TEST))
case("two files of a split", None, files(train_1=TRAIN, train_2=DEV, test=TEST))
case("files of no split", None, files(a=TRAIN, b=DEV))
case("splits with other keys", None, files(train=TRAIN, test=TEST.replace("intent", "label")))
case("splits with other shapes", None, files(train=TRAIN, test=lines(dialogues(turns="hello"))))
case("labels that only test has", None, files(train=TRAIN, test=TEST.replace("login", "new")))
case("labels that only train has", None, files(train=TRAIN, test=TEST.replace("login", "billing")))
case(
    "ids that start anew",
    None,
    files(train=TRAIN, dev=DEV.replace('"d2', '"d'), test=TEST.replace('"d4', '"d')),
)
case("the same file twice", None, lambda folder: [raw("d.jsonl", GOOD)(folder), "d.jsonl"])
case("a column of splits", None, jsonl(split=lambda n: ["train", "dev", "test"][n % 3]))
case("a column of odd splits", None, jsonl(split=lambda n: ["train", "dev", "test", "../x"][n % 4]))
case("a column of null splits", None, jsonl(split=lambda n: None))
case(
    "files of two formats",
    None,
    lambda folder: [raw("train.jsonl", TRAIN)(folder), raw("test.csv", GOOD_CSV)(folder)],
)
case(
    "300 files",
    None,
    lambda folder: [
        str(raw(f"train-{n}.jsonl", lines(dialogues(400)[n : n + 1]))(folder)) for n in range(300)
    ],
)
