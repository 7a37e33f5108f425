"""Every prompt of FETA's Appendix B (Tables 4 and 5), written out in full."""

from __future__ import annotations

import pytest

from releases import PAPER_TASKS
from tasktransfer.datasets import get_task
from tasktransfer.tasks.card import Instance
from tasktransfer.tasks.compose import build_answer_text, build_prompt_parts

DIALOGUE = "speaker1: hi speaker2: bye"
SCENE = "Ross Geller: Hi. Joey Tribbiani: Hey, how you doin'?"
RESPONSES = ("Fine.", "A plane.", "What else?")
SPANS = ("a phone", "the door", "a cat", "tea")

# (dataset, task, context, query, options, target, trait, whole prompt, answer)
CASES = [
    (
        "DailyDialog",
        "emotion_recognition",
        "speaker1: hi",
        {},
        (),
        ("happiness",),
        None,
        "context: speaker1: hi emotion:",
        "happiness",
    ),
    (
        "DailyDialog",
        "dialogue_act_classification",
        "speaker1: hi",
        {},
        (),
        ("inform",),
        None,
        "context: speaker1: hi dialogue act:",
        "inform",
    ),
    (
        "DailyDialog",
        "topic_classification",
        DIALOGUE,
        {},
        (),
        ("Attitude & Emotion",),
        None,
        "context: speaker1: hi speaker2: bye topic:",
        "Attitude & Emotion",
    ),
    (
        "DailyDialog",
        "causal_emotion_span_extraction",
        DIALOGUE,
        {
            "question": "The target utterance is speaker2: bye The evidence utterance is "
            "speaker1: hi What is the causal span from context that is relevant to the target "
            "utterance's emotion happiness?"
        },
        (),
        ("Impossible answer",),
        None,
        "context: speaker1: hi speaker2: bye question: The target utterance is speaker2: bye The "
        "evidence utterance is speaker1: hi What is the causal span from context that is relevant "
        "to the target utterance's emotion happiness? answer:",
        "Impossible answer",
    ),
    (
        "DailyDialog",
        "causal_emotion_entailment",
        DIALOGUE,
        {"hypothesis": "speaker1: hi causes happiness in speaker2: bye"},
        (),
        ("not entailed",),
        None,
        "context: speaker1: hi speaker2: bye causal emotion entailment: speaker1: hi causes "
        "happiness in speaker2: bye",
        "not entailed",
    ),
    (
        "DailyDialog",
        "dialogue_nli",
        DIALOGUE,
        {"hypothesis": "portable tv has a screen"},
        (),
        ("entailment",),
        None,
        "context: speaker1: hi speaker2: bye entailment: portable tv has a screen",
        "entailment",
    ),
    (
        "DailyDialog",
        "dialogue_reasoning_span_extraction",
        DIALOGUE,
        {"question": "What does 'portable TV' have?"},
        (),
        ("the screen",),
        None,
        "context: speaker1: hi speaker2: bye question: What does 'portable TV' have? answer:",
        "the screen",
    ),
    (
        "DailyDialog",
        "dialogue_reasoning_multiple_choice_span_selection",
        DIALOGUE,
        {"question": "What does he have?"},
        SPANS,
        ("3",),
        None,
        "context: speaker1: hi speaker2: bye question: What does he have? option 0: a phone "
        "option 1: the door option 2: a cat option 3: tea The correct option is",
        "3",
    ),
    (
        "DailyDialog",
        "dialogue_reasoning_commonsense_relation_prediction",
        DIALOGUE,
        {"head": "portable tv", "tail": "screen"},
        (),
        ("has a",),
        None,
        "context: speaker1: hi speaker2: bye The relation between 'portable tv' and 'screen' is",
        "has a",
    ),
    (
        "DailyDialog",
        "adversarial_response_selection",
        DIALOGUE,
        {"question": "Which option is the best response?"},
        RESPONSES,
        ("0",),
        None,
        "context: speaker1: hi speaker2: bye question: Which option is the best response? "
        "option 0: Fine. option 1: A plane. option 2: What else? The correct option is",
        "0",
    ),
    (
        "Friends",
        "emory_emotion_recognition",
        SCENE,
        {},
        (),
        ("joyful",),
        None,
        "context: Ross Geller: Hi. Joey Tribbiani: Hey, how you doin'? emotion:",
        "joyful",
    ),
    (
        "Friends",
        "reading_comprehension",
        SCENE,
        {"query": "[PLACEHOLDER] greets Ross.", "entities": "ross or joey or chandler"},
        (),
        ("joey",),
        None,
        "context: Ross Geller: Hi. Joey Tribbiani: Hey, how you doin'? question: [PLACEHOLDER] "
        "greets Ross. Out of ross or joey or chandler, [PLACEHOLDER] is",
        "joey",
    ),
    (
        "Friends",
        "character_identification",
        SCENE,
        {"mention": "you", "phrase": "Hey, how you doin'?"},
        (),
        ("ross",),
        None,
        "context: Ross Geller: Hi. Joey Tribbiani: Hey, how you doin'? Out of chandler or joey or "
        "monica or phoebe or rachel or ross or other, 'you' in the phrase 'Hey, how you doin'?' "
        "refers to",
        "ross",
    ),
    (
        "Friends",
        "question_answering",
        SCENE,
        {"question": "Who says hey?"},
        (),
        ("Joey Tribbiani", "Joey"),
        None,
        "context: Ross Geller: Hi. Joey Tribbiani: Hey, how you doin'? question: Who says hey? "
        "answer:",
        "Joey Tribbiani",
    ),
    (
        "Friends",
        "personality_detection",
        SCENE,
        {"speaker": "Joey Tribbiani"},
        (),
        ("1", "0", "1", "1", "0"),
        2,
        "context: Ross Geller: Hi. Joey Tribbiani: Hey, how you doin'? Joey Tribbiani is "
        "extroverted:",
        "true",
    ),
    (
        "Friends",
        "relation_extraction",
        SCENE,
        {"head": "Ross Geller", "tail": "Joey Tribbiani"},
        (),
        ("per:friends", "per:girl/boyfriend"),
        None,
        "context: Ross Geller: Hi. Joey Tribbiani: Hey, how you doin'? Ross Geller has the "
        "following relations with Joey Tribbiani:",
        "friends and girlfriend or boyfriend",
    ),
    (
        "Friends",
        "MELD_emotion_recognition",
        SCENE,
        {},
        (),
        ("joy",),
        None,
        "context: Ross Geller: Hi. Joey Tribbiani: Hey, how you doin'? emotion:",
        "joy",
    ),
]


def test_every_task_has_its_prompt_here() -> None:
    assert [case[:2] for case in CASES] == [(task.dataset, task.name) for task in PAPER_TASKS]


@pytest.mark.parametrize(
    ("dataset", "name", "context", "query", "options", "target", "trait", "prompt", "answer"),
    CASES,
    ids=[case[1] for case in CASES],
)
def test_prompt_and_answer(
    dataset: str,
    name: str,
    context: str,
    query: dict[str, str],
    options: tuple[str, ...],
    target: tuple[str, ...],
    trait: int | None,
    prompt: str,
    answer: str,
) -> None:
    task = get_task(dataset, name)
    item = Instance("i", "d", name, context, len(context), query, options, target)
    assert "".join(build_prompt_parts(task, item, trait)) == prompt
    assert build_answer_text(task, item, trait) == answer


def test_relations_are_named_in_words() -> None:
    """The prefix is removed, and underscores become spaces; one relation's slash is spelled out."""
    task = get_task("Friends", "relation_extraction")
    for label, words in task.prompt.label_words.items():
        bare = label.partition(":")[2] or label
        if label == "per:girl/boyfriend":
            assert words == "girlfriend or boyfriend"
        else:
            assert words == bare.replace("_", " ")
