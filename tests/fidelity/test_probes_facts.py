"""The probe study compared with the fact sheet: published numbers, data counts, labels."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.core.architecture import Architecture
from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.datasets.multiwoz.dialogues import (
    MultiwozDialogue,
    build_turn_labels,
    find_files,
    read_dialogues,
)
from tasktransfer.datasets.personachat import PERSONACHAT
from tasktransfer.designs.probes import published
from tasktransfer.tasks.card import SPLITS

SHARED = Path(__file__).resolve().parents[3] / "shared" / "dialogue"

needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no data in {SHARED}")


# --- published numbers --------------------------------------------------------------------------


def test_table6_comes_from_tables_8_and_9() -> None:
    ours = published.recompute_table6(published.group_probes_as_used())
    names = {each.probes: each.table6 for each in published.MODELS.values()}
    ours["model"] = ours["model"].map(names)
    both = published.read_table(6).merge(ours, on=["model", "group"], suffixes=("", "_ours"))
    assert len(both) == 15
    assert (both["f1"] - both["f1_ours"]).abs().max() <= 0.1
    assert (both["sd"] - both["sd_ours"]).abs().max() <= 0.1


def test_groups_by_the_printed_thresholds() -> None:
    by_threshold, used = published.group_probes_as_printed(), published.group_probes_as_used()
    groups: dict[str, set[str]] = {}
    for task, group in by_threshold.items():
        groups.setdefault(group, set()).add(task)
    assert groups["easy"] == {task for task, group in used.items() if group == "easy"}
    assert groups["hard"] == {"AllValues", "NumAllInfo", "EntityValues"}
    assert len(groups["medium"]) == 9


@pytest.mark.parametrize(
    ("words", "lstm", "transformer"),
    [(13_000, 8.5, 34.7), (16_000, 10.1, 39.3), (17_000, 10.6, 40.8)],
)
def test_parameters_in_millions(words: int, lstm: float, transformer: float) -> None:
    """Bi-LSTM, attention and HRED differ from the released code, which the fact sheet counts."""
    built = Architecture("transformer", embedding=512, units=512)
    assert Architecture("lstm").count_parameters(words) / 1e6 == pytest.approx(lstm, abs=0.05)
    assert built.count_parameters(words) / 1e6 == pytest.approx(transformer, abs=0.05)


# --- the real data ------------------------------------------------------------------------------


@cache
def rows(dataset: str) -> dict[str, list[Any]]:
    of = {"MultiWOZ": MULTIWOZ, "PersonaChat": PERSONACHAT}[dataset]
    release = of.reader.open(SHARED, False)
    return {split: list(release.instances(release.tasks[0], split)) for split in SPLITS}


@cache
def labels(dataset: str) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for split in SPLITS:
        for row in rows(dataset)[split]:
            for probe, target in json.loads(row.query["labels"]).items():
                found.setdefault(probe, []).append(tuple(target))
    return found


CLASSES = {
    "UtteranceLoc": 5,
    "RecentTopic": 8,
    "NumAllTopics": 5,
    "IsMultiTopic": 2,
    "RecentSlots": 31,
    "RecentValues": 644,
    "NumRecentInfo": 8,
    "AllSlots": 31,
    "AllValues": 644,
    "NumAllInfo": 18,
    "RepeatInfo": 17,
    "NumRepeatInfo": 6,
    "ActionSelect": 33,
    "EntitySlots": 26,
    "EntityValues": 6784,
}
"""Numbers of classes in the fact sheet, with ``none`` among RepeatInfo's names."""

PRIORS = {"RecentTopic": 28, "NumAllTopics": 48, "NumAllInfo": 14, "NumRepeatInfo": 87}


@needs_data
def test_multiwoz_is_as_large_as_counted() -> None:
    sizes = [len(rows("MultiWOZ")[split]) for split in SPLITS]
    assert sum(sizes) == 14_737
    dialogues = [{row.dialogue_id for row in rows("MultiWOZ")[split]} for split in SPLITS]
    assert [len(names) for names in dialogues] == [1399, 300, 300]
    assert not dialogues[0] & dialogues[1]
    assert not dialogues[0] & dialogues[2]
    assert not dialogues[1] & dialogues[2]


