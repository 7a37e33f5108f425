"""Ways to break a submission, and the one error that each has to give."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from submissions import Files, packed, with_line

EER = "emory_emotion_recognition/predictions.csv"
CI = "character_identification/predictions.csv"
RE = "relation_extraction/baseline_predictions.csv"
QA = "question_answering/predictions.csv"
PD = "personality_detection/predictions.csv"
BITS = b"[" + b" ".join([b"0"] * 37) + b"]"


@dataclass(frozen=True)
class Damage:
    """How it is made, and the one error that has to come of it: file, line, kind, and words."""

    make: Callable[[Files], bytes]
    file: str
    line: int | None
    kind: str
    says: str


def rows(name: str, number: int, line: bytes) -> Callable[[Files], bytes]:
    return lambda files: packed(with_line(files, name, number, line))


def content(name: str, change: Callable[[bytes], bytes]) -> Callable[[Files], bytes]:
    return lambda files: packed(files | {name: change(files[name])})


def added(name: str, data: bytes = b"x,0\n") -> Callable[[Files], bytes]:
    return lambda files: packed(files | {name: data})


def without(*names: str) -> Callable[[Files], bytes]:
    return lambda files: packed(
        {name: data for name, data in files.items() if not name.startswith(names)}
    )


def member(change: Callable[[zipfile.ZipInfo], None]) -> Callable[[Files], bytes]:
    """The zip with one more member, of which ``change`` sets what it likes."""

    def make(files: Files) -> bytes:
        buffer = io.BytesIO(packed(files))
        with zipfile.ZipFile(buffer, "a") as archive:
            info = zipfile.ZipInfo("extra")
            change(info)
            archive.writestr(info, b"x")
        return buffer.getvalue()

    return make


def symlink(info: zipfile.ZipInfo) -> None:
    info.filename, info.external_attr = "relation_extraction/link", 0o120777 << 16


def device(info: zipfile.ZipInfo) -> None:
    info.filename, info.external_attr = "relation_extraction/tty", 0o020666 << 16


def twice(files: Files) -> bytes:
    buffer = io.BytesIO(packed(files))
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(EER, files[EER])
    return buffer.getvalue()


def header_field(name: str, offset: int, value: bytes) -> Callable[[Files], bytes]:
    """Bytes of the central directory's entry of ``name`` overwritten."""

    def make(files: Files) -> bytes:
        data = bytearray(packed(files))
        place = data.rindex(name.encode()) - 46
        assert data[place : place + 4] == b"PK\x01\x02"
        data[place + offset : place + offset + len(value)] = value
        return bytes(data)

    return make


def both_headers(name: str, central: int, local: int, value: bytes) -> Callable[[Files], bytes]:
    def make(files: Files) -> bytes:
        data = bytearray(header_field(name, central, value)(files))
        place = data.index(name.encode()) - 30
        assert data[place : place + 4] == b"PK\x03\x04"
        data[place + local : place + local + len(value)] = value
        return bytes(data)

    return make


FILE_LIMIT, TOTAL_LIMIT = 2**20, 4 * 2**20
"""Smaller limits than the real ones, so that bombs are made fast."""


def bomb(files: Files) -> bytes:
    return packed(files | {EER: b"\0" * (FILE_LIMIT + 1)})


