"""Every prompt of FETA's Appendix B (Tables 4 and 5), written out in full."""

from __future__ import annotations

import pytest

from releases import PAPER_TASKS
from tasktransfer.datasets import get_task
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.tasks.compose import build_answer_text, build_prompt_parts

DIALOGUE = "speaker1: hi speaker2: bye"
SCENE = "Ross Geller: Hi. Joey Tribbiani: Hey, how you doin'?"
WHY = (
    "The target utterance is speaker2: bye The evidence utterance is speaker1: hi What is the "
    "causal span from context that is relevant to the target utterance's emotion happiness?"
)
PEOPLE = "chandler or joey or monica or phoebe or rachel or ross or other"

# task: (query, target, the prompt after the dialogue, answer)
CASES: dict[str, tuple[dict[str, str], tuple[str, ...], str, str]] = {
    "emotion_recognition": ({}, ("happiness",), "emotion:", "happiness"),
    "dialogue_act_classification": ({}, ("inform",), "dialogue act:", "inform"),
    "topic_classification": ({}, ("Attitude & Emotion",), "topic:", "Attitude & Emotion"),
    "causal_emotion_span_extraction": (
        {"question": WHY}, ("Impossible answer",), f"question: {WHY} answer:", "Impossible answer",
    ),
    "causal_emotion_entailment": (
        {"hypothesis": "speaker1: hi causes happiness in speaker2: bye"}, ("not entailed",),
        "causal emotion entailment: speaker1: hi causes happiness in speaker2: bye",
        "not entailed",
    ),
    "dialogue_nli": (
        {"hypothesis": "portable tv has a screen"}, ("entailment",),
        "entailment: portable tv has a screen", "entailment",
    ),
    "dialogue_reasoning_span_extraction": (
        {"question": "What does 'portable TV' have?"}, ("the screen",),
        "question: What does 'portable TV' have? answer:", "the screen",
    ),
    "dialogue_reasoning_multiple_choice_span_selection": (
        {"question": "What does he have?"}, ("3",),
        "question: What does he have? option 0: a phone option 1: the door option 2: a cat "
        "option 3: tea The correct option is", "3",
    ),
    "dialogue_reasoning_commonsense_relation_prediction": (
        {"head": "portable tv", "tail": "screen"}, ("has a",),
        "The relation between 'portable tv' and 'screen' is", "has a",
    ),
    "adversarial_response_selection": (
        {"question": "Which option is the best response?"}, ("0",),
        "question: Which option is the best response? option 0: Fine. option 1: A plane. "
        "option 2: What else? The correct option is", "0",
    ),
    "emory_emotion_recognition": ({}, ("joyful",), "emotion:", "joyful"),
    "reading_comprehension": (
        {"query": "[PLACEHOLDER] greets Ross.", "entities": "ross or joey or chandler"}, ("joey",),
        "question: [PLACEHOLDER] greets Ross. Out of ross or joey or chandler, [PLACEHOLDER] is",
        "joey",
    ),
    "character_identification": (
        {"mention": "you", "phrase": "Hey, how you doin'?"}, ("ross",),
        f"Out of {PEOPLE}, 'you' in the phrase 'Hey, how you doin'?' refers to", "ross",
    ),
    "question_answering": (
        {"question": "Who says hey?"}, ("Joey Tribbiani", "Joey"),
        "question: Who says hey? answer:", "Joey Tribbiani",
    ),
    "personality_detection": (
        {"speaker": "Joey Tribbiani"}, ("1", "0", "1", "1", "0"), "Joey Tribbiani is extroverted:",
        "true",
    ),
    "relation_extraction": (
        {"head": "Ross Geller", "tail": "Joey Tribbiani"}, ("per:friends", "per:girl/boyfriend"),
        "Ross Geller has the following relations with Joey Tribbiani:",
        "friends and girlfriend or boyfriend",
    ),
    "MELD_emotion_recognition": ({}, ("joy",), "emotion:", "joy"),
}  # fmt: skip
OPTIONS = {
    "dialogue_reasoning_multiple_choice_span_selection": ("a phone", "the door", "a cat", "tea"),
    "adversarial_response_selection": ("Fine.", "A plane.", "What else?"),
}
EXTROVERTED = 2


@pytest.mark.parametrize("task", PAPER_TASKS, ids=lambda task: task.name)
def test_prompt_and_answer(task: Task) -> None:
    query, target, prompt, answer = CASES[task.name]
    context = {"DailyDialog": DIALOGUE, "Friends": SCENE}[task.dataset]
    options = OPTIONS.get(task.name, ())
    item = Instance("i", "d", task.name, context, len(context), query, options, target)
    trait = EXTROVERTED if task.kind == "multi_output" else None
    assert "".join(build_prompt_parts(task, item, trait)) == f"context: {context} {prompt}"
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
