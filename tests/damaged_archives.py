"""Ways to damage a submission, and the single error that each must cause."""

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
RE = "relation_extraction/baseline_predictions.csv"
QA = "question_answering/predictions.csv"
PD = "personality_detection/predictions.csv"
BITS = b"[" + b" ".join([b"0"] * 37) + b"]"


@dataclass(frozen=True)
class Damage:
    """A damage, and the single expected error: file, line, kind, and words."""

    make: Callable[[Files], bytes]
    file: str
    line: int | None
    kind: str
    says: str


def archive(make: Callable[[Files], bytes], kind: str, says: str, file: str = "") -> Damage:
    """Return a damage of the zip, or of one ``file`` in it."""
    return Damage(make, file, None, kind, says)


def extra(name: str, kind: str, says: str, shown: str | None = None) -> Damage:
    """Return a damage that adds a member, which messages call ``shown``."""
    return Damage(lambda files: packed(files | {name: b"x,0\n"}), shown or name, None, kind, says)


def without(name: str, kind: str) -> Damage:
    def make(files: Files) -> bytes:
        return packed({path: data for path, data in files.items() if not path.startswith(name)})

    return Damage(make, name, None, kind, "is missing")


def row(file: str, number: int, line: bytes, kind: str, says: str) -> Damage:
    """Return a damage that replaces a line of a file."""
    return Damage(
        lambda files: packed(with_line(files, file, number, line)), file, number, kind, says
    )


def content(
    file: str, change: Callable[[bytes], bytes], line: int | None, kind: str, says: str
) -> Damage:
    return Damage(lambda files: packed(files | {file: change(files[file])}), file, line, kind, says)


def member(change: Callable[[zipfile.ZipInfo], None]) -> Callable[[Files], bytes]:
    """Return a damage that adds a member whose header is changed by ``change``."""

    def make(files: Files) -> bytes:
        buffer = io.BytesIO(packed(files))
        with zipfile.ZipFile(buffer, "a") as file:
            info = zipfile.ZipInfo("extra")
            change(info)
            file.writestr(info, b"x")
        return buffer.getvalue()

    return make


def symlink(info: zipfile.ZipInfo) -> None:
    info.filename, info.external_attr = "relation_extraction/link", 0o120777 << 16


def device(info: zipfile.ZipInfo) -> None:
    info.filename, info.external_attr = "relation_extraction/tty", 0o020666 << 16