def many_bombs(files: Files) -> bytes:
    return packed(dict.fromkeys(files, b"\0" * (FILE_LIMIT // 2)))


def lying_bomb(files: Files) -> bytes:
    """Unpacks to more than is read of a file, and claims 9 bytes."""
    large = files | {EER: b"a" * 3 * FILE_LIMIT}
    return both_headers(EER, 24, 22, struct.pack("<I", 9))(large)


def overstated(files: Files) -> bytes:
    """Ends before the size that its headers claim, with the right checksum."""
    return both_headers(EER, 24, 22, struct.pack("<I", len(files[EER]) + 5))(files)


def flipped(files: Files) -> bytes:
    data = bytearray(packed(files))
    place = data.index(EER.encode()) + len(EER)
    data[place + 3] ^= 0xFF
    return bytes(data)


def lzma(files: Files) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            method = zipfile.ZIP_LZMA if name == EER else zipfile.ZIP_DEFLATED
            archive.writestr(name, data, method)
    return buffer.getvalue()


DAMAGES: dict[str, Damage] = {
    # the archive
    "empty zip file": Damage(lambda _: b"", "", None, "empty-archive", "0 bytes"),
    "no zip": Damage(lambda _: b"id,prediction\n" * 9, "", None, "not-a-zip", "pack it again"),
    "truncated zip": Damage(
        lambda files: packed(files)[:-200], "", None, "not-a-zip", "cannot be read as a zip"
    ),
    "zip without files": Damage(lambda _: packed({}), "", None, "empty-archive", "without any"),
    "only folders": Damage(
        lambda _: packed({"relation_extraction/": b""}), "", None, "empty-archive", "no file"
    ),
    "too many members": Damage(
        lambda files: packed(files | {f"x/{n}": b"" for n in range(1001)}),
        "",
        None,
        "too-many-members",
        "at most 1,000",
    ),
    "declared bomb": Damage(bomb, EER, None, "too-large", "at most 1,048,576 are read"),
    "bomb of many members": Damage(many_bombs, "", None, "too-large", "4 MiB in all"),
    "bomb that lies about its size": Damage(lying_bomb, EER, None, "damaged", "damaged in the zip"),
    "member that ends early": Damage(overstated, EER, None, "damaged", "it ends after"),
    "member that claims more than the zip has": Damage(
        header_field(EER, 20, struct.pack("<I", 2**30)), "", None, "damaged", "claim more bytes"
    ),
    "flipped byte": Damage(flipped, EER, None, "damaged", "damaged in the zip"),
    "encrypted member": Damage(
        both_headers(EER, 8, 6, b"\x01\x00"), EER, None, "encrypted", "without a password"
    ),
    "packed with lzma": Damage(lzma, EER, None, "compression", "another method than deflate"),
    "duplicate member": Damage(twice, EER, None, "duplicate-member", "more than once"),
    "symbolic link": Damage(
        member(symlink), "relation_extraction/link", None, "link", "symbolic link"
    ),
    "device": Damage(
        member(device), "relation_extraction/tty", None, "not-a-file", "not a regular file"
    ),
    "archive that is too large": Damage(
        lambda files: os.urandom(TOTAL_LIMIT + 1), "", None, "too-large", "is not opened"
    ),
    # paths
    "absolute path": Damage(added("/etc/cron.d/x"), "/etc/cron.d/x", None, "unsafe-path", "top"),
    "path that leads upwards": Damage(
        added("a/../../evil.csv"), "a/../../evil.csv", None, "unsafe-path", "upwards"
    ),
    "backslashes": Damage(
        added("relation_extraction\\x.csv"),
        "relation_extraction\\x.csv",
        None,
        "unsafe-path",
        "backslash",
    ),
    "drive letter": Damage(added("C:/x.csv"), "C:/x.csv", None, "unsafe-path", "absolute"),
    "control characters in a path": Damage(
        added("a\x1b[31m/x.csv"), "a\\x1b[31m/x.csv", None, "unsafe-path", "control"
    ),
    # folders and files
    "nested folder": Damage(
        lambda files: packed({f"my submission/{name}": data for name, data in files.items()}),
        "my submission/",
        None,
        "nested-folder",
        "pack from inside",
    ),
    "no task folder": Damage(
        lambda _: packed({"predictions.csv": b"a,1\n"}), "", None, "no-tasks", "named after a task"
    ),
    "both datasets": Damage(
        lambda _: packed({f"{task}/predictions.csv": b"" for task in ("dialogue_nli", CI[:24])}),
        "",
        None,
        "mixed-datasets",
        "DailyDialog and Friends",
    ),
    "missing task": Damage(
        without("question_answering/"), "question_answering", None, "missing-task", "missing"
    ),
    "missing file": Damage(without(EER), EER, None, "missing-file", "missing"),
    "extra task": Damage(
        added("summary/predictions.csv"), "summary", None, "extra-task", "no task"
    ),
    "misspelt task": Damage(
        added("meld_emotion_recognition/predictions.csv"),
        "meld_emotion_recognition",
        None,
        "extra-task",
        "did you mean MELD_emotion_recognition?",
    ),
    "task of the other dataset": Damage(
        added("dialogue_nli/predictions.csv"),
        "dialogue_nli",
        None,
        "extra-task",
        "is a task of DailyDialog",
    ),
    "extra file": Damage(
        added("question_answering/notes.txt"),
        "question_answering/notes.txt",
        None,
        "extra-file",
        "none of baseline_predictions.csv and predictions.csv",
    ),
    "file at the top": Damage(added("README.md"), "README.md", None, "extra-file", "leave it out"),
    # encodings
    "Latin-1": Damage(
        rows(QA, 2, b"d_Who,Ren\xe9e"), QA, 2, "encoding", "0xe9, which is not UTF-8"
    ),
    "UTF-16": Damage(
        content(QA, lambda data: data.decode().encode("utf-16")), QA, 1, "encoding", "UTF-16"
    ),
    "UTF-16 without a mark": Damage(
        content(QA, lambda data: data.decode().encode("utf-16-le")), QA, 1, "encoding", "UTF-16 or"
    ),
    "NUL byte": Damage(rows(QA, 3, b"e_What,dino\0saur"), QA, 3, "encoding", "NUL byte"),
    # rows
    "empty file": Damage(content(EER, lambda _: b""), EER, None, "empty-file", "is empty"),
    "white space only": Damage(content(EER, lambda _: b"\n \n"), EER, None, "empty-file", "empty"),
    "header": Damage(
        content(EER, lambda data: b"instance_id,prediction\n" + data), EER, 1, "header", "none"
    ),
    "header of texts": Damage(content(QA, lambda d: b"ID,Answer\n" + d), QA, 1, "header", "none"),
    "semicolons": Damage(
        content(EER, lambda data: data.replace(b",", b";")), EER, 1, "separator", "use a comma"
    ),
    "tabs": Damage(
        content(EER, lambda data: data.replace(b",", b"\t")), EER, 1, "separator", "tabs"
    ),
    "one column": Damage(rows(EER, 2, b"e_t2"), EER, 2, "columns", "one column, 'e_t2'"),
    "three columns": Damage(rows(EER, 2, b"e_t2,1,0.9"), EER, 2, "columns", "has 3 columns"),
    "three columns in quotes": Damage(
        rows(EER, 2, b'"e_t2","1","0.9"'), EER, 2, "columns", "has 3 columns"
    ),
    # ids
    "missing id": Damage(
        content(EER, lambda data: data.split(b"\n")[0]),
        EER,
        None,
        "missing-id",
        "'e_t2' is missing",
    ),
    "unknown id": Damage(
        content(EER, lambda data: data + b"z_t9,1\n"), EER, 3, "unknown-id", "'z_t9' is no id"
    ),
    "repeated id": Damage(
        content(EER, lambda data: data + b"d_t2,1\n"), EER, 3, "duplicate-id", "first in line 1"
    ),
    "an id of the release's two left out": Damage(
        content(RE, lambda data: data.split(b"\n")[0]),
        RE,
        None,
        "missing-id",
        "1 time(s), and the test split has 2",
    ),
    "an id of the release's two a third time": Damage(
        content(RE, lambda data: data + data.split(b"\n")[0]),
        RE,
        3,
        "duplicate-id",
        "2 times already",
    ),
    "a speaker without a trait": Damage(
        content(PD, lambda data: data + b"d_Ross-Geller,1\n"),
        PD,
        11,
        "unknown-id",
        "d_Ross-Geller_aggreeable and so on",
    ),
    # values
    "out of range": Damage(rows(EER, 1, b"d_t2,7"), EER, 1, "out-of-range", "from 0 to 6"),
    "negative": Damage(rows(EER, 1, b"d_t2,-2"), EER, 1, "out-of-range", "'-2'"),
    "huge": Damage(rows(EER, 1, b"d_t2," + b"9" * 5000), EER, 1, "wrong-type", "no integer"),
    "fraction": Damage(rows(EER, 1, b"d_t2,1.5"), EER, 1, "wrong-type", "'1.5' is no integer"),
    "no prediction": Damage(rows(EER, 1, b"d_t2,"), EER, 1, "wrong-type", "has no prediction"),
    "a label's name": Damage(rows(EER, 1, b"d_t2,joyful"), EER, 1, "wrong-type", "here 0"),
    "trait out of range": Damage(
        rows(PD, 1, b"d_Ross-Geller_aggreeable,2"), PD, 1, "out-of-range", "from 0 to 1"
    ),
    "not a number": Damage(rows(EER, 1, b"d_t2,nan"), EER, 1, "wrong-type", "'nan' is no integer"),
    "short list": Damage(
        rows(RE, 2, b"d_Monica-Geller_Ross-Geller,[0 1 0]"), RE, 2, "list-length", "3 entries"
    ),
    "list of other numbers": Damage(
        rows(RE, 2, b"d_Monica-Geller_Ross-Geller," + BITS.replace(b"0]", b"2]")),
        RE,
        2,
        "wrong-type",
        "entry 36 of the list is '2'",
    ),
    "list of probabilities": Damage(
        rows(RE, 2, b"d_Monica-Geller_Ross-Geller," + BITS.replace(b"[0", b"[0.5")),
        RE,
        2,
        "wrong-type",
        "entry 0 of the list is '0.5'",
    ),
    "open bracket": Damage(
        rows(RE, 2, b"d_Monica-Geller_Ross-Geller," + BITS[:-1]),
        RE,
        2,
        "wrong-type",
        "unpaired brackets",
    ),
    "no list": Damage(rows(RE, 2, b"d_Monica-Geller_Ross-Geller,"), RE, 2, "wrong-type", "no list"),
    "endless text": Damage(
        rows(QA, 1, b"d_What," + b"a " * 60_000), QA, 1, "too-long", "120,000 characters"
    ),
}
