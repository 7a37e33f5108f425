"""Hostile compressed files, Parquet and Arrow files, and paths."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
import socket
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hostile_cases import (
    GOOD,
    GOOD_CSV,
    MIB,
    OK,
    REFUSED,
    TOLD,
    Build,
    arrow_bytes,
    arrow_case,
    case,
    dialogues,
    gz_case,
    jsonl_case,
    lines,
    packed,
    parquet,
    parquet_bytes,
    parquet_case,
    raw,
    table_case,
)

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
gz_case("gz that is none", REFUSED, GOOD)
gz_case("gz cut off", REFUSED, PACKED[: len(PACKED) // 2])
gz_case("gz without its end", REFUSED, PACKED[:-4])
gz_case("gz with another checksum", REFUSED, PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:])
gz_case("gz of noise", REFUSED, PACKED[:20] + random.Random(1).randbytes(500))
gz_case("gz and more behind it", None, PACKED + b"more")
gz_case(
    "gz of several members",
    OK,
    packed(lines(dialogues()[:20]).encode()) + packed(lines(dialogues()[20:]).encode()),
    "# 40",
)
gz_case("gz of gz", REFUSED, packed(PACKED))
gz_case("empty gz", REFUSED, b"")
gz_case("gz of nothing", REFUSED, packed(b""))
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
jsonl_case("a packed file without .gz", REFUSED, PACKED)
case("a packed Parquet file", None, raw("d.parquet.gz", packed(parquet_bytes())))


# --- Parquet and Arrow ---------------------------------------------------------------------------

WHOLE, STREAM, FILE = parquet_bytes(), arrow_bytes(), arrow_bytes(stream=False)
DIALOGUES = pa.Table.from_pylist(dialogues())
parquet_case("Parquet cut off", REFUSED, WHOLE[: len(WHOLE) // 2])
parquet_case("Parquet without its beginning", REFUSED, WHOLE[len(WHOLE) // 2 :])
parquet_case("Parquet of text", REFUSED, GOOD)
parquet_case("empty Parquet file", REFUSED, b"")
parquet_case("Parquet's magic alone", REFUSED, b"PAR1PAR1")
parquet_case(
    "Parquet with a long footer", REFUSED, b"PAR1" + struct.pack("<I", 2**31 - 1) + b"PAR1"
)


def spoil(content: bytes, start: int, chance: random.Random) -> bytes:
    """Return a file in which three random bytes are changed."""
    spoiled = bytearray(content)
    for _ in range(3):
        spoiled[chance.randrange(start, len(spoiled))] = chance.randrange(256)
    return bytes(spoiled)


for seed in range(12):
    chance = random.Random(seed)
    parquet_case(f"Parquet with other bytes, {seed}", None, spoil(WHOLE, 4, chance))
    arrow_case(
        f"Arrow with other bytes, {seed}", None, spoil(STREAM if seed % 2 else FILE, 8, chance)
    )
arrow_case("Arrow stream cut off", REFUSED, STREAM[: len(STREAM) // 2])
arrow_case("Arrow file cut off", REFUSED, FILE[: len(FILE) // 2])
arrow_case("Arrow of text", REFUSED, GOOD)
arrow_case("empty Arrow file", REFUSED, b"")
arrow_case(
    "Arrow that announces exabytes", REFUSED, b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1)
)
table_case("Parquet without rows", REFUSED, DIALOGUES.slice(0, 0))
table_case("Parquet without columns", REFUSED, pa.table({}))
table_case(
    "labels as a dictionary",
    OK,
    DIALOGUES.set_column(2, "intent", pa.array(["a", "b"] * 20).dictionary_encode()),
    "# 40",
)
table_case(
    "texts as bytes", None, DIALOGUES.set_column(2, "intent", pa.array([b"\xff", b"b"] * 20))
)
table_case(
    "texts of bytes that are no characters",
    REFUSED,
    DIALOGUES.set_column(2, "intent", pa.array([b"\xff", b"b"] * 20).view(pa.string())),
)
table_case(
    "dates, decimals and times",
    None,
    DIALOGUES.append_column("d", pa.array([0] * 40).cast(pa.timestamp("ns", "UTC")))
    .append_column("e", pa.array([1] * 40).cast(pa.decimal128(30, 2)))
    .append_column("f", pa.array([0] * 40, pa.int32()).cast(pa.date32())),
)
table_case(
    "durations and maps",
    None,
    DIALOGUES.append_column(
        "m", pa.array([[("a", 1)]] * 40, pa.map_(pa.string(), pa.int32()))
    ).append_column("t", pa.array([1] * 40).cast(pa.duration("s"))),
)
table_case(
    "turns as structs",
    OK,
    dialogues(
        turns=lambda n: [
            {"speaker": "a", "text": f"hello {n}"},
            {"speaker": "b", "text": "good day"},
        ]
    ),
    "# 40 train dialogues, 80",
)
table_case("columns of nulls", None, dialogues(more=None))
table_case(
    "one column twice in Parquet",
    TOLD,
    pa.Table.from_arrays(
        [pa.array(["hello"] * 40), pa.array(["a", "b"] * 20)], names=["text", "text"]
    ),
)
table_case("3,000 columns of Parquet", None, pa.table({f"c{n}": ["x"] for n in range(3000)}))
table_case(
    "names of labels that are no list",
    None,
    DIALOGUES.replace_schema_metadata(
        {b"huggingface": b'{"info": {"features": {"intent": {"_type": "ClassLabel", "names": 7}}}}'}
    ),
)
table_case(
    "a number beyond the names of labels",
    TOLD,
    pa.Table.from_pylist(dialogues(intent=lambda n: n % 5)).replace_schema_metadata(
        {
            b"huggingface": json.dumps(
                {"info": {"features": {"intent": {"_type": "ClassLabel", "names": ["a", "b"]}}}}
            ).encode()
        }
    ),
)
table_case(
    "metadata that are nested deeply",
    None,
    DIALOGUES.replace_schema_metadata({b"huggingface": b"[" * 100_000}),
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


def link(name: str, target: str) -> Build:
    """Return a function that writes a link, next to the good file real.jsonl."""

    def build(folder: Path) -> str:
        (folder / "real.jsonl").write_text(GOOD)
        (folder / name).symlink_to(target)
        return name

    return build


def empty_folder(name: str) -> Build:
    def build(folder: Path) -> str:
        (folder / name).mkdir()
        return name

    return build


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "d.jsonl")
    return "d.jsonl"


def a_socket(folder: Path) -> str:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(folder)
        try:
            server.bind("d.jsonl")
        finally:
            os.chdir(here)
    return "d.jsonl"


def folder_of_everything(folder: Path) -> str:
    place = folder / "d"
    place.mkdir()
    (place / "a.jsonl").write_text(GOOD)
    (place / "b.csv").write_text(GOOD_CSV)
    (place / "c.bin").write_bytes(bytes(100))
    os.mkfifo(place / "e.jsonl")
    return "d"


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


case("no such file", REFUSED, lambda folder: "nowhere.jsonl", "nowhere.jsonl")
case("a pipe", REFUSED, pipe)
case("/dev/zero", REFUSED, link("d.jsonl", "/dev/zero"))
case("/dev/urandom", REFUSED, link("d.parquet", "/dev/urandom"))
case("a socket", REFUSED, a_socket)
case("a link to itself", REFUSED, link("d.jsonl", "d.jsonl"))
case("a link to a file", OK, link("d.jsonl", "real.jsonl"), "# 40")
case("an empty folder", REFUSED, empty_folder("d"))
case("a folder of everything", None, folder_of_everything)
case("a folder with the name of a file", REFUSED, empty_folder("d.jsonl"))
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
        raw(name, GOOD),
        "" if name[0] in "-~" else "# 40",
    )
case("called with a line end", None, raw("d\nd.jsonl", GOOD))
case("called with an escape", None, raw("d\x1b[2J.jsonl", GOOD))
case("called with bytes", None, bytes_in_name)
for name in ("d", "d.txt", "d.xlsx", "d.json.jsonl.csv.exe", "d.pkl", "d.py"):
    case(f"of no format, {name}", REFUSED, raw(name, GOOD))
