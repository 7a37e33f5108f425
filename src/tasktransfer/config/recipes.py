"""Hyperparameters that ``training.recipe: auto`` fills in, by family and size of the model.

The values are provisional. They are usual for such models, and benchmarks/recipe_search.py, which
compares settings by dev scores of four tasks, has not been run to its end. No test score chose
them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tasktransfer.core.specs import Family, LearningRateSchedule, Reads


@dataclass(frozen=True, slots=True)
class Recipe:
    """Hyperparameters by the names of the config's keys. ``round_updates``: of a round, after which
    dev is measured. ``reads``: of an encoder's heads."""

    learning_rate: float
    batch_size: int
    updates: int
    round_updates: int
    schedule: LearningRateSchedule = "linear"
    warmup: float = 0.1
    weight_decay: float = 0.01
    reads: Reads = "pooler"


@dataclass(frozen=True, slots=True)
class _Row:
    """Models that a recipe is for. ``adapted``: whether an adapter is trained. ``parameters``: most
    of a model."""

    family: Family
    adapted: bool
    parameters: float
    recipe: Recipe


_NO_LIMIT = float("inf")
_SMALL, _BASE = 5e6, 6e7
"""Parameters up to which a model is as the built-in tiny ones, or as MiniLM."""

# An adapter's learning rate is RATE_OF_ADAPTERS times that of its row.
_ROWS = (
    _Row("encoder", False, _SMALL, Recipe(1e-3, 16, 300, 50)),
    _Row("encoder", False, _BASE, Recipe(3e-4, 16, 300, 50, reads="mean")),
    _Row("encoder", False, _NO_LIMIT, Recipe(1e-4, 16, 300, 50, reads="mean")),
    _Row("encoder", True, _NO_LIMIT, Recipe(1e-4, 16, 300, 50, reads="mean")),
    _Row("decoder", False, _SMALL, Recipe(1e-3, 16, 300, 50)),
    _Row("decoder", False, _NO_LIMIT, Recipe(1e-4, 16, 300, 50)),
    _Row("decoder", True, _NO_LIMIT, Recipe(1e-4, 16, 300, 50)),
    _Row("encoder_decoder", False, _SMALL, Recipe(1e-3, 16, 300, 50)),
    _Row("encoder_decoder", False, _NO_LIMIT, Recipe(3e-4, 16, 300, 50)),
    _Row("encoder_decoder", True, _NO_LIMIT, Recipe(1e-4, 16, 300, 50)),
)


def find_recipe(family: Family, parameters: int, *, adapted: bool) -> Recipe:
    """Return the recipe of a model.

    Args:
        parameters: of the whole model.
        adapted: whether a low-rank adapter is trained in place of its weights.
    """
    rows = (row for row in _ROWS if (row.family, row.adapted) == (family, adapted))
    return next(row.recipe for row in rows if parameters <= row.parameters)