@needs_data
@pytest.mark.parametrize("probe", CLASSES)
def test_classes_of_multiwoz(probe: str) -> None:
    found = {label for target in labels("MultiWOZ")[probe] for label in target}
    assert len(found) == CLASSES[probe]


@needs_data
def test_priors_and_turns_without_an_act() -> None:
    for probe, share in PRIORS.items():
        ((_, count),) = Counter(labels("MultiWOZ")[probe]).most_common(1)
        assert round(100 * count / 14_737) == share
    assert 14_737 - len(labels("MultiWOZ")["ActionSelect"]) == 158
    assert {len(target) for target in labels("MultiWOZ")["ActionSelect"]} == {1, 2, 3, 4, 5}


@needs_data
def test_personachat_is_as_large_as_counted() -> None:
    assert sum(2 * len(rows("PersonaChat")[split]) for split in SPLITS) == 15_602
    dialogues = {row.dialogue_id for split in SPLITS for row in rows("PersonaChat")[split]}
    assert len(dialogues) == 1000
    personal = {word for target in labels("PersonaChat")["PersonalInfo"] for word in target}
    assert 750 <= len(personal) <= 1000


@cache
def dialogues() -> dict[str, MultiwozDialogue]:
    files = find_files(SHARED).values()
    return {one.name: one for file in files for one in read_dialogues(file)}


AHEAD = ("UtteranceLoc",)
"""Tasks about the position of a turn in the whole dialogue."""


@needs_data
def test_no_label_looks_ahead() -> None:
    """In every dialogue, the label of turn t is unchanged if later turns are removed."""
    for one in dialogues().values():
        whole = build_turn_labels(one.name, one.exchanges)
        for turn in range(len(one.exchanges)):
            cut = build_turn_labels(one.name, one.exchanges[: turn + 1])[turn]
            expected = {probe: label for probe, label in whole[turn].items() if probe not in AHEAD}
            assert {probe: label for probe, label in cut.items() if probe not in AHEAD} == expected


@needs_data
@pytest.mark.parametrize("exchanges", [1, 3, 6])
def test_no_label_of_personachat_looks_ahead(exchanges: int, tmp_path: Path) -> None:
    """Every dialogue truncated after some exchanges keeps its labels up to there."""
    text = (SHARED / "convai2" / "valid_self_original_no_cands.txt").read_text()
    begins = [match.start() for match in re.finditer(r"^1 ", text, re.MULTILINE)]
    train, valid = text[: begins[200]], text[begins[200] :]
    cut = chat_labels(tmp_path / "cut", train, cut_after(valid, exchanges), exchanges)
    assert sum(cut.values()) > 800 * exchanges * 0.9
    assert cut == chat_labels(tmp_path / "whole", train, valid, exchanges)


def chat_labels(folder: Path, train: str, valid: str, exchanges: int) -> Counter[tuple[Any, ...]]:
    """Return the contexts of the first exchanges with their labels.

    The training set is unchanged, and therefore also the words that WordCont uses.
    """
    place = folder / "convai2"
    place.mkdir(parents=True)
    (place / "train_self_original_no_cands.txt").write_text(train)
    (place / "valid_self_original_no_cands.txt").write_text(valid)
    release, counts = PERSONACHAT.reader.open(folder, False), Counter[tuple[Any, ...]]()
    for split in ("dev", "test"):
        for row in release.instances("PersonaChat_reply", split):
            if int(row.id.rpartition("-")[2]) < 2 * exchanges:
                told = json.loads(row.query["labels"])
                labels = (told["PersonalInfo"], told.get("WordCont"))
                counts[row.context, row.target, str(labels)] += 1
    return counts


