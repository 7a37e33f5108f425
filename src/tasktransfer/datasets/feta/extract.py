"""From annotations to instances: one small function per layout that the release uses.

A layout takes a dialogue and a task's card and yields the task's instances on it. Which task uses
which layout is the table LAYOUTS at the end; tasks that are annotated alike share one. Field
names are those of the release; ``query`` names are those that cards and prompts rely on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tasktransfer.datasets.feta.dialogues import Dialogue, context_of, find_turn
from tasktransfer.datasets.feta.fields import (
    Place,
    Table,
    each_table,
    get_flag,
    get_integer,
    get_name,
    get_table,
    get_text,
    get_texts,
    member,
    nearest,
)
from tasktransfer.tasks.card import Instance, Task

Layout = Callable[[Dialogue, Task], Iterator[Instance]]
Answer = TypeVar("Answer", str, tuple[str, int])

BEST_RESPONSE = "Which option is the best response?"
PHRASE_WORDS = 4


def utterance_label(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """One label on a turn: context up to and including it (emotions, dialogue acts)."""
    for turn in dialogue.turns:
        if task.name not in turn.raw:
            continue
        item = get_table(turn.raw, task.name, turn.place)
        place = _named(item, turn.place.at(task.name))
        target = (_label(item, "label", task, place),)
        context = dialogue.context[: turn.end]
        yield _instance(dialogue, task, place, context, target=target, focus=turn.start)


def dialogue_label(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """One label on a whole dialogue (topic)."""
    item = get_table(dialogue.raw, task.name, dialogue.place)
    place = _named(item, dialogue.place.at(task.name))
    target = (_label(item, "label", task, place),)
    yield _instance(dialogue, task, place, dialogue.context, target=target)


def causal_entailment(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Does this utterance cause that emotion? (RECCON; the label's key is ``labels``)."""
    for item, place in _items(dialogue.raw, task.name, dialogue.place):
        cause = get_text(item, "causal_utterance", place)
        emotion = get_text(item, "emotion", place)
        affected = get_text(item, "target_utterance", place)
        query = {"hypothesis": f"{cause} causes {emotion} in {affected}"}
        target = (_label(item, "labels", task, place),)
        context = get_name(item, "history", place)
        yield _instance(dialogue, task, place, context, target=target, query=query)


