"""Texts of instances whose gold answer is a reply."""

from __future__ import annotations

from tasktransfer.tasks.card import Instance

PREFIX, LABEL = "prefix", "emotion"
"""Fields of an instance: words in front of its reply, and its label."""


def get_gold(instance: Instance) -> tuple[str, ...]:
    """Return the gold reply without the words in front of it, and its label."""
    label = instance.query.get(LABEL)
    return (strip_prefix(instance), *([label] if label else []))


def strip_prefix(instance: Instance) -> str:
    """Return the reply without the words in front of it."""
    return instance.target[0].removeprefix(instance.query.get(PREFIX, "")).lstrip()