def cut_after(text: str, exchanges: int | None) -> str:
    """Limit each dialogue of a ConvAI2 file to its first exchanges."""
    kept, spoken = [], 0
    for line in text.splitlines():
        number, _, rest = line.partition(" ")
        spoken = 0 if number == "1" else spoken
        spoken += not rest.startswith("your persona: ")
        if exchanges is None or spoken <= exchanges:
            kept.append(line)
    return "\n".join(kept) + "\n"


@needs_data
def test_only_downstream_probes_read_the_system_turn() -> None:
    for one in list(dialogues().values())[:200]:
        whole = build_turn_labels(one.name, one.exchanges)
        silent = [type(e)(e.state, e.user_domains, {}) for e in one.exchanges]
        for full, without in zip(whole, build_turn_labels(one.name, silent), strict=True):
            gone = full.keys() - without.keys()
            assert gone <= {"ActionSelect", "EntitySlots", "EntityValues"}
            assert without.items() <= full.items()


@needs_data
def test_labels_by_hand_of_a_taxi_dialogue() -> None:
    """SNG0073 in test.json: destination and departure, then the departure time."""
    with zipfile.ZipFile(SHARED / "multiwoz20" / "test.json.zip") as archive:
        log = json.loads(archive.read("test.json"))["SNG0073"]["log"]
    assert log[1]["metadata"]["taxi"]["semi"]["destination"] == "pizza hut fen ditton"
    first, second, *_ = build_turn_labels("SNG0073", dialogues()["SNG0073"].exchanges)
    assert first["RecentSlots"] == ("taxi-departure", "taxi-destination")
    assert first["RecentTopic"] == ("taxi",)
    assert first["NumAllInfo"] == first["NumRecentInfo"] == ("2",)
    assert first["RepeatInfo"] == ("none",)
    assert first["ActionSelect"] == ("Taxi-Request",)
    assert first["EntitySlots"] == ("Arrive", "Leave")
    assert first["EntityValues"] == ()
    assert second["RecentValues"] == ("17:15",)
    assert second["NumAllInfo"] == ("3",)
    assert second["EntityValues"] == ("07218068540", "blue honda")
    assert second["IsMultiTopic"] == ("False",)


@needs_data
def test_labels_by_hand_of_a_hotel_and_a_restaurant() -> None:
    """MUL0003: "the same price range", then a table for the same people on the same day."""
    turns = build_turn_labels("MUL0003", dialogues()["MUL0003"].exchanges)
    assert "ActionSelect" not in turns[3]  # turn 7 is not annotated
    asked, booked, thanked = turns[4], turns[6], turns[7]
    slots = ("restaurant-area", "restaurant-food", "restaurant-pricerange")
    assert asked["RecentSlots"] == slots
    assert asked["RepeatInfo"] == ("pricerange",)
    assert asked["AllTopics"] == ("hotel", "restaurant")
    assert asked["NumAllInfo"] == ("10",)
    assert booked["RepeatInfo"] == ("day", "people")
    assert booked["NumRepeatInfo"] == ("2",)
    assert booked["NumAllInfo"] == ("13",)
    assert thanked["NumRecentInfo"] == ("0",)
    assert thanked["RecentTopic"] == ("restaurant",)
    assert thanked["ActionSelect"] == ("general-bye",)


@needs_data
def test_labels_by_hand_of_a_changed_booking() -> None:
    """PMUL1635, turn 15: the hotel's booking is changed after a train was found."""
    turn = build_turn_labels("PMUL1635", dialogues()["PMUL1635"].exchanges)[7]
    assert turn["RecentTopic"] == ("hotel",)
    assert turn["RecentSlots"] == ("hotel-book day", "hotel-book people", "hotel-book stay")
    assert turn["RecentValues"] == ("3", "4", "monday")
    assert turn["RepeatInfo"] == ("day", "people", "stay")
    assert turn["NumAllInfo"] == ("12",)
    assert turn["NumAllTopics"] == ("2",)
    assert turn["ActionSelect"] == ("Booking-Book",)
    assert turn["EntityValues"] == ("YF86GE4J",)