def triple_entailment(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Does the dialogue entail head, relation, tail? (CIDER)."""
    for item, place in _items(dialogue.raw, task.name, dialogue.place):
        words = [get_text(item, key, place) for key in ("head", "relation", "tail")]
        query = {"hypothesis": " ".join(words)}
        target = (_label(item, "label", task, place),)
        yield _instance(dialogue, task, place, dialogue.context, target=target, query=query)


def relation_label(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Which relation holds between head and tail? (CIDER)."""
    for item, place in _items(dialogue.raw, task.name, dialogue.place):
        target = (_label(item, "relation", task, place),)
        query = _texts(item, ("head", "tail"), place)
        yield _instance(dialogue, task, place, dialogue.context, target=target, query=query)


def spans_in_own_context(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Questions whose answers are spans of the context given with them (RECCON, CIDER)."""
    for group, outer in each_table(dialogue.raw, task.name, dialogue.place):
        context = get_name(group, "context", outer)
        for item, place in _items(group, "qas", outer):
            answers = [
                _span(answer, spot, context, get_integer(answer, "answer_start", spot))
                for answer, spot in each_table(item, "answers", place)
            ]
            query = _texts(item, ("question",), place)
            yield _span_instance(dialogue, task, place, context, answers=answers, query=query)


def spans_in_turns(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Questions whose answers are spans of a turn, or its speaker's name (FriendsQA)."""
    for group, outer in each_table(dialogue.raw, task.name, dialogue.place):
        for item, place in _items(group, "qas", outer):
            answers = [
                _turn_span(answer, spot, dialogue)
                for answer, spot in each_table(item, "answers", place)
            ]
            query = _texts(item, ("question",), place)
            yield _span_instance(
                dialogue, task, place, dialogue.context, answers=answers, query=query
            )


def masked_entity(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Which of the scene's entities does the placeholder stand for? (reading comprehension).

    Entities are in lower case in the release, the dialogue is not: the answer's first occurrence
    as whole words in the context is looked for regardless of case, and its start is -1 where the
    dialogue never says the name.
    """
    outer = dialogue.place.at("dialogue_metadata")
    scene = get_table(dialogue.metadata, task.name, outer)
    entities = get_texts(scene, "scene_entities", outer.at(task.name))
    for item, place in _items(dialogue.raw, task.name, dialogue.place):
        answer = get_name(item, "answer", place)
        if answer not in entities:
            raise place.at("answer").error(
                f"{answer!r} is no entity of the scene; nearest is {nearest(answer, entities)}"
            )
        query = {"query": get_name(item, "query", place), "entities": " or ".join(entities)}
        start = _first_mention(answer, dialogue.context)
        yield _instance(
            dialogue,
            task,
            place,
            dialogue.context,
            target=(answer,),
            starts=(start,),
            query=query,
            options=entities,
        )


def mentions(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Whom does this mention refer to? (character identification); several in one turn."""
    for turn in dialogue.turns:
        if task.name not in turn.raw:
            continue
        for item, place in _items(turn.raw, task.name, turn.place):
            mention = get_name(item, "entity_reference", place)
            start = get_integer(item, "start", place)
            _check_span(mention, start, turn.utterance, "the utterance", place.at("start"))
            query = {
                "mention": mention,
                "phrase": phrase_around(turn.utterance, start, start + len(mention)),
            }
            target = (_label(item, "normalized_entity", task, place),)
            context = dialogue.context[: turn.end]
            yield _instance(
                dialogue, task, place, context, target=target, query=query, focus=turn.start
            )


def phrase_around(utterance: str, start: int, end: int) -> str:
    """Four words around the mention at ``utterance[start:end]``.

    The words from the mention on or the words up to it, whichever are more (on a tie the former):
    the first four of the former or the last four of the latter. As in the paper's toolkit, the
    words up to the mention take along the character after it, which is mostly its punctuation.
    """
    after, before = utterance[start:].split(), utterance[: end + 1].split()
    longer = before[-PHRASE_WORDS:] if len(before) > len(after) else after[:PHRASE_WORDS]
    return " ".join(longer)


def own_context_choice(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Questions with options on a context given with them (CIDER)."""
    outer = dialogue.place.at(task.name)
    group = get_table(dialogue.raw, task.name, dialogue.place)
    context = get_name(group, "context", outer)
    for item, place in _items(group, "mcqs", outer):
        options, target = _choice(item, task, place)
        query = _texts(item, ("question",), place)
        yield _instance(dialogue, task, place, context, target=target, query=query, options=options)


def response_choice(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Which response follows these turns? (DailyDialog++)."""
    for group, outer in each_table(dialogue.raw, task.name, dialogue.place):
        context = context_of(dialogue, group, "context_turns", outer)
        for item, place in _items(group, "samples", outer):
            options, target = _choice(item, task, place)
            query = {"question": BEST_RESPONSE}
            yield _instance(
                dialogue, task, place, context, target=target, query=query, options=options
            )


def traits(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """One answer per trait of a speaker, in the order of the card's outputs (personality)."""
    for item, place in _items(dialogue.raw, task.name, dialogue.place):
        answers = get_table(item, "personality_characteristics", place)
        here = place.at("personality_characteristics")
        target = tuple(_label(answers, trait, task, here) for trait in task.outputs)
        query = {"speaker": get_name(item, "focus_speaker", place)}
        context = context_of(dialogue, item, "turns", place)
        yield _instance(dialogue, task, place, context, target=target, query=query)


def entity_pairs(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Every relation between head and tail in some turns (DialogRE)."""
    for group, outer in each_table(dialogue.raw, task.name, dialogue.place):
        context = context_of(dialogue, group, "turns", outer)
        for item, place in _items(group, "relation_triples", outer):
            relations = _once(get_texts(item, "relations", place))
            here = place.at("relations")
            if not relations:
                raise here.error("names no relation")
            for relation in relations:
                _check_label(relation, task, here)
            query = _texts(item, ("head", "tail"), place)
            yield _instance(dialogue, task, place, context, target=relations, query=query)


def _instance(
    dialogue: Dialogue,
    task: Task,
    place: Place,
    context: str,
    *,
    target: tuple[str, ...],
    focus: int | None = None,
    query: dict[str, str] | None = None,
    options: tuple[str, ...] = (),
    starts: tuple[int, ...] = (),
) -> Instance:
    return Instance(
        id=place.instance,
        dialogue_id=dialogue.id,
        task=task.name,
        context=context,
        focus=len(context) if focus is None else focus,
        query=query or {},
        options=options,
        target=target,
        starts=starts,
    )


def _span_instance(
    dialogue: Dialogue,
    task: Task,
    place: Place,
    context: str,
    *,
    answers: Iterable[tuple[str, int]],
    query: dict[str, str],
) -> Instance:
    kept = _once(answers)
    if not kept:
        raise place.at("answers").error("holds no answer")
    target, starts = zip(*kept, strict=True)
    return _instance(dialogue, task, place, context, target=target, starts=starts, query=query)


def _items(table: Table, key: str, place: Place) -> Iterator[tuple[Table, Place]]:
    """The annotated items in the list under ``key``, their places named by instance_id."""
    for item, spot in each_table(table, key, place):
        yield item, _named(item, spot)


def _named(item: Table, place: Place) -> Place:
    return place.of_instance(get_name(item, "instance_id", place))


def _texts(item: Table, keys: tuple[str, ...], place: Place) -> dict[str, str]:
    return {key: get_text(item, key, place) for key in keys}


def _label(item: Table, key: str, task: Task, place: Place) -> str:
    label = get_text(item, key, place)
    _check_label(label, task, place.at(key))
    return label


def _check_label(label: str, task: Task, place: Place) -> None:
    if label not in task.labels:
        raise place.error(
            f"{label!r} is no label of {task.name}; nearest is {nearest(label, task.labels)}"
        )


def _choice(item: Table, task: Task, place: Place) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options and the right one's number (as text), which the release gives as either."""
    options = get_texts(item, "options", place)
    if len(options) != task.classes:
        raise place.at("options").error(
            f"{len(options)} options; {task.name} has {task.classes} for every question"
        )
    number = member(item, "label", place)
    numbers = [str(index) for index in range(len(options))]
    if isinstance(number, (str, int)) and not isinstance(number, bool) and str(number) in numbers:
        return options, (str(number),)
    raise place.at("label").error(
        f"{number!r} is no option's number; they run from 0 to {len(options) - 1}"
    )


def _span(answer: Table, place: Place, context: str, start: int) -> tuple[str, int]:
    """An answer with its offset; -1 marks a question that the context does not answer."""
    text = get_name(answer, "text", place)
    if start != -1:
        _check_span(text, start, context, "the context", place.at("answer_start"))
    return text, start


def _turn_span(answer: Table, place: Place, dialogue: Dialogue) -> tuple[str, int]:
    text = get_name(answer, "text", place)
    turn_id = member(answer, "answer_utterance_id", place)
    turn = find_turn(dialogue, turn_id, place.at("answer_utterance_id"))
    if not get_flag(answer, "is_speaker", place):
        inside = get_integer(answer, "answer_start", place)
        where = f"the utterance of turn {turn_id!r}"
        _check_span(text, inside, turn.utterance, where, place.at("answer_start"))
        return text, turn.body + inside
    inside = " ".join(turn.speakers).find(text)
    if inside < 0:
        raise place.at("text").error(f"{text!r} is no speaker of turn {turn_id!r}")
    return text, turn.start + inside


def _check_span(text: str, start: int, whole: str, where: str, place: Place) -> None:
    if start < 0 or not whole.startswith(text, start):
        found = whole[max(start, 0) : max(start, 0) + len(text)]
        raise place.error(f"{text!r} is not in {where} at {start}; {found!r} is there")


def _first_mention(name: str, context: str) -> int:
    """Where ``name`` first stands in ``context`` as whole words, case ignored; -1 if nowhere."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", context, re.IGNORECASE)
    return found.start() if found else -1


def _once(values: Iterable[Answer]) -> tuple[Answer, ...]:
    return tuple(dict.fromkeys(values))


LAYOUTS: dict[str, Layout] = {
    "emotion_recognition": utterance_label,
    "dialogue_act_classification": utterance_label,
    "topic_classification": dialogue_label,
    "causal_emotion_span_extraction": spans_in_own_context,
    "causal_emotion_entailment": causal_entailment,
    "dialogue_nli": triple_entailment,
    "dialogue_reasoning_span_extraction": spans_in_own_context,
    "dialogue_reasoning_multiple_choice_span_selection": own_context_choice,
    "dialogue_reasoning_commonsense_relation_prediction": relation_label,
    "adversarial_response_selection": response_choice,
    "emory_emotion_recognition": utterance_label,
    "reading_comprehension": masked_entity,
    "character_identification": mentions,
    "question_answering": spans_in_turns,
    "personality_detection": traits,
    "relation_extraction": entity_pairs,
    "MELD_emotion_recognition": utterance_label,
}
"""Task name → how the release annotates it. A new task that is annotated like an old one needs
one line here."""
