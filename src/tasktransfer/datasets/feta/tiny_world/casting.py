"""Roles of dialogues: split, mood word, scene and annotations.

Everything on which a planted transfer effect depends is decided here, before texts are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tasktransfer.datasets.feta.tiny_world.sampling import (
    create_generator,
    cycle_shuffled,
    shuffle_values,
)

Portion: TypeAlias = Literal["few_train", "rest_train", "few_dev", "rest_dev", "test"]
Group: TypeAlias = Literal["source", "target"]

TRAIN_SHARE, DEV_SHARE = 0.60, 0.15
"""Fractions of all dialogues. The rest is the test split."""

FEW_SHARE = 5 / 6
"""Fraction of the train and dev dialogues in the few-sample setting. FETA uses a tenth of 13,118
dialogues. A tenth of these generated ones would be a dozen dialogues."""

SPLIT_SHARES = {
    True: {"train": 0.5, "dev": 0.125, "test": 0.25},
    False: {"train": 0.6, "dev": 0.15, "test": 0.25},
}
"""Fractions for forecasts: whether few-sample → split → fraction of the dialogues."""


@dataclass(frozen=True, slots=True)
class MoodWords:
    """Words that express one mood, the hidden attribute, which no text or label names.

    The training dialogues of the source have all words, and those of the target have only the
    common ones.
    """

    common: tuple[str, ...]
    rare: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Role:
    """Role of one dialogue.

    Args:
        dialogue_id: name of the dialogue.
        portion: portion of the dialogues to which it belongs.
        group: task, source or target, for which its opening is annotated in training.
        scene: type of the scene.
        mood: the hidden attribute.
        word: mood word of the opening.
        opens_neutral: whether the first turn has no mood word.
    """

    dialogue_id: str
    portion: Portion
    group: Group
    scene: str
    mood: str
    word: str
    opens_neutral: bool

    @property
    def split(self) -> str:
        """Split of the dialogue in the full-data setting: train, dev or test."""
        return self.portion.rpartition("_")[2]


def compute_portion_sizes(dialogues: int) -> dict[Portion, int]:
    """Return the sizes of the five disjoint portions of the ID files."""
    train, dev = round(dialogues * TRAIN_SHARE), round(dialogues * DEV_SHARE)
    few_train, few_dev = round(train * FEW_SHARE), round(dev * FEW_SHARE)
    return {
        "few_train": few_train,
        "rest_train": train - few_train,
        "few_dev": few_dev,
        "rest_dev": dev - few_dev,
        "test": dialogues - train - dev,
    }


def assign_roles(
    seed: int,
    dataset: str,
    ids: list[str],
    words: dict[str, MoodWords],
    scenes: tuple[str, ...],
) -> list[Role]:
    """Assign a role to each dialogue, balanced within each portion."""
    waiting = iter(shuffle_values(create_generator(seed, dataset, "split"), ids))
    roles: list[Role] = []
    for portion, size in compute_portion_sizes(len(ids)).items():
        roles += _assign_portion_roles(seed, dataset, portion, size, waiting, words, scenes)
    order = {dialogue_id: index for index, dialogue_id in enumerate(ids)}
    return sorted(roles, key=lambda role: order[role.dialogue_id])


def _assign_portion_roles(
    seed: int,
    dataset: str,
    portion: Portion,
    size: int,
    ids: Iterator[str],
    words: dict[str, MoodWords],
    scenes: tuple[str, ...],
) -> list[Role]:
    rng = create_generator(seed, dataset, portion, "roles")
    moods = {
        "source": cycle_shuffled(rng, _list_mood_words(words, with_rare=True)),
        "target": cycle_shuffled(
            rng, _list_mood_words(words, with_rare=not portion.endswith("train"))
        ),
    }
    roles = []
    for index in range(size):
        group: Group = "source" if index % 2 == 0 else "target"
        mood, word = next(moods[group])
        roles.append(
            Role(
                dialogue_id=next(ids),
                portion=portion,
                group=group,
                scene=scenes[index // 2 % len(scenes)],
                mood=mood,
                word=word,
                opens_neutral=rng.random() < 0.3,
            )
        )
    return roles


def _list_mood_words(words: dict[str, MoodWords], *, with_rare: bool) -> list[tuple[str, str]]:
    return [
        (mood, word)
        for mood, mood_words in words.items()
        for word in mood_words.common + (mood_words.rare if with_rare else ())
    ]
