"""The three scenes of the Friends-like dataset, with their tasks.

``errand``: reading comprehension, questions, personality. ``portrait``: personality.
``kin``: relations and character mentions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from random import Random

from tasktransfer.datasets.feta.tiny_world import (
    Json,
    Role,
    sample_integer,
    sample_value,
    shuffle_values,
)
from tasktransfer.datasets.friends import tiny_words as words

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
