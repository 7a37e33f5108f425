"""Positions of the gold answers of a span task in its context."""

from __future__ import annotations

import re

from tasktransfer.tasks.card import Instance, Task


def find_answer_spans(task: Task, instance: Instance) -> list[tuple[int, int]]:
    """Find the gold answers in the context, as (start, end) in characters.

    These are the release's positions, or all mentions if the card has ``every_mention``. The list
    of an unanswerable instance is empty.
    """
    if task.every_mention:
        return [
            (start, start + len(name))
            for name in instance.target
            for start in find_mentions(name, instance.context)
        ]
    return [
        (start, start + len(text))
        for text, start in zip(instance.target, instance.starts, strict=True)
        if start >= 0
    ]


def find_mentions(name: str, context: str) -> list[int]:
    """Find a name in a context as whole words, ignoring case, and return its offsets."""
    pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
    return [match.start() for match in re.finditer(pattern, context, re.IGNORECASE)]
