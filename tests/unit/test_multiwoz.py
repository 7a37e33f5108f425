"""Readers of MultiWOZ and PersonaChat: the tiny world, and invalid files."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.datasets import find_dataset_problems
from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.datasets.multiwoz.tiny_world import generate_release
from tasktransfer.datasets.personachat import PERSONACHAT
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS

STATE = {"hotel": {"semi": {"area": "north"}, "book": {"booked": []}}}
GOOD: list[dict[str, Any]] = [
    {"text": "a room in the north", "metadata": {}, "dialog_act": {"Hotel-Inform": [["a", "b"]]}},
    {"text": "here", "metadata": STATE, "dialog_act": {"general-bye": [["none", "none"]]}},
]


def read(folder: Path, log: Any, count: int = 12) -> Any:
    place = folder / "multiwoz20"
    place.mkdir(parents=True)
    content = {f"D{number}": {"log": log} for number in range(count)}
    (place / "val.json").write_text(json.dumps(content))
    (place / "test.json").write_text("{}")
    return MULTIWOZ.reader.open(folder, False)


def set_value(turn: int, key: str, value: Any) -> Callable[[Any], None]:
    return lambda log: log[turn].update({key: value})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            set_value(0, "dialog_act", {"Spaceport-Inform": [["a", "b"]]}),
            "turn 0: The domain of act 'Spaceport-Inform' is unk",
        ),
        (
            set_value(1, "metadata", ["hotel"]),
            r"turn 1: The metadata is \"\['hotel'\]\", but it must be",
        ),
        (
            set_value(1, "metadata", {"hotel": {"semi": None}}),
            r"turn 1: The domain hotel contains .*None.*, but it must contain semi",
        ),
        (
            lambda log: log[1].pop("metadata"),
            "turn 1: The turn has no metadata .belief state.. Use the",
        ),
        (
            lambda log: log.insert(1, copy.deepcopy(log[0])),
            "turn 1: The turn is a user turn .* must alternate",
        ),
        (
            set_value(1, "dialog_act", {"general-bye": []}),
            r"turn 1: The slots of act 'general-bye' are '\[\]', but",
        ),
        (
            set_value(1, "metadata", {"spaceport": {"semi": {}}}),
            "turn 1: The domain 'spaceport' is unknown",
        ),
    ],
)
def test_what_is_wrong_is_named(damage: Any, message: str, tmp_path: Path) -> None:
    log = copy.deepcopy(GOOD)
    damage(log)
    with pytest.raises(DataError, match=r"val\.json, dialogue D0, " + message):
        read(tmp_path, log)


def test_a_corpus_too_small_to_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"The 4 dialogues of the release are too few .*Use at least 10"
    ):
        read(tmp_path, GOOD, count=4)


def test_no_json_is_refused(tmp_path: Path) -> None:
    read(tmp_path, GOOD)
    (tmp_path / "multiwoz20" / "test.json").write_text("{")
    with pytest.raises(DataError, match=r"test\.json:1:2: The JSON is broken"):
        MULTIWOZ.reader.open(tmp_path, False)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"val\.json\.zip: The file is missing. Copy MultiWOZ 2\.0's"
    ):
        MULTIWOZ.reader.find(tmp_path)


def test_official_splits_are_used_where_the_training_set_is_there(tmp_path: Path) -> None:
    read(tmp_path, GOOD)
    place = tmp_path / "multiwoz20"
    (place / "train.json").write_text(json.dumps({"T0": {"log": GOOD}}))
    (place / "test.json").write_text(json.dumps({"E0": {"log": GOOD}, "E1": {"log": GOOD}}))
    release = MULTIWOZ.reader.open(tmp_path, False)
    assert dict(release.dialogues) == {"train": 1, "dev": 12, "test": 2}


@pytest.mark.parametrize("dataset", [MULTIWOZ, PERSONACHAT], ids=lambda one: one.name)
def test_cards_fit_together(dataset: Any) -> None:
    assert list(find_dataset_problems(dataset)) == []


def test_the_tiny_world_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name in ("first", "second"):
        generate_release(tmp_path / name, seed=3, dialogues=30)
    revisions = {MULTIWOZ.reader.revision(tmp_path / n, None) for n in ("first", "second")}
    assert len(revisions) == 1
    release = MULTIWOZ.reader.open(tmp_path / "first", False)
    assert release.synthetic
    assert sum(release.dialogues.values()) == 30
    named = [{one.dialogue_id for one in release.instances("MultiWOZ_reply", s)} for s in SPLITS]
    assert not named[0] & named[2]


def test_what_is_planted_is_said_and_the_coin_is_not(tmp_path: Path) -> None:
    generate_release(tmp_path, dialogues=60)
    release = MULTIWOZ.reader.open(tmp_path, False)
    for one in release.instances("MultiWOZ_reply", "train"):
        labels = json.loads(one.query["labels"])
        assert labels["Coin"][0] not in one.context
        assert all(value in one.context for value in labels["AllValues"])


CHAT = "1 your persona: i like cats .\n2 hello there\thi you\n3 good ?\tyes .\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CHAT.replace("3 good", "5 good"), r":3: The line has the number 5"),
        (CHAT.replace("\thi you", ""), ":2: The line contains 'hello there'"),
        ("x y\n", ":1: The line 'x y' does not begin with its number"),
        (CHAT, "The 1 dialogues of the release are too few"),
    ],
)
def test_what_is_wrong_with_personachat_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "convai2").mkdir()
    (tmp_path / "convai2" / "valid_self_original_no_cands.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        PERSONACHAT.reader.open(tmp_path, False)
