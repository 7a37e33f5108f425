"""Friends: several recurring speakers, television scenes; seven tasks (FETA, Table 1).

A task is a card, a function that reads its annotations in the release, and a row in this file. To
add it to the generated data, also write its ``TinySize``, and a scene in ``tiny_world``.
"""

from __future__ import annotations

from collections.abc import Iterator

from tasktransfer.datasets.dataset import TaskSize, TinySize
from tasktransfer.datasets.feta.annotations import (
    AnnotatedDialogue,
    AnnotatedTask,
    build_instance,
    build_span_instance,
    check_label,
    check_span_offset,
    find_turn,
    get_label,
    get_query_texts,
    join_turns,
    read_items,
    read_utterance_labels,
    remove_duplicates,
)
from tasktransfer.datasets.feta.release import build_feta_dataset
from tasktransfer.datasets.friends import cards
from tasktransfer.files.fields import (
    Location,
    Table,
    find_nearest,
    get_flag,
    get_integer,
    get_member,
    get_name,
    get_table,
    get_texts,
    iterate_objects,
)
from tasktransfer.tasks.card import Instance, Task, find_mentions

PHRASE_WORDS = 4


def read_masked_entities(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield instances that ask which entity a placeholder replaces (reading comprehension).

    The release has entities in lower case, but not the dialogue. Therefore the answer's mentions
    are searched as whole words, ignoring case. The start is the offset of the first mention, or -1
    if the dialogue has none. The card defines every mention as correct.
    """
    outer = dialogue.location.at("dialogue_metadata")
    scene = get_table(dialogue.metadata, task.name, outer)
    entities = get_texts(scene, "scene_entities", outer.at(task.name))
    for item, location in read_items(dialogue.raw, task.name, dialogue.location):
        answer = get_name(item, "answer", location)
        if answer not in entities:
            raise location.at("answer").error(
                f"the answer {answer!r} is not an entity of the scene (the most similar is "
                f"{find_nearest(answer, entities)})"
            )
        query = {"query": get_name(item, "query", location), "entities": " or ".join(entities)}
        start = next(iter(find_mentions(answer, dialogue.context)), -1)
        yield build_instance(
            dialogue,
            task,
            location,
            dialogue.context,
            target=(answer,),
            starts=(start,),
            query=query,
            options=entities,
        )


def read_mentions(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield instances that ask which character a mention refers to (character identification).

    A turn may have several mentions.
    """
    for turn in dialogue.turns:
        if task.name not in turn.raw:
            continue
        for item, location in read_items(turn.raw, task.name, turn.location):
            mention = get_name(item, "entity_reference", location)
            start = get_integer(item, "start", location)
            check_span_offset(mention, start, turn.utterance, "the utterance", location.at("start"))
            query = {
                "mention": mention,
                "phrase": extract_phrase(turn.utterance, start, start + len(mention)),
            }
            target = (get_label(item, "normalized_entity", task, location),)
            context = dialogue.context[: turn.end]
            yield build_instance(
                dialogue, task, location, context, target=target, query=query, focus=turn.start
            )


def extract_phrase(utterance: str, start: int, end: int) -> str:
    """Return four words around the mention at ``utterance[start:end]``.

    These are the first four words from the mention on, or the last four words up to it if there are
    more words before it than after it. As in the paper's toolkit, the words up to the mention
    include the character after it, which is usually punctuation.
    """
    after, before = utterance[start:].split(), utterance[: end + 1].split()
    longer = before[-PHRASE_WORDS:] if len(before) > len(after) else after[:PHRASE_WORDS]
    return " ".join(longer)


def read_spans_in_turns(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield questions whose answers are spans of a turn or speakers' names (FriendsQA)."""
    for group, outer in iterate_objects(dialogue.raw, task.name, dialogue.location):
        for item, location in read_items(group, "qas", outer):
            answers = [
                _read_turn_span(answer, spot, dialogue)
                for answer, spot in iterate_objects(item, "answers", location)
            ]
            query = get_query_texts(item, ("question",), location)
            yield build_span_instance(
                dialogue, task, location, dialogue.context, answers=answers, query=query
            )


def _read_turn_span(
    answer: Table, location: Location, dialogue: AnnotatedDialogue
) -> tuple[str, int]:
    text = get_name(answer, "text", location)
    turn_id = get_member(answer, "answer_utterance_id", location)
    turn = find_turn(dialogue, turn_id, location.at("answer_utterance_id"))
    if not get_flag(answer, "is_speaker", location):
        inside = get_integer(answer, "answer_start", location)
        where = f"the utterance of turn {turn_id!r}"
        check_span_offset(text, inside, turn.utterance, where, location.at("answer_start"))
        return text, turn.body + inside
    inside = " ".join(turn.speakers).find(text)
    if inside < 0:
        raise location.at("text").error(f"the name {text!r} is not a speaker of turn {turn_id!r}")
    return text, turn.start + inside


def read_traits(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield instances with one answer per personality trait of a speaker.

    The traits are in the order of the card's outputs.
    """
    for item, location in read_items(dialogue.raw, task.name, dialogue.location):
        answers = get_table(item, "personality_characteristics", location)
        answers_place = location.at("personality_characteristics")
        target = tuple(get_label(answers, trait, task, answers_place) for trait in task.outputs)
        query = {"speaker": get_name(item, "focus_speaker", location)}
        context, turns = join_turns(dialogue, item, "turns", location)
        yield build_instance(
            dialogue, task, location, context, target=target, query=query, turns=turns
        )


def read_entity_pairs(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield instances with all relations between two entities in some turns (DialogRE)."""
    for group, outer in iterate_objects(dialogue.raw, task.name, dialogue.location):
        context, turns = join_turns(dialogue, group, "turns", outer)
        for item, location in read_items(group, "relation_triples", outer):
            relations = remove_duplicates(get_texts(item, "relations", location))
            relations_place = location.at("relations")
            if not relations:
                raise relations_place.error("the list of relations is empty")
            for relation in relations:
                check_label(relation, task, relations_place)
            query = get_query_texts(item, ("head", "tail"), location)
            yield build_instance(
                dialogue, task, location, context, target=relations, query=query, turns=turns
            )


TASKS: tuple[AnnotatedTask, ...] = (
    AnnotatedTask(
        cards.EMORY_EMOTION_RECOGNITION,
        read_utterance_labels,
        TaskSize(844, 207, 1912, 211),
        TinySize(1.66, 23),
    ),
    AnnotatedTask(
        cards.READING_COMPREHENSION,
        read_masked_entities,
        TaskSize(912, 181, 2284, 393),
        TinySize(1.0, 61),
    ),
    AnnotatedTask(
        cards.CHARACTER_IDENTIFICATION,
        read_mentions,
        TaskSize(3593, 638, 7803, 308),
        TinySize(0.67, 64),
    ),
    AnnotatedTask(
        cards.QUESTION_ANSWERING,
        read_spans_in_turns,
        TaskSize(819, 191, 1937, 395),
        TinySize(1.0, 52),
    ),
    AnnotatedTask(
        cards.PERSONALITY_DETECTION, read_traits, TaskSize(54, 15, 110, 207), TinySize(0.67, 46)
    ),
    AnnotatedTask(
        cards.RELATION_EXTRACTION,
        read_entity_pairs,
        TaskSize(519, 121, 1188, 317),
        TinySize(0.8, 52),
    ),
    AnnotatedTask(
        cards.MELD_EMOTION_RECOGNITION,
        read_utterance_labels,
        TaskSize(616, 148, 1247, 228),
        TinySize(1.65, 23),
    ),
)
"""Tasks in the order of the release's metadata."""

ALLOWED_SHARED = 0.005
"""Allowed fraction of a split's texts that are also in another split. Episodes begin with scenes of
the previous one: 1 of 466 test dialogues and 1 of 466 dev dialogues are in train."""

FRIENDS = build_feta_dataset("Friends", TASKS, ALLOWED_SHARED)
