"""The names of the study's methods, and what is put before texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tasktransfer.datasets.dailydialog.cards import TOPIC_CLASSIFICATION
from tasktransfer.designs.empathetic.sources.cards import NEWSGROUP, NEWSGROUPS
from tasktransfer.tasks.card import Task

TOPIC_TASKS: Mapping[str, Task] = {"DailyDialog": TOPIC_CLASSIFICATION, NEWSGROUPS: NEWSGROUP}
FIXED = ("pretrained", "base", "multitask", "ensemble-plain", "ensemble-tuned", "ensemble-tags")
LARGE = ("pretrained-large", "base-large")
_PREPEND = re.compile(r"(emo|topic)prepend-([1-9][0-9]*)")


def prepended(method: str) -> tuple[str, int] | None:
    """(emo or topic, k) of a Prepend-k method; None for others."""
    match = _PREPEND.fullmatch(method)
    return (match[1], int(match[2])) if match else None
