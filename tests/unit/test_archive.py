"""Releases in folders and zips; hostile and damaged archives are refused."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from releases import TinyRelease, tiny_release
from tasktransfer.datasets.feta import archive
from tasktransfer.errors import DataError

FOLDER = "TLiDB_Friends"
JSON = f"{FOLDER}/TLiDB_Friends.json"


@pytest.fixture
def tiny() -> TinyRelease:
    return tiny_release("Friends")


def open_all(path: Path) -> dict[str, bytes]:
    return archive.read_files(archive.find_source(path, "Friends"))


def refused(path: Path, *fragments: str) -> None:
    with pytest.raises(DataError) as caught:
        open_all(path)
    for fragment in fragments:
        assert fragment.casefold() in str(caught.value).casefold()


def add_member(file: Path, member: zipfile.ZipInfo | str, data: bytes = b"x") -> None:
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(member, data)


def test_folder_and_zip_are_found_alike(tiny: TinyRelease, tmp_path: Path) -> None:
    folder = tiny.write(tmp_path / "plain")
    packed = tiny.pack(tmp_path)
    for path in (folder, folder.parent, packed, tmp_path):
        assert open_all(path) == tiny.files


def test_a_folder_is_preferred_to_a_zip_beside_it(tiny: TinyRelease, tmp_path: Path) -> None:
    tiny.pack(tmp_path)
    folder = tiny.write(tmp_path)
    assert archive.find_source(tmp_path, "Friends") == archive.Source("Friends", folder, "folder")


def test_a_zip_without_the_inner_folder(tiny: TinyRelease, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other name.zip", "w") as packed:
        for name, data in tiny.files.items():
            packed.writestr(name, data)
    assert open_all(tmp_path / "other name.zip") == tiny.files


def test_nothing_there_says_where_was_looked(tmp_path: Path) -> None:
    refused(tmp_path, str(tmp_path), "TLiDB_Friends/", "TLiDB_Friends.zip", "TLiDB_Friends.json")
    refused(tmp_path / "absent", "does not exist")
    (tmp_path / "notes.txt").write_text("no zip")
    refused(tmp_path / "notes.txt", "neither a folder nor a zip")


@pytest.mark.parametrize("packed", [False, True])
def test_a_missing_file_is_named(tiny: TinyRelease, tmp_path: Path, packed: bool) -> None:
    del tiny.ids["TTiDB_dev_ids.txt"]
    path = tiny.pack(tmp_path) if packed else tiny.write(tmp_path)
    refused(tmp_path, str(path), "does not contain TTiDB_dev_ids.txt", "TTiDB_train_ids.txt")


def test_a_zip_of_the_other_dataset(tiny: TinyRelease, tmp_path: Path) -> None:
    file = tiny.pack(tmp_path)
    with pytest.raises(DataError, match=r"TLiDB_DailyDialog\.json"):
        archive.read_files(archive.find_source(file, "DailyDialog"))


def test_links_that_lead_out_are_refused_and_inner_ones_read(
    tiny: TinyRelease, tmp_path: Path
) -> None:
    folder = tiny.write(tmp_path / "data")
    inner = folder / "TTiDB_dev_ids.txt"
    inner.rename(folder / "dev.txt")
    inner.symlink_to("dev.txt")
    assert open_all(folder) == tiny.files
    inner.unlink()
    (folder / "dev.txt").rename(tmp_path / "dev.txt")
    inner.symlink_to(tmp_path / "dev.txt")
    refused(folder, "TTiDB_dev_ids.txt", "outside the folder")


def test_a_release_folder_may_itself_be_a_link(tiny: TinyRelease, tmp_path: Path) -> None:
    folder = tiny.write(tmp_path / "disk")
    (tmp_path / FOLDER).symlink_to(folder)
    assert open_all(tmp_path) == tiny.files


def test_a_folder_in_place_of_a_file(tiny: TinyRelease, tmp_path: Path) -> None:
    folder = tiny.write(tmp_path)
    (folder / "TTiDB_dev_ids.txt").unlink()
    (folder / "TTiDB_dev_ids.txt").mkdir()
    refused(folder, "TTiDB_dev_ids.txt", "not a regular file")


@pytest.mark.parametrize(
    ("name", "fragment"),
    [
        ("../outside.txt", "leads out"),
        (f"{FOLDER}/../../outside.txt", "leads out"),
        ("/etc/outside.txt", "absolute"),
        ("C:/outside.txt", "absolute"),
        ("..\\outside.txt", "backslash"),
        (f"./{JSON}", "more than once"),
        (f"{FOLDER}//TLiDB_Friends.json", "more than once"),
    ],
)
def test_bad_member_paths(tiny: TinyRelease, tmp_path: Path, name: str, fragment: str) -> None:
    file = tiny.pack(tmp_path)
    add_member(file, name)
    refused(file, str(file), fragment)


def test_a_member_twice(tiny: TinyRelease, tmp_path: Path) -> None:
    file = tiny.pack(tmp_path)
    with pytest.warns(UserWarning, match="Duplicate"):
        add_member(file, JSON)
    refused(file, JSON, "more than once")


@pytest.mark.parametrize(
    ("kind", "fragment"), [(stat.S_IFLNK, "symbolic link"), (stat.S_IFIFO, "not a regular file")]
)
def test_members_that_are_no_files(
    tiny: TinyRelease, tmp_path: Path, kind: int, fragment: str
) -> None:
    file = tiny.pack(tmp_path)
    member = zipfile.ZipInfo(f"{FOLDER}/extra")
    member.external_attr = (kind | 0o644) << 16
    add_member(file, member, b"/etc/passwd")
    refused(file, f"{FOLDER}/extra", fragment)


def test_folders_of_a_zip_are_passed_over(tiny: TinyRelease, tmp_path: Path) -> None:
    """Some tools write entries for folders, also for the top one."""
    file = tiny.pack(tmp_path)
    for folder in ("./", f"./{FOLDER}/"):
        add_member(file, folder, b"")
    assert open_all(file) == tiny.files


def test_a_bomb_by_ratio(tiny: TinyRelease, tmp_path: Path) -> None:
    del tiny.ids["TTiDB_dev_ids.txt"]
    file = tiny.pack(tmp_path)
    add_member(file, f"{FOLDER}/TTiDB_dev_ids.txt", b"a\n" * 2**20)
    refused(file, "TTiDB_dev_ids.txt", "more than 200 times")


def test_a_bomb_by_size(tiny: TinyRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tiny.pack(tmp_path)
    total = sum(len(data) for data in tiny.files.values())
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", total)
    assert open_all(file) == tiny.files
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", total - 1)
    refused(file, str(file), "larger than the limit")


def test_a_header_that_understates_a_bomb(tiny: TinyRelease, tmp_path: Path) -> None:
    """The header says 10 bytes, but the member is larger, which is detected on reading."""
    file = tiny.pack(tmp_path)
    size = len(tiny.files["TLiDB_Friends.json"])
    content = file.read_bytes()
    assert content.count(struct.pack("<L", size)) == 2
    file.write_bytes(content.replace(struct.pack("<L", size), struct.pack("<L", 10)))
    refused(file, "TLiDB_Friends.json", "damaged")


def test_members_that_claim_more_than_the_file_has(tiny: TinyRelease, tmp_path: Path) -> None:
    """A false compressed size would raise the limit on the ratio."""
    file = tiny.pack(tmp_path)
    with zipfile.ZipFile(file) as packed:
        size = packed.getinfo(JSON).compress_size
    lie = struct.pack("<L", 2**30)
    file.write_bytes(file.read_bytes().replace(struct.pack("<L", size), lie))
    refused(file, "claim more bytes")


def test_damaged_members(tiny: TinyRelease, tmp_path: Path) -> None:
    file = tiny.pack(tmp_path)
    content = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as packed:
        start = packed.getinfo(JSON).header_offset + 30 + len(JSON)
    for position in range(start + 40, start + 60):
        content[position] ^= 0xFF
    file.write_bytes(bytes(content))
    refused(file, str(file), "TLiDB_Friends.json", "damaged", "again")


def test_a_cut_zip(tiny: TinyRelease, tmp_path: Path) -> None:
    file = tiny.pack(tmp_path)
    file.write_bytes(file.read_bytes()[:-60])
    refused(file, str(file), "cannot be read as a zip")
    file.write_bytes(b"")
    refused(file, "cannot be read as a zip")


def test_an_encrypted_member(tiny: TinyRelease, tmp_path: Path) -> None:
    file = tiny.pack(tmp_path)
    content = bytearray(file.read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + 8] |= 1
    file.write_bytes(bytes(content))
    refused(file, "encrypted")


def test_an_unknown_compression(tiny: TinyRelease, tmp_path: Path) -> None:
    file = tiny.pack(tmp_path)
    content = bytearray(file.read_bytes())
    entry = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 1)
    content[entry + 10 : entry + 12] = struct.pack("<H", 97)
    file.write_bytes(bytes(content))
    refused(file, "cannot be read", "deflate")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file(tiny: TinyRelease, tmp_path: Path) -> None:
    folder = tiny.write(tmp_path)
    (folder / "TTiDB_dev_ids.txt").chmod(0)
    refused(folder, "TTiDB_dev_ids.txt", "cannot be read")
