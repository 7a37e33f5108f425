"""Names and groups of the study's methods and of their trainings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from tasktransfer.core.nodes import Start
from tasktransfer.core.plan import Step
from tasktransfer.datasets.dailydialog.cards import TOPIC_CLASSIFICATION
from tasktransfer.designs.empathetic.sources.cards import (
    DAILY_NEXT,
    EMOTION,
    NEWSGROUP,
    NEWSGROUPS,
    PAIR,
    TAG,
)
from tasktransfer.tasks.card import Task

TOPIC_TASKS: Mapping[str, Task] = {"DailyDialog": TOPIC_CLASSIFICATION, NEWSGROUPS: NEWSGROUP}
FIXED = ("pretrained", "base", "multitask", "ensemble-plain", "ensemble-tuned", "ensemble-tags")
LARGE = ("pretrained-large", "base-large")
PRETRAINED, BASE = "pretrained", "base"
NOT_COMPARABLE = ("emoprepend-gold",)
"""Methods that are given the gold label, which the others must predict."""
WORDS = "tf-idf"
"""Ranking of replies by the words that they share with the context, without a model."""
CONTROLS = (*NOT_COMPARABLE, "emoprepend-random", WORDS)
"""Methods whose effect is known in advance; they are excluded from false-discovery control."""
CLASSIFIERS = ("fasttext-emotion", "fasttext-topic", "classifier-tuned")
"""Classifiers whose labels or encodings other methods use."""
BROUGHT = "brought"
"""Model of a run whose replies come from the user's own system, and group of these systems."""
PROMPTED = "prompted"
"""Model of a run whose replies come from a prompted language model, and group of these models."""
UNTRAINED, LONGER = "ensemble-untrained", "base-longer"
CONTROLS_OF_ENSEMBLES = {UNTRAINED: "untrained", LONGER: "longer"}
"""Control that ensembles are compared with → its name in the config.

An ensemble has a second encoder and a second training, and either may improve replies without any
emotion.
"""
CONTROLS_OF_LABELS = ("gold", "random")
"""Controls for EmoPrepend-1, by their names in the config."""
GROUPS = ("fine-tuning", "external classifier", "larger models", "controls", BROUGHT, PROMPTED)
"""The paper's groups of methods (Table 2), our controls, and systems that the study does not train.
"""
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
"""Method → its name in the paper."""
_PREPEND = re.compile(r"(emo|topic)prepend-([1-9][0-9]*)")


def parse_prepend(method: str) -> tuple[str, int] | None:
    """Return the label type (``emo`` or ``topic``) and k of a Prepend-k method, otherwise None."""
    match = _PREPEND.fullmatch(method)
    return (match[1], int(match[2])) if match else None


def get_paper_name(method: str) -> str:
    """Return the paper's name of a method, or our name if the paper does not have it."""
    prepend = parse_prepend(method)
    if prepend is not None:
        return f"{prepend[0].capitalize()}Prepend-{prepend[1]}"
    return _PAPER_NAMES.get(method, method)


def get_group(method: str, prompted: Collection[str] = ()) -> str:
    """Return the method's group, one of ``GROUPS``.

    Args:
        prompted: names of the study's prompted models.
    """
    if method in prompted:
        return PROMPTED
    if method in CONTROLS or method in CONTROLS_OF_ENSEMBLES:
        return "controls"
    if method in LARGE:
        return "larger models"
    if parse_prepend(method) or method.startswith("ensemble"):
        return "external classifier"
    return "fine-tuning" if method in (*FIXED, *CLASSIFIERS) else BROUGHT


def is_ensemble(method: str) -> bool:
    """Return whether the method is an ensemble and not a control for ensembles."""
    return method.startswith("ensemble") and method != UNTRAINED


def is_supervised(method: str) -> bool:
    """Return whether the method uses emotion or topic labels."""
    return method == "multitask" or get_group(method) == "external classifier"


def get_kind_and_label(step: Step, starts: tuple[Start, ...]) -> tuple[str, str]:
    """Return the kind and the label of a training run.

    They depend on the step only, so that identical trainings have the same name.
    """
    if step.train_tasks[0] in (DAILY_NEXT.name, PAIR.name):
        return "pretrained", step.train_tasks[0]
    if step.train_tasks[0] in (EMOTION.name, TAG.name):
        return "classifier", step.train_tasks[0]
    if "projection" in step.trains:
        others = [start for start in starts if start.parts]
        what = others[0].stage.label if others and others[0].stage else "as_released"
        return "ensemble", f"with_{what}"
    if len(step.train_tasks) > 1:
        return "multitask", "replies_and_emotion"
    if step.data is not None and step.data.recipe:
        settings = step.data.settings
        return "prepend", f"{settings['task']}-{settings['k']}"
    again = any(start.stage is not None and start.stage.kind == "base" for start in starts)
    return "base", "replies_again" if again else "replies"
