"""Whole files of a release: refused and tolerated deviations."""

from __future__ import annotations

from pathlib import Path

import pytest

from releases import load_release, read_instances, tiny_release
from tasktransfer.data.cache import cache_dataset
from tasktransfer.datasets import DATASETS
from tasktransfer.errors import DataError

TRAIN, DEV = "TTiDB_train_ids.txt", "TTiDB_dev_ids.txt"


def test_broken_json_names_line_and_column(tmp_path: Path) -> None:
    folder = tiny_release("Friends").write(tmp_path)
    (folder / "TLiDB_Friends.json").write_text('{"metadata": {},\n "data": [1, }')
    with pytest.raises(DataError, match=r"TLiDB_Friends\.json:2:14: The JSON is broken"):
        load_release(tmp_path, "Friends")


@pytest.mark.parametrize(
    ("name", "content", "fragment"),
    [
        ("TLiDB_Friends.json", b'{"a": "\xff"}', "is not UTF-8"),
        ("TLiDB_Friends.json", b"[" * 200_000, "nested too deeply"),
        ("TLiDB_Friends.json", b"[]", "The value is [], but it must be an object"),
        (DEV, b"\xff\n", "is not valid UTF-8"),
    ],
)
def test_files_that_are_something_else(
    tmp_path: Path, name: str, content: bytes, fragment: str
) -> None:
    folder = tiny_release("Friends").write(tmp_path)
    (folder / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_release(tmp_path, "Friends")
    assert f"{folder}/{name}" in str(caught.value)
    assert fragment in str(caught.value)


def test_messages_name_the_zip(tmp_path: Path) -> None:
    tiny = tiny_release("Friends")
    tiny.dialogue["question_answering"][0]["qas"][0]["answers"][0]["answer_start"] = 30
    file = tiny.pack(tmp_path)
    with pytest.raises(DataError, match=r"TLiDB_Friends\.json"):
        cache_dataset("Friends", file, True, tmp_path / "cache")


def test_full_data_needs_the_full_release(tmp_path: Path) -> None:
    tiny = tiny_release("Friends")
    tiny.content["data"] = [row for row in tiny.content["data"] if row["dialogue_id"] != "b"]
    tiny.write(tmp_path)
    cache_dataset("Friends", tmp_path, True, tmp_path / "few")
    with pytest.raises(DataError) as caught:
        cache_dataset("Friends", tmp_path, False, tmp_path / "full")
    message = str(caught.value)
    assert (
        "1 of the 2 dialogues of the train split, such as 'b', are not in the file TLiDB_Frie"
        in message
    )
    assert "'b'" in message
    assert "Use the full release" in message


def test_unused_dialogues_are_not_judged(tmp_path: Path) -> None:
    """Annotations are checked where they are read: b is in no few-sample split."""
    tiny = tiny_release("Friends")
    tiny.content["data"][1]["question_answering"] = "damaged"
    tiny.write(tmp_path)
    cache_dataset("Friends", tmp_path, True, tmp_path / "few")
    with pytest.raises(DataError, match="dialogue 'b', question_answering: The value is 'damaged'"):
        cache_dataset("Friends", tmp_path, False, tmp_path / "full")


def test_extra_keys_blank_lines_and_unknown_tasks_are_tolerated(tmp_path: Path) -> None:
    tiny = tiny_release("DailyDialog")
    tiny.dialogue["another_task"] = {"anything": 1}
    tiny.dialogue["dialogue_metadata"]["another_task"] = None
    tiny.dialogue["causal_emotion_entailment"][0]["text"] = "a <SEP> b"
    tiny.content["metadata"]["tasks"].append("another_task")
    tiny.content["metadata"]["task_metadata"]["another_task"] = {"labels": ["x"]}
    tiny.ids[TRAIN] = ["", "a", " b ", ""]
    tiny.write(tmp_path)
    release = load_release(tmp_path, "DailyDialog")
    assert list(release.tasks) == list(DATASETS["DailyDialog"].tasks)
    assert len(read_instances(release, "causal_emotion_entailment", "train", few_sample=False)) == 2


def test_a_release_may_annotate_some_tasks_only(tmp_path: Path) -> None:
    tiny = tiny_release("Friends")
    tiny.content["metadata"]["tasks"] = ["question_answering"]
    tiny.write(tmp_path)
    release = load_release(tmp_path, "Friends")
    assert list(release.tasks) == ["question_answering"]
    with pytest.raises(
        DataError, match="does not contain annotations of the task 'relation_extraction'"
    ):
        read_instances(release, "relation_extraction", "train", few_sample=True)
