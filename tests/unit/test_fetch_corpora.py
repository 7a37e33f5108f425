"""EmpatheticDialogues and MultiWOZ are downloaded, checked, and converted to the readers' files."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from archive_server import Server, serving
from published_corpora import (
    HEADER,
    empathetic_files,
    in_thirds,
    multiwoz_files,
    pack_zip,
    small_empathetic,
)
from small_corpora import as_tgz
from tasktransfer.cli import main
from tasktransfer.datasets.download import (
    CHECKSUMS,
    CONVERSION_MAKER,
    Conversion,
    fetch_converted_files,
)
from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.datasets.multiwoz import download as multiwoz
from tasktransfer.datasets.multiwoz.tiny_world import generate_release
from tasktransfer.designs.empathetic.sources import download as empathetic
from tasktransfer.designs.empathetic.sources.dialogues import EMPATHETIC_DIALOGUES, read_dialogues
from tasktransfer.errors import DataError
from tasktransfer.files.data_files import read_zip_member
from tasktransfer.tasks.card import SPLITS

ED, WOZ = empathetic.CONVERSION, multiwoz.CONVERSION
TRAIN, ACTS = "empatheticdialogues/train.csv", "MULTIWOZ2 2/dialogue_acts.json"


def with_archive(conversion: Conversion, content: bytes) -> Conversion:
    """The conversion, for an archive with other contents than the published one."""
    archive = replace(conversion.archive, sha256=sha256(content).hexdigest())
    return replace(conversion, archive=archive)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server({}, kind="application/octet-stream")) as started:
        yield started


@pytest.fixture
def fetch(server: Server, tmp_path: Path) -> Callable[[Conversion, bytes], tuple[str, ...] | None]:
    """Fetch an archive with the given content from the server."""

    def fetched(conversion: Conversion, content: bytes) -> tuple[str, ...] | None:
        server.files[conversion.archive.name] = content
        return fetch_converted_files(with_archive(conversion, content), tmp_path, server.address)

    return fetched


Fetch = Callable[[Conversion, bytes], tuple[str, ...] | None]


@pytest.fixture(scope="module")
def tiny_woz(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Split → name → dialogue of a generated world."""
    folder = tmp_path_factory.mktemp("woz")
    generate_release(folder, dialogues=24)
    named = {
        name: dialogue
        for file in ("val.json", "test.json")
        for name, dialogue in json.loads(
            read_zip_member(folder / "multiwoz20" / f"{file}.zip", file)
        ).items()
    }
    for name, dialogue in named.items():
        dialogue["log"][0]["text"] += f" , says {name}"  # the grammar repeats dialogues
    thirds = in_thirds([name.removesuffix(".json") for name in named])
    return {
        split: {name: named[f"{name}.json"] for name in names} for split, names in thirds.items()
    }


# --- conversion ---------------------------------------------------------------------------------


def test_empathetic_dialogues_are_read_as_published(fetch: Fetch, tmp_path: Path) -> None:
    dialogues = small_empathetic()
    assert fetch(ED, as_tgz(empathetic_files(dialogues))) == ()
    read = read_dialogues(tmp_path / "empathetic_dialogues")
    splits = {"valid": "dev"}
    assert read == [replace(d, split=splits.get(d.split, d.split)) for d in dialogues]
    release = EMPATHETIC_DIALOGUES.reader.open(tmp_path, False)
    assert not release.synthetic
    assert release.dialogues == dict.fromkeys(SPLITS, 32)


def test_the_order_of_the_archive_does_not_change_the_revision(
    server: Server, tmp_path: Path
) -> None:
    dialogues = small_empathetic()
    revisions = set()
    for number, order in enumerate((dialogues, dialogues[::-1])):
        content = as_tgz(empathetic_files(order))
        server.files[ED.archive.name] = content
        fetch_converted_files(with_archive(ED, content), tmp_path / str(number), server.address)
        revisions.add(EMPATHETIC_DIALOGUES.reader.revision(tmp_path / str(number), None))
    assert len(revisions) == 1


