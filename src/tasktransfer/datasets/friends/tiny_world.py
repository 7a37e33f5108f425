"""The Friends-like dataset: the six friends, passers-by and notes, seven tasks.

A dialogue is an opening, which contains a mood word twice, and one of three scenes.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tasktransfer.datasets.dataset import Claim, TinyPart, TinySize
from tasktransfer.datasets.feta.tiny_world import (
    SPLIT_SHARES,
    Json,
    Role,
    assign_roles,
    build_release_writer,
    build_task_metadata,
    create_generator,
    cycle_shuffled,
    sample_value,
    shuffle_values,
)
from tasktransfer.datasets.friends import cards
from tasktransfer.datasets.friends import tiny_words as words
from tasktransfer.datasets.friends.tiny_scenes import SCENES, Company, add_turn
from tasktransfer.tasks.card import Task

_TASKS: tuple[tuple[Task, TinySize], ...] = (
    (cards.EMORY_EMOTION_RECOGNITION, TinySize(1.66, 23)),
    (cards.READING_COMPREHENSION, TinySize(1.0, 61)),
    (cards.CHARACTER_IDENTIFICATION, TinySize(0.67, 64)),
    (cards.QUESTION_ANSWERING, TinySize(1.0, 52)),
    (cards.PERSONALITY_DETECTION, TinySize(0.67, 46)),
    (cards.RELATION_EXTRACTION, TinySize(0.8, 52)),
    (cards.MELD_EMOTION_RECOGNITION, TinySize(1.65, 23)),
)

SCENES_PER_EPISODE, EPISODES_PER_SEASON = 12, 24


def list_scene_ids(dialogues: int) -> list[str]:
    """Return the scene IDs (season, episode, scene) in the order of the generated file."""
    ids = []
    for number in range(dialogues):
        episode, scene = divmod(number, SCENES_PER_EPISODE)
        season, episode = divmod(episode, EPISODES_PER_SEASON)
        ids.append(f"s{season + 1:02}_e{episode + 1:02}_c{scene + 1:02}")
    return ids


def generate_dialogues(seed: int, dialogues: int) -> list[tuple[Role, Json]]:
    """Return the generated scenes with their roles, in the order of the generated file."""
    roles = assign_roles(
        seed, "friends", list_scene_ids(dialogues), words.MOOD_WORDS, tuple(SCENES)
    )
    labelled = [(label, name) for label, names in words.NICKNAMES.items() for name in names]
    nicknames = {
        portion: cycle_shuffled(create_generator(seed, "friends", portion, "nicknames"), labelled)
        for portion in sorted({role.portion for role in roles})
    }
    return [
        (
            role,
            _build_dialogue(
                role, nicknames[role.portion], create_generator(seed, "friends", role.dialogue_id)
            ),
        )
        for role in roles
    ]


def _build_dialogue(role: Role, nicknames: Iterator[tuple[str, str]], rng: Random) -> Json:
    friends, passers_by = shuffle_values(rng, words.FRIENDS), shuffle_values(rng, words.PASSERS_BY)
    company = Company(friends[0], friends[1], passers_by[0], passers_by[1], nicknames)
    dialogue: Json = {
        "dialogue_id": role.dialogue_id,
        "dialogue_metadata": {},
        "dialogue": [],
    }
    if role.scene == "errand":
        note = words.NOTE_FRAME.format(first=company.passer_by, second=company.other_passer_by)
        add_turn(dialogue, [], note)
    first_spoken = len(dialogue["dialogue"])
    _add_opening(dialogue, role, company, rng)
    SCENES[role.scene](dialogue, role, company, rng)
    _label_mood(dialogue, role, first_spoken)
    return dialogue


def _add_opening(dialogue: Json, role: Role, company: Company, rng: Random) -> None:
    if role.opens_neutral:
        add_turn(dialogue, [company.speaker], sample_value(rng, words.NEUTRAL_OPENERS))
    first, second = shuffle_values(rng, words.MOOD_FRAMES)[:2]
    add_turn(dialogue, [company.listener], first.format(word=role.word))
    add_turn(dialogue, [company.speaker], second.format(word=role.word))


def _label_mood(dialogue: Json, role: Role, first_spoken: int) -> None:
    """Label the emotions of the opening turn and of the reply, for one of two emotion tasks.

    The training scenes of the target have only the common mood words. The mood of the opening
    extends to the next turn.
    """
    task, label_of = (
        ("MELD_emotion_recognition", words.MELD_OF)
        if role.group == "source"
        else ("emory_emotion_recognition", words.EMORY_OF)
    )
    dialogue["dialogue_metadata"][task] = None
    turns = dialogue["dialogue"]
    moody = first_spoken + int(role.opens_neutral)
    for index in range(first_spoken, moody + 3):
        turns[index][task] = {
            "label": "neutral" if index < moody else label_of[role.mood],
            "instance_id": f"{role.dialogue_id}_t{turns[index]['turn_id']}",
        }


def _build_release_task_metadata(card: Task) -> Json:
    """Return a task's metadata in the official release's format.

    The release has a list with the single setting of its multi-label F1, without the average.
    """
    metadata = build_task_metadata(card)
    if card is cards.RELATION_EXTRACTION:
        scored = list(card.metrics[0].label_indices or ())
        metadata["metric_kwargs"] = {"multilabel_f1": [{"labels": scored}]}
    return metadata


TINY = TinyPart(
    write=build_release_writer(
        "Friends",
        {card.name: _build_release_task_metadata(card) for card, _ in _TASKS},
        generate_dialogues,
    ),
    sizes={card.name: size for card, size in _TASKS},
    shares=SPLIT_SHARES,
    helpful=(
        Claim(
            dataset="Friends",
            source="MELD_emotion_recognition",
            target="emory_emotion_recognition",
            why="One hidden mapping from mood words to four moods decides both labels; the "
            "source's training dialogues hold every mood word, the target's only half of them.",
        ),
    ),
    unrelated=(
        Claim(
            dataset="Friends",
            source="character_identification",
            target="emory_emotion_recognition",
            why="Characters depend on nicknames, which are sampled independently of the mood words "
            "that decide emotions and share no word with them.",
        ),
    ),
)
