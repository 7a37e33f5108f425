"""The release's metadata block: labels and metric settings of FETA's 17 tasks, as published.

The same task cards read the tiny world and the real release, so these must agree to the letter;
a test compares them with the real release where that is at hand.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tasktransfer.datasets.feta.tiny_world.revision import GENERATOR_VERSION

Json: TypeAlias = dict[str, Any]


def _f1(labels: list[str], second: str, micro_labels: list[int] | None = None) -> Json:
    micro: Json = {"average": "micro"}
    if micro_labels is not None:
        micro["labels"] = micro_labels
    return {
        "labels": labels,
        "metrics": ["f1"],
        "metric_kwargs": {"f1": [micro, {"average": second}]},
    }


_IMPOSSIBLE = {"unanswerable_phrases": ["impossible"]}

DAILY_TASKS: dict[str, Json] = {
    "emotion_recognition": _f1(
        ["anger", "disgust", "fear", "happiness", "neutral", "sadness", "surprise"],
        "macro",
        [-1, 0, 1, 2, 3, 5, 6],
    ),
    "dialogue_act_classification": _f1(["inform", "question", "directive", "commissive"], "macro"),
    "topic_classification": _f1(
        [
            "Ordinary Life",
            "School Life",
            "Culture & Education",
            "Attitude & Emotion",
            "Relationship",
            "Tourism",
            "Health",
            "Work",
            "Politics",
            "Finance",
        ],
        "macro",
    ),
    "causal_emotion_span_extraction": {
        "metrics": ["exact_match", "token_f1"],
        "metric_kwargs": {
            "exact_match": {**_IMPOSSIBLE, "ignore_unanswerable": True},
            "token_f1": [
                {**_IMPOSSIBLE, "average": "macro"},
                {**_IMPOSSIBLE, "average": "micro"},
            ],
        },
    },
    "causal_emotion_entailment": _f1(["not entailed", "entailed"], "macro"),
    "dialogue_nli": _f1(["contradiction", "entailment"], "macro"),
    "dialogue_reasoning_span_extraction": {
        "metrics": ["exact_match", "token_f1"],
        "metric_kwargs": {"token_f1": {"average": "macro"}},
    },
    "dialogue_reasoning_multiple_choice_span_selection": {
        "metrics": ["accuracy"],
        "labels": ["0", "1", "2", "3"],
    },
    "dialogue_reasoning_commonsense_relation_prediction": {
        "labels": [
            "None",
            "antonym",
            "at location",
            "capable of",
            "causes",
            "causes desire",
            "depends on",
            "desires",
            "discouraged by goal",
            "discourages",
            "distinct from",
            "doesn't have property",
            "doesn't imply",
            "happens before",
            "happens in",
            "happens simultaneously",
            "has a",
            "has prerequisite",
            "has property",
            "has subevent",
            "implies",
            "is a",
            "is not a",
            "located near",
            "manner of",
            "motivated by goal",
            "obstructed by",
            "similar to",
            "social rule",
            "suppresses desire",
            "synonym",
            "used for",
        ],
        "metrics": ["accuracy", "f1"],
        "metric_kwargs": {"f1": {"average": "macro"}},
    },
    "adversarial_response_selection": {"metrics": ["accuracy"]},
}

FRIENDS_TASKS: dict[str, Json] = {
    "emory_emotion_recognition": _f1(
        ["joyful", "mad", "neutral", "peaceful", "powerful", "sad", "scared"], "weighted"
    ),
    "reading_comprehension": {"metrics": ["exact_match"]},
    "character_identification": _f1(
        ["chandler", "joey", "monica", "phoebe", "rachel", "ross", "other"], "macro"
    ),
    "question_answering": {
        "metrics": ["exact_match", "token_f1"],
        "metric_kwargs": {"token_f1": [{"average": "macro"}, {"average": "micro"}]},
    },
    "personality_detection": {"labels": ["0", "1"], "metrics": ["accuracy"]},
    "relation_extraction": {
        "labels": [
            "per:positive_impression",
            "per:negative_impression",
            "per:acquaintance",
            "per:alumni",
            "per:boss",
            "per:subordinate",
            "per:client",
            "per:dates",
            "per:friends",
            "per:girl/boyfriend",
            "per:neighbor",
            "per:roommate",
            "per:children",
            "per:other_family",
            "per:parents",
            "per:siblings",
            "per:spouse",
            "per:place_of_residence",
            "per:place_of_birth",
            "per:visited_place",
            "per:origin",
            "per:employee_or_member_of",
            "per:schools_attended",
            "per:works",
            "per:age",
            "per:date_of_birth",
            "per:major",
            "per:place_of_work",
            "per:title",
            "per:alternate_names",
            "per:pet",
            "gpe:residents_of_place",
            "gpe:visitors_of_place",
            "gpe:births_in_place",
            "org:employees_or_members",
            "org:students",
            "unanswerable",
        ],
        "metrics": ["multilabel_f1"],
        "metric_kwargs": {
            "multilabel_f1": [
                {"labels": [i for i in range(35) if i not in (18, 29, 33)]},
            ]
        },
    },
    "MELD_emotion_recognition": _f1(
        ["anger", "disgust", "fear", "joy", "neutral", "sadness", "surprise"], "weighted"
    ),
}


def release_metadata(dataset: str, tasks: dict[str, Json], seed: int, dialogues: int) -> Json:
    """Compose the ``metadata`` object of one dataset's JSON, marked as synthetic."""
    return {
        "dataset_name": dataset,
        "tasks": list(tasks),
        "task_metadata": tasks,
        "synthetic": True,
        "generator": {
            "name": "tiny-world",
            "version": GENERATOR_VERSION,
            "seed": seed,
            "dialogues": dialogues,
        },
    }
