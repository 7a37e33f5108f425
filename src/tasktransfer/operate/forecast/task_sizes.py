"""How large the tasks are: for studies whose data is not prepared yet.

Once it is, the caches' manifests are counted instead (``sizes``).
"""

from __future__ import annotations

from typing import NamedTuple


class TaskSize(NamedTuple):
    """``train``, ``dev``, ``test``: instances of the few-sample setting (paper, Table 1).

    ``tokens``: of an instance as an encoder reads it, all options together: the mean over 150
    training instances of the release in BERT's word pieces, cut at 512. ``sequences``: how many
    an encoder reads of an instance. ``tiny_instances``, ``tiny_tokens``: the same in the tiny
    world, counted there: instances a dialogue, tokens an instance.
    """

    train: int
    dev: int
    test: int
    tokens: int
    sequences: int
    tiny_instances: float
    tiny_tokens: int


FULL = 10
"""The few-sample setting keeps one dialogue in ten of train and dev (paper, section 3.2)."""

TINY_SPLITS = {
    True: {"train": 0.5, "dev": 0.125, "test": 0.25},
    False: {"train": 0.6, "dev": 0.15, "test": 0.25},
}
"""Few-sample or not → split → share of the tiny world's dialogues."""

SIZES: dict[str, dict[str, TaskSize]] = {
    "DailyDialog": {
        "emotion_recognition": TaskSize(7230, 1269, 15885, 90, 1, 1.63, 20),
        "dialogue_act_classification": TaskSize(7230, 1269, 15885, 90, 1, 1.0, 36),
        "topic_classification": TaskSize(958, 161, 1919, 131, 1, 0.5, 41),
        "causal_emotion_span_extraction": TaskSize(2141, 169, 9133, 214, 1, 1.0, 89),
        "causal_emotion_entailment": TaskSize(2141, 169, 9133, 187, 1, 1.0, 65),
        "dialogue_nli": TaskSize(569, 52, 1302, 145, 1, 1.33, 41),
        "dialogue_reasoning_span_extraction": TaskSize(123, 13, 244, 143, 1, 0.67, 45),
        "dialogue_reasoning_multiple_choice_span_selection": TaskSize(
            224, 26, 496, 575, 4, 1.0, 183
        ),
        "dialogue_reasoning_commonsense_relation_prediction": TaskSize(
            350, 38, 851, 137, 1, 1.0, 40
        ),
        "adversarial_response_selection": TaskSize(3400, 895, 10750, 243, 3, 1.0, 104),
    },
    "Friends": {
        "emory_emotion_recognition": TaskSize(844, 207, 1912, 211, 1, 1.66, 23),
        "reading_comprehension": TaskSize(912, 181, 2284, 393, 1, 1.0, 61),
        "character_identification": TaskSize(3593, 638, 7803, 308, 1, 0.67, 64),
        "question_answering": TaskSize(819, 191, 1937, 395, 1, 1.0, 52),
        "personality_detection": TaskSize(54, 15, 110, 207, 1, 0.67, 46),
        "relation_extraction": TaskSize(519, 121, 1188, 317, 1, 0.8, 52),
        "MELD_emotion_recognition": TaskSize(616, 148, 1247, 228, 1, 1.65, 23),
    },
}
"""Dataset → task → its size."""
