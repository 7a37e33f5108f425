"""Instances that each layout extracts from an annotation, on a tiny release."""

from __future__ import annotations

from pathlib import Path

import pytest

from releases import load_release, read_instances, tiny_release
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.feta.release import ParsedRelease
from tasktransfer.datasets.friends import extract_phrase
from tasktransfer.tasks.card import Instance

DAILY = "speaker1: It is raining. speaker2: I hate rain, it spoils the picnic."
FRIENDS = (
    "[ Scene : park aaa ] Ross Geller Joey Tribbiani: Hi there! "
    "Monica Geller: Look across, Ross is here with his new dinosaur."
)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ParsedRelease]:
    folder = tmp_path_factory.mktemp("releases")
    for dataset in DATASETS:
        tiny_release(dataset).write(folder)
    return {dataset: load_release(folder, dataset) for dataset in DATASETS}


def read(
    releases: dict[str, ParsedRelease], task: str, dataset: str = "DailyDialog"
) -> list[Instance]:
    return read_instances(releases[dataset], task, "train", few_sample=True)


@pytest.mark.parametrize("task", ["emotion_recognition", "dialogue_act_classification"])
def test_utterance_labels_end_with_the_target_turn(
    releases: dict[str, ParsedRelease], task: str
) -> None:
    first, second = read(releases, task)
    assert first.context == "speaker1: It is raining."
    assert first.focus == 0
    assert second.context == DAILY
    assert second.context[second.focus :] == "speaker2: I hate rain, it spoils the picnic."
    assert second.id == "a_t2"
    assert second.query == {}


@pytest.mark.parametrize(
    ("task", "label"),
    [("emory_emotion_recognition", "joyful"), ("MELD_emotion_recognition", "joy")],
)
def test_turns_without_speakers_and_with_several(
    releases: dict[str, ParsedRelease], task: str, label: str
) -> None:
    (instance,) = read(releases, task, "Friends")
    assert instance.context == FRIENDS
    assert instance.context[instance.focus :].startswith("Monica Geller: Look")
    assert instance.target == (label,)


def test_topic(releases: dict[str, ParsedRelease]) -> None:
    (instance,) = read(releases, "topic_classification")
    assert instance == Instance(
        id="a",
        dialogue_id="a",
        task="topic_classification",
        context=DAILY,
        focus=len(DAILY),
        query={},
        options=(),
        target=("Ordinary Life",),
        turns=(0, DAILY.index("speaker2")),
    )


def test_causal_spans_keep_the_unanswerable(releases: dict[str, ParsedRelease]) -> None:
    real, impossible = read(releases, "causal_emotion_span_extraction")
    assert real.target == ("spoils the picnic",)
    assert real.context[real.starts[0] :].startswith("spoils the picnic")
    assert real.query == {"question": "Which span causes disgust?"}
    assert (impossible.target, impossible.starts) == (("Impossible answer",), (-1,))


def test_equal_answers_are_kept_once(releases: dict[str, ParsedRelease]) -> None:
    (instance,) = read(releases, "dialogue_reasoning_span_extraction")
    assert instance.target == ("the picnic",)
    assert instance.starts == (DAILY.index("the picnic"),)


def test_hypotheses(releases: dict[str, ParsedRelease]) -> None:
    (causal,) = read(releases, "causal_emotion_entailment")
    assert causal.query == {
        "hypothesis": "It is raining. causes disgust in I hate rain, it spoils the picnic."
    }
    assert causal.target == ("entailed",)
    (triple,) = read(releases, "dialogue_nli")
    assert triple.query == {"hypothesis": "rain causes no picnic"}
    (relation,) = read(releases, "dialogue_reasoning_commonsense_relation_prediction")
    assert relation.query == {"head": "rain", "tail": "no picnic"}
    assert relation.target == ("causes",)


def test_choices(releases: dict[str, ParsedRelease]) -> None:
    (question,) = read(releases, "dialogue_reasoning_multiple_choice_span_selection")
    assert question.options[int(question.target[0])] == "the picnic"
    assert question.query == {"question": "What does rain spoil?"}
    (response,) = read(releases, "adversarial_response_selection")
    assert response.context == "speaker1: It is raining."
    assert response.query == {"question": "Which option is the best response?"}
    assert (response.target, len(response.options)) == (("0",), 3)


