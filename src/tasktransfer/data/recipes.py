"""Recipes: instances derived from other instances, and from fits and trained models.

A recipe is a function of what it uses and its settings, and of nothing else: the same input gives
the same instances. They are written as any other prepared instances are (``data.cache``), and are
checked against their task's card in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tasktransfer.data.cache import read_instances
from tasktransfer.data.permuted import permuted_answers
from tasktransfer.errors import ConfigError
from tasktransfer.tasks.card import SPLITS, Instance

Rank = Callable[[str, Sequence[Instance]], list[tuple[str, ...]]]
"""(task of the fit, instances) → the labels of each, the best first."""

Judge = Callable[[str, Sequence[Instance]], list[float]]
"""(task of the stage, instances) → the number that a trained model answers to each."""

Split = tuple[str, str]
"""task, split"""


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What a recipe uses, in the order of ``Data.uses``.

    ``caches``: folders of prepared instances, of the data that it uses or, without any, of the
    release. ``rank``: one function per fit. ``checkpoints``: folders of trained models.
    ``judges``: one function per trained model.
    ``tasks``: the tasks to derive. ``report``: what the recipe counts on its way, task (or what
    else it counts by) → name → number: the measures of the record.
    """

    caches: tuple[Path, ...]
    rank: tuple[Rank, ...]
    checkpoints: tuple[Path, ...]
    tasks: tuple[str, ...]
    settings: Mapping[str, Any]
    judges: tuple[Judge, ...] = ()
    report: dict[str, dict[str, float]] = field(default_factory=dict)


Recipe = Callable[[Ingredients], Mapping[Split, list[Instance]]]


def prepend_labels(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Put the labels that a fit ranks highest before the context, the best first (Rashkin et al.,
    section 4, Prepend-k).

    Settings: ``k``, how many labels; ``task``, what the fit was fitted on.
    """
    (rank,), (cache,) = ingredients.rank, ingredients.caches
    k, fitted = ingredients.settings["k"], ingredients.settings["task"]
    derived: dict[Split, list[Instance]] = {}
    for task in ingredients.tasks:
        for split in SPLITS:
            instances = read_instances(cache, task, split)
            ranked = rank(fitted, instances)
            derived[task, split] = [
                _with_prefix(instance, " ".join(labels[:k]))
                for instance, labels in zip(instances, ranked, strict=True)
            ]
    return derived


def _with_prefix(instance: Instance, words: str) -> Instance:
    """An instance whose context begins with some words; offsets into it move along."""
    shift = len(words) + 1
    return replace(
        instance,
        context=f"{words} {instance.context}",
        focus=instance.focus + shift,
        starts=tuple(start if start < 0 else start + shift for start in instance.starts),
    )


RECIPES: dict[str, Recipe] = {
    "prepend_labels": prepend_labels,
    "permuted_answers": permuted_answers,
}


def recipe_named(name: str, more: Mapping[str, Recipe]) -> Recipe:
    """The recipe of a name; ``more`` are those of the design.

    Raises:
        ConfigError: there is none.
    """
    recipes = {**RECIPES, **more}
    if name not in recipes:
        raise ConfigError(f"no recipe is named {name!r}; there are {', '.join(recipes)}")
    return recipes[name]
