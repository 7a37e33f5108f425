"""DailyDialog: two anonymous speakers, everyday talk; ten tasks (FETA, Table 1).

A task is a card, a function that reads its annotations in the release, and a row in this file. To
add it to the generated data, also write its ``TinySize``, and a scene in ``tiny_world``.
"""

from __future__ import annotations

from collections.abc import Iterator

from tasktransfer.datasets.dailydialog import cards
from tasktransfer.datasets.dataset import TaskSize, TinySize
from tasktransfer.datasets.feta.annotations import (
    AnnotatedDialogue,
    AnnotatedTask,
    add_instance_name,
    build_instance,
    build_span_instance,
    check_span_offset,
    get_choice,
    get_label,
    get_query_texts,
    join_turns,
    read_items,
    read_utterance_labels,
)
from tasktransfer.datasets.feta.release import build_feta_dataset
from tasktransfer.files.fields import (
    Location,
    Table,
    get_integer,
    get_name,
    get_table,
    get_text,
    iterate_objects,
)
from tasktransfer.tasks.card import Instance, Task

BEST_RESPONSE = "Which option is the best response?"


def read_dialogue_labels(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield one instance per dialogue with the label of the whole dialogue (topic)."""
    item = get_table(dialogue.raw, task.name, dialogue.location)
    location = add_instance_name(item, dialogue.location.at(task.name))
    target = (get_label(item, "label", task, location),)
    yield build_instance(dialogue, task, location, dialogue.context, target=target)


def read_causal_entailments(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield instances that ask if an utterance causes an emotion (RECCON).

    The key of the label is ``labels``.
    """
    for item, location in read_items(dialogue.raw, task.name, dialogue.location):
        cause = get_text(item, "causal_utterance", location)
        emotion = get_text(item, "emotion", location)
        affected = get_text(item, "target_utterance", location)
        query = {"hypothesis": f"{cause} causes {emotion} in {affected}"}
        target = (get_label(item, "labels", task, location),)
        context = get_name(item, "history", location)
        yield build_instance(dialogue, task, location, context, target=target, query=query)


def read_triple_entailments(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield instances that ask if the dialogue entails a triple (head, relation, tail) (CIDER)."""
    for item, location in read_items(dialogue.raw, task.name, dialogue.location):
        words = [get_text(item, key, location) for key in ("head", "relation", "tail")]
        query = {"hypothesis": " ".join(words)}
        target = (get_label(item, "label", task, location),)
        yield build_instance(dialogue, task, location, dialogue.context, target=target, query=query)


def read_relation_labels(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield instances on the relation between head and tail (CIDER)."""
    for item, location in read_items(dialogue.raw, task.name, dialogue.location):
        target = (get_label(item, "relation", task, location),)
        query = get_query_texts(item, ("head", "tail"), location)
        yield build_instance(dialogue, task, location, dialogue.context, target=target, query=query)


def read_context_spans(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield questions whose answers are spans of a context (RECCON, CIDER)."""
    for group, outer in iterate_objects(dialogue.raw, task.name, dialogue.location):
        context = get_name(group, "context", outer)
        for item, location in read_items(group, "qas", outer):
            answers = [
                _read_span(answer, spot, context, get_integer(answer, "answer_start", spot))
                for answer, spot in iterate_objects(item, "answers", location)
            ]
            query = get_query_texts(item, ("question",), location)
            yield build_span_instance(
                dialogue, task, location, context, answers=answers, query=query
            )


def _read_span(answer: Table, location: Location, context: str, start: int) -> tuple[str, int]:
    """Read an answer and its offset, which is -1 if the context does not contain it."""
    text = get_name(answer, "text", location)
    if start != -1:
        check_span_offset(text, start, context, "the context", location.at("answer_start"))
    return text, start


def read_context_choices(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield multiple-choice questions about a context that several questions share (CIDER)."""
    outer = dialogue.location.at(task.name)
    group = get_table(dialogue.raw, task.name, dialogue.location)
    context = get_name(group, "context", outer)
    for item, location in read_items(group, "mcqs", outer):
        options, target = get_choice(item, task, location)
        query = get_query_texts(item, ("question",), location)
        yield build_instance(
            dialogue, task, location, context, target=target, query=query, options=options
        )


def read_response_choices(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield instances that ask for the best response to some turns (DailyDialog++)."""
    for group, outer in iterate_objects(dialogue.raw, task.name, dialogue.location):
        context, turns = join_turns(dialogue, group, "context_turns", outer)
        for item, location in read_items(group, "samples", outer):
            options, target = get_choice(item, task, location)
            query = {"question": BEST_RESPONSE}
            yield build_instance(
                dialogue,
                task,
                location,
                context,
                target=target,
                query=query,
                options=options,
                turns=turns,
            )


TASKS: tuple[AnnotatedTask, ...] = (
    AnnotatedTask(
        cards.EMOTION_RECOGNITION,
        read_utterance_labels,
        TaskSize(7230, 1269, 15885, 90),
        TinySize(1.63, 20),
    ),
    AnnotatedTask(
        cards.DIALOGUE_ACT_CLASSIFICATION,
        read_utterance_labels,
        TaskSize(7230, 1269, 15885, 90),
        TinySize(1.0, 36),
    ),
    AnnotatedTask(
        cards.TOPIC_CLASSIFICATION,
        read_dialogue_labels,
        TaskSize(958, 161, 1919, 131),
        TinySize(0.5, 41),
    ),
    AnnotatedTask(
        cards.CAUSAL_EMOTION_SPAN_EXTRACTION,
        read_context_spans,
        TaskSize(2141, 169, 9133, 214),
        TinySize(1.0, 89),
    ),
    AnnotatedTask(
        cards.CAUSAL_EMOTION_ENTAILMENT,
        read_causal_entailments,
        TaskSize(2141, 169, 9133, 187),
        TinySize(1.0, 65),
    ),
    AnnotatedTask(
        cards.DIALOGUE_NLI,
        read_triple_entailments,
        TaskSize(569, 52, 1302, 145),
        TinySize(1.33, 41),
    ),
    AnnotatedTask(
        cards.DIALOGUE_REASONING_SPAN_EXTRACTION,
        read_context_spans,
        TaskSize(123, 13, 244, 143),
        TinySize(0.67, 45),
    ),
    AnnotatedTask(
        cards.DIALOGUE_REASONING_MULTIPLE_CHOICE_SPAN_SELECTION,
        read_context_choices,
        TaskSize(224, 26, 496, 575, sequences=4),
        TinySize(1.0, 183),
    ),
    AnnotatedTask(
        cards.DIALOGUE_REASONING_COMMONSENSE_RELATION_PREDICTION,
        read_relation_labels,
        TaskSize(350, 38, 851, 137),
        TinySize(1.0, 40),
    ),
    AnnotatedTask(
        cards.ADVERSARIAL_RESPONSE_SELECTION,
        read_response_choices,
        TaskSize(3400, 895, 10750, 243, sequences=3),
        TinySize(1.0, 104),
    ),
)
"""Tasks in the order of the release's metadata."""

ALLOWED_SHARED = 0.12
"""Allowed fraction of a split's texts that are also in another split. FETA made new splits of
DailyDialog's 13,118 dialogues, which contain hundreds of duplicates: 220 of 1,919 test dialogues
and 187 of 1,616 dev dialogues are in train."""

DAILYDIALOG = build_feta_dataset("DailyDialog", TASKS, ALLOWED_SHARED)
