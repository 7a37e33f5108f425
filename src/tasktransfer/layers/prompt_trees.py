"""Trees of prompts with common prefixes, so that a causal model computes each prefix once.

In an utterance-level task every utterance of a dialogue gives a prompt that begins with the
previous prompt. All questions about a dialogue begin with the dialogue. A decoder's states for a
prefix do not depend on later tokens, so they are computed once and shared. Pure numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasktransfer.layers.ragged import Ints

Bools = np.ndarray[Any, np.dtype[np.bool_]]

MAX_TREE_NODES = 512
"""Maximum size of a tree, since attention is quadratic in it; further branches start a new tree."""
MIN_SHARED_FRACTION = 0.25
"""Minimum fraction of a prompt that a tree must already contain for the prompt to join it."""


@dataclass(frozen=True, slots=True)
class PromptTree:
    """Prompts with shared prefixes.

    Attributes:
        prompts: indices of the prompts in the input.
        tokens: token ids of the nodes, shape (nodes,).
        depths: position of each node in its prompts, from 0, shape (nodes,).
        leaves: last node of each prompt, shape (prompts,).
        visible: attention mask, shape (nodes, nodes): a node (row) attends to itself and to its
            ancestors (columns).
    """

    prompts: tuple[int, ...]
    tokens: Ints
    depths: Ints
    leaves: Ints
    visible: Bools

    def __len__(self) -> int:
        return len(self.tokens)


def build_prompt_trees(prompts: Sequence[Ints]) -> list[PromptTree]:
    """Build trees of prompts (token IDs), in which every prompt occurs once."""
    # Big-endian bytes sort like the numbers, so prompts with a common prefix are adjacent.
    order = sorted(range(len(prompts)), key=lambda i: prompts[i].astype(">u4").tobytes())
    trees: list[PromptTree] = []
    members: list[int] = []
    shared: list[int] = []
    nodes = 0
    for before, prompt in zip([None, *order], order, strict=False):
        length = len(prompts[prompt])
        common = 0 if before is None else _measure_common_prefix(prompts[before], prompts[prompt])
        alike = common >= MIN_SHARED_FRACTION * length
        if members and not (alike and nodes + length - common <= MAX_TREE_NODES):
            trees.append(_build_tree(prompts, members, shared))
            members, shared, nodes = [], [], 0
        common = common if members else 0
        members.append(prompt)
        shared.append(common)
        nodes += length - common
    return [*trees, _build_tree(prompts, members, shared)] if members else trees


def _measure_common_prefix(first: Ints, second: Ints) -> int:
    """Measure the common prefix of two prompts in tokens."""
    room = min(len(first), len(second))
    different = np.flatnonzero(first[:room] != second[:room])
    return int(different[0]) if len(different) else room


def _build_tree(
    prompts: Sequence[Ints], members: Sequence[int], shared: Sequence[int]
) -> PromptTree:
    """Build the tree of some prompts.

    Args:
        members: indices of the prompts.
        shared: length of each member's common prefix with the previous member.
    """
    total = sum(len(prompts[m]) - s for m, s in zip(members, shared, strict=True))
    tokens, depths = np.empty(total, np.int32), np.empty(total, np.int32)
    visible = np.zeros((total, total), dtype=bool)
    leaves = []
    path = np.empty(0, np.int64)
    nodes = 0
    for member, common in zip(members, shared, strict=True):
        new = np.arange(nodes, nodes + len(prompts[member]) - common)
        path = np.concatenate([path[:common], new])
        tokens[new] = prompts[member][common:]
        depths[new] = np.arange(common, common + len(new))
        visible[np.ix_(new, path[:common])] = True
        visible[np.ix_(new, new)] = np.tri(len(new), dtype=bool)
        leaves.append(path[-1])
        nodes += len(new)
    return PromptTree(tuple(members), tokens, depths, np.array(leaves, np.int64), visible)
