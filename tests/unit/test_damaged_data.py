"""Damaged corpora and rated sets, opened by their design.

Each is refused with file, row, key and remedy, and no other exception is raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import small_corpora as sound
from corpus_reads import (
    CONTURE,
    ED_SPLIT,
    EMOTION,
    FED,
    FREQ,
    GRADE,
    GUPTA,
    OWN,
    PLUS,
    READS,
    USR,
    WOZ,
    ZHAO,
    read,
)
from small_corpora import as_csv, as_json, as_lines, as_tgz, as_zip, said
from tasktransfer.designs.empathetic.sources.additional_datasets import NEWSGROUP_POSTS
from tasktransfer.errors import DataError

Content = bytes | Callable[[bytes], bytes]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sound.write(tmp_path)
    return tmp_path


JSON_FILES = (USR, GRADE, FED, CONTURE, FREQ, WOZ)
LINES_FILES = (PLUS, OWN)
CSV_FILES = (
    GUPTA, ZHAO, EMOTION, ED_SPLIT, sound.SPLIT_CSV, "goemotions/dev.csv",
    "judgements/ratings.csv", "judgements/choices.csv", "judgements/ties.csv",
)  # fmt: skip
TEXT_FILES = (sound.VALID, "train.tsv", "own_words/vectors.txt")


@pytest.mark.parametrize("name", list(READS))
def test_sound_files_are_read(name: str, folder: Path) -> None:
    assert len(READS[name](folder)) > 0


@pytest.mark.parametrize("name", [n for n in READS if not n.endswith((".zip", ".tgz"))])
def test_a_byte_order_mark_changes_nothing(name: str, folder: Path) -> None:
    before = READS[name](folder)
    file = folder / name
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert str(READS[name](folder)) == str(before)


# --- damage to any file -------------------------------------------------------------------------


def utf16(content: bytes) -> bytes:
    return content.decode().encode("utf-16")


def latin1(content: bytes) -> bytes:
    """Encode the first text with an accent as Latin-1."""
    end = content.index(b"e", len(content) // 2)
    return content[:end] + b"\xe9" + content[end + 1 :]


def long_cell(content: bytes) -> bytes:
    head, _, rest = content.partition(b"\n")
    first = b"x" * 9_000_000
    return head + b"\n" + first + rest[rest.index(b",") if b"," in rest else 0 :]


def open_quote(content: bytes) -> bytes:
    return content + b'"' + b",".join([b"open"] * (content.split(b"\n")[0].count(b",") + 1)) + b"\n"


ANYWHERE: list[tuple[tuple[str, ...], str, Content, str]] = [
    ((*JSON_FILES, *LINES_FILES, *CSV_FILES, *TEXT_FILES), "UTF-16", utf16, "as UTF-8"),
    (
        (*JSON_FILES, *LINES_FILES, *CSV_FILES, *TEXT_FILES),
        "Latin-1",
        latin1,
        r":\d+: The text is not UTF-8 \(byte 0xe9 .* Save the file as UTF-8",
    ),
    (JSON_FILES, "empty", b"", ":1:1: The file is empty. Fetch"),
    (JSON_FILES, "broken", lambda content: content[:-9], r":1:\d+: The JSON is broken \(.*\. F"),
    (JSON_FILES, "deep", b"[" * 100_000, "nested too deeply.*. Fetch"),
    (JSON_FILES, "null", b"null", "must be "),
    (JSON_FILES, "of another type", b"7", "must be "),
    (
        LINES_FILES,
        "broken",
        lambda content: content + b"{",
        r":4: The text is not valid JSON .*. Fix the line",
    ),
    (
        LINES_FILES,
        "deep",
        b'{"a":' * 100_000,
        ":1: The text is not valid JSON .*deep.*. Fix the line",
    ),
    (LINES_FILES, "null", b"null\n", ":1: The value is null, but it must be an object"),
    (CSV_FILES, "empty", b"", ":1: The file is empty, so it has no header. Fetch"),
    (CSV_FILES, "other columns", b"a,b\n1,2\n", ":1: The columns? .*Fix the line"),
    (
        CSV_FILES,
        "open quote",
        open_quote,
        r":\d+:1: A quotation mark is never closed .*commas.*. Close it",
    ),
    (
        CSV_FILES,
        "long line",
        long_cell,
        ":2: The line is longer than 8,388,608 characters. Write one",
    ),
]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        pytest.param(name, content, told, id=f"{Path(name).name}: {what}")
        for names, what, content, told in ANYWHERE
        for name in names
    ],
)
def test_a_file_that_cannot_be_read(name: str, content: Content, told: str, folder: Path) -> None:
    refused(folder, name, content, told)


def refused(folder: Path, name: str, content: Content, told: str) -> None:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content(file.read_bytes()))
    with pytest.raises(DataError) as caught:
        READS[name](folder)
    message = str(caught.value)
    assert str(file) in message
    assert re.search(told, message), message
    assert len(message) < 1000  # of a file of a megabyte too


# --- damage to one format -----------------------------------------------------------------------


def with_json(change: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        value = json.loads(content)
        change(value)
        return as_json(value)

    return changed


def put(*keys: Any, value: Any = None) -> Callable[[bytes], bytes]:
    """Set a value at a path of keys."""

    def change(whole: Any) -> None:
        for key in keys[:-1]:
            whole = whole[key]
        whole[keys[-1]] = value

    return with_json(change)


def without(*keys: Any) -> Callable[[bytes], bytes]:
    def change(whole: Any) -> None:
        for key in keys[:-1]:
            whole = whole[key]
        del whole[keys[-1]]

    return with_json(change)


def line(change: dict[str, Any], number: int = 1) -> Callable[[bytes], bytes]:
    """Return a line of JSON lines with other values; None removes the key."""

    def changed(content: bytes) -> bytes:
        rows = [json.loads(row) for row in content.splitlines()]
        row = {**rows[number - 1], **change}
        rows[number - 1] = {key: value for key, value in row.items() if value is not ...}
        return as_lines(rows)

    return changed


def tables(**changed: str) -> bytes:
    """Return DSTC7's archive with another table."""
    files = {
        name: changed.get(name.removeprefix("dstc7-task2-").removesuffix(".tsv"), text).encode()
        for name, text in sound.TABLES.items()
    }
    return as_tgz(files)


