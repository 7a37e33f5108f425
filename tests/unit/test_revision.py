"""Revisions depend on contents alone, and the memo only saves time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from releases import load_release, tiny_release
from tasktransfer.datasets import file_digests
from tasktransfer.datasets.feta import archive
from tasktransfer.datasets.feta.archive import compute_release_revision
from tasktransfer.errors import DataError, ModelError
from tasktransfer.models.checkpoint_digest import compute_folder_digest

LONG_AGO = 1_500_000_000


def settle(folder: Path) -> None:
    """Make all files old enough for the memo."""
    for file in [folder, *folder.rglob("*")]:
        os.utime(file, (LONG_AGO, LONG_AGO))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text(name)
    return folder


def test_folder_and_zip_have_the_same_revision(tmp_path: Path) -> None:
    tiny = tiny_release("Friends")
    folder, packed = tiny.write(tmp_path), tiny.pack(tmp_path)
    first = compute_release_revision(folder, "Friends")
    assert first == compute_release_revision(packed, "Friends")
    assert first == load_release(packed, "Friends").revision
    assert len(first) == 64
    (folder / "notes.txt").write_text("not an official file")
    assert compute_release_revision(folder, "Friends") == first


@pytest.mark.parametrize("name", ["TLiDB_Friends.json", "TTiDB_0.1_percent_few_shot_dev_ids.txt"])
def test_every_official_file_counts(tmp_path: Path, name: str) -> None:
    folder = tiny_release("Friends").write(tmp_path)
    before = compute_release_revision(folder, "Friends")
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    assert compute_release_revision(folder, "Friends") != before


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    folder = tiny_release("Friends").write(tmp_path)
    (folder / "TTiDB_dev_ids.txt").unlink()
    with pytest.raises(DataError, match=r"TTiDB_dev_ids\.txt"):
        compute_release_revision(folder, "Friends")


@pytest.mark.parametrize("packed", [False, True])
def test_the_memo_saves_hashing_and_sees_changes(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny, memo = tiny_release("Friends"), tmp_path / "cache" / "memo.json"
    path = tiny.pack(tmp_path) if packed else tiny.write(tmp_path)
    settle(path)
    first = compute_release_revision(path, "Friends", memo)
    with monkeypatch.context() as patch:
        patch.setattr(file_digests.hashlib, "file_digest", None)
        patch.setattr(archive, "_compute_digest", None)
        assert compute_release_revision(path, "Friends", memo) == first
    tiny.content["extra"] = 2
    assert path == (tiny.pack(tmp_path) if packed else tiny.write(tmp_path))
    assert compute_release_revision(path, "Friends", memo) != first


def test_a_file_changed_just_now_is_not_remembered(tmp_path: Path) -> None:
    folder, memo = tiny_release("Friends").write(tmp_path), tmp_path / "memo.json"
    compute_release_revision(folder, "Friends", memo)
    assert not memo.exists()


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", '{"version": 1}', '{"version": 1, "files": 3}', '{"version": 9, "files": {}}'],
)
def test_a_damaged_memo_is_recomputed(tmp_path: Path, damage: str) -> None:
    folder, memo = tiny_release("Friends").write(tmp_path), tmp_path / "memo.json"
    settle(folder)
    memo.write_text(damage)
    assert compute_release_revision(folder, "Friends", memo) == compute_release_revision(
        folder, "Friends"
    )
    assert json.loads(memo.read_text())["version"] == 1
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_a_damaged_digest_in_the_memo_is_not_believed(tmp_path: Path) -> None:
    folder, memo = tiny_release("Friends").write(tmp_path), tmp_path / "memo.json"
    settle(folder)
    first = compute_release_revision(folder, "Friends", memo)
    content = json.loads(memo.read_text())
    for entry in content["files"].values():
        entry["sha256"] = "0"
    memo.write_text(json.dumps(content))
    assert compute_release_revision(folder, "Friends", memo) == first


def test_a_memo_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    folder = tiny_release("Friends").write(tmp_path)
    settle(folder)
    (tmp_path / "file").write_text("")
    memo = tmp_path / "file" / "memo.json"
    assert compute_release_revision(folder, "Friends", memo) == compute_release_revision(
        folder, "Friends"
    )


def test_a_checkpoint_is_its_config_tokenizer_and_weights(checkpoint: Path) -> None:
    first = compute_folder_digest(checkpoint)
    (checkpoint / "README.md").write_text("not counted")
    (checkpoint / "sub").mkdir()
    (checkpoint / "sub" / "model.safetensors").write_text("not counted")
    assert compute_folder_digest(checkpoint) == first
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        before = compute_folder_digest(checkpoint)
        (checkpoint / name).write_text("changed")
        assert compute_folder_digest(checkpoint) != before
    before = compute_folder_digest(checkpoint)
    (checkpoint / "model.safetensors").rename(checkpoint / "other.safetensors")
    assert compute_folder_digest(checkpoint) != before


def test_a_checkpoint_is_remembered(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(checkpoint)
    memo = checkpoint.parent / "memo.json"
    first = compute_folder_digest(checkpoint, memo)
    monkeypatch.setattr(file_digests.hashlib, "file_digest", None)
    assert compute_folder_digest(checkpoint, memo) == first


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_that_is_no_checkpoint(checkpoint: Path, name: str) -> None:
    (checkpoint / name).unlink()
    with pytest.raises(ModelError, match=name.removeprefix("model")):
        compute_folder_digest(checkpoint)
    with pytest.raises(ModelError, match="The checkpoint folder does not exist"):
        compute_folder_digest(checkpoint / "absent")


def test_revision_imports_the_standard_library_only() -> None:
    """It runs whenever the workflow is parsed."""
    code = (
        "import sys, tasktransfer.results.revisions\n"
        "heavy = {'pyarrow', 'numpy', 'pandas', 'datasets', 'torch', 'transformers'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