def test_a_repeated_dialogue_gets_a_number(fetch: Fetch, tmp_path: Path) -> None:
    dialogues = small_empathetic()
    first = dialogues[0]
    fetch(ED, as_tgz(empathetic_files([first, *dialogues])))
    names = [d.name for d in read_dialogues(tmp_path / "empathetic_dialogues")]
    assert names[:2] == [first.name, f"{first.name} (1)"]


def test_multiwoz_is_read_as_published(
    fetch: Fetch, tmp_path: Path, tiny_woz: dict[str, dict[str, Any]]
) -> None:
    files = multiwoz_files(tiny_woz)
    acts = json.loads(files[ACTS])
    name, turns = next((name, acts[name]) for name in tiny_woz["train"])
    turns["1"] = {"Hotel-NoOffer": []}
    assert fetch(WOZ, pack_zip({**files, ACTS: json.dumps(acts)})) == ()
    release = MULTIWOZ.reader.open(tmp_path, False)
    assert release.dialogues == dict.fromkeys(SPLITS, 8)
    rows = {row.id: row for split in SPLITS for row in release.instances("MultiWOZ_reply", split)}
    assert {row.dialogue_id for row in rows.values()} == {n for d in tiny_woz.values() for n in d}
    written = json.loads((tmp_path / "multiwoz20" / "train.json").read_text())
    log = written[name]["log"]
    assert [turn["text"] for turn in log] == [t["text"] for t in tiny_woz["train"][name]["log"]]
    assert [turn["dialog_act"] for turn in log[::2]] == [{}] * (len(log) // 2)
    assert log[1]["dialog_act"] == {"Hotel-NoOffer": [["none", "none"]]}
    assert log[3]["dialog_act"] == tiny_woz["train"][name]["log"][3]["dialog_act"]


def test_dialogues_that_the_reader_refuses_are_left_out_with_a_note(
    fetch: Fetch,
    tmp_path: Path,
    tiny_woz: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = multiwoz_files(tiny_woz)
    data = json.loads(files["MULTIWOZ2 2/data.json"])
    name = next(iter(tiny_woz["train"]))
    data[f"{name}.json"]["log"].insert(1, data[f"{name}.json"]["log"][0])
    files["MULTIWOZ2 2/data.json"] = json.dumps(data)
    files["MULTIWOZ2 2/valListFile.json"] += "GONE0001.json\n"
    problem = f"1 of 8 dialogues of train cannot be read .dia.* {name}, turn 1: The turn is a user"
    packed = pack_zip(files)  # a second archive would have other times, and another SHA-256
    with pytest.raises(DataError, match=problem):
        fetch(WOZ, packed)
    assert not (tmp_path / "multiwoz20").exists()
    monkeypatch.setattr(multiwoz, "MAX_UNREADABLE_FRACTION", 0.5)
    unread, absent = fetch(WOZ, packed) or ()
    assert problem[:30] in unread
    assert "1 name in the lists, such as GONE0001, has no dialogue" in absent
    assert name not in json.loads((tmp_path / "multiwoz20" / "train.json").read_text())


# --- safety -------------------------------------------------------------------------------------


def test_files_are_written_once_and_changes_are_not_overwritten(
    fetch: Fetch, server: Server, tmp_path: Path
) -> None:
    content = as_tgz(empathetic_files(small_empathetic()))
    fetch(ED, content)
    (tmp_path / ED.archive.name).unlink()
    assert fetch(ED, content) is None
    assert len(server.requests) == 1
    file = tmp_path / "empathetic_dialogues" / "split.csv"
    file.write_text("mine")
    with pytest.raises(DataError, match=r"split\.csv: The file is missing or was changed. Remove"):
        fetch(ED, content)
    assert file.read_text() == "mine"
    file.unlink()
    with pytest.raises(DataError, match=r"split\.csv: The file is missing"):
        fetch(ED, content)
    manifest = tmp_path / "empathetic_dialogues" / CONVERSION_MAKER.file
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "conversion": 0}))
    with pytest.raises(DataError, match="another version of tasktransfer"):
        fetch(ED, content)


