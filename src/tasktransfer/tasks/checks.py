"""Checks of cards, and of instances against their cards."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import get_args

from tasktransfer.tasks.card import (
    KINDS_WITHOUT_LABELS,
    REPLY_METRICS,
    Instance,
    MetricName,
    Task,
    TaskKind,
    compute_fraction,
    find_scale_problem,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
_NAME_RULE = "Use letters, digits and '_', because it is part of file names"


def find_card_problems(card: Task) -> Iterator[str]:
    """Find the problems of a card, each as ``<field>: <sentences>``."""
    for field, name in (("name", card.name), ("short", card.short)):
        if not _NAME.fullmatch(name):
            yield f"{field}: {name!r} is not a valid name. {_NAME_RULE}."
    if card.kind not in get_args(TaskKind):
        yield f"kind: {card.kind!r} is not a kind. Use one of {', '.join(get_args(TaskKind))}."
    if (card.kind in KINDS_WITHOUT_LABELS) == bool(card.labels):
        if card.labels:
            yield f"labels: A task of kind {card.kind} has no labels. Remove the labels."
        else:
            yield f"labels: A task of kind {card.kind} needs labels. List the labels."
    if len(set(card.labels)) != len(card.labels):
        yield "labels: A label is repeated. List each label once."
    if card.kind == "multiple_choice" and card.labels != tuple(map(str, range(card.classes))):
        yield "labels: The labels of multiple choice are the options' numbers. Use '0', '1', ..."
    if (card.kind == "multi_output") != bool(card.outputs):
        if card.outputs:
            yield f"outputs: A task of kind {card.kind} has no outputs. Remove them."
        else:
            yield "outputs: A task of kind multi_output needs outputs. List its traits."
    if card.kind == "rating" and (problem := find_scale_problem(card)):
        yield problem
    yield from _find_metric_problems(card)
    stray = sorted(set(card.prompt.label_words) - set(card.labels))
    if stray:
        yield f"prompt.label_words: {stray[0]!r} is not a label of the task. Remove it."
    words = {card.prompt.label_words.get(label, label).casefold() for label in card.labels}
    if len(words) != len(set(card.labels)):
        yield "prompt.label_words: Two labels have the same words. Give each label its own words."


def _find_metric_problems(card: Task) -> Iterator[str]:
    if not card.metrics:
        yield "metrics: The card has no metric. List at least one, because the score is their mean."
    for spec in card.metrics:
        if spec.name not in get_args(MetricName):
            names = ", ".join(get_args(MetricName))
            yield f"metrics: {spec.name!r} is not a metric. Use one of {names}."
        elif (spec.name in REPLY_METRICS) != (card.kind == "reply"):
            rule = "only metrics of replies fit" if card.kind == "reply" else "it is for replies"
            yield (
                f"metrics: {spec.name} does not fit a task of kind {card.kind}, because {rule}. "
                f"Use {', '.join(REPLY_METRICS)} for reply tasks, and other metrics otherwise."
            )
        if not all(-1 <= index < card.classes for index in spec.label_indices or ()):
            yield (
                f"metrics: The label_indices of {spec.key} contain a number that is not a class. "
                f"Use numbers from -1 to {card.classes - 1}."
            )
    keys = [spec.key for spec in card.metrics]
    for key in card.paper_metrics:
        if key not in keys:
            yield f"paper_metrics: {key!r} is not in metrics. Use {', '.join(keys)}."


def find_instance_problem(card: Task, instance: Instance) -> str | None:
    """Describe, in a sentence, how an instance contradicts its card.

    None if it fits.
    """
    if instance.task != card.name:
        return f"The task is {instance.task!r}, but {card.name!r} was expected."
    if not 0 <= instance.focus <= len(instance.context):
        return (
            f"The focus {instance.focus} is outside the context of {len(instance.context)} "
            "characters."
        )
    if card.kind == "span":
        return _find_span_problem(instance)
    if card.kind == "open_labels":
        repeated = len(set(instance.target)) < len(instance.target)
        return f"The target {instance.target!r} repeats a label." if repeated else None
    if card.kind == "reply":
        return None if len(instance.target) == 1 and instance.target[0].strip() else _NO_REPLY
    sizes = {"multi_output": len(card.outputs), "multi_label": max(1, len(instance.target))}
    if len(instance.target) != (size := sizes.get(card.kind, 1)):
        return (
            f"The target {instance.target!r} has {len(instance.target)} entries, but a task of "
            f"kind {card.kind} needs {size}."
        )
    if card.kind == "rating":
        off = math.isnan(compute_fraction(card, instance.target[0]))
        scale = " to ".join(card.labels)
        return f"The target {instance.target[0]!r} is not a number from {scale}." if off else None
    stray = [label for label in instance.target if label not in card.labels]
    if stray:
        return f"The target {stray[0]!r} is not a label of {card.name}."
    if card.kind == "multiple_choice" and len(instance.options) != card.classes:
        return f"The instance has {len(instance.options)} options instead of {card.classes}."
    return None


_NO_REPLY = "The target of a reply task is not exactly one text, or it is empty."


def _find_span_problem(instance: Instance) -> str | None:
    if not instance.target or len(instance.starts) != len(instance.target):
        return (
            f"The instance has {len(instance.target)} answers but {len(instance.starts)} starts. "
            "An instance needs at least one answer, and one start per answer."
        )
    for text, start in zip(instance.target, instance.starts, strict=True):
        found = instance.context[start : start + len(text)]
        if start != -1 and found.casefold() != text.casefold():
            return (
                f"The answer {text!r} is not at character {start} of its context, which has "
                f"{found!r} there."
            )
    return None
