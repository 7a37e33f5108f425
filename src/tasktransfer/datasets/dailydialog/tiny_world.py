"""The DailyDialog-like dataset: two anonymous speakers, ten tasks.

A dialogue is an opening, which contains a mood word twice, and one of three scenes.
"""

from __future__ import annotations

from random import Random

from tasktransfer.datasets.dailydialog import cards
from tasktransfer.datasets.dailydialog import tiny_words as words
from tasktransfer.datasets.dailydialog.tiny_scenes import SCENES, add_turn
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
from tasktransfer.tasks.card import Task

_TASKS: tuple[tuple[Task, TinySize], ...] = (
    (cards.EMOTION_RECOGNITION, TinySize(1.63, 20)),
    (cards.DIALOGUE_ACT_CLASSIFICATION, TinySize(1.0, 36)),
    (cards.TOPIC_CLASSIFICATION, TinySize(0.5, 41)),
    (cards.CAUSAL_EMOTION_SPAN_EXTRACTION, TinySize(1.0, 89)),
    (cards.CAUSAL_EMOTION_ENTAILMENT, TinySize(1.0, 65)),
    (cards.DIALOGUE_NLI, TinySize(1.33, 41)),
    (cards.DIALOGUE_REASONING_SPAN_EXTRACTION, TinySize(0.67, 45)),
    (cards.DIALOGUE_REASONING_MULTIPLE_CHOICE_SPAN_SELECTION, TinySize(1.0, 183)),
    (cards.DIALOGUE_REASONING_COMMONSENSE_RELATION_PREDICTION, TinySize(1.0, 40)),
    (cards.ADVERSARIAL_RESPONSE_SELECTION, TinySize(1.0, 104)),
)


def list_dialogue_ids(dialogues: int) -> list[str]:
    """Return the dialogue IDs in the order of the generated file."""
    return [f"dialogue-{number}" for number in range(1, dialogues + 1)]


def generate_dialogues(seed: int, dialogues: int) -> list[tuple[Role, Json]]:
    """Return the generated dialogues with their roles, in the order of the generated file."""
    roles = assign_roles(
        seed, "daily", list_dialogue_ids(dialogues), words.MOOD_WORDS, tuple(SCENES)
    )
    act_words = [
        (act, word) for act, words_of_act in words.ACT_WORDS.items() for word in words_of_act
    ]
    acts = {
        portion: cycle_shuffled(create_generator(seed, "daily", portion, "acts"), act_words)
        for portion in sorted({role.portion for role in roles})
    }
    result = []
    for role in roles:
        rng = create_generator(seed, "daily", role.dialogue_id)
        act = next(acts[role.portion]) if role.scene == "plan" else None
        result.append((role, _build_dialogue(role, act, rng)))
    return result


def _build_dialogue(role: Role, act: tuple[str, str] | None, rng: Random) -> Json:
    dialogue: Json = {
        "dialogue_id": role.dialogue_id,
        "dialogue_metadata": {"original_data_partition": role.split},
        "dialogue": [],
    }
    _add_opening(dialogue, role, rng)
    SCENES[role.scene](dialogue, role, act, rng)
    _label_mood(dialogue, role)
    return dialogue


def _add_opening(dialogue: Json, role: Role, rng: Random) -> None:
    if role.opens_neutral:
        add_turn(dialogue, sample_value(rng, words.NEUTRAL_OPENERS))
    for frame in shuffle_values(rng, words.MOOD_FRAMES)[:2]:
        add_turn(dialogue, frame.format(word=role.word))


def _label_mood(dialogue: Json, role: Role) -> None:
    """Label the topic of a dialogue, and the emotions of its first two turns.

    Each training dialogue is annotated for one of the two tasks, so that the target's training
    dialogues have only the common mood words. The mood of the opening extends to the next turn.
    """
    if role.group == "target" or role.split != "train":
        dialogue["dialogue_metadata"]["topic_classification"] = None
        dialogue["topic_classification"] = {
            "label": words.TOPIC_OF[role.mood],
            "instance_id": role.dialogue_id,
        }
    if role.group == "source":
        dialogue["dialogue_metadata"]["emotion_recognition"] = None
        turns = dialogue["dialogue"]
        quiet = int(role.opens_neutral)
        for index in range(quiet + 3):
            turns[index]["emotion_recognition"] = {
                "label": "neutral" if index < quiet else words.EMOTION_OF[role.mood],
                "instance_id": f"{role.dialogue_id}_t{turns[index]['turn_id']}",
            }


_RELEASE_METADATA: dict[str, Json] = {
    "dialogue_reasoning_multiple_choice_span_selection": {
        "metrics": ["accuracy"],
        "labels": ["0", "1", "2", "3"],
    },
    "adversarial_response_selection": {"metrics": ["accuracy"]},
}
"""Task → metadata of the release, if it differs from ``build_task_metadata``."""

TINY = TinyPart(
    write=build_release_writer(
        "DailyDialog",
        {
            card.name: _RELEASE_METADATA.get(card.name, build_task_metadata(card))
            for card, _ in _TASKS
        },
        generate_dialogues,
    ),
    sizes={card.name: size for card, size in _TASKS},
    shares=SPLIT_SHARES,
    helpful=(
        Claim(
            dataset="DailyDialog",
            source="emotion_recognition",
            target="topic_classification",
            why="One hidden mapping from mood words to four moods decides both labels; the "
            "source's training dialogues hold every mood word, the target's only half of them.",
        ),
    ),
    unrelated=(
        Claim(
            dataset="DailyDialog",
            source="dialogue_act_classification",
            target="topic_classification",
            why="Dialogue acts depend on act words, which are sampled independently of the mood "
            "words that decide topics and share no word with them.",
        ),
    ),
)