def test_a_folder_of_the_user_is_not_replaced(fetch: Fetch, server: Server, tmp_path: Path) -> None:
    mine = tmp_path / "multiwoz20" / "val.json"
    mine.parent.mkdir()
    mine.write_text("{}")
    with pytest.raises(DataError, match=r"multiwoz20: The folder contains no fetched\.json"):
        fetch(WOZ, b"")
    assert mine.read_text() == "{}"
    assert not server.requests


@pytest.mark.parametrize("conversion", [ED, WOZ])
def test_an_archive_with_another_checksum_is_refused(
    conversion: Conversion, server: Server, tmp_path: Path
) -> None:
    server.files[conversion.archive.name] = as_tgz(empathetic_files(small_empathetic()))
    expected = f"the expected value is {conversion.archive.sha256} .from the published archive"
    with pytest.raises(DataError, match=expected):
        fetch_converted_files(conversion, tmp_path, server.address)
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".lock"]
    (tmp_path / conversion.archive.name).write_bytes(b"other")
    with pytest.raises(DataError, match=f"{expected}.. Remove the file"):
        fetch_converted_files(conversion, tmp_path, server.address)


def refuse(fetch: Fetch, conversion: Conversion, content: bytes, tmp_path: Path) -> str:
    """Fetch an archive that is refused, and return the message."""
    with pytest.raises(DataError) as refused:
        fetch(conversion, content)
    assert str(refused.value).startswith(str(tmp_path / conversion.archive.name))
    left = {path.name for path in tmp_path.iterdir() if path.suffix != ".lock"}
    assert left == {CHECKSUMS, conversion.archive.name}
    return str(refused.value)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../train.csv", "leads out"),
        ("/etc/train.csv", "absolute"),
        ("a\\train.csv", "backslash"),
        ("more/train.csv", "more than once"),
    ],
)
def test_unsafe_paths_of_a_tar_are_refused(
    name: str, problem: str, fetch: Fetch, tmp_path: Path
) -> None:
    files = empathetic_files(small_empathetic()) | {name: b"x"}
    assert problem in refuse(fetch, ED, as_tgz(files), tmp_path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_and_devices_of_a_tar_are_refused(kind: bytes, fetch: Fetch, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.csv")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    assert "is a link, a device" in refuse(fetch, ED, packed.getvalue(), tmp_path)


def test_bombs_are_refused(server: Server, tmp_path: Path) -> None:
    long_line = as_tgz({TRAIN: bytes(2**25)})
    unwanted = as_tgz({"other.csv": bytes(2**25)})
    packed = pack_zip({"MULTIWOZ2 2/valListFile.json": "\n" * 2**25})
    for conversion, content, problem in (
        (ED, long_line, r"unpacks to more than|is longer than"),
        (ED, unwanted, "unpacks to more than"),
        (WOZ, packed, "times its packed size"),
    ):
        server.files[conversion.archive.name] = content
        with pytest.raises(DataError, match=problem):
            fetch_converted_files(with_archive(conversion, content), tmp_path, server.address)
        (tmp_path / conversion.archive.name).unlink()


@pytest.mark.parametrize("length", [0, 10, 200, -200, -1])
def test_a_truncated_tar_is_refused(length: int, fetch: Fetch, tmp_path: Path) -> None:
    content = as_tgz(empathetic_files(small_empathetic()))
    assert "cannot be read (" in refuse(fetch, ED, content[:length], tmp_path)


def test_damaged_and_unsafe_zips_are_refused(
    fetch: Fetch, tmp_path: Path, tiny_woz: dict[str, dict[str, Any]]
) -> None:
    files = multiwoz_files(tiny_woz)
    assert "cannot be read as a zip" in refuse(fetch, WOZ, pack_zip(files)[:-40], tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    unsafe = pack_zip(files | {"../data.json": "{}"})
    assert "leads out of its folder" in refuse(fetch, WOZ, unsafe, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (HEADER, "a,b", "The columns are not conv_id"),
        (",afraid,", ",scared,", "'scared' is not one of the 32 emotions"),
        (",7,", ",7,8,9,", "has 10 cells, but must have 8 or 9"),
        (",1,afraid,", ",first,afraid,", "has no index or an empty text"),
        ("\u00e9", "\udce9", "is not valid UTF-8"),
    ],
)
def test_other_contents_of_empathetic_dialogues_are_refused(
    old: str, new: str, problem: str, fetch: Fetch, tmp_path: Path
) -> None:
    first, *others = small_empathetic()
    dialogues = [replace(first, situation=f"caf\u00e9 {first.situation}"), *others]
    files = empathetic_files(dialogues)
    changed = files[TRAIN].decode().replace(old, new).encode(errors="surrogateescape")
    assert changed != files[TRAIN]
    message = refuse(fetch, ED, as_tgz(files | {TRAIN: changed}), tmp_path)
    assert problem in message
    assert "(train.csv)" in message


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("data.json", "[]", "(data.json):1: The JSON is broken"),
        ("data.json", "{}", "contains no dialogues for the split train"),
        ("dialogue_acts.json", "[]", "does not contain a JSON object"),
        ("testListFile.json", None, "is in both the dev list and the test list"),
        ("valListFile.json", "", "contains no dialogues for the split dev"),
    ],
)
def test_other_contents_of_multiwoz_are_refused(
    file: str,
    content: str | None,
    problem: str,
    fetch: Fetch,
    tmp_path: Path,
    tiny_woz: dict[str, dict[str, Any]],
) -> None:
    files = multiwoz_files(tiny_woz)
    replaced = files["MULTIWOZ2 2/valListFile.json"] if content is None else content
    packed = pack_zip(files | {f"MULTIWOZ2 2/{file}": replaced})
    assert problem in refuse(fetch, WOZ, packed, tmp_path)


