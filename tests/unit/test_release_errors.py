"""Every kind of damage to a release is refused, and the message names the place.

Each case damages one thing in a valid tiny release and lists what the message must name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from releases import TinyRelease, tiny_release
from tasktransfer.data.cache import cache_dataset
from tasktransfer.errors import DataError

TRAIN, DEV, TEST = (f"TTiDB_{split}_ids.txt" for split in ("train", "dev", "test"))
FEW_TRAIN = "TTiDB_0.1_percent_few_shot_train_ids.txt"
FEW_DEV = "TTiDB_0.1_percent_few_shot_dev_ids.txt"
DRSE = "dialogue_reasoning_span_extraction"
DRMC = "dialogue_reasoning_multiple_choice_span_selection"
CRE = "dialogue_reasoning_commonsense_relation_prediction"
CESE, CEE = "causal_emotion_span_extraction", "causal_emotion_entailment"
ARS = "adversarial_response_selection"

Damage = Callable[[TinyRelease], object]


def put(*path: Any) -> Damage:
    """Set the last of ``path`` under the keys before it, in the first dialogue."""
    *keys, last, value = path

    def damage(tiny: TinyRelease) -> None:
        spot = tiny.dialogue
        for key in keys:
            spot = spot[key]
        spot[last] = value

    return damage


def drop(*path: Any) -> Damage:
    """Delete a key in the first dialogue."""
    *keys, last = path

    def damage(tiny: TinyRelease) -> None:
        spot = tiny.dialogue
        for key in keys:
            spot = spot[key]
        del spot[last]

    return damage


def repeat_dialogue(tiny: TinyRelease) -> None:
    tiny.content["data"].append(tiny.content["data"][0])


def metadata(key: str, value: object) -> Damage:
    return lambda tiny: tiny.content["metadata"].update({key: value})


def labels(task: str, value: list[str]) -> Damage:
    return lambda tiny: tiny.content["metadata"]["task_metadata"][task].update(labels=value)


def ids(name: str, value: list[str]) -> Damage:
    return lambda tiny: tiny.ids.update({name: value})


QA = ("question_answering", 0, "qas", 0, "answers", 0)
MENTION = ("dialogue", 2, "character_identification", 0)
EMOTION = ("dialogue", 1, "emotion_recognition")
RELATIONS = ("relation_extraction", 0, "relation_triples", 0, "relations")
TRAITS = ("personality_detection", 0, "personality_characteristics")
SPAN, RESPONSES = (DRSE, 0, "qas", 0, "answers", 0), (ARS, 0, "samples", 0)

Case = tuple[Damage, str]
"""Damage, and parts of the message, between bars."""

DAILY: dict[str, Case] = {
    # The file as a whole
    "another dataset": (
        metadata("dataset_name", "Friends"),
        "TLiDB_DailyDialog.json | metadata.dataset_name | 'Friends', but it must be 'DailyDialog'",
    ),
    "other labels": (
        labels("dialogue_nli", ["contradiction", "entails"]),
        "task_metadata.dialogue_nli.labels | lacks 'entailment' | adds 'entails'",
    ),
    "labels in another order": (
        labels("dialogue_nli", ["entailment", "contradiction"]),
        "task_metadata.dialogue_nli.labels | another order",
    ),
    # Labels
    "emotion": (
        put(*EMOTION, "label", "hapiness"),
        "'a' | 'a_t2' | emotion_recognition.label | 'hapiness' is not a label | 'happiness'",
    ),
    "emotion without label": (
        drop(*EMOTION, "label"),
        "'a_t2' | dialogue[1].emotion_recognition | 'label' is missing",
    ),
    "emotion without instance id": (
        drop(*EMOTION, "instance_id"),
        "dialogue[1].emotion_recognition | 'instance_id' is missing",
    ),
    "an instance id that is a number": (
        put(*EMOTION, "instance_id", 5),
        "emotion_recognition.instance_id | The value is 5, but it must be a string",
    ),
    "topic": (
        put("topic_classification", "label", "Works"),
        "instance 'a' | topic_classification.label | 'Works' | 'Work'",
    ),
    "topic named in the metadata only": (
        drop("topic_classification"),
        "dialogue 'a' | 'topic_classification' is missing",
    ),
    "entailment": (
        put(CEE, 0, "labels", "entail"),
        f"'a_entail0' | {CEE}[0].labels | 'entail' | 'entailed'",
    ),
    "relation": (
        put(CRE, 0, "relation", "cause"),
        f"'a_re0' | {CRE}[0].relation | 'cause' | 'causes'",
    ),
    # Options
    "option out of range": (
        put(DRMC, "mcqs", 0, "label", "4"),
        f"'a_mcq0' | {DRMC}.mcqs[0].label | '4' | from 0 to 3",
    ),
    "option that is no number": (
        put(*RESPONSES, "label", True),
        "'a_context0_sample0' | samples[0].label | true, but it must be the number of an option",
    ),
    "too few options": (
        put(*RESPONSES, "options", ["a", "b"]),
        "'a_context0_sample0' | samples[0].options | 2 options | has 3",
    ),
    "option of a wrong type": (
        put(*RESPONSES, "options", ["a", "b", 3]),
        "samples[0].options[2] | The value is 3, but it must be a string",
    ),
    # Spans
    "causal span elsewhere": (
        put(CESE, 0, "qas", 0, "answers", 0, "answer_start", 3),
        f"'a_cause0' | {CESE}[0].qas[0].answers[0].answer_start | 'spoils the picnic' | "
        f"at the offset 3",
    ),
    "span before the start": (
        put(*SPAN, "answer_start", -2),
        "'a_qa0' | the context contains | at the offset -2",
    ),
    "start as text": (
        put(*SPAN, "answer_start", "44"),
        "'a_qa0' | answer_start | The value is '44', but it must be an integer",
    ),
    "no answers": (put(DRSE, 0, "qas", 0, "answers", []), "'a_qa0' | list of answers is empty"),
    "empty answer": (put(*SPAN, "text", " "), "'a_qa0' | answers[0].text | is empty"),
    # Turns that annotations name
    "context turn": (
        put(ARS, 0, "context_turns", ["1", "9"]),
        f"{ARS}[0].context_turns[1] | the turn '9' does not exist | turns '1' to '2'",
    ),
    "context turn of another type": (
        put(ARS, 0, "context_turns", [1]),
        "context_turns[0] | the turn 1 does not exist",
    ),
    "no context turn": (put(ARS, 0, "context_turns", []), "list of turns is empty"),
}

FRIENDS: dict[str, Case] = {
    # The file as a whole
    "no known task": (metadata("tasks", ["x"]), "metadata.tasks | contains none of"),
    "a mark that is a text": (
        metadata("synthetic", "yes"),
        "TLiDB_Friends.json | metadata.synthetic | 'yes' | must be true or false. Write true",
    ),
    "a mark that is a number": (metadata("synthetic", 1), "metadata.synthetic | 1"),
    "a mark that is null": (metadata("synthetic", None), "metadata.synthetic | null"),
    "no data": (lambda t: t.content.pop("data"), "key 'data' is missing"),
    "data is no list": (
        lambda t: t.content.update(data={}),
        "data: The value is {}, but it must be a list",
    ),
    "a dialogue is no object": (
        lambda t: t.content["data"].append(7),
        "data[5] | The value is 7, but it must be an object",
    ),
    "a dialogue twice": (repeat_dialogue, "data[5] | dialogue_id 'a' is repeated"),
    # Dialogues and turns
    "no dialogue_id": (drop("dialogue_id"), "data[0] | 'dialogue_id' is missing"),
    "no metadata": (drop("dialogue_metadata"), "'a' | 'dialogue_metadata' is missing"),
    "no turns": (put("dialogue", []), "dialogue 'a' | has no turns"),
    "turn without text": (
        drop("dialogue", 1, "utterance"),
        "dialogue 'a' | dialogue[1] | 'utterance' is missing",
    ),
    "speakers as text": (
        put("dialogue", 1, "speakers", "Ross"),
        "dialogue 'a' | dialogue[1].speakers | The value is 'Ross', but it must be a list",
    ),
    "a speaker without name": (
        put("dialogue", 1, "speakers", [""]),
        "dialogue[1].speakers | empty name",
    ),
    "a turn twice": (put("dialogue", 1, "turn_id", 0), "dialogue[1] | turn_id 0 is repeated"),
    "a turn_id of a wrong type": (
        put("dialogue", 1, "turn_id", None),
        "dialogue[1].turn_id | None is neither",
    ),
    # Labels
    "mention's label": (
        put(*MENTION, "normalized_entity", "Ross"),
        "'a_t2_mention0' | normalized_entity | 'Ross' | 'ross'",
    ),
    "trait's answer": (
        put(*TRAITS, "open", "2"),
        "'a_Ross-Geller' | personality_characteristics.open | '2'",
    ),
    "missing trait": (drop(*TRAITS, "open"), "'a_Ross-Geller' | 'open' is missing"),
    "Friends relation": (
        put(*RELATIONS, ["per:sibling"]),
        "'a_Monica-Geller_Ross-Geller' | relations | 'per:sibling' | 'per:siblings'",
    ),
    "no relation": (
        put(*RELATIONS, []),
        "'a_Monica-Geller_Ross-Geller' | list of relations is empty",
    ),
    "entity": (
        put("reading_comprehension", 0, "answer", "rosss"),
        "'a_qa0' | reading_comprehension[0].answer | 'rosss' is not an entity | 'ross'",
    ),
    "no entities": (
        put("dialogue_metadata", "reading_comprehension", None),
        "dialogue_metadata.reading_comprehension | The value is null, but it must be an object",
    ),
    # Spans
    "answer elsewhere": (
        put(*QA, "answer_start", 30),
        "'a_What' | 'dinosaur' | turn 2 | contains ' his new' at the offset 30",
    ),
    "answer past its turn": (
        put(*QA, "answer_start", 400),
        "'a_What' | the utterance of turn 2 contains '' at the offset 400",
    ),
    "answer in no turn": (
        put(*QA, "answer_utterance_id", 3),
        "'a_What' | answer_utterance_id | the turn 3 does not exist | turns 0 to 2",
    ),
    "answer that is no speaker": (
        put("question_answering", 0, "qas", 1, "answers", 0, "text", "Rachel"),
        "'a_Who' | 'Rachel' is not a speaker of turn 2",
    ),
    "is_speaker of a wrong type": (
        put(*QA, "is_speaker", 0),
        "'a_What' | is_speaker | The value is 0, but it must be true or false",
    ),
    "mention elsewhere": (
        put(*MENTION, "start", 12),
        "'a_t2_mention0' | start | at the offset 12 | 'Ross'",
    ),
    # Turns that annotations name
    "personality's turn": (
        put("personality_detection", 0, "turns", [7]),
        "'a_Ross-Geller' | personality_detection[0].turns[0] | the turn 7 does not exist",
    ),
    "relation's turn": (
        put("relation_extraction", 0, "turns", [2, True]),
        "relation_extraction[0].turns[1] | the turn True does not exist",
    ),
    # Splits
    "train and test": (
        ids(TEST, ["d", "b", "e"]),
        f"'b' | {TRAIN} | {TEST} | Keep the dialogue in one split",
    ),
    "few-sample train and dev": (
        lambda t: t.ids.update({FEW_DEV: ["c", "a"]}),
        f"'a' | {FEW_TRAIN} | {FEW_DEV}",
    ),
    "few-sample id outside its split": (
        ids(FEW_TRAIN, ["a", "d"]),
        f"{FEW_TRAIN} | 'd' | not in {TRAIN}",
    ),
    "unknown test id": (
        ids(TEST, ["d", "zzz"]),
        f"{TEST} | TLiDB_Friends.json lacks 1 of the 2 listed dialogues, for example 'zzz'",
    ),
    "unknown few-sample id": (
        lambda t: t.ids.update({TRAIN: ["a", "zzz"], FEW_TRAIN: ["a", "zzz"]}),
        f"{FEW_TRAIN} | 'zzz' | TLiDB_Friends.json",
    ),
    "id twice": (ids(TRAIN, ["a", "b", "", "a"]), f"{TRAIN} | :4 | 'a' | line 1"),
    "no ids": (ids(DEV, ["", " "]), f"{DEV} | lists no dialogues"),
}


@pytest.mark.parametrize(
    ("dataset", "damage", "words"),
    [
        pytest.param(dataset, *case, id=name)
        for dataset, cases in (("DailyDialog", DAILY), ("Friends", FRIENDS))
        for name, case in cases.items()
    ],
)
def test_damage_is_refused_where_it_is(
    dataset: str, damage: Damage, words: str, tmp_path: Path
) -> None:
    tiny = tiny_release(dataset)
    damage(tiny)
    folder = tiny.write(tmp_path)
    with pytest.raises(DataError) as caught:
        cache_dataset(dataset, tmp_path, True, tmp_path / "cache")
    message = str(caught.value)
    for fragment in (str(folder), *words.split(" | ")):
        assert fragment.casefold() in message.casefold()
    assert sorted(file.name for file in tmp_path.iterdir()) == [folder.name]
