"""What a pipeline has to find out about the tiny world: which source helps which target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim about one transfer within one dataset, and the reason why it holds."""

    dataset: str
    source: str
    target: str
    why: str


HELPFUL: tuple[Pair, ...] = (
    Pair(
        dataset="DailyDialog",
        source="emotion_recognition",
        target="topic_classification",
        why="One hidden mapping from mood words to four moods decides both labels; the source's "
        "training dialogues hold every mood word, the target's only half of them.",
    ),
    Pair(
        dataset="Friends",
        source="MELD_emotion_recognition",
        target="emory_emotion_recognition",
        why="One hidden mapping from mood words to four moods decides both labels; the source's "
        "training dialogues hold every mood word, the target's only half of them.",
    ),
)
"""Transfers planted to help: the score delta is positive."""

UNRELATED: tuple[Pair, ...] = (
    Pair(
        dataset="DailyDialog",
        source="dialogue_act_classification",
        target="topic_classification",
        why="Dialogue acts hang on act words, which are drawn independently of the mood words "
        "that decide topics and share no word with them.",
    ),
    Pair(
        dataset="Friends",
        source="character_identification",
        target="emory_emotion_recognition",
        why="Characters hang on nicknames, which are drawn independently of the mood words that "
        "decide emotions and share no word with them.",
    ),
)
"""Transfers planted to teach nothing: the score delta is not above zero."""
