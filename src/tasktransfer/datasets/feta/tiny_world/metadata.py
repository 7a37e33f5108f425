"""Metadata of a release: labels and metric settings of the tasks, as published.

The metadata is computed from the cards. A test compares it with the official release if available.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from tasktransfer.datasets.feta.tiny_world.revision import GENERATOR_VERSION
from tasktransfer.tasks.card import MetricSpec, Task

Json: TypeAlias = dict[str, Any]


def build_task_metadata(card: Task) -> Json:
    """Return a task's labels and metrics in the usual form of the release.

    A metric that is computed once has one object of settings. Otherwise it has a list of objects.
    """
    settings: dict[str, list[Json]] = {}
    for spec in card.metrics:
        settings.setdefault(spec.name, []).append(_build_settings(spec))
    kwargs = {
        name: items if len(items) > 1 else items[0]
        for name, items in settings.items()
        if any(items)
    }
    return {
        **({"labels": list(card.labels)} if card.labels else {}),
        "metrics": list(settings),
        **({"metric_kwargs": kwargs} if kwargs else {}),
    }


def _build_settings(spec: MetricSpec) -> Json:
    settings: Json = {}
    if spec.unanswerable_phrases:
        settings["unanswerable_phrases"] = list(spec.unanswerable_phrases)
    if spec.ignore_unanswerable:
        settings["ignore_unanswerable"] = True
    if spec.average:
        settings["average"] = spec.average
    if spec.label_indices is not None:
        settings["labels"] = list(spec.label_indices)
    return settings


def build_release_metadata(
    dataset: str, tasks: Mapping[str, Json], seed: int, dialogues: int
) -> Json:
    """Return the ``metadata`` object of a dataset's JSON, marked as synthetic."""
    return {
        "dataset_name": dataset,
        "tasks": list(tasks),
        "task_metadata": dict(tasks),
        "synthetic": True,
        "generator": {
            "name": "tiny-world",
            "version": GENERATOR_VERSION,
            "seed": seed,
            "dialogues": dialogues,
        },
    }
