"""Samples of instances within a limit, and nested samples of whole dialogues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tasktransfer.core.nodes.data import FRACTION
from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.tasks.card import SPLITS, Instance

if TYPE_CHECKING:
    from tasktransfer.data.recipes import Ingredients, Split

T = TypeVar("T")


def select_indices(count: int, limit: int | None) -> npt.NDArray[np.int64]:
    """Select the indices of the instances within a limit, in the split's order.

    They are the first of a fixed shuffle of ``count`` instances.
    """
    return np.sort(np.random.default_rng(0).permutation(count)[:limit])


def select_instances(instances: Sequence[T], limit: int | None) -> list[T]:
    """Select the instances within a limit, which all trainings with this limit share."""
    return [instances[number] for number in select_indices(len(instances), limit)]


def select_dialogues(dialogues: Sequence[str], fraction: float, seed: int) -> set[str]:
    """Sample dialogues, so that larger samples contain smaller ones with the same seed."""
    order = np.random.default_rng(seed).permutation(len(dialogues))
    return {dialogues[n] for n in order[: round(fraction * len(dialogues))]}


def sample_instances(
    instances: Sequence[Instance], fraction: float, seed: int, limit: int | None = None
) -> list[Instance]:
    """Return the instances on sampled dialogues, within a limit and in order.

    Args:
        instances: training instances of one task.
        fraction: fraction of the dialogues that have an instance within the limit.
        seed: seed of the sample.
        limit: largest number of instances before the sampling; None if unlimited.
    """
    limited = select_instances(instances, limit)
    dialogues = sorted({instance.dialogue_id for instance in limited})
    names = select_dialogues(dialogues, fraction, seed)
    return [instance for instance in limited if instance.dialogue_id in names]


def derive_sampled_dialogues(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Sample the training dialogues of each task, and copy the other splits.

    All tasks of the release are sampled, each from its own dialogues, so that adding a task to a
    study does not change its data.

    Settings: ``fraction``; ``seed``; ``limit_train``, the largest number of training instances
    before the sampling.
    """
    (cache,), settings = ingredients.caches, ingredients.settings
    sample: dict[str, Any] = {
        FRACTION: settings[FRACTION],
        "seed": settings["seed"],
        "limit": settings.get("limit_train"),
    }
    derived: dict[Split, list[Instance]] = {}
    for task in read_manifest(cache).tasks:
        for split in SPLITS:
            instances = read_instances(cache, task, split)
            derived[task, split] = (
                sample_instances(instances, **sample) if split == "train" else instances
            )
    return derived
