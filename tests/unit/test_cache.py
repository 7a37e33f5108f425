"""The Arrow cache returns what was read from the release, or reports what is wrong with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from releases import load_release, tiny_release
from releases import read_instances as read_from_release
from tasktransfer.data import cache
from tasktransfer.data.cache import (
    MANIFEST,
    cache_dataset,
    read_instances,
    read_manifest,
    read_table,
)
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.feta.archive import compute_release_revision
from tasktransfer.errors import DataError
from tasktransfer.files import remove_partial_files


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for dataset in DATASETS:
        tiny_release(dataset).write(folder)
    return folder


@pytest.fixture
def friends(parent: Path, tmp_path: Path) -> Path:
    cache_dataset("Friends", parent, True, tmp_path / "friends")
    return tmp_path / "friends"


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("few_sample", [True, False])
def test_every_instance_comes_back(
    parent: Path, tmp_path: Path, dataset: str, few_sample: bool
) -> None:
    manifest = cache_dataset(dataset, parent, few_sample, tmp_path / "out")
    assert read_manifest(tmp_path / "out") == manifest
    release = load_release(parent, dataset)
    for task in release.tasks:
        for split in ("train", "dev", "test"):
            expected = read_from_release(release, task, split, few_sample)
            assert read_instances(tmp_path / "out", task, split) == expected
            counts = manifest.tasks[task][split]
            assert counts.samples == len(expected) > 0
            assert counts.dialogues == manifest.dialogues[split]
    assert manifest.dialogues == {"train": 1 if few_sample else 2, "dev": 1, "test": 2}


def test_the_manifest_says_what_is_there(parent: Path, friends: Path) -> None:
    manifest = read_manifest(friends)
    assert manifest.dataset == "Friends"
    assert manifest.revision == compute_release_revision(parent, "Friends")
    assert manifest.few_sample and not manifest.synthetic
    assert manifest.source_kind == "folder"
    assert manifest.reader_version == DATASETS["Friends"].reader.version


def test_synthetic_data_and_zips_are_marked(tmp_path: Path) -> None:
    tiny = tiny_release("Friends")
    tiny.content["metadata"]["synthetic"] = True
    manifest = cache_dataset("Friends", tiny.pack(tmp_path), True, tmp_path / "out")
    assert (manifest.synthetic, manifest.source_kind) == (True, "zip")


def test_the_files_load_with_datasets(friends: Path) -> None:
    datasets = pytest.importorskip("datasets")
    loaded = datasets.Dataset.from_file(str(friends / "question_answering-train.arrow"))
    assert loaded.num_rows == 2
    assert loaded[0]["query_question"] == "What is new?"
    assert loaded[0]["target"] == ["dinosaur", "new dinosaur"]
    first, *_ = read_instances(friends, "question_answering", "train")
    assert loaded[0]["starts"] == list(first.starts)
    turns = datasets.Dataset.from_file(str(friends / "dialogues.arrow"))
    assert turns[1]["speakers"] == ["Ross Geller", "Joey Tribbiani"]


def test_dialogues_know_their_split(friends: Path) -> None:
    rows = read_table(friends / "dialogues.arrow").to_pylist()
    assert len(rows) == 15
    by_dialogue = {row["dialogue_id"]: (row["split"], row["used"]) for row in rows}
    used = {"a": "train", "c": "dev", "d": "test", "e": "test"}
    assert by_dialogue == {"b": ("train", False)} | {name: (used[name], True) for name in used}
    assert [(row["turn_id"], row["words"]) for row in rows[:3]] == [("0", 6), ("1", 2), ("2", 9)]


def test_writing_is_deterministic_and_replaces_what_was_there(parent: Path, friends: Path) -> None:
    before = {file.name: file.read_bytes() for file in friends.iterdir()}
    (friends / "stale.arrow").write_text("from another release")
    cache_dataset("Friends", parent, True, friends)
    assert {file.name: file.read_bytes() for file in friends.iterdir()} == before


def test_a_failure_leaves_the_old_cache(
    parent: Path, friends: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file.name: file.read_bytes() for file in friends.iterdir()}

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cache, "asdict", stop)
    with pytest.raises(KeyboardInterrupt):
        cache_dataset("Friends", parent, False, friends)
    assert {file.name: file.read_bytes() for file in friends.iterdir()} == before
    assert [file.name for file in friends.parent.iterdir()] == [friends.name]


def test_what_a_killed_process_left_is_cleared(parent: Path, tmp_path: Path) -> None:
    half = tmp_path / ".out.41.part" / "new"
    half.mkdir(parents=True)
    (half / "half.arrow").write_text("half")
    remove_partial_files(tmp_path, "out")
    cache_dataset("Friends", parent, True, tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["out"]
    assert not (tmp_path / "out" / "half.arrow").exists()


def test_what_is_not_there_is_named(friends: Path) -> None:
    with pytest.raises(DataError, match="'emotion_recognition' in split 'train'"):
        read_instances(friends, "emotion_recognition", "train")
    with pytest.raises(DataError, match="split 'validation'"):
        read_instances(friends, "question_answering", "validation")
    with pytest.raises(DataError, match="not prepared"):
        read_instances(friends / "absent", "question_answering", "train")


def test_a_split_without_instances_is_an_error(tmp_path: Path) -> None:
    tiny = tiny_release("Friends")
    del tiny.content["data"][2]["dialogue_metadata"]["question_answering"]
    tiny.write(tmp_path)
    manifest = cache_dataset("Friends", tmp_path, True, tmp_path / "out")
    assert manifest.tasks["question_answering"]["dev"].samples == 0
    words = r"dev split of this release of .* contains no instances of question_answering"
    with pytest.raises(DataError, match=words):
        read_instances(tmp_path / "out", "question_answering", "dev")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"reader_version": 1}'])
def test_a_damaged_manifest(friends: Path, content: str) -> None:
    (friends / "manifest.json").write_text(content)
    words = r"manifest\.json: The file is damaged .* prepare the data again"
    with pytest.raises(DataError, match=words):
        read_instances(friends, "question_answering", "train")


def test_a_manifest_of_another_version(friends: Path) -> None:
    content = json.loads((friends / "manifest.json").read_text())
    content["reader_version"] = 0
    (friends / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="reader_version 0"):
        read_manifest(friends)


def test_damaged_arrow_files(friends: Path) -> None:
    file = friends / "question_answering-train.arrow"
    content = file.read_bytes()
    for damaged in (b"", b"no arrow", content[: len(content) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=rf"{file.name}: The file is damaged"):
            read_instances(friends, "question_answering", "train")
    file.unlink()
    with pytest.raises(DataError, match=rf"{file.name}: The file does not exist"):
        read_instances(friends, "question_answering", "train")


def test_another_tasks_file_is_noticed(friends: Path) -> None:
    other = (friends / "relation_extraction-train.arrow").read_bytes()
    (friends / "question_answering-train.arrow").write_bytes(other)
    with pytest.raises(DataError, match=r"answering-train\.arrow: The SHA-256 of the file differs"):
        read_instances(friends, "question_answering", "train")
    manifest = json.loads((friends / MANIFEST).read_text())
    del manifest["sha256"]  # of a cache that was written before
    (friends / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DataError, match=r"contains 1 instances, but manifest\.json lists 2"):
        read_instances(friends, "question_answering", "train")


def test_reading_needs_no_datasets_library(friends: Path) -> None:
    """Importing it takes half a second in every training process."""
    code = (
        "import sys\n"
        "from tasktransfer.data.cache import read_instances\n"
        f"read_instances({str(friends)!r}, 'question_answering', 'train')\n"
        "print(sorted({'datasets', 'pandas', 'torch'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