def test_entities_are_found_as_whole_words_whatever_their_case(
    releases: dict[str, ParsedRelease],
) -> None:
    found, absent = read(releases, "reading_comprehension", "Friends")
    assert found.starts == (FRIENDS.index("Ross Geller"),)
    assert found.target == ("ross",)
    assert found.query["entities"] == "monica or ross or gunther"
    assert found.options == ("monica", "ross", "gunther")
    assert (absent.target, absent.starts) == (("gunther",), (-1,))


def test_an_entity_inside_another_word_is_not_it(tmp_path: Path) -> None:
    tiny = tiny_release("Friends")
    tiny.dialogue["dialogue"][1]["speakers"] = ["Joey Tribbiani"]
    tiny.write(tmp_path)
    release = load_release(tmp_path, "Friends")
    found = read_instances(release, "reading_comprehension", "train", few_sample=True)[0]
    assert "across, Ross" in found.context
    assert found.context[found.starts[0] :].startswith("Ross is here")


def test_mentions(releases: dict[str, ParsedRelease]) -> None:
    ross, his = read(releases, "character_identification", "Friends")
    assert ross.query == {"mention": "Ross", "phrase": "Ross is here with"}
    # Seven words up to "his", three from it on: the longer side is cut to its last four.
    assert his.query == {"mention": "his", "phrase": "is here with his"}
    assert his.context[his.focus :].startswith("Monica Geller: Look")


def test_phrase_takes_the_words_after_on_a_tie() -> None:
    assert extract_phrase("one two three", 4, 7) == "two three"
    assert extract_phrase("one two", 4, 7) == "one two"


def test_answers_in_turns_and_speakers(releases: dict[str, ParsedRelease]) -> None:
    what, who = read(releases, "question_answering", "Friends")
    assert what.target == ("dinosaur", "new dinosaur")
    assert [what.context[start:][:3] for start in what.starts] == ["din", "new"]
    assert who.target == ("Monica Geller",)
    assert who.starts == (FRIENDS.index("Monica Geller"),)


def test_an_answer_may_be_the_second_of_two_speakers(tmp_path: Path) -> None:
    tiny = tiny_release("Friends")
    answer = tiny.dialogue["question_answering"][0]["qas"][1]["answers"][0]
    answer.update(text="Joey Tribbiani", answer_utterance_id=1)
    tiny.write(tmp_path)
    release = load_release(tmp_path, "Friends")
    who = read_instances(release, "question_answering", "train", few_sample=True)[1]
    assert who.starts == (FRIENDS.index("Joey Tribbiani"),)


def test_traits_come_in_the_cards_order(releases: dict[str, ParsedRelease]) -> None:
    (instance,) = read(releases, "personality_detection", "Friends")
    outputs = DATASETS["Friends"].tasks["personality_detection"].outputs
    assert dict(zip(outputs, instance.target, strict=True)) == {
        "aggreeable": "1",
        "conscientious": "0",
        "extroverted": "1",
        "open": "1",
        "neurotic": "0",
    }
    assert instance.query == {"speaker": "Ross Geller"}
    assert instance.context == FRIENDS.removeprefix("[ Scene : park aaa ] ")


def test_relations_keep_the_turns_order_and_each_relation_once(
    releases: dict[str, ParsedRelease],
) -> None:
    (instance,) = read(releases, "relation_extraction", "Friends")
    assert instance.target == ("per:siblings", "per:friends")
    assert instance.query == {"head": "Monica Geller", "tail": "Ross Geller"}
    assert instance.context.endswith("dinosaur. [ Scene : park aaa ]")


def test_a_dialogue_counts_only_if_its_metadata_names_the_task(tmp_path: Path) -> None:
    tiny = tiny_release("Friends")
    del tiny.dialogue["dialogue_metadata"]["question_answering"]
    tiny.write(tmp_path)
    release = load_release(tmp_path, "Friends")
    assert read_instances(release, "question_answering", "train", few_sample=True) == []
    assert len(read_instances(release, "question_answering", "train", few_sample=False)) == 2
