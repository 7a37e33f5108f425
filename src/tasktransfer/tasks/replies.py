"""Texts of instances whose gold answer is a reply."""

from __future__ import annotations

from tasktransfer.tasks.card import Instance

PREFIX_FIELD, LABEL_FIELD = "prefix", "emotion"
"""Query fields of an instance: the words in front of its reply, and its emotion label."""


def get_gold_answers(instance: Instance) -> tuple[str, ...]:
    """Return the gold reply without its prefix, followed by its label (if any)."""
    label = instance.query.get(LABEL_FIELD)
    return (strip_reply_prefix(instance), *([label] if label else []))


def strip_reply_prefix(instance: Instance) -> str:
    """Strip the prefix words from a gold reply."""
    return instance.target[0].removeprefix(instance.query.get(PREFIX_FIELD, "")).lstrip()
