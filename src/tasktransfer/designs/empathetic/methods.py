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
PRETRAINED, BASE = "pretrained", "base"
NOT_COMPARABLE = ("emoprepend-gold",)
"""What is told the label that the others must find out."""
CONTROLS = (*NOT_COMPARABLE, "emoprepend-random")
"""What is known to help or not: no part of the family whose false discoveries are controlled."""
GROUPS = ("fine-tuning", "external classifier", "larger models", "controls")
"""The paper's groups of methods (Table 2), and ours."""
_PAPER_NAMES = {
    "pretrained": "Pretrained",
    "base": "Base",
    "multitask": "Multitask",
    "ensemble-plain": "Ensem-DM",
    "ensemble-tuned": "Ensem-DM+",
    "ensemble-tags": "Ensem-Tran",
    "pretrained-large": "PretrainedLarge",
    "base-large": "BaseLarge",
}
"""Method → the paper's name of what it stands for."""
_PREPEND = re.compile(r"(emo|topic)prepend-([1-9][0-9]*)")


def prepended(method: str) -> tuple[str, int] | None:
    """(emo or topic, k) of a Prepend-k method; None for others."""
    match = _PREPEND.fullmatch(method)
    return (match[1], int(match[2])) if match else None


def paper_name(method: str) -> str:
    """What the paper calls a method; the study's own name of one that it has not."""
    prepend = prepended(method)
    if prepend is not None:
        return f"{prepend[0].capitalize()}Prepend-{prepend[1]}"
    return _PAPER_NAMES.get(method, method)


def group_of(method: str) -> str:
    """One of ``GROUPS``."""
    if method in CONTROLS:
        return "controls"
    if method in LARGE:
        return "larger models"
    if prepended(method) or method.startswith("ensemble"):
        return "external classifier"
    return "fine-tuning"


def supervised(method: str) -> bool:
    """Whether emotions or topics are told or taught to it: what the study asks about."""
    return method == "multitask" or group_of(method) == "external classifier"
