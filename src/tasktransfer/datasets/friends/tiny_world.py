"""The Friends-like dataset: the six friends, passers-by and notes, seven tasks.

A dialogue is an opening, which contains a mood word twice, and one of three scenes. ``errand``:
reading comprehension, questions, personality. ``portrait``: personality. ``kin``: relations and
character mentions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from random import Random

from tasktransfer.datasets.feta.tiny_world import (
    Claim,
    Json,
    Role,
    assign_roles,
    build_release_writer,
    build_task_metadata,
    create_generator,
    cycle_shuffled,
    sample_integer,
    sample_value,
    shuffle_values,
)
from tasktransfer.datasets.friends import TASKS, cards
from tasktransfer.datasets.friends import tiny_words as words
from tasktransfer.tasks.card import Task

UNRELATED_SHARE = 0.4
"""Fraction of the kin scenes with a question about a pair without a relation."""


@dataclass(frozen=True, slots=True)
class Company:
    """People of a scene: two friends who talk, two passers-by, and nicknames to assign."""

    speaker: str
    listener: str
    passer_by: str
    other_passer_by: str
    nicknames: Iterator[tuple[str, str]]


def add_turn(dialogue: Json, speakers: list[str], utterance: str) -> Json:
    """Append a turn, or a note without speakers, to a dialogue, and return it."""
    turn: Json = {
        "turn_id": len(dialogue["dialogue"]),
        "speakers": speakers,
        "utterance": utterance,
    }
    dialogue["dialogue"].append(turn)
    return turn


def _add_errand(dialogue: Json, role: Role, company: Company, rng: Random) -> None:
    """Add turns in which a friend has bought something and another describes themselves.

    The note at the start of the scene names two passers-by.
    """
    thing = sample_value(rng, words.PURCHASES)
    bought = add_turn(
        dialogue, [company.speaker], sample_value(rng, words.PURCHASE_FRAMES).format(object=thing)
    )
    present = _add_trait_turns(dialogue, company.listener, 1 + sample_integer(rng, 2), rng)
    _add_personality(dialogue, role, company.listener, present)
    _add_comprehension_queries(dialogue, role, company, thing, rng)
    _add_questions(dialogue, role, company, bought, thing)


def _add_comprehension_queries(
    dialogue: Json, role: Role, company: Company, thing: str, rng: Random
) -> None:
    """Add three queries, on the friend who bought something and on a passer-by."""
    entities = [company.speaker, company.passer_by, company.other_passer_by]
    dialogue["dialogue_metadata"]["reading_comprehension"] = {
        "scene_entities": [name.lower() for name in shuffle_values(rng, entities)]
    }
    queries = [
        (f"[PLACEHOLDER] bought the {thing}.", company.speaker),
        (f"[PLACEHOLDER] talks about the {thing}.", company.speaker),
        (f"[PLACEHOLDER] walks by with {company.other_passer_by}.", company.passer_by),
    ]
    dialogue["reading_comprehension"] = [
        {
            "query": query,
            "answer": answer.lower(),
            "instance_id": f"{role.dialogue_id}_qa{number}",
        }
        for number, (query, answer) in enumerate(queries)
    ]


def _add_questions(dialogue: Json, role: Role, company: Company, bought: Json, thing: str) -> None:
    """Add two questions on the purchase (with two gold answers), and one on the buyer."""
    what = [
        _build_text_answer(bought, f"the {thing}"),
        _build_text_answer(bought, thing),
    ]
    who = {
        "text": company.speaker,
        "answer_start": -1,
        "answer_utterance_id": bought["turn_id"],
        "is_speaker": True,
    }
    questions = [
        (f"What did {company.speaker} buy?", what, "What"),
        ("Who talks about the shopping?", [who], "Who"),
        ("What was bought?", what, "What_Paraphrased"),
    ]
    dialogue["dialogue_metadata"]["question_answering"] = None
    dialogue["question_answering"] = [
        {
            "qas": [
                {
                    "question": question,
                    "answers": answers,
                    "instance_id": f"{role.dialogue_id}_{name}",
                }
                for question, answers, name in questions
            ]
        }
    ]


def _build_text_answer(turn: Json, text: str) -> Json:
    return {
        "text": text,
        "answer_start": turn["utterance"].index(text),
        "answer_utterance_id": turn["turn_id"],
        "is_speaker": False,
    }


def _add_portrait(dialogue: Json, role: Role, company: Company, rng: Random) -> None:
    """Add turns in which a friend describes themselves and another friend replies."""
    present = _add_trait_turns(dialogue, company.speaker, 1 + sample_integer(rng, 4), rng)
    add_turn(dialogue, [company.listener], sample_value(rng, words.PORTRAIT_REPLIES))
    _add_personality(dialogue, role, company.speaker, present)


def _add_trait_turns(dialogue: Json, speaker: str, count: int, rng: Random) -> list[str]:
    """Add turns with two trait words each by a speaker, and return the traits."""
    present = shuffle_values(rng, tuple(words.TRAITS))[:count]
    traits = [sample_value(rng, words.TRAITS[trait]) for trait in present]
    for first, second in zip_longest(traits[::2], traits[1::2]):
        frame = sample_value(rng, words.TRAIT_FRAMES[1 if second is None else 2])
        add_turn(dialogue, [speaker], frame.format(first=first, second=second))
    return present


def _add_personality(dialogue: Json, role: Role, speaker: str, present: list[str]) -> None:
    dialogue["dialogue_metadata"]["personality_detection"] = None
    dialogue["personality_detection"] = [
        {
            "turns": [turn["turn_id"] for turn in dialogue["dialogue"]],
            "focus_speaker": speaker,
            "personality_characteristics": {
                trait: str(int(trait in present)) for trait in words.TRAITS
            },
            "instance_id": f"{role.dialogue_id}_{speaker}",
        }
    ]


def _add_kinship(dialogue: Json, role: Role, company: Company, rng: Random) -> None:
    """Add turns about the relation of two people, in which nicknames are mentioned.

    All three contain the kinship word. Some scenes ask about the speaker, who has no relation.
    """
    head, tail = shuffle_values(rng, [company.listener, company.passer_by])
    kin = sample_value(rng, tuple(words.KINSHIP))
    frame = sample_value(rng, words.KINSHIP_FRAMES)
    add_turn(dialogue, [company.speaker], frame.format(head=head, kin=kin, tail=tail))
    relations = list(words.KINSHIP[kin])
    triples = [(head, tail, relations), (tail, head, relations)]
    if rng.random() < UNRELATED_SHARE:
        triples.append((company.speaker, tail, ["unanswerable"]))
    dialogue["dialogue_metadata"]["relation_extraction"] = None
    frames = shuffle_values(rng, words.NICKNAME_FRAMES)
    for speaker, frame in zip((company.listener, company.speaker), frames, strict=False):
        label, nickname = next(company.nicknames)
        turn = add_turn(dialogue, [speaker], frame.format(kin=kin, name=nickname))
        turn["character_identification"] = [_build_mention(turn, label, nickname, role)]
    dialogue["dialogue_metadata"]["character_identification"] = None
    dialogue["relation_extraction"] = [
        {
            "turns": [turn["turn_id"] for turn in dialogue["dialogue"]],
            "relation_triples": [
                {
                    "head": first,
                    "tail": second,
                    "relations": related,
                    "instance_id": f"{role.dialogue_id}_{first}_{second}",
                }
                for first, second, related in triples
            ],
        }
    ]


def _build_mention(turn: Json, label: str, nickname: str, role: Role) -> Json:
    return {
        "entity": "other" if label == "other" else label.capitalize(),
        "normalized_entity": label,
        "start": turn["utterance"].index(nickname),
        "entity_reference": nickname,
        "instance_id": f"{role.dialogue_id}_t{turn['turn_id']}_mention0",
    }


SCENES: dict[str, Callable[[Json, Role, Company, Random], None]] = {
    "errand": _add_errand,
    "portrait": _add_portrait,
    "kin": _add_kinship,
}


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


write_release = build_release_writer(
    "Friends",
    {task.card.name: _build_release_task_metadata(task.card) for task in TASKS if task.tiny},
    generate_dialogues,
)

HELPFUL = (
    Claim(
        dataset="Friends",
        source="MELD_emotion_recognition",
        target="emory_emotion_recognition",
        why="One hidden mapping from mood words to four moods decides both labels; the "
        "source's training dialogues hold every mood word, the target's only half of them.",
    ),
)

UNRELATED = (
    Claim(
        dataset="Friends",
        source="character_identification",
        target="emory_emotion_recognition",
        why="Characters depend on nicknames, which are sampled independently of the mood words "
        "that decide emotions and share no word with them.",
    ),
)
