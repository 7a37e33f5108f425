"""Which units go through a model together. Pure numpy.

No result depends on it beyond floating-point noise: a batch's losses are added up over its
portions before the one update, and a prediction knows nothing of its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasktransfer.models.encoded import EncodedSplit
from tasktransfer.models.prompt_trees import PromptTree

LIKE_LENGTH = 0.7
"""A sequence below this share of a padded portion's longest starts the next one, ..."""
ENOUGH = 1 / 8
"""... if the portion already holds this share of the budget: small ones cost more than padding."""


def portions_by_length(
    split: EncodedSplit, units: Sequence[int], token_budget: int, *, padded: bool
) -> list[list[int]]:
    """Cut units into portions of like length, none above ``token_budget`` tokens.

    A unit of several sequences (options) stays together, and a unit above the budget is a portion
    of its own.

    Args:
        padded: whether padding counts as tokens; it does where sequences are padded to a
            portion's longest, and not where they are packed.
    """
    longest, own = split.longest(), split.tokens()
    portions: list[list[int]] = []
    room = 0
    width = 0
    for unit in sorted(units, key=lambda unit: (-int(longest[unit]), unit)):
        cost = len(split.sequence_range(unit)) * width if padded else int(own[unit])
        sparse = padded and longest[unit] < LIKE_LENGTH * width
        if not portions or cost > room or (sparse and token_budget - room >= ENOUGH * token_budget):
            width = int(longest[unit])
            room = token_budget
            portions.append([])
            cost = len(split.sequence_range(unit)) * width if padded else cost
        portions[-1].append(unit)
        room -= cost
    return portions


def portions_to_train_on(
    split: EncodedSplit, units: Sequence[int], token_budget: int, *, packed: bool
) -> list[list[int]]:
    """Cut a batch for sequences that are packed, or padded to a portion's longest."""
    if packed:
        return even_portions(split, units, token_budget)
    return portions_by_length(split, units, token_budget, padded=True)


def even_portions(split: EncodedSplit, units: Sequence[int], token_budget: int) -> list[list[int]]:
    """Cut units, longest first, into an even number of portions of about as many tokens: two cores
    then have the same to do. For packed sequences.

    What the budget holds at once stays one portion. Else a portion is above ``token_budget`` by
    less than a unit; where the budget asks for as many portions as there are units, every unit is
    one.
    """
    longest, own = split.longest(), split.tokens()
    ordered = sorted(units, key=lambda unit: (-int(longest[unit]), unit))
    costs = np.array([int(own[unit]) for unit in ordered])
    total = int(costs.sum())
    if total <= token_budget:
        return [ordered]
    count = 2 * -(-total // (2 * token_budget))
    if count >= len(ordered):
        return [[unit] for unit in ordered]
    places = (np.cumsum(costs) - costs) * count // total
    return [[ordered[i] for i in np.flatnonzero(places == place)] for place in np.unique(places)]


def portions_of_trees(trees: Sequence[PromptTree], token_budget: int) -> list[list[PromptTree]]:
    """Cut trees into portions of like size, none above ``token_budget`` nodes, padding included."""
    portions: list[list[PromptTree]] = []
    for tree in sorted(trees, key=lambda tree: (-len(tree), tree.prompts)):
        if not portions or len(portions[-1][0]) * (len(portions[-1]) + 1) > token_budget:
            portions.append([])
        portions[-1].append(tree)
    return portions
