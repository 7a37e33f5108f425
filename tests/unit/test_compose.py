"""Instances are converted to text, and generated text to predictions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasktransfer.datasets import ALL_TASKS, get_task
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.tasks.compose import (
    build_answer_text,
    build_encoder_text,
    build_option_texts,
    build_prompt_parts,
    list_verbalizers,
    parse_answer,
)

EMOTION = get_task("DailyDialog", "emotion_recognition")
TOPIC = get_task("DailyDialog", "topic_classification")
CAUSAL_SPAN = get_task("DailyDialog", "causal_emotion_span_extraction")
ENTAILMENT = get_task("DailyDialog", "dialogue_nli")
RESPONSE = get_task("DailyDialog", "adversarial_response_selection")
COMMONSENSE = get_task("DailyDialog", "dialogue_reasoning_commonsense_relation_prediction")
READING = get_task("Friends", "reading_comprehension")
CHARACTER = get_task("Friends", "character_identification")
PERSONALITY = get_task("Friends", "personality_detection")
RELATIONS = get_task("Friends", "relation_extraction")

CONTEXT = "speaker1: hi speaker2: hello"


def instance(
    task: Task,
    target: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
    context: str = CONTEXT,
    **query: str,
) -> Instance:
    return Instance("i7", "d1", task.name, context, len(context), query, options, target)


# --- encoders --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "query", "expected"),
    [
        (EMOTION, {}, ""),
        (CAUSAL_SPAN, {"question": "Why?"}, "Why?"),
        (ENTAILMENT, {"hypothesis": "tv has a screen"}, "tv has a screen"),
        (COMMONSENSE, {"head": "tv", "tail": "screen"}, "tv ; screen"),
        (
            READING,
            {"query": "[PLACEHOLDER] left.", "entities": "joey or ross"},
            "joey or ross ; [PLACEHOLDER] left.",
        ),
        (
            CHARACTER,
            {"mention": "him", "phrase": "I saw him there"},
            "Who does 'him' refer to in the phrase 'I saw him there'?",
        ),
        (PERSONALITY, {"speaker": "Joey Tribbiani"}, "Joey Tribbiani"),
        (RELATIONS, {"head": "Ross", "tail": "Carol"}, "Ross ; Carol"),
    ],
    ids=lambda value: value.name if isinstance(value, Task) else "",
)
def test_encoder_reads_query_and_context(task: Task, query: dict[str, str], expected: str) -> None:
    assert build_encoder_text(task, instance(task, **query)) == (expected, CONTEXT)


def test_encoder_reads_each_option_with_the_question() -> None:
    item = instance(RESPONSE, options=("Yes.", "No {question}.", ""), question="Best response?")
    assert build_option_texts(RESPONSE, item) == [
        "Best response? Yes.",
        "Best response? No {question}.",
        "Best response? ",
    ]


def test_encoder_functions_refuse_the_wrong_kind() -> None:
    with pytest.raises(ValueError, match="Use build_option_texts"):
        build_encoder_text(RESPONSE, instance(RESPONSE, question="Best?"))
    with pytest.raises(ValueError, match="Use build_encoder_text"):
        build_option_texts(EMOTION, instance(EMOTION))


def test_wrong_number_of_options_names_the_instance() -> None:
    item = instance(RESPONSE, options=("Yes.", "No."), question="Best?")
    for compose in (build_option_texts, build_prompt_parts):
        with pytest.raises(DataError, match=r"'i7' of adversarial.* has 2 options.* has 3"):
            compose(RESPONSE, item)


def test_missing_field_names_instance_and_field() -> None:
    item = instance(COMMONSENSE, head="tv")
    for compose in (build_encoder_text, build_prompt_parts):
        with pytest.raises(DataError, match=r"'i7' of dialogue_reasoning.*'tail'.*has only head"):
            compose(COMMONSENSE, item)


# --- prompts ---------------------------------------------------------------------------------


def test_prompt_parts_keep_the_context_apart() -> None:
    assert build_prompt_parts(EMOTION, instance(EMOTION)) == ("context: ", CONTEXT, " emotion:")


def test_braces_in_a_field_are_not_filled_again() -> None:
    item = instance(COMMONSENSE, head="{tail} {0} {", tail="{labels}")
    assert build_prompt_parts(COMMONSENSE, item)[2] == (
        " The relation between '{tail} {0} {' and '{labels}' is"
    )
    assert build_encoder_text(COMMONSENSE, item)[0] == "{tail} {0} { ; {labels}"


def test_multi_output_is_asked_one_trait_at_a_time() -> None:
    item = instance(PERSONALITY, target=("1", "0", "0", "0", "1"), speaker="Joey")
    prompts = [build_prompt_parts(PERSONALITY, item, trait)[2] for trait in range(5)]
    traits = ("aggreeable", "conscientious", "extroverted", "open", "neurotic")
    assert prompts == [f" Joey is {trait}:" for trait in traits]
    answers = [build_answer_text(PERSONALITY, item, trait) for trait in range(5)]
    assert answers == ["true", "false", "false", "false", "true"]


@pytest.mark.parametrize("output", [None, -1, 5])
def test_only_multi_output_needs_a_trait(output: int | None) -> None:
    item = instance(PERSONALITY, target=("1",) * 5, speaker="Joey")
    with pytest.raises(ValueError, match="one prompt per trait"):
        build_prompt_parts(PERSONALITY, item, output)
    with pytest.raises(ValueError, match="one prompt per trait"):
        build_answer_text(PERSONALITY, item, output)
    with pytest.raises(ValueError, match="has a single output"):
        build_prompt_parts(EMOTION, instance(EMOTION), 0)


# --- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "target", "text"),
    [
        (EMOTION, ("happiness",), "happiness"),
        (COMMONSENSE, ("None",), "None"),
        (RESPONSE, ("2",), "2"),
        (CAUSAL_SPAN, ("Impossible answer",), "Impossible answer"),
        (CAUSAL_SPAN, ("my mother-in-law", "she"), "my mother-in-law"),
        (READING, ("joey",), "joey"),
        (RELATIONS, ("per:girl/boyfriend",), "girlfriend or boyfriend"),
        # In the card's order, whatever the release's order.
        (RELATIONS, ("per:employee_or_member_of", "per:boss"), "boss and employee or member of"),
    ],
)
def test_answer_text(task: Task, target: tuple[str, ...], text: str) -> None:
    assert build_answer_text(task, instance(task, target)) == text


@pytest.mark.parametrize(
    ("task", "text", "prediction"),
    [
        (EMOTION, " Happiness\n", ("happiness",)),
        (EMOTION, "happiness.", ("happiness.",)),
        (EMOTION, "very happy", ("very happy",)),
        (EMOTION, "", ("",)),
        (TOPIC, "culture  &\teducation", ("Culture & Education",)),
        (COMMONSENSE, "none", ("None",)),
        (RESPONSE, " 2 ", ("2",)),
        (RESPONSE, "3", ("3",)),
        (RESPONSE, "option 2", ("option 2",)),
        (PERSONALITY, "True", ("1",)),
        (PERSONALITY, "false", ("0",)),
        (PERSONALITY, "1", ("1",)),
        (CAUSAL_SPAN, "  The Dog. ", ("The Dog.",)),
        (RELATIONS, "girlfriend or boyfriend", ("per:girl/boyfriend",)),
        # Unknown parts dropped, duplicates once, in the card's order.
        (RELATIONS, "Dates and boss and nonsense and dates", ("per:boss", "per:dates")),
        (RELATIONS, "dates and", ("per:dates",)),
        (RELATIONS, "bossy", ()),
        (RELATIONS, "", ()),
    ],
)
def test_parse_answer(task: Task, text: str, prediction: tuple[str, ...]) -> None:
    assert parse_answer(task, text) == prediction


@pytest.mark.parametrize("task", ALL_TASKS, ids=lambda task: task.name)
def test_every_label_survives_being_written_and_read(task: Task) -> None:
    for label, words in zip(task.labels, list_verbalizers(task), strict=True):
        assert parse_answer(task, words) == (label,)
        if task.kind != "multi_output":
            assert parse_answer(task, build_answer_text(task, instance(task, (label,)))) == (label,)


@given(st.sets(st.sampled_from(RELATIONS.labels)))
def test_every_set_of_relations_survives_being_written_and_read(labels: set[str]) -> None:
    text = build_answer_text(RELATIONS, instance(RELATIONS, tuple(labels)))
    assert parse_answer(RELATIONS, text) == tuple(x for x in RELATIONS.labels if x in labels)


def test_another_joiner_is_honoured() -> None:
    task = replace(RELATIONS, prompt=replace(RELATIONS.prompt, joiner=", "))
    text = build_answer_text(task, instance(task, ("per:boss", "per:dates")))
    assert text == "boss, dates"
    assert parse_answer(task, text) == ("per:boss", "per:dates")
