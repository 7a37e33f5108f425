"""Files from others are opened by their content, and read within limits of memory and time."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.datasets.declared.files import check_file
from tasktransfer.datasets.declared.rows import read_rows
from tasktransfer.errors import DataError
from tasktransfer.files import json_stream, untrusted
from tasktransfer.files.data_files import read_tar_member, read_zip_member
from tasktransfer.files.json_stream import open_json
from tasktransfer.files.untrusted import MAX_EMPTY_RUN, MAX_LENGTH

ROW = b'{"text": "hello", "label": "x"}\n'


def rows(file: Path) -> list[dict[str, object]]:
    return [row.values for row in read_rows(check_file(file, "files"))]


def refusal(file: Path) -> str:
    with pytest.raises(DataError) as error:
        rows(file)
    message = str(error.value)
    assert str(file) in message
    assert "; " in message or ". " in message
    assert len(message) < 1000
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.jsonl.gz", ROW, "is not compressed with gzip"),
        ("a.jsonl.gz", gzip.compress(ROW * 99, mtime=0)[:-9], "is truncated"),
        (
            "a.json.gz",
            gzip.compress(ROW * 99, mtime=0)[:-8] + b"\0" * 8,
            "contains damaged gzip data",
        ),
        ("a.csv.gz", gzip.compress(ROW, mtime=0)[:10] + b"\xff" * 30, "contains damaged gzip data"),
        (
            "a.jsonl",
            gzip.compress(ROW, mtime=0),
            "is compressed with gzip. Let its name end in .gz",
        ),
        ("a.jsonl", bz2.compress(ROW), "is compressed with bzip2. Unpack it"),
        ("a.csv", b"PK\x03\x04rest", "is a zip or a spreadsheet (.xlsx)"),
        ("a.json", b"<!DOCTYPE html>\n<html>", "is an HTML page"),
        ("a.jsonl", b"version https://git-lfs.github.com/spec/v1\noid 1", "Run git lfs pull"),
        ("a.csv", b"PAR1....", "is in Parquet format"),
    ],
)
def test_a_file_is_recognised_by_its_first_bytes(
    name: str, content: bytes, told: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert told in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet", "a.arrow", "a.csv.gz"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_pipes_and_devices_are_refused_at_once(
    name: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / name)
    assert "not a regular file" in refusal(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "before", "unit", "told"),
    [
        ("a.jsonl", b"", b"\n", f":{MAX_EMPTY_RUN + 1}: The file contains 10,001"),
        ("a.csv", b"text,label\n", b"\n", f":{MAX_EMPTY_RUN + 2}: The file contains 10,001"),
        ("a.csv", b"text,label\n", b",\n", f":{MAX_EMPTY_RUN + 2}: The file contains 10,001"),
        ("a.json", b"[", b"\n", "consecutive spaces and line breaks"),
        ("a.json", b'{"data": [', b" ", "consecutive spaces and line breaks"),
        ("a.jsonl", b"", b" ", f":1: The line is longer than {MAX_LENGTH:,} characters"),
        ("a.csv", b"text,label\n", b"x", ":2: The line is longer"),
        ("a.json", b'["', b"x", ":1: The value that begins with"),
        ("a.json", b"", b"[", "nested too deeply"),
        ("a.jsonl", b'{"a":', b"[", ":1: The line is longer"),
    ],
)
def test_content_without_end_is_refused_early(
    name: str, before: bytes, unit: bytes, told: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(before + unit * (2 * MAX_LENGTH))
    assert told in refusal(file)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.json.gz", "a.csv.gz"])
def test_a_bomb_is_refused_and_small_texts_are_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted, "RATIO_FREE_BYTES", 2**18)
    unit, head = (b"a,b\n", b"text,label\n") if ".csv" in name else (ROW, b"")
    (tmp_path / name).write_bytes(gzip.compress(head + unit * 1000, mtime=0))
    assert len(rows(tmp_path / name)) == 1000
    size = 2**21 // len(unit)
    (tmp_path / name).write_bytes(gzip.compress(head + unit * size, mtime=0))
    assert "decompresses to more than 100 times its size" in refusal(tmp_path / name)


@pytest.mark.parametrize("read", [read_zip_member, read_tar_member])
def test_an_archive_that_is_not_a_file_is_not_to_be_fetched_again(
    read: Callable[[Path, str], bytes], tmp_path: Path
) -> None:
    file = tmp_path / "a.archive"
    for make, told in ((os.mkfifo, "a named pipe"), (Path.mkdir, "Is a directory")):
        make(file)
        with pytest.raises(DataError, match=rf"{told}.*Check its permissions"):
            read(file, "x")
        file.rmdir() if file.is_dir() else file.unlink()
    with pytest.raises(DataError, match="The file is missing"):
        read(file, "x")


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_bomb_in_an_archive_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0" * (8 * 2**20))
    file = tmp_path / f"a.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.write(tmp_path / "x", "x")
    else:
        with tarfile.open(file, "w:gz") as tar:
            tar.add(tmp_path / "x", "x")
    with pytest.raises(DataError, match=r"more than 100 times"):
        (read_zip_member if kind == "zip" else read_tar_member)(file, "x")


# --- JSON -----------------------------------------------------------------------------------------

THREE = [{"id": f"d{n}", "text": f"hello {n}", "label": "xy"[n % 2]} for n in range(3)]


def indented(values: Iterable[Any]) -> str:
    return "\n".join(json.dumps(value, indent=2) for value in values)


@pytest.mark.parametrize("ending", ["json", "jsonl", "json.gz", "jsonl.gz", "ndjson"])
@pytest.mark.parametrize(
    "text",
    [
        json.dumps(THREE),
        json.dumps(THREE, indent=2),
        "\ufeff" + json.dumps(THREE, indent=2).replace("\n", "\r\n"),
        indented(THREE),
        "\n".join(map(json.dumps, THREE)),
        json.dumps({"version": 1, "data": THREE, "note": [1, 2]}, indent=1),
        json.dumps({row["id"]: {k: v for k, v in row.items() if k != "id"} for row in THREE}),
    ],
    ids=["list", "indented list", "mark and CRLF", "indented objects", "lines", "key", "names"],
)
def test_json_is_read_whatever_its_lines(text: str, ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"own.{ending}"
    content = text.encode()
    file.write_bytes(gzip.compress(content, mtime=0) if ending.endswith("gz") else content)
    if ("jsonl" in ending or ending == "ndjson") and text.startswith('{"') and "\n" not in text:
        assert len(rows(file)) == 1  # one line of JSON lines is one row
    else:
        assert rows(file) == THREE


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "a.jsonl",
            '{"a": 1}\n{"a": 1, "b": {"c": 1, "c": 2}}',
            ":2: The text is not valid JSON (the key 'c' is",
        ),
        ("a.json", '[{"a": 1},\n{"a": 1,\n"a": 2}]', ":3:1: The JSON is broken (the key 'a'"),
        ("a.json", '{"d1": {"t": 1},\n"d2": {"t": 2},\n"d1": {"t": 3}}', ":3"),
        ("a.json", '{"data": [{"a": 1}],\n"data": [{"a": 2}]}', ":2"),
        ("a.json", '[{"a": 1}, {"\\u0061": 1, "a": 2}]', "the key 'a' is already"),
        ("a.json", '[{"a": 1}]\n[{"a": 2}]', ":2: The first value is followed by another"),
        ("a.jsonl", "[1]\n[2]", ":1: The value is [1], but it must be an object"),
        ("a.jsonl", '{"a": 1},\n{"a": 2},', "Remove the comma after the object"),
        ("a.jsonl", "{'a': 1}\n{'a': 2}", "Write the line with json.dumps"),
        ("a.json", '[{"a": 1},', ":1"),
        ("a.json", '[{"a": 1} {"a": 2}]', "instead of ',' or ']'"),
        (
            "a.json",
            "[[1, 2], [3, 4]]",
            "item 1: The value is [1, 2], but it must be an object in braces",
        ),
        ("a.json", '{"a": ' + "9" * 5000 + "}", "thousands of digits"),
        ("a.json", "", "The file is empty"),
        ("a.json", '"text"', "The value is 'text', but it must be a list of objects"),
    ],
)
def test_json_that_is_broken_or_ambiguous_is_refused_with_its_line(
    name: str, text: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert told in refusal(tmp_path / name)


def test_values_longer_than_a_piece_are_read(tmp_path: Path) -> None:
    values = [{"text": "é" * 700_000, "n": n} for n in range(4)] + [{"text": "short", "n": 4}]
    (tmp_path / "a.json").write_text(json.dumps(values, ensure_ascii=False, indent=1))
    assert rows(tmp_path / "a.json") == values
    with open_json(tmp_path / "a.json") as cursor:
        assert [value["n"] for value in cursor.iterate_items()] == list(range(5))
        assert cursor.peek() == "" and cursor.line == 22


@pytest.mark.parametrize("chunk", [1, 2, 7, 50])
def test_pieces_may_end_anywhere(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", chunk)
    odd = [{"a": [1.5e3, -7, None, True], "b\\": {"c": '} "] \\u00e9 é'}}, {}, {"d": ["", {}]}]
    for text in (json.dumps(odd, indent=2), indented(odd), json.dumps({"x": 12, "rows": odd})):
        (tmp_path / "a.json").write_text(text)
        assert rows(tmp_path / "a.json") == odd
    (tmp_path / "a.json").write_text("[\n{},\n{},\n\n  {]")
    assert ":5:4: The JSON is broken" in refusal(tmp_path / "a.json")


@pytest.mark.parametrize("orient", ["columns", "split", "values", "records", "index", "table"])
def test_each_orientation_of_pandas_is_read_or_named(orient: Any, tmp_path: Path) -> None:
    import pandas as pd  # noqa: PLC0415

    file = tmp_path / "own.json"
    pd.DataFrame(THREE).to_json(file, orient=orient)
    if orient == "values":
        assert rows(file) == [{"items": list(row.values())} for row in THREE]
    elif orient in ("columns", "split"):
        message = refusal(file)
        assert "orient" in message and "records" in message
        if "python -c" in message:
            assert os.system(message.split("`")[1]) == 0
            assert rows(tmp_path / "own.jsonl") == THREE
    else:
        found = [{key: row[key] for key in THREE[0]} for row in rows(file)]
        assert found == THREE


@pytest.mark.parametrize(
    ("content", "file", "expected"),
    [
        (
            {"train": [["hello", "greet"]], "val": [["bye", "part"]]},
            "val.json",
            [{"items": ["bye", "part"]}],
        ),
        ({"train": [{"text": "hello"}], "dev": [{"text": "bye"}]}, "dev.json", [{"text": "bye"}]),
        (
            {"nlu": {"examples": [{"text": "hello"}, {"text": "bye"}], "synonyms": [{"a": 1}]}},
            "rows.json",
            [{"text": "hello"}, {"text": "bye"}],
        ),
    ],
)
def test_rows_that_cannot_be_told_are_refused_with_the_command_that_writes_them(
    content: Any, file: str, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own's data.json").write_text(json.dumps(content))
    command = refusal(tmp_path / "own's data.json").split("`")[1]
    assert os.system(command) == 0
    assert rows(tmp_path / file) == expected


def test_keys_that_are_no_file_names_are_in_no_command(tmp_path: Path) -> None:
    content = {"../a": [{"text": "hello"}], "b": [{"text": "bye"}]}
    (tmp_path / "a.json").write_text(json.dumps(content))
    message = refusal(tmp_path / "a.json")
    assert "to its own file" in message and "python" not in message


def test_rows_may_be_lists(tmp_path: Path) -> None:
    turns = [{"text": "hello"}, {"text": "bye"}]
    (tmp_path / "a.json").write_text(json.dumps([turns, turns]))
    assert rows(tmp_path / "a.json") == [{"items": turns}] * 2
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(turns) + "\n" for _ in range(2)))
    assert rows(tmp_path / "a.jsonl") == [{"items": turns}] * 2
