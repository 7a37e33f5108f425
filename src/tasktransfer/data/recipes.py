"""Recipes: instances derived from other instances, from fits and from trained models.

A recipe is a pure function of its inputs and settings. Its instances are written like other
prepared instances (``data.cache``) and checked against their task's card in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes.data import SAMPLED
from tasktransfer.data.cache import read_instances
from tasktransfer.data.permuted import derive_permuted_instances
from tasktransfer.data.samples import derive_sampled_dialogues
from tasktransfer.errors import ConfigError
from tasktransfer.tasks.card import SPLITS, Instance

Rank = Callable[[str, Sequence[Instance]], list[tuple[str, ...]]]
"""(task of the fit, instances) → ranked labels of each instance, best first."""

Judge = Callable[[str, Sequence[Instance]], list[float]]
"""(task of the stage, instances) → a trained model's numeric answer for each instance."""

Split = tuple[str, str]
"""(task, split)."""


@dataclass(frozen=True, slots=True)
class Ingredients:
    """Inputs of a recipe, in the order of ``Data.uses``.

    Args:
        caches: folders of prepared instances, one per data set that the recipe uses. If it uses
            none, the folder of the release.
        rank: one ranking function per fit.
        checkpoints: folders of trained models.
        tasks: tasks to derive.
        settings: settings of the recipe.
        judges: one function per trained model.
        report: task or another key → name → number. The recipe fills it, and its numbers become
            the measures of the record.
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
    """Prepend the labels that a fit ranks highest to each context, best first.

    This is Prepend-k (Rashkin et al., section 4). Settings: ``k``, the number of labels; ``task``,
    the task of the fit.
    """
    (rank,), (cache,) = ingredients.rank, ingredients.caches
    k, fitted = ingredients.settings["k"], ingredients.settings["task"]
    derived: dict[Split, list[Instance]] = {}
    for task in ingredients.tasks:
        for split in SPLITS:
            instances = read_instances(cache, task, split)
            ranked = rank(fitted, instances)
            derived[task, split] = [
                _add_prefix(instance, " ".join(labels[:k]))
                for instance, labels in zip(instances, ranked, strict=True)
            ]
    return derived


def _add_prefix(instance: Instance, words: str) -> Instance:
    """Prepend ``words`` to an instance's context, and shift its offsets."""
    shift = len(words) + 1
    return replace(
        instance,
        context=f"{words} {instance.context}",
        focus=instance.focus + shift,
        starts=tuple(start if start < 0 else start + shift for start in instance.starts),
    )


RECIPES: dict[str, Recipe] = {
    "prepend_labels": prepend_labels,
    "permuted_answers": derive_permuted_instances,
    SAMPLED: derive_sampled_dialogues,
}


def find_recipe(name: str, more: Mapping[str, Recipe]) -> Recipe:
    """Return the recipe that is registered under a name.

    Args:
        name: name of the recipe.
        more: recipes of the design.

    Raises:
        ConfigError: there is no recipe with this name.
    """
    recipes = {**RECIPES, **more}
    if name not in recipes:
        raise ConfigError(
            f"There is no recipe {name!r} for derived data. Choose one of {', '.join(recipes)}."
        )
    return recipes[name]
