"""Human ratings as data: all sets together for evaluation, and samples for few-shot training."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.datasets import get_task
from tasktransfer.designs.panel.sources.corpora import is_for_training
from tasktransfer.designs.panel.sources.rated import get_rated_set_file
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance, compute_fraction

DRAWN = " drawn"
"""Suffix of the ID of a test item that is also used for training or validation."""


def read_rated_items(cache: Path, name: str, settings: Mapping[str, Any]) -> list[Instance]:
    """Return the items of a rated set.

    Items of a set in the setting ``halved`` are left out if their paragraphs are used for training
    (``sources.corpora.read_reddit``).
    """
    items = read_instances(cache, name, "test")
    if name in settings.get("halved", ()):
        items = [item for item in items if not is_for_training(item.context)]
    return items


def join_rated_sets(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Join the items of all rated sets into one task, with ratings scaled to 0-1.

    Settings: ``sets``; ``task``; ``halved``; ``exchanged``, true to give each item the context of
    another item.

    Raises:
        DataError: a set is missing, or all its items have the same mean rating.
    """
    (cache,), settings = ingredients.caches, ingredients.settings
    there = read_manifest(cache)
    every: list[Instance] = []
    for name in settings["sets"]:
        if name not in there.tasks:
            raise DataError(
                f"{cache}: The cache does not contain the rated set {name}. Add the file of the "
                "set to the release, or remove the set from rated_sets."
            )
        card = get_task(there.dataset, name)
        items = read_rated_items(cache, name, settings)
        if len({item.target for item in items}) < 2:
            raise DataError(
                f"{name}, {get_rated_set_file(name)}: All {len(items)} items have the mean rating "
                f"{items[0].target[0]}, so no correlation can be computed. Correct the ratings, "
                "or remove the set from rated_sets."
            )
        if settings.get("exchanged"):
            items = exchange_contexts(items)
        for item in items:
            share = f"{compute_fraction(card, item.target[0]):.12g}"
            group = f"{name} {item.dialogue_id}"
            every.append(replace(item, task=settings["task"], target=(share,), dialogue_id=group))
    return {(settings["task"], s): every if s == "test" else [] for s in SPLITS}


def exchange_contexts(items: Sequence[Instance]) -> list[Instance]:
    """Exchange contexts within a set: each item keeps its response and has another item's context.

    All items of a context get the same other context, half of the set away.
    """
    groups = list({item.dialogue_id: item for item in items}.values())
    far = len(groups) // 2
    given = {
        item.dialogue_id: other
        for item, other in zip(groups, [*groups[far:], *groups[:far]], strict=True)
    }
    return [
        replace(item, context=other.context, focus=other.focus, turns=other.turns)
        for item, other in ((item, given[item.dialogue_id]) for item in items)
    ]


def sample_few_ratings(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Sample K % of the ratings of a set: one half for training, one half for validation.

    The test split has all items, as in the paper (section VI-C); sampled items are marked.
    Settings: ``task``, ``percent``, ``by``, ``draw``, ``halved``. If ``by`` is contexts, these are
    sampled with all their items until each half is large enough. Then no held-out item shares a
    context with a sampled one.

    Raises:
        DataError: there are too few items.
    """
    (cache,), settings = ingredients.caches, ingredients.settings
    task = settings["task"]
    items = read_rated_items(cache, task, settings)
    together = [[index] for index in range(len(items))]
    if settings["by"] == "contexts":
        of_context: dict[str, list[int]] = {}
        for index, item in enumerate(items):
            of_context.setdefault(item.dialogue_id, []).append(index)
        together = [*of_context.values()]
    random.Random(f"few {task} {settings['draw']}").shuffle(together)
    half = round(len(items) * settings["percent"] / 200)
    cuts: dict[str, list[int]] = {"train": [], "dev": []}
    for cut in cuts.values():
        while together and len(cut) < half:
            cut.extend(together.pop())
    drawn = {index for cut in cuts.values() for index in cut}
    if half < 2 or len(items) - len(drawn) < 2:
        raise DataError(
            f"{task}: A sample of {settings['percent']} % of {len(items)} items gives two halves "
            f"of {half} items. Each half and the remaining items must contain at least two items. "
            "Choose another percentage (few_shot.percentages)."
        )
    derived = {(task, split): [items[index] for index in cut] for split, cut in cuts.items()}
    derived[task, "test"] = [
        replace(item, id=f"{item.id}{DRAWN}" if index in drawn else item.id)
        for index, item in enumerate(items)
    ]
    return derived
