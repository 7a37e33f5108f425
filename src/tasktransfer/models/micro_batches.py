"""Which examples go through a model together. Pure numpy.

Without dropout no result depends on it beyond floating-point noise: a batch's losses are added up
over its micro-batches before the one update, and a prediction knows nothing of its neighbours. Of
dropout each micro-batch draws its own masks, so that a training that is cut otherwise (on another
kind of device, after memory ran out) is as another draw of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers.prompt_trees import PromptTree

LIKE_LENGTH = 0.7
"""A sequence below this share of a padded micro-batch's longest starts the next one, ..."""
ENOUGH = 1 / 8
"""... if the micro-batch holds this share of the budget: small ones cost more than padding."""


def micro_batches_by_length(
    split: EncodedSplit, examples: Sequence[int], token_budget: int, *, padded: bool
) -> list[list[int]]:
    """Cut examples into micro-batches of like length, none above ``token_budget`` tokens.

    An example of several sequences (options) stays together, and an example above the budget is a
    micro-batch of its own.

    Args:
        padded: whether padding counts as tokens; it does where sequences are padded to a
            micro-batch's longest, and not where they are packed.
    """
    longest, own = split.longest(), split.tokens()
    micro_batches: list[list[int]] = []
    room = 0
    width = 0
    for example in sorted(examples, key=lambda example: (-int(longest[example]), example)):
        cost = len(split.sequence_range(example)) * width if padded else int(own[example])
        sparse = padded and longest[example] < LIKE_LENGTH * width
        if (
            not micro_batches
            or cost > room
            or (sparse and token_budget - room >= ENOUGH * token_budget)
        ):
            width = int(longest[example])
            room = token_budget
            micro_batches.append([])
            cost = len(split.sequence_range(example)) * width if padded else cost
        micro_batches[-1].append(example)
        room -= cost
    return micro_batches


def micro_batches_to_train_on(
    split: EncodedSplit,
    examples: Sequence[int],
    token_budget: int,
    *,
    packed: bool,
    whole: bool = False,
) -> list[list[int]]:
    """Cut a batch for sequences that are packed, or padded to a micro-batch's longest.

    ``whole``: what fits at once is not cut, whatever padding it has. A GPU is quicker with it than
    with the launches of a second micro-batch; a CPU is not.
    """
    if packed:
        return even_micro_batches(split, examples, token_budget)
    longest = split.longest()
    if (
        whole
        and sum(len(split.sequence_range(u)) for u in examples)
        * max(int(longest[u]) for u in examples)
        <= token_budget
    ):
        return [sorted(examples, key=lambda example: (-int(longest[example]), example))]
    return micro_batches_by_length(split, examples, token_budget, padded=True)


def even_micro_batches(
    split: EncodedSplit, examples: Sequence[int], token_budget: int
) -> list[list[int]]:
    """Cut examples, longest first, into an even number of micro-batches of about as many tokens:
    two cores then have the same to do. For packed sequences.

    What the budget holds at once stays one micro-batch. Else a micro-batch is above
    ``token_budget`` by less than an example; where the budget asks for as many micro-batches as
    there are examples, every example is one.
    """
    longest, own = split.longest(), split.tokens()
    ordered = sorted(examples, key=lambda example: (-int(longest[example]), example))
    costs = np.array([int(own[example]) for example in ordered])
    total = int(costs.sum())
    if total <= token_budget:
        return [ordered]
    count = 2 * -(-total // (2 * token_budget))
    if count >= len(ordered):
        return [[example] for example in ordered]
    places = (np.cumsum(costs) - costs) * count // total
    return [[ordered[i] for i in np.flatnonzero(places == index)] for index in np.unique(places)]


def micro_batches_of_trees(
    trees: Sequence[PromptTree], token_budget: int
) -> list[list[PromptTree]]:
    """Cut trees into micro-batches of like size, none above ``token_budget`` nodes with padding."""
    micro_batches: list[list[PromptTree]] = []
    for tree in sorted(trees, key=lambda tree: (-len(tree), tree.prompts)):
        if (
            not micro_batches
            or len(micro_batches[-1][0]) * (len(micro_batches[-1]) + 1) > token_budget
        ):
            micro_batches.append([])
        micro_batches[-1].append(tree)
    return micro_batches
