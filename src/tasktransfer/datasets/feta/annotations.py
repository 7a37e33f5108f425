"""From annotations to instances: what the layouts of the release share.

A layout is a function that takes a dialogue and a task's card and yields the task's instances on
it. A dataset's own layouts are in its folder; tasks that are annotated alike share one. Field names
are those of the release; ``query`` names are those that cards and prompts rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from tasktransfer.datasets.dataset import TaskSize
from tasktransfer.datasets.feta.dialogues import AnnotatedDialogue
from tasktransfer.files.fields import (
    Location,
    Table,
    each_table,
    get_name,
    get_table,
    get_text,
    get_texts,
    member,
    nearest,
)
from tasktransfer.tasks.card import Instance, Task

Layout = Callable[[AnnotatedDialogue, Task], Iterator[Instance]]
Answer = TypeVar("Answer", str, tuple[str, int])


class Annotated(NamedTuple):
    """A task, and how the release annotates it.

    ``size``: instances of the few-sample setting (paper, Table 1); tokens are the mean over 150
    training instances of the release in BERT's word pieces, cut at 512.
    """

    card: Task
    layout: Layout
    size: TaskSize


def utterance_label(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """One label on a turn: context up to and including it (emotions, dialogue acts)."""
    for turn in dialogue.turns:
        if task.name not in turn.raw:
            continue
        item = get_table(turn.raw, task.name, turn.location)
        location = named(item, turn.location.at(task.name))
        target = (label_of(item, "label", task, location),)
        context = dialogue.context[: turn.end]
        yield instance_of(dialogue, task, location, context, target=target, focus=turn.start)


def instance_of(
    dialogue: AnnotatedDialogue,
    task: Task,
    location: Location,
    context: str,
    *,
    target: tuple[str, ...],
    focus: int | None = None,
    query: dict[str, str] | None = None,
    options: tuple[str, ...] = (),
    starts: tuple[int, ...] = (),
    turns: tuple[int, ...] | None = None,
) -> Instance:
    """An instance on a dialogue. ``turns``: where its turns begin; None: it is the dialogue's
    beginning, or a context of the annotation's own."""
    if turns is None:
        whole = dialogue.context.startswith(context)
        turns = tuple(t.start for t in dialogue.turns if whole and t.start < len(context))
    return Instance(
        id=location.instance,
        dialogue_id=dialogue.id,
        task=task.name,
        context=context,
        focus=len(context) if focus is None else focus,
        query=query or {},
        options=options,
        target=target,
        starts=starts,
        turns=turns,
    )


def span_instance(
    dialogue: AnnotatedDialogue,
    task: Task,
    location: Location,
    context: str,
    *,
    answers: Iterable[tuple[str, int]],
    query: dict[str, str],
) -> Instance:
    kept = once(answers)
    if not kept:
        raise location.at("answers").error("holds no answer")
    target, starts = zip(*kept, strict=True)
    return instance_of(dialogue, task, location, context, target=target, starts=starts, query=query)


def items(table: Table, key: str, location: Location) -> Iterator[tuple[Table, Location]]:
    """The annotated items in the list under ``key``, their places named by instance_id."""
    for item, spot in each_table(table, key, location):
        yield item, named(item, spot)


def named(item: Table, location: Location) -> Location:
    """The place, named by the item's instance_id."""
    return location.of_instance(get_name(item, "instance_id", location))


def texts(item: Table, keys: tuple[str, ...], location: Location) -> dict[str, str]:
    """Key → text, as a query takes them."""
    return {key: get_text(item, key, location) for key in keys}


def label_of(item: Table, key: str, task: Task, location: Location) -> str:
    """The text under ``key``, which must be a label of the task."""
    label = get_text(item, key, location)
    check_label(label, task, location.at(key))
    return label


def check_label(label: str, task: Task, location: Location) -> None:
    """Raise DataError for what is no label of the task."""
    if label not in task.labels:
        raise location.error(
            f"{label!r} is no label of {task.name}; nearest is {nearest(label, task.labels)}"
        )


def choice(item: Table, task: Task, location: Location) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options and the right one's number (as text), which the release gives as either."""
    options = get_texts(item, "options", location)
    if len(options) != task.classes:
        raise location.at("options").error(
            f"{len(options)} options; {task.name} has {task.classes} for every question"
        )
    number = member(item, "label", location)
    numbers = [str(index) for index in range(len(options))]
    if isinstance(number, (str, int)) and not isinstance(number, bool) and str(number) in numbers:
        return options, (str(number),)
    raise location.at("label").error(
        f"{number!r} is no option's number; they run from 0 to {len(options) - 1}"
    )


def check_span(text: str, start: int, whole: str, where: str, location: Location) -> None:
    """Raise DataError unless ``whole`` (``where`` in messages) has the text at ``start``."""
    if start < 0 or not whole.startswith(text, start):
        text_there = whole[max(start, 0) : max(start, 0) + len(text)]
        raise location.error(f"{text!r} is not in {where} at {start}; {text_there!r} is there")


def once(values: Iterable[Answer]) -> tuple[Answer, ...]:
    """The values without duplicates, in their order."""
    return tuple(dict.fromkeys(values))