def twice(files: Files) -> bytes:
    buffer = io.BytesIO(packed(files))
    with zipfile.ZipFile(buffer, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr(EER, files[EER])
    return buffer.getvalue()


def header_field(name: str, offset: int, value: bytes) -> Callable[[Files], bytes]:
    """Return a damage that overwrites bytes of the central directory's entry of ``name``."""

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
"""Smaller limits than the real ones, so that bombs are quick to build."""


def bomb(files: Files) -> bytes:
    return packed(files | {EER: b"\0" * (FILE_LIMIT + 1)})


def many_bombs(files: Files) -> bytes:
    return packed(dict.fromkeys(files, b"\0" * (FILE_LIMIT // 2)))


def lying_bomb(files: Files) -> bytes:
    """Pack a member that unpacks to more than the limit, but claims 9 bytes."""
    large = files | {EER: b"a" * 3 * FILE_LIMIT}
    return both_headers(EER, 24, 22, struct.pack("<I", 9))(large)


def overstated(files: Files) -> bytes:
    """Pack a member that is shorter than its headers claim, with the correct checksum."""
    return both_headers(EER, 24, 22, struct.pack("<I", len(files[EER]) + 5))(files)


def flipped(files: Files) -> bytes:
    data = bytearray(packed(files))
    place = data.index(EER.encode()) + len(EER)
    data[place + 3] ^= 0xFF
    return bytes(data)


def lzma(files: Files) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in files.items():
            method = zipfile.ZIP_LZMA if name == EER else zipfile.ZIP_DEFLATED
            file.writestr(name, data, method)
    return buffer.getvalue()


REL = "relation_extraction"
RE_ROW = b"d_Monica-Geller_Ross-Geller,"
NESTED = lambda files: packed({f"my submission/{name}": data for name, data in files.items()})  # noqa: E731
MIXED = {f"{task}/predictions.csv": b"" for task in ("dialogue_nli", "character_identification")}
CLAIM = header_field(EER, 20, struct.pack("<I", 2**30))
ENCRYPTED = both_headers(EER, 8, 6, b"\x01\x00")
MANY = {f"x/{n}": b"" for n in range(1001)}

DAMAGES: dict[str, Damage] = {
    # the archive
    "empty zip file": archive(lambda _: b"", "empty-archive", "is empty"),
    "no zip": archive(lambda _: b"id,prediction\n" * 9, "not-a-zip", "pack it again"),
    "truncated zip": archive(lambda files: packed(files)[:-200], "not-a-zip", "cannot be read"),
    "zip without files": archive(lambda _: packed({}), "empty-archive", "contains no files"),
    "only folders": archive(lambda _: packed({f"{REL}/": b""}), "empty-archive", "no file"),
    "too many members": archive(lambda f: packed(f | MANY), "too-many-members", "at most 1,000"),
    "declared bomb": archive(bomb, "too-large", "at most 1,048,576 are read", EER),
    "bomb of many members": archive(many_bombs, "too-large", "4 MiB in all"),
    "bomb that lies about its size": archive(lying_bomb, "damaged", "damaged in the zip", EER),
    "member that ends early": archive(overstated, "damaged", "ends after", EER),
    "member that claims more than the zip has": archive(CLAIM, "damaged", "claim more bytes"),
    "flipped byte": archive(flipped, "damaged", "damaged in the zip", EER),
    "encrypted member": archive(ENCRYPTED, "encrypted", "without a password", EER),
    "packed with lzma": archive(lzma, "compression", "not compressed with deflate", EER),
    "duplicate member": archive(twice, "duplicate-member", "more than once", EER),
    "symbolic link": archive(member(symlink), "link", "symbolic link", f"{REL}/link"),
    "device": archive(member(device), "not-a-file", "not a regular file", f"{REL}/tty"),
    "too large": archive(lambda _: os.urandom(TOTAL_LIMIT + 1), "too-large", "at most"),
    # paths
    "absolute path": extra("/etc/cron.d/x", "unsafe-path", "top"),
    "path that leads upwards": extra("a/../../evil.csv", "unsafe-path", "leads out"),
    "backslashes": extra(f"{REL}\\x.csv", "unsafe-path", "backslash"),
    "drive letter": extra("C:/x.csv", "unsafe-path", "absolute"),
    "control characters": extra("a\x1b[31m/x.csv", "unsafe-path", "control", "a\\x1b[31m/x.csv"),
    # folders and files
    "nested folder": archive(NESTED, "nested-folder", "not at the top", "my submission/"),
    "no task folder": archive(
        lambda _: packed({"predictions.csv": b"a,1\n"}), "no-tasks", "named after a task"
    ),
    "both datasets": archive(lambda _: packed(MIXED), "mixed-datasets", "DailyDialog and Friends"),
    "missing task": without("question_answering", "missing-task"),
    "missing file": without(EER, "missing-file"),
    "extra task": extra(
        "summary/predictions.csv", "extra-task", "not named after a task", "summary"
    ),
    "misspelt task": extra(
        "meld_emotion_recognition/predictions.csv",
        "extra-task",
        "mean MELD_emotion_recognition?",
        "meld_emotion_recognition",
    ),
    "task of the other dataset": extra(
        "dialogue_nli/predictions.csv", "extra-task", "is a task of DailyDialog", "dialogue_nli"
    ),
    "extra file": extra(
        "question_answering/notes.txt",
        "extra-file",
        "neither baseline_predictions.csv nor predictions.csv",
    ),
    "file at the top": extra("README.md", "extra-file", "outside the task folders"),
    # encodings
    "Latin-1": row(QA, 2, b"d_Who,Ren\xe9e", "encoding", "0xe9, which is not UTF-8"),
    "UTF-16": content(QA, lambda d: d.decode().encode("utf-16"), 1, "encoding", "UTF-16"),
    "no mark": content(QA, lambda d: d.decode().encode("utf-16-le"), 1, "encoding", "UTF-16 or"),
    "NUL byte": row(QA, 3, b"e_What,dino\0saur", "encoding", "NUL byte"),
    # rows
    "empty file": content(EER, lambda _: b"", None, "empty-file", "is empty"),
    "header": content(EER, lambda d: b"instance_id,prediction\n" + d, 1, "header", "is a header"),
    "header of texts": content(QA, lambda d: b"ID,Answer\n" + d, 1, "header", "is a header"),
    "semicolons": content(EER, lambda d: d.replace(b",", b";"), 1, "separator", "semicolons"),
    "tabs": content(EER, lambda d: d.replace(b",", b"\t"), 1, "separator", "tabs"),
    "one column": row(EER, 2, b"e_t2", "columns", "one column, 'e_t2'"),
    "three columns": row(EER, 2, b"e_t2,1,0.9", "columns", "has 3 columns"),
    # ids
    "missing id": content(
        EER, lambda d: d.split(b"\n")[0], None, "missing-id", "'e_t2' is missing"
    ),
    "unknown id": content(EER, lambda d: d + b"z_t9,1\n", 3, "unknown-id", "'z_t9' is not an id"),
    "repeated id": content(EER, lambda d: d + b"d_t2,1\n", 3, "duplicate-id", "first in line 1"),
    "an id of the release's two left out": content(
        RE, lambda d: d.split(b"\n")[0], None, "missing-id", "has 1 of 2 rows"
    ),
    "an id of the release's two a third time": content(
        RE, lambda d: d + d.split(b"\n")[0], 3, "duplicate-id", "2 rows"
    ),
    "a speaker without a trait": content(
        PD,
        lambda d: d + b"d_Ross-Geller,1\n",
        11,
        "unknown-id",
        "d_Ross-Geller_aggreeable and so on",
    ),
    # values
    "out of range": row(EER, 1, b"d_t2,7", "out-of-range", "from 0 to 6"),
    "negative": row(EER, 1, b"d_t2,-2", "out-of-range", "'-2'"),
    "huge": row(EER, 1, b"d_t2," + b"9" * 5000, "wrong-type", "not an integer"),
    "fraction": row(EER, 1, b"d_t2,1.5", "wrong-type", "'1.5' is not an integer"),
    "no prediction": row(EER, 1, b"d_t2,", "wrong-type", "has no prediction"),
    "a label's name": row(EER, 1, b"d_t2,joyful", "wrong-type", "Write the label's number, 0"),
    "short list": row(RE, 2, RE_ROW + b"[0 1 0]", "list-length", "3 entries"),
    "other numbers": row(
        RE, 2, RE_ROW + BITS.replace(b"0]", b"2]"), "wrong-type", "Entry 36 of the list is '2'"
    ),
    "open bracket": row(RE, 2, RE_ROW + BITS[:-1], "wrong-type", "unpaired brackets"),
    "no list": row(RE, 2, RE_ROW, "wrong-type", "no list"),
    "endless text": row(QA, 1, b"d_What," + b"a " * 60_000, "too-long", "120,000 characters"),
}
