"""A synthetic dataset of stories with eight emotions, in the release's own format.

A story contains a word of its topic and a word of its emotion. Only the listener's replies depend
on the emotion, and there are too few of them to learn all emotion words. There are many more
situations, which contain the same words. The listener replies with words of the emotion and of the
topic.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tasktransfer.datasets.dailydialog.tiny_words import MOOD_WORDS
from tasktransfer.datasets.dataset import TinyPart, TinySize
from tasktransfer.datasets.feta.tiny_world import create_generator, sample_value

EMOTIONS = ("afraid", "angry", "excited", "grateful", "lonely", "proud", "sad", "surprised")
WORDS_PER_EMOTION = 40
TALKS = 0.25
"""Fraction of training dialogues with a reply, so that there are fewer replies than situations."""

ANSWERS = {
    "afraid": ("stay", "safe"),
    "angry": ("calm", "breathe"),
    "excited": ("wonderful", "enjoy"),
    "grateful": ("kind", "friend"),
    "lonely": ("company", "visit"),
    "proud": ("congratulations", "earned"),
    "sad": ("sorry", "hug"),
    "surprised": ("wow", "unexpected"),
}
TOPICS = tuple(MOOD_WORDS)
STORIES = (
    "I feel {feeling} about the {thing}.",
    "The {thing} left me {feeling} again.",
    "It was {feeling} when the {thing} came.",
    "Such a {feeling} day with my {thing}.",
)
REPLIES = (
    "Oh {first}, that {thing} is {second}.",
    "So {second} and {first} with your {thing}.",
    "Well {first}, the {thing} sounds {second}.",
)
MORE = ("Yes the {thing} was here.", "And now the {thing} is home.", "It is my {thing} after all.")
SPLIT_SHARES = (("train", 0.7), ("valid", 0.12), ("test", 0.18))
_SYLLABLES = ("ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "pa", "re", "si", "tu", "va", "zo")


def map_emotion_words(seed: int) -> dict[str, list[str]]:
    """Map each emotion to its invented words, which no other emotion has."""
    words = [a + b + c for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES]
    chance = create_generator(seed, "empathetic", "feelings")
    words.sort(key=lambda _: chance.random())
    return {
        emotion: words[i * WORDS_PER_EMOTION : (i + 1) * WORDS_PER_EMOTION]
        for i, emotion in enumerate(EMOTIONS)
    }


def list_topic_words(topic: str) -> tuple[str, ...]:
    """Return the words for a topic, which are shared with the tiny DailyDialog."""
    return (*MOOD_WORDS[topic].common, *MOOD_WORDS[topic].rare)


def write_release(folder: Path, seed: int, dialogues: int) -> None:
    """Write a synthetic release with a given number of dialogues to ``folder``."""
    path = folder / "empathetic_dialogues"
    (path / "by_emotion").mkdir(parents=True)
    words = map_emotion_words(seed)
    splits: list[tuple[str, str]] = []
    rows: dict[str, list[tuple[str, str, str, str]]] = {emotion: [] for emotion in EMOTIONS}
    for number in range(dialogues):
        chance = create_generator(seed, "empathetic", number)
        name, emotion = f"tiny:{number}", EMOTIONS[number % len(EMOTIONS)]
        split = _choose_split(chance.random())
        splits.append((name, split))
        rows[emotion] += _make_dialogue(chance, name, emotion, words[emotion], split)
    for emotion, lines in rows.items():
        _write_csv(
            path / "by_emotion" / f"{emotion}.csv",
            ("Dialog_ID", "Type", "Actor", "Text"),
            lines,
        )
    _write_csv(path / "split.csv", ("Dialog_ID", "split"), splits)
    manifest = {"synthetic": True, "seed": seed, "dialogues": dialogues, "emotions": list(EMOTIONS)}
    (path / "synthetic.json").write_text(json.dumps(manifest) + "\n", encoding="utf-8")


def _make_dialogue(
    chance: Random, name: str, emotion: str, feelings_of: list[str], split: str
) -> list[tuple[str, str, str, str]]:
    topic = sample_value(chance, TOPICS)
    thing, feeling = (
        sample_value(chance, list_topic_words(topic)),
        sample_value(chance, feelings_of),
    )
    first, second = ANSWERS[emotion]

    def fill_frame(frames: tuple[str, ...]) -> str:
        frame = sample_value(chance, frames)
        return frame.format(feeling=feeling, thing=thing, first=first, second=second)

    rows = [
        (name, "situation", "none", fill_frame(STORIES)),
        (name, "utterance", "speaker", fill_frame(STORIES)),
    ]
    if split == "train" and chance.random() > TALKS:
        return rows
    rows.append((name, "utterance", "listener", fill_frame(REPLIES)))
    if chance.random() < 0.5:
        rows.append((name, "utterance", "speaker", fill_frame(MORE)))
        rows.append((name, "utterance", "listener", fill_frame(REPLIES)))
    return rows


def _choose_split(drawn: float) -> str:
    for name, share in SPLIT_SHARES:
        if drawn < share:
            return name
        drawn -= share
    return SPLIT_SHARES[-1][0]


def _write_csv(file: Path, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


_SHARES = {"train": 0.7, "dev": 0.12, "test": 0.18}

TINY = TinyPart(
    write=write_release,
    sizes={
        # In training one dialogue in four has replies.
        "next_utterance": TinySize(0.5, 30),
        "listener_reply": TinySize(0.375, 25),
        "emotion_of_context": TinySize(0.5, 20),
        "emotion": TinySize(1.0, 12),
        "emotion_cut": TinySize(1.0, 12),
    },
    shares={True: _SHARES, False: _SHARES},
    version="empathetic-2",
)
