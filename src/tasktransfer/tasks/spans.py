"""Where the right answers of a span task stand in its context."""

from __future__ import annotations

import re

from tasktransfer.tasks.card import Instance, Task


def right_spans(task: Task, instance: Instance) -> list[tuple[int, int]]:
    """First and one past the last character in the context of each right answer: those that the
    release points at, or every mention where the card says so. An unanswerable instance has none.
    """
    if task.every_mention:
        return [
            (start, start + len(name))
            for name in instance.target
            for start in mentions_of(name, instance.context)
        ]
    return [
        (start, start + len(text))
        for text, start in zip(instance.target, instance.starts, strict=True)
        if start >= 0
    ]


def mentions_of(name: str, context: str) -> list[int]:
    """Where a name stands in a context as whole words, case ignored, in order."""
    pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
    return [match.start() for match in re.finditer(pattern, context, re.IGNORECASE)]