@pytest.mark.parametrize("file", ["data.json", "valListFile.json"])
def test_a_missing_file_of_multiwoz_is_named(
    file: str, fetch: Fetch, tmp_path: Path, tiny_woz: dict[str, dict[str, Any]]
) -> None:
    files = multiwoz_files(tiny_woz)
    del files[f"MULTIWOZ2 2/{file}"]
    assert f"contains 0 files with the name {file}, but it must contain one" in refuse(
        fetch, WOZ, pack_zip(files), tmp_path
    )


# --- the command --------------------------------------------------------------------------------


def test_the_command_shows_licences_first_and_writes_the_files(
    server: Server,
    tmp_path: Path,
    tiny_woz: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    contents = {
        "empathetic": (empathetic, as_tgz(empathetic_files(small_empathetic()))),
        "multiwoz": (multiwoz, pack_zip(multiwoz_files(tiny_woz))),
    }
    licences = {"empathetic": "CC BY-NC 4.0", "multiwoz": "CC BY 4.0"}
    for name, (module, content) in contents.items():
        words = ["data", "fetch", name, "--out", str(tmp_path / "r"), "--mirror", server.address]
        conversion = module.CONVERSION
        server.files[conversion.archive.name] = content
        server.requests.clear()
        assert main(words) != 0
        seen = capsys.readouterr()
        assert licences[name] in seen.out
        assert "--accept-licences" in seen.err
        assert not server.requests
        monkeypatch.setattr(module, "CONVERSION", with_archive(conversion, content))
        assert main([*words, "--accept-licences"]) == 0
        out = capsys.readouterr().out
        assert f"{tmp_path / 'r' / conversion.folder}: written from" in out
        assert "Set data.release to" in out
        assert main([*words, "--accept-licences"]) == 0
        assert f"{conversion.folder}: already there" in capsys.readouterr().out
    for dataset in (EMPATHETIC_DIALOGUES, MULTIWOZ):
        assert dataset.reader.open(tmp_path / "r", False).tasks


def test_the_pinned_checksums_are_sha256() -> None:
    for conversion in (ED, WOZ):
        assert conversion.archive.sha256
        assert len(bytes.fromhex(conversion.archive.sha256)) == 32
