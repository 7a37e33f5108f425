"""FETA's archives are downloaded completely, resumed, and compared with the first checksum."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from archive_server import Server, serving
from tasktransfer.cli import main
from tasktransfer.datasets.download import CHECKSUMS, Archive, download_archive, read_checksums
from tasktransfer.datasets.feta.archive import list_official_files
from tasktransfer.datasets.feta_download import ARCHIVES
from tasktransfer.errors import DataError

ARCHIVE = ARCHIVES[1]


def archive_of(archive: Archive, folder: Path, text: str = "{}") -> bytes:
    dataset = archive.name.removeprefix("TLiDB_").removesuffix(".zip")
    path = folder / f"made-{dataset}.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for name in list_official_files(dataset):
            packed.writestr(f"TLiDB_{dataset}/{name}", text)
    return path.read_bytes()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    files = {a.name: archive_of(a, tmp_path) for a in ARCHIVES}
    with serving(Server(files)) as started:
        yield started


def test_an_archive_is_downloaded_once_and_its_checksum_recorded(
    server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "releases"
    assert download_archive(ARCHIVE, folder, server.address)
    content = server.files[ARCHIVE.name]
    assert (folder / ARCHIVE.name).read_bytes() == content
    assert read_checksums(folder) == {ARCHIVE.name: sha256(content).hexdigest()}
    assert not download_archive(ARCHIVE, folder, server.address)
    assert len(server.requests) == 1
    assert sorted(path.name for path in folder.iterdir()) == [CHECKSUMS, ARCHIVE.name]


def test_a_download_that_broke_off_resumes(server: Server, tmp_path: Path) -> None:
    server.stops_after = 100
    with pytest.raises(DataError, match="again to resume"):
        download_archive(ARCHIVE, tmp_path / "releases", server.address)
    assert not (tmp_path / "releases" / ARCHIVE.name).exists()
    server.stops_after = None
    assert download_archive(ARCHIVE, tmp_path / "releases", server.address)
    assert server.requests[-1][1] == "bytes=100-"
    assert (tmp_path / "releases" / ARCHIVE.name).read_bytes() == server.files[ARCHIVE.name]


def test_a_whole_download_that_was_not_moved_is_downloaded_again(
    server: Server, tmp_path: Path
) -> None:
    part = tmp_path / f".{ARCHIVE.name}.download"
    part.write_bytes(b"x" * len(server.files[ARCHIVE.name]))
    assert download_archive(ARCHIVE, tmp_path, server.address)
    assert (tmp_path / ARCHIVE.name).read_bytes() == server.files[ARCHIVE.name]


def test_another_archive_than_the_recorded_one_is_refused(server: Server, tmp_path: Path) -> None:
    download_archive(ARCHIVE, tmp_path, server.address)
    (tmp_path / ARCHIVE.name).unlink()
    server.files[ARCHIVE.name] = archive_of(ARCHIVE, tmp_path, "[]")
    with pytest.raises(DataError, match=r"SHA256SUMS.*Remove the line"):
        download_archive(ARCHIVE, tmp_path, server.address)
    assert not (tmp_path / ARCHIVE.name).exists()


def test_an_archive_that_was_changed_on_disk_is_refused(server: Server, tmp_path: Path) -> None:
    download_archive(ARCHIVE, tmp_path, server.address)
    (tmp_path / ARCHIVE.name).write_bytes(b"changed")
    with pytest.raises(DataError, match="Remove the file and download it again"):
        download_archive(ARCHIVE, tmp_path, server.address)


@pytest.mark.parametrize("content", [b"", b"<html>", b"PK\x03\x04 damaged"])
def test_what_is_not_the_archive_is_refused(content: bytes, server: Server, tmp_path: Path) -> None:
    server.files[ARCHIVE.name] = content
    with pytest.raises(DataError, match=f"{server.address}.*not the expected archive"):
        download_archive(ARCHIVE, tmp_path / "releases", server.address)
    assert not [*(tmp_path / "releases").iterdir()]


def test_a_web_page_is_refused_with_the_way_around_it(server: Server, tmp_path: Path) -> None:
    server.kind = "text/html; charset=utf-8"
    with pytest.raises(DataError, match=r"is a web page.*Open the address in a browser"):
        download_archive(ARCHIVE, tmp_path, server.address)


@pytest.mark.parametrize("mirror", ["http://127.0.0.1:9", "ftp://host", "nowhere", "http://["])
def test_an_address_that_cannot_be_reached_is_named(mirror: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        download_archive(ARCHIVE, tmp_path, mirror)
    assert str(refused.value).startswith(mirror)


def test_the_command_shows_licences_and_asks_first(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["data", "fetch", "feta", "--out", str(tmp_path / "r"), "--mirror", server.address]
    assert main(words) != 0
    seen = capsys.readouterr()
    assert "CC BY-NC-SA 4.0" in seen.out
    assert "--accept-licences" in seen.err
    assert not server.requests
    assert main([*words, "--accept-licences"]) == 0
    assert (tmp_path / "r" / "TLiDB_DailyDialog.zip").is_file()
    assert "Set data.release to" in capsys.readouterr().out
