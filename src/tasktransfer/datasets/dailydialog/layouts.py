"""How the release annotates the tasks on DailyDialog (see ``feta.annotations``)."""

from __future__ import annotations

from collections.abc import Iterator

from tasktransfer.datasets.feta.annotations import (
    check_span,
    choice,
    instance_of,
    items,
    label_of,
    named,
    span_instance,
    texts,
)
from tasktransfer.datasets.feta.dialogues import Dialogue, context_of
from tasktransfer.files.fields import (
    Place,
    Table,
    each_table,
    get_integer,
    get_name,
    get_table,
    get_text,
)
from tasktransfer.tasks.card import Instance, Task

BEST_RESPONSE = "Which option is the best response?"


def dialogue_label(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """One label on a whole dialogue (topic)."""
    item = get_table(dialogue.raw, task.name, dialogue.place)
    place = named(item, dialogue.place.at(task.name))
    target = (label_of(item, "label", task, place),)
    yield instance_of(dialogue, task, place, dialogue.context, target=target)


def causal_entailment(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Does this utterance cause that emotion? (RECCON; the label's key is ``labels``)."""
    for item, place in items(dialogue.raw, task.name, dialogue.place):
        cause = get_text(item, "causal_utterance", place)
        emotion = get_text(item, "emotion", place)
        affected = get_text(item, "target_utterance", place)
        query = {"hypothesis": f"{cause} causes {emotion} in {affected}"}
        target = (label_of(item, "labels", task, place),)
        context = get_name(item, "history", place)
        yield instance_of(dialogue, task, place, context, target=target, query=query)


def triple_entailment(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Does the dialogue entail head, relation, tail? (CIDER)."""
    for item, place in items(dialogue.raw, task.name, dialogue.place):
        words = [get_text(item, key, place) for key in ("head", "relation", "tail")]
        query = {"hypothesis": " ".join(words)}
        target = (label_of(item, "label", task, place),)
        yield instance_of(dialogue, task, place, dialogue.context, target=target, query=query)


def relation_label(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Which relation holds between head and tail? (CIDER)."""
    for item, place in items(dialogue.raw, task.name, dialogue.place):
        target = (label_of(item, "relation", task, place),)
        query = texts(item, ("head", "tail"), place)
        yield instance_of(dialogue, task, place, dialogue.context, target=target, query=query)


def spans_in_own_context(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Questions whose answers are spans of the context given with them (RECCON, CIDER)."""
    for group, outer in each_table(dialogue.raw, task.name, dialogue.place):
        context = get_name(group, "context", outer)
        for item, place in items(group, "qas", outer):
            answers = [
                _span(answer, spot, context, get_integer(answer, "answer_start", spot))
                for answer, spot in each_table(item, "answers", place)
            ]
            query = texts(item, ("question",), place)
            yield span_instance(dialogue, task, place, context, answers=answers, query=query)


def _span(answer: Table, place: Place, context: str, start: int) -> tuple[str, int]:
    """An answer with its offset; -1 marks a question that the context does not answer."""
    text = get_name(answer, "text", place)
    if start != -1:
        check_span(text, start, context, "the context", place.at("answer_start"))
    return text, start


def own_context_choice(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Questions with options on a context given with them (CIDER)."""
    outer = dialogue.place.at(task.name)
    group = get_table(dialogue.raw, task.name, dialogue.place)
    context = get_name(group, "context", outer)
    for item, place in items(group, "mcqs", outer):
        options, target = choice(item, task, place)
        query = texts(item, ("question",), place)
        yield instance_of(
            dialogue, task, place, context, target=target, query=query, options=options
        )


def response_choice(dialogue: Dialogue, task: Task) -> Iterator[Instance]:
    """Which response follows these turns? (DailyDialog++)."""
    for group, outer in each_table(dialogue.raw, task.name, dialogue.place):
        context, turns = context_of(dialogue, group, "context_turns", outer)
        for item, place in items(group, "samples", outer):
            options, target = choice(item, task, place)
            query = {"question": BEST_RESPONSE}
            yield instance_of(
                dialogue,
                task,
                place,
                context,
                target=target,
                query=query,
                options=options,
                turns=turns,
            )
