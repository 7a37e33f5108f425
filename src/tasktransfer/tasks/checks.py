"""Checks of cards, and of instances against their cards."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import get_args

from tasktransfer.tasks.card import OF_REPLIES, WITHOUT_LABELS, Instance, MetricName, Task, TaskKind
from tasktransfer.tasks.ratings import compute_fraction, scale_problem

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
_NAME_RULE = "use letters, digits and '_', since it is part of file names"


def find_card_problems(card: Task) -> Iterator[str]:
    """Yield the problems of a card, each as ``<field>: <problem and remedy>``."""
    for field, name in (("name", card.name), ("short", card.short)):
        if not _NAME.fullmatch(name):
            yield f"{field}: {name!r}; {_NAME_RULE}"
    if card.kind not in get_args(TaskKind):
        yield f"kind: {card.kind!r}; use one of {', '.join(get_args(TaskKind))}"
    if (card.kind in WITHOUT_LABELS) == bool(card.labels):
        without = ", ".join(WITHOUT_LABELS)
        yield f"labels: {len(card.labels)} for {card.kind}; {without} have none, other kinds some"
    if len(set(card.labels)) != len(card.labels):
        yield "labels: duplicate label; give each once"
    if card.kind == "multiple_choice" and card.labels != tuple(map(str, range(card.classes))):
        yield "labels: multiple choice numbers its options; use '0', '1', ..."
    if (card.kind == "multi_output") != bool(card.outputs):
        yield f"outputs: {len(card.outputs)} for {card.kind}; only multi_output tasks have them"
    if card.kind == "rating" and (problem := scale_problem(card)):
        yield problem
    yield from _find_metric_problems(card)
    stray = sorted(set(card.prompt.label_words) - set(card.labels))
    if stray:
        yield f"prompt.label_words: {stray[0]!r} is not a label of the task"
    words = {card.prompt.label_words.get(label, label).casefold() for label in card.labels}
    if len(words) != len(set(card.labels)):
        yield "prompt.label_words: two labels have the same words; give each its own words"


def _find_metric_problems(card: Task) -> Iterator[str]:
    if not card.metrics:
        yield "metrics: none; name at least one, the task's score is their mean"
    for spec in card.metrics:
        if spec.name not in get_args(MetricName):
            yield f"metrics: {spec.name!r}; use one of {', '.join(get_args(MetricName))}"
        elif (spec.name in OF_REPLIES) != (card.kind == "reply"):
            yield (
                f"metrics: {spec.name} of {card.name}, which is {card.kind}; reply tasks, and "
                f"only they, use {', '.join(OF_REPLIES)}"
            )
        if not all(-1 <= index < card.classes for index in spec.label_indices or ()):
            yield f"metrics: label_indices of {spec.key} run from -1 to {card.classes - 1}"
    keys = [spec.key for spec in card.metrics]
    for key in card.paper_metrics:
        if key not in keys:
            yield f"paper_metrics: {key!r} is not in metrics; use {', '.join(keys)}"


def find_instance_problem(card: Task, instance: Instance) -> str | None:
    """Return the problem of an instance that does not fit its card. None if it fits."""
    if instance.task != card.name:
        return f"task is {instance.task!r}, expected {card.name!r}"
    if not 0 <= instance.focus <= len(instance.context):
        return (
            f"focus {instance.focus} is outside its context of {len(instance.context)} characters"
        )
    if card.kind == "span":
        return _find_span_problem(instance)
    if card.kind == "open_labels":
        repeated = len(set(instance.target)) < len(instance.target)
        return f"target {instance.target!r} names a label twice" if repeated else None
    if card.kind == "reply":
        return None if len(instance.target) == 1 and instance.target[0].strip() else _NO_REPLY
    wanted = {"multi_output": len(card.outputs), "multi_label": max(1, len(instance.target))}
    if len(instance.target) != wanted.get(card.kind, 1):
        return f"target {instance.target!r} has {len(instance.target)} entries for {card.kind}"
    if card.kind == "rating":
        off = math.isnan(compute_fraction(card, instance.target[0]))
        scale = " to ".join(card.labels)
        return f"target {instance.target[0]!r} is not a number from {scale}" if off else None
    stray = [label for label in instance.target if label not in card.labels]
    if stray:
        return f"target {stray[0]!r} is not a label of {card.name}"
    if card.kind == "multiple_choice" and len(instance.options) != card.classes:
        return f"{len(instance.options)} options, expected {card.classes}"
    return None


_NO_REPLY = "a reply must be one text that is not empty"


def _find_span_problem(instance: Instance) -> str | None:
    if not instance.target or len(instance.starts) != len(instance.target):
        return f"{len(instance.target)} answers with {len(instance.starts)} starts"
    for text, start in zip(instance.target, instance.starts, strict=True):
        there = instance.context[start : start + len(text)]
        if start != -1 and there.casefold() != text.casefold():
            return f"answer {text!r} is not in its context at {start}, which has {there!r}"
    return None
