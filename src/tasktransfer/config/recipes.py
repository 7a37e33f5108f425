"""Hyperparameters that ``training.recipe: auto`` fills in, by family and size of the model.

The values are provisional. They are common for models of this kind. benchmarks/recipe_search.py,
which compares settings by the dev scores of four tasks, has not been run to its end. No test score
was used to choose them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tasktransfer.core.specs import Family, LearningRateSchedule, Reads


@dataclass(frozen=True, slots=True)
class Recipe:
    """Hyperparameters, named like the config's keys.

    Attributes:
        round_updates: number of updates between two evaluations on dev.
        reads: representation that an encoder's heads read.
    """

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
    """A recipe, and the models that use it.

    Attributes:
        adapted: True for models with an adapter.
        parameters: maximum number of parameters of a model.
    """

    family: Family
    adapted: bool
    parameters: float
    recipe: Recipe


_NO_LIMIT = float("inf")
_SMALL, _BASE = 5e6, 6e7
"""Maximum number of parameters of models like the built-in tiny ones, and of models like MiniLM."""

# An adapter's learning rate is ADAPTER_RATE_FACTOR times that of its row.
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
    """Find the training recipe for a model.

    Args:
        parameters: total number of the model's parameters.
        adapted: True if a low-rank adapter is trained instead of the weights.
    """
    rows = (row for row in _ROWS if (row.family, row.adapted) == (family, adapted))
    return next(row.recipe for row in rows if parameters <= row.parameters)
