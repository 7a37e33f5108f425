"""A folder in place of a zip: read as one, and its links are not followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from damaged_archives import EER, QA
from submissions import Files, files_of, golds_of, write_release
from tasktransfer.designs.transfer.challenge.findings import Findings
from tasktransfer.designs.transfer.challenge.golds import Golds
from tasktransfer.designs.transfer.challenge.read import read_submission


@pytest.fixture(scope="module")
def golds(tmp_path_factory: pytest.TempPathFactory) -> Golds:
    return golds_of(write_release(tmp_path_factory.mktemp("release"), "Friends"), "Friends")


def findings_of(path: Path, golds: Golds) -> Findings:
    return read_submission(path, lambda _: golds).findings


def unpacked(files: Files, folder: Path) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_a_folder_is_read_as_a_zip_is(golds: Golds, tmp_path: Path) -> None:
    folder = unpacked(files_of(golds) | {"sample.zip": b"PK"}, tmp_path / "mine")
    findings = findings_of(folder, golds)
    assert findings.errors == []
    assert [(warning.file, warning.kind) for warning in findings.warnings] == [
        ("sample.zip", "extra-file")
    ]


def test_links_in_a_folder_are_not_followed(golds: Golds, tmp_path: Path) -> None:
    folder = unpacked(files_of(golds), tmp_path / "mine")
    (folder / EER).unlink()
    (folder / EER).symlink_to(tmp_path / "elsewhere")
    (folder / "loop").symlink_to(folder)
    found = {(error.file, error.kind) for error in findings_of(folder, golds).errors}
    assert found == {(EER, "link"), (EER, "missing-file"), ("loop", "link")}


def test_a_pipe_in_a_folder_is_not_waited_for(golds: Golds, tmp_path: Path) -> None:
    folder = unpacked(files_of(golds), tmp_path / "mine")
    (folder / QA).unlink()
    os.mkfifo(folder / QA)
    found = {(error.file, error.kind) for error in findings_of(folder, golds).errors}
    assert found == {(QA, "not-a-file"), (QA, "missing-file")}


@pytest.mark.parametrize("name", ["absent.zip", "a\0b"])
def test_an_absent_archive(name: str, golds: Golds, tmp_path: Path) -> None:
    (error,) = findings_of(tmp_path / name, golds).errors
    assert (error.kind, error.file) == ("unreadable", "")
    assert "cannot be opened" in error.text
