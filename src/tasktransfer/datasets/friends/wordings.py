"""Prompt templates of the tasks on Friends for language models without fine-tuning, two per task.

This project wrote them, because the paper does not prompt models.
"""

from __future__ import annotations

from tasktransfer.tasks.card import Wording

EMORY_EMOTIONS = (
    Wording(
        "Read the scene and say how the speaker of its last utterance feels.",
        "How does the last speaker feel: {labels}?",
    ),
    Wording(
        "Label the last utterance of the scene with one of these feelings: {labels}.",
        answer="The last speaker's feeling is",
        labels={
            "joyful": "joy",
            "mad": "anger",
            "neutral": "nothing special",
            "peaceful": "peace",
            "powerful": "power",
            "sad": "sadness",
            "scared": "fear",
        },
    ),
)

ENTITIES = (
    Wording(
        "A sentence about the scene has a name replaced by [PLACEHOLDER]. Say whose name it is.",
        "{query}\nWho is [PLACEHOLDER]: {entities}?",
    ),
    Wording(
        "Fill in the missing name of each sentence about a scene. The names are given.",
        "Names: {entities}\nSentence: {query}",
        answer="[PLACEHOLDER] is",
    ),
)

CHARACTERS = (
    Wording(
        "Read the scene and say who is meant by a word of its last utterance.",
        "Who is '{mention}' in '{phrase}': {labels}?",
        labels={"other": "someone else"},
    ),
    Wording(
        "Resolve mentions of people in scenes to one of: {labels}.",
        answer="In '{phrase}', '{mention}' refers to",
        labels={"other": "another person"},
    ),
)

QUESTIONS = (
    Wording("Answer the question with words copied from the scene.", "{question}"),
    Wording(
        "Read the scene. Quote the part of it, or name the speaker, that answers the question.",
        "Question: {question}",
        answer="Quote:",
    ),
)

TRAITS = (
    Wording(
        "Read the scene and judge the personality of a speaker.",
        "Is {speaker} {trait} in this scene: yes or no?",
        labels={"0": "no", "1": "yes"},
        traits={
            "aggreeable": "kind and cooperative",
            "conscientious": "careful and dependable",
            "extroverted": "outgoing",
            "open": "open to new experiences",
            "neurotic": "easily upset",
        },
    ),
    Wording(
        "Decide whether each statement about a speaker of the scene is true or false.",
        "Statement: {speaker} is {trait}.",
        answer="The statement is",
        labels={"0": "false", "1": "true"},
        traits={"aggreeable": "agreeable"},
    ),
)

RELATIONS = (
    Wording(
        "Read the scene and say how two people, places or things in it are related.",
        "What is {tail} to {head}: {labels}?",
    ),
    Wording(
        "Complete each sentence about the scene with a relation.",
        answer="The relation of {head} to {tail} is:",
    ),
)

MELD_EMOTIONS = (
    Wording(
        "Read the scene and say which emotion its last utterance expresses.",
        "Which emotion does the last utterance express: {labels}?",
        labels={"neutral": "no emotion"},
    ),
    Wording(
        "Label the last utterance of the scene with one of these feelings: {labels}.",
        answer="The last speaker's feeling is",
    ),
)
