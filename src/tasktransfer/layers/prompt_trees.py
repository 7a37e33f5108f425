"""Prompts that begin alike, merged into trees, so that a causal model reads a beginning once.

Every utterance of a dialogue is a prompt of an utterance-level task, and each begins with the one
before; questions about one dialogue all begin with it. A decoder's states of a beginning do not
depend on what follows, so they are computed once and branch where the prompts do. Pure numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasktransfer.layers.ragged import Ints

Bools = np.ndarray[Any, np.dtype[np.bool_]]

MOST_NODES = 512
"""Attention costs the square of a tree's size: beyond this a further branch starts a new tree."""
LEAST_SHARED = 0.25
"""A prompt joins a tree if at least this share of it is there already."""


@dataclass(frozen=True, slots=True)
class PromptTree:
    """Prompts, their common beginnings once.

    Attributes:
        prompts: which of the given prompts, by index.
        tokens: the nodes' token ids, shape (nodes,).
        depths: each node's position in its prompts, from 0, shape (nodes,).
        leaves: the node that ends each prompt, shape (prompts,).
        visible: whether a node (row) sees another (column): itself and those before it on the way
            from the prompt's first token, shape (nodes, nodes).
    """

    prompts: tuple[int, ...]
    tokens: Ints
    depths: Ints
    leaves: Ints
    visible: Bools

    def __len__(self) -> int:
        return len(self.tokens)


def prompt_trees(prompts: Sequence[Ints]) -> list[PromptTree]:
    """Merge prompts (token ids, none empty) into trees; every prompt is in exactly one."""
    # Big-endian bytes sort as the numbers do, so that prompts that begin alike come together.
    order = sorted(range(len(prompts)), key=lambda i: prompts[i].astype(">u4").tobytes())
    trees: list[PromptTree] = []
    members: list[int] = []
    shared: list[int] = []
    nodes = 0
    for before, prompt in zip([None, *order], order, strict=False):
        length = len(prompts[prompt])
        common = 0 if before is None else _common(prompts[before], prompts[prompt])
        alike = common >= LEAST_SHARED * length
        if members and not (alike and nodes + length - common <= MOST_NODES):
            trees.append(_tree(prompts, members, shared))
            members, shared, nodes = [], [], 0
        common = common if members else 0
        members.append(prompt)
        shared.append(common)
        nodes += length - common
    return [*trees, _tree(prompts, members, shared)] if members else trees


def _common(first: Ints, second: Ints) -> int:
    """How many tokens two prompts have in common from their beginning."""
    room = min(len(first), len(second))
    different = np.flatnonzero(first[:room] != second[:room])
    return int(different[0]) if len(different) else room


def _tree(prompts: Sequence[Ints], members: Sequence[int], shared: Sequence[int]) -> PromptTree:
    """``shared``: how many tokens each member has in common with the one before it."""
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
