"""Splitting of batches into micro-batches. Pure numpy.

Without dropout the split changes results only by floating-point noise: a batch's losses are summed
over its micro-batches before the update, and predictions do not depend on other examples. With
dropout each micro-batch samples its own masks. Another split (on another kind of device, or after
an out-of-memory error) therefore corresponds to another sample of the masks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers.prompt_trees import PromptTree

MIN_RELATIVE_LENGTH = 0.7
"""Relative length, compared with a padded micro-batch's longest sequence, below which a sequence
starts the next micro-batch."""
MIN_FILL = 1 / 8
"""Minimum fraction of the budget that is used before ``MIN_RELATIVE_LENGTH`` applies.

Small micro-batches cost more than padding."""


def split_by_length(
    split: EncodedSplit, examples: Sequence[int], token_budget: int, *, padded: bool
) -> list[list[int]]:
    """Split examples into micro-batches of similar lengths and at most ``token_budget`` tokens.

    The sequences (options) of an example stay together. An example above the budget forms its own
    micro-batch.

    Args:
        padded: whether padding counts as tokens: True if sequences are padded to the longest of a
            micro-batch, False if they are packed.
    """
    longest, own = split.compute_longest_lengths(), split.count_tokens()
    micro_batches: list[list[int]] = []
    room = 0
    width = 0
    for example in sorted(examples, key=lambda example: (-int(longest[example]), example)):
        cost = len(split.get_sequence_range(example)) * width if padded else int(own[example])
        sparse = padded and longest[example] < MIN_RELATIVE_LENGTH * width
        if (
            not micro_batches
            or cost > room
            or (sparse and token_budget - room >= MIN_FILL * token_budget)
        ):
            width = int(longest[example])
            room = token_budget
            micro_batches.append([])
            cost = len(split.get_sequence_range(example)) * width if padded else cost
        micro_batches[-1].append(example)
        room -= cost
    return micro_batches


def split_training_batch(
    split: EncodedSplit,
    examples: Sequence[int],
    token_budget: int,
    *,
    packed: bool,
    whole: bool = False,
) -> list[list[int]]:
    """Split a training batch into micro-batches of packed or padded sequences.

    Args:
        packed: whether sequences are packed instead of padded to a micro-batch's longest.
        whole: whether a padded batch that fits the budget is not split, despite its padding. On a
            GPU, a second micro-batch costs more than the padding; on a CPU, it does not.
    """
    if packed:
        return split_evenly(split, examples, token_budget)
    longest = split.compute_longest_lengths()
    if (
        whole
        and sum(len(split.get_sequence_range(u)) for u in examples)
        * max(int(longest[u]) for u in examples)
        <= token_budget
    ):
        return [sorted(examples, key=lambda example: (-int(longest[example]), example))]
    return split_by_length(split, examples, token_budget, padded=True)


def split_evenly(
    split: EncodedSplit, examples: Sequence[int], token_budget: int
) -> list[list[int]]:
    """Split packed examples into an even number of micro-batches with similar token counts.

    Two cores then have equal work. Examples are sorted, longest first. Examples that fit the budget
    together form one micro-batch. Otherwise a micro-batch exceeds ``token_budget`` by less than one
    example. If the budget requires as many micro-batches as there are examples, each example is
    one.
    """
    longest, own = split.compute_longest_lengths(), split.count_tokens()
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


def split_trees(trees: Sequence[PromptTree], token_budget: int) -> list[list[PromptTree]]:
    """Split trees into micro-batches of similar sizes and at most ``token_budget`` padded nodes."""
    micro_batches: list[list[PromptTree]] = []
    for tree in sorted(trees, key=lambda tree: (-len(tree), tree.prompts)):
        if (
            not micro_batches
            or len(micro_batches[-1][0]) * (len(micro_batches[-1]) + 1) > token_budget
        ):
            micro_batches.append([])
        micro_batches[-1].append(tree)
    return micro_batches
