"""The toolkit's inputs and answers, for ``fidelity.inputs`` and ``fidelity.answers``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tasktransfer.core.fidelity import DEFAULT
from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.datasets import get_task
from tasktransfer.encoding import toolkit
from tasktransfer.encoding.encode import _build_scoring_row
from tasktransfer.encoding.encoded import IGNORED_LABEL, Example, read_split, write_split
from tasktransfer.encoding.encoder_examples import build_encoder_examples
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.tasks.compose import parse_answer
from tasktransfer.tasks.toolkit_texts import (
    build_answer_texts,
    build_encoder_texts,
    build_prompt_text,
    parse_toolkit_answer,
)
from tasktransfer.training.tiny import create_tokenizer


def instance(task: Task, **fields: Any) -> Instance:
    settings: dict[str, Any] = {
        "id": "i1", "dialogue_id": "d1", "task": task.name, "focus": 0, "query": {},
        "options": (), "target": (), "context": "ross: we saw a red fish and a blue bird today",
    }  # fmt: skip
    return Instance(**{**settings, **fields})


QA = get_task("Friends", "question_answering")
ANSWERS = {"target": ("red fish", "blue bird"), "starts": (15, 30)}
QUESTION = instance(QA, query={"question": "what did ross see?"}, **ANSWERS)
RC = get_task("Friends", "reading_comprehension")
BLANK = {"query": "[PLACEHOLDER] saw a fish", "entities": "ross or monica"}
ENTITIES = instance(RC, query=BLANK, target=("monica",), starts=(-1,))


@pytest.fixture(scope="module")
def tokenizers() -> dict[Family, Any]:
    texts = [QUESTION.context, "what did ross see? monica or context: question: answer: is out of"]
    return {family: create_tokenizer(family, texts * 20) for family in FAMILIES}


def encoded(
    tokenizers: Mapping[Family, Any], task: Task, row: Instance, longest: int, **switches: Any
) -> Example:
    fidelity = replace(DEFAULT, inputs="tlidb", **switches)
    (example,) = toolkit.build_encoder_examples(
        get_forms(task), tokenizers["encoder"], task, [row], longest, fidelity
    )
    return example


def get_forms(task: Task) -> Any:
    assert task.toolkit is not None
    return task.toolkit


def texts_of(tokenizer: Any, example: Example, labels: list[int]) -> str:
    return str(tokenizer.decode(example.sequences[0][labels[0] : labels[1] + 1]))


@pytest.mark.parametrize(
    ("task", "query", "options", "expected"),
    [
        ("dialogue_nli", {"hypothesis": "a b c"}, (), ["CONTEXT a b c"]),
        ("dialogue_reasoning_span_extraction", {"question": "why?"}, (), ["why? CONTEXT"]),
        ("dialogue_reasoning_commonsense_relation_prediction", {"head": "h", "tail": "t"}, (),
         ["h [SEP] t [SEP] CONTEXT"]),
        ("adversarial_response_selection", {"question": "best?"}, ("x", "y", "z"),
         [f"CONTEXT [SEP] best? [SEP] {option}" for option in "xyz"]),
    ],
)  # fmt: skip
def test_an_encoder_reads_one_text_in_the_toolkits_order(
    task: str, query: dict[str, str], options: tuple[str, ...], expected: list[str]
) -> None:
    card = get_task("DailyDialog", task)
    starts, target = ((0,), ("CONTEXT",)) if card.kind == "span" else ((), card.labels[:1])
    row = instance(
        card, context="CONTEXT", query=query, options=options, target=target, starts=starts
    )
    texts = build_encoder_texts(get_forms(card), card, row, "[SEP]")
    assert [each.text for each in texts] == expected


def test_the_toolkits_input_is_one_segment_that_is_cut_at_its_end(
    tokenizers: dict[Family, Any],
) -> None:
    tokenizers["encoder"].truncation_side = "left"  # as loaded for our own inputs
    example = encoded(tokenizers, QA, QUESTION, 12)
    assert example.second_starts == [12]
    text = tokenizers["encoder"].decode(example.sequences[0], skip_special_tokens=True)
    assert text.startswith("what did ross see")
    assert tokenizers["encoder"].truncation_side == "left"


def test_a_lost_answer_is_the_first_token_or_left_out(tokenizers: dict[Family, Any]) -> None:
    assert encoded(tokenizers, QA, QUESTION, 12, lost_spans="first_token").labels == [0, 0]
    assert encoded(tokenizers, QA, QUESTION, 12).labels == [IGNORED_LABEL, IGNORED_LABEL]
    ours = [
        next(build_encoder_examples(tokenizers["encoder"], RC, [ENTITIES], 64, lost)).labels
        for lost in ("skipped", "first_token")
    ]
    assert ours == [[IGNORED_LABEL, IGNORED_LABEL], [0, 0]]


def test_reading_comprehension_points_into_the_list_of_entities(
    tokenizers: dict[Family, Any],
) -> None:
    example = encoded(tokenizers, RC, ENTITIES, 64)
    assert texts_of(tokenizers["encoder"], example, example.labels).strip() == "monica"
    assert example.labels[1] < 10


def test_every_right_answer_can_be_drawn(tokenizers: dict[Family, Any], tmp_path: Any) -> None:
    example = encoded(tokenizers, QA, QUESTION, 64, several_answers="drawn")
    tokenizer = tokenizers["encoder"]
    assert [texts_of(tokenizer, example, one) for one in example.answers] == [*QUESTION.target]
    assert example.labels == example.answers[0]
    assert encoded(tokenizers, QA, QUESTION, 64).answers == []
    write_split(tmp_path, QA.name, "train", [example], [("i1", "d1", QUESTION.target, "")])
    split = read_split(tmp_path, QA.name, "train")
    drawn = {tuple(split.sample_answers([0, n]).labels[0].tolist()) for n in range(20)}
    assert drawn == {tuple(each) for each in example.answers}
    assert split.limit_instances(1).answers == split.answers


@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_text_to_text_answers_can_be_drawn_too(
    family: Family, tokenizers: dict[Family, Any]
) -> None:
    tokenizer = tokenizers[family]
    (example,) = toolkit.build_text_to_text_examples(
        get_forms(QA), tokenizer, QA, [QUESTION], 100, family,
        replace(DEFAULT, inputs="tlidb", several_answers="drawn"), 8,
    )  # fmt: skip
    answers = [tokenizer.decode(one, skip_special_tokens=True).strip() for one in example.answers]
    assert answers == [*QUESTION.target]


TURNS = ("ross: one two three", "joey: four five six", "ross: seven eight nine")


def turns_of(task: Task, **fields: Any) -> Instance:
    starts = tuple(sum(len(turn) + 1 for turn in TURNS[:n]) for n in range(len(TURNS)))
    return instance(task, context=" ".join(TURNS), turns=starts, **fields)


def test_character_identification_reads_the_newest_turn_first() -> None:
    task = get_task("Friends", "character_identification")
    row = turns_of(task, query={"mention": "you", "phrase": "you are"}, target=("ross",))
    (made,) = build_encoder_texts(get_forms(task), task, row, "[SEP]")
    assert made.text.endswith(f"? [SEP] {' '.join(reversed(TURNS))}")


@pytest.mark.parametrize(
    ("most", "start", "left"),
    [(12, 0, TURNS), (11, 6, TURNS[:2]), (11, 45, TURNS[1:]), (7, 6, TURNS[:1]),
     (7, 26, TURNS[1:2])],
)  # fmt: skip
def test_turns_far_from_the_answer_are_left_out(
    most: int, start: int, left: tuple[str, ...]
) -> None:
    forms = replace(get_forms(QA), most_words=most)
    row = turns_of(QA, query={"question": "who?"}, target=("x",), starts=(start,))
    text = build_prompt_text(forms, QA, row, None)
    assert text == f"context: {' '.join(left)} question: who? answer:"


def test_the_oldest_turns_are_left_out_where_there_is_no_answer_to_keep() -> None:
    task = get_task("Friends", "MELD_emotion_recognition")
    forms = replace(get_forms(task), most_words=8)
    row = turns_of(task, target=("joy",))
    assert build_prompt_text(forms, task, row, None) == f"context: {' '.join(TURNS[1:])} emotion:"
    with pytest.raises(DataError, match="prepare them again"):
        build_prompt_text(forms, task, replace(row, turns=()), None)


def test_answers_and_generated_labels_are_the_toolkits() -> None:
    traits = get_task("Friends", "personality_detection")
    row = instance(traits, target=("1", "0", "1", "0", "1"), query={"speaker": "ross"})
    assert build_answer_texts(traits, row, 1) == ["0"]
    assert parse_toolkit_answer(traits, "1") == ("1",) == parse_answer(traits, "true")
    relations = get_task("Friends", "relation_extraction")
    row = instance(relations, target=("per:spouse", "per:friends"))
    assert build_answer_texts(relations, row, None) == ["spouse and friends"]
    text = "close friends, spouse"
    assert parse_toolkit_answer(relations, text) == ("per:friends", "per:spouse")
    assert parse_answer(relations, text) == ()
    assert parse_toolkit_answer(relations, "nothing") == ("per:positive_impression",)
    emotions = get_task("Friends", "MELD_emotion_recognition")
    assert parse_toolkit_answer(emotions, "Joy") == ("Joy",)
    assert parse_answer(emotions, "Joy") == ("joy",)


def test_how_long_answers_may_get() -> None:
    assert toolkit.get_answer_limit(get_forms(QA), "decoder") == 64
    assert toolkit.get_answer_limit(get_forms(QA), "encoder_decoder") == 19


def test_an_answer_across_the_separator_is_read_without_it(tokenizers: dict[Family, Any]) -> None:
    *_, text = _build_scoring_row(RC, ENTITIES, "encoder", "tlidb", tokenizers["encoder"])
    joined = build_encoder_texts(get_forms(RC), RC, ENTITIES, "[SEP]")[0].text
    assert "[SEP]" in joined
    assert text == joined.replace("[SEP]", "     ")