def zipped(change: Callable[[bytes], bytes]) -> bytes:
    content = change(as_json(sound.DAILY))
    return as_zip("TLiDB_DailyDialog/TLiDB_DailyDialog.json", content)


SINGLE = [
    (USR, without(1, "context"), r"item 1: The key 'context' is missing. Fix it"),
    (USR, put(1, "responses", 0, "response"), r"response 0, response: The value is null"),
    (USR, without(2, "responses", 1, "Maintains Context"), "item 2, response 1: The key 'Main"),
    (USR, put(0, "responses", value={}), r"item 0, responses: The value is {}, but it"),
    (USR, put(0, "responses", 0, "Maintains Context", value=[9]), r"response 0: The rating 9 is"),
    (USR, put(0, "context", value="\n"), "item 0, response 0: The context is empty. Add"),
    (USR, b"[]", r"The value is \[\], but it must be a list of objects. Fix"),
    (GRADE, put(1, "HumanScores", value="[1, "), r"ID 1, HumanScores: .*'\[1, ' is not a list"),
    (GRADE, put(1, "HumanScores", value="[1, null]"), "ID 1: Rating None is not a number"),
    (GRADE, put(0, "Dataset", value=7), "item 0, Dataset: The value is 7, but it must be a string"),
    (GRADE, put(2, "Context"), "ID 2, Context: The value is null, but it must be a string"),
    (GRADE, with_json(lambda rows: rows.__delitem__(slice(1, None))), "1 item of 1 context"),
    (FED, put(1, "annotations"), "item 1, annotations: The value is null, but it must"),
    (FED, without(1, "annotations", "Relevant"), "item 1, annotations: The key 'Relevant' is"),
    (FED, put(1, "annotations", "Relevant", value=["N/A"]), "item 1: The row has no rating. Add"),
    (FED, put(1, "response"), "item 1, response: The value is null, but it must be a string"),
    (CONTURE, without(1, "dialog_id"), "item 1: The key 'dialog_id' is missing"),
    (CONTURE, put(1, "turns", 2, "chatbot", value=" "), "dialogue 1, turn 2: The response is"),
    (CONTURE, put(1, "turns", 2, "overall impression", value=True), "turn 2: Rating True is no"),
    (GUPTA, lambda content: content.replace(b"2.5", b"good", 1), ":2: Rating 'good' is no"),
    (GUPTA, lambda content: content + b"m,1\n", ":5: The line has 2 col.* names 5 .*. Put"),
    (GUPTA, lambda content: content.partition(b"\n")[0], "has 0 items of 0 contexts"),
    (ZHAO, as_csv(("context", "response", "rating"), ("a", "", 3)), ":2: The response is"),
    (ZHAO, as_csv(("context", "response", "rating"), ("a", "b", 30)), ":2: The rating 30 is"),
    (sound.DSTC7, b"no archive", "cannot be read .*Fetch the archive again"),
    (sound.DSTC7, lambda content: content[:80], "cannot be read .*Fetch the archive again"),
    (sound.DSTC7, as_tgz({}), "contains no dstc7-task2-context.tsv. Fetch the archive again"),
    (sound.DSTC7, tables(context="InstanceID\n1\n"), r"\(context\):1: The column Con"),
    (sound.DSTC7, tables(**{"human-eval-per-judge": "InstanceID\tSystemID\tRelevance\n1\tA\n"}),
     "1 A: Rating '' is not a number. Write a number"),
    (PLUS, line({"context": ...}), ":1: The key 'context' is missing. Fix the line"),
    (PLUS, line({"positive_responses": []}), ":1, positive_responses: The list contains no"),
    (PLUS, line({"context": ["", " "]}), ":1, context: The list contains no text. Fix the line"),
    (PLUS, lambda content: content.split(b"\n")[0], "number of contexts is 1, but .* Copy"),
    (FREQ, put("c3", "content"), "dialogue c3, content: The value is null, but it must be a list"),
    (FREQ, without("c3", "content", 1, "message"), r"c3, content\[1\]: The key 'message' is"),
    (OWN, line({"utterances": [said(0, 0)]}, 2), ":2, utterances: The dialogue .* two texts"),
    (OWN, line({"utterances": [said(0, 0), None]}, 2), r"utterances\[1\]: The value is null"),
    (OWN, line({"utterances": ["  ", "b"]}, 2), ":2, utterances: The dialogue .*Add the"),
    (OWN, b"", "Own has 0 dialogues in the split train, .*at least 2 dialogues, or remove Own"),
    (OWN, lambda content: content.split(b"\n")[0], "Own has 1 dialogue in the split train"),
    (sound.DAILY_ZIP, b"no zip", "cannot be read as a zip .*. Fetch"),
    (sound.DAILY_ZIP, as_zip("other.json", b"{}"), "contains no TLiDB_DailyD.*Fetch"),
    (sound.DAILY_ZIP, zipped(without("data")), "key 'data' is missing. Fix it, or fetch"),
    (sound.DAILY_ZIP, zipped(put("data", 1, "dialogue", 0, "utterance")),
     r"dialogue 'd1', dialogue\[0\].utterance: The value is null, but it must be a string. Fix"),
    (sound.SPLIT_CSV, b"dialogue_id,split\nd0,training\n", ":2: The value 'training' is not a spl"),
    (sound.SPLIT_CSV, b"dialogue_id,split\nd0,train\nd0,test\n", ":3: The dialogue d0 is alr"),
    (sound.VALID, b"", "contains no dialogues. Fetch"),
    (sound.VALID, lambda content: content + "²  x\n".encode(), ":121: .* with its number"),
    (sound.VALID, lambda content: content + b"1 your persona: alone .\n", "dialogue 41: The dial"),
    (sound.VALID, lambda content: content + b"1 hello\n", ":121: The line contains"),
    (EMOTION, as_csv(("Dialog_ID", "Type", "Actor", "Text")), "contains no dialogue. Copy"),
    (WOZ, put("val3.json", "log", value=[]), "dialogue val3.json: The dialogue has no log"),
    (WOZ, with_json(lambda all_: all_["val3.json"]["log"].pop()), "val3.json: The dialogue"),
    (WOZ, put("val3.json", "log", 0, "text"), "val3.json, turn 0: The turn has no text"),
    (WOZ, put("val3.json", "log", 1, "metadata"), "val3.json, turn 1: The metadata is"),
    ("goemotions/dev.csv", as_csv(("label", "content"), (28, "x")), ":2: The value '28' is no"),
    ("train.tsv", b"no tab\n", ":1: The line 'no tab' does not consist of"),
    ("own_words/vectors.txt", b"word 1 2\nother x\n", ":2: The line must contain a word and 2"),
    ("judgements/ratings.csv", lambda content: content + b"m,1,r,1,2,9\n", "fluency contains '9"),
    ("judgements/ratings.csv", lambda content: content + b",1,r,1,2,3\n", ":3: The column model"),
    ("judgements/choices.csv", lambda content: content.partition(b"\n")[0], "a header but no"),
    ("judgements/ties.csv", b"choice\n", "a header but no judgements. Add one judgement"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [pytest.param(*case, id=f"{Path(case[0]).name} {n}") for n, case in enumerate(SINGLE)],
)
def test_a_damaged_file_is_named(name: str, content: Content, told: str, folder: Path) -> None:
    refused(folder, name, content, told)


def test_a_file_that_is_gone_or_a_folder(folder: Path) -> None:
    for make in (Path.unlink, Path.mkdir):
        make(folder / "judgements/ties.csv")
        with pytest.raises(
            DataError, match=r"ties\.csv: The file (is missing|cannot be read \(Is a).*\. "
        ):
            READS["judgements/ties.csv"](folder)


def test_newsgroups_are_latin1_whatever_they_hold(folder: Path) -> None:
    (folder / "20news-bydate-train" / "alt.atheism" / "1").write_bytes(b"From: x\r\n\r\ncaf\xe9")
    assert "café" in {one.context for one in read(NEWSGROUP_POSTS, folder)}
