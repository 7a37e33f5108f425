"""P@1: whether the right reply scores highest among those of its block (Rashkin et al., 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Scores = Callable[[Numbers, Numbers], Floats]
"""(contexts, candidates), as row numbers → (contexts, candidates)."""


def right_at_1(scores: Floats) -> Floats:
    """How far the reply of each row (the diagonal) is the best of it, (rows,): 1, or 0, or of n
    that are equally good 1/n, which is what drawing one of them gives."""
    best = scores >= scores.max(axis=1, keepdims=True)
    return np.asarray(best.diagonal() / best.sum(axis=1), np.float64)


def rows_of_blocks(
    count: int, size: int, *, most: int | None = None, drop_last: bool = False
) -> Numbers:
    """The rows that are judged of so many, in their order: those of all blocks of consecutive rows,
    or of ``most`` whole ones, the first of a fixed shuffle.

    Which rows share a block is a part of the measure: those of one dialogue are hard to tell apart,
    and rows drawn one by one from a large test set would hardly meet any of their own. So whole
    blocks are drawn, each as it is in the whole test set.

    The last block may be smaller; or it is left out, always, as the paper's code does, which loses
    a whole one too.

    Raises:
        DataError: there are fewer rows than a block has, or none but the block that is left out.
    """
    if count < size or (drop_last and count <= size):
        left = f", and release_compat leaves the last {size} out" if count >= size else ""
        raise DataError(
            f"P@1,{size}: {count} rows are fewer than a block{left}; give a larger test set, or a "
            "smaller evaluation.block"
        )
    cuts = range(0, count, size)
    begins = np.array(cuts[:-1] if drop_last else cuts)
    if most is not None and most < len(begins):
        whole = begins[begins + size <= count]
        begins = np.sort(np.random.default_rng(0).permutation(whole)[:most])
    return np.concatenate([np.arange(begin, min(begin + size, count)) for begin in begins])


def blocks(order: Numbers, size: int) -> Iterator[Numbers]:
    """Consecutive rows; the last block may be smaller."""
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def p_at_1(scores: Scores, order: Numbers, size: int, replies: Numbers | None = None) -> Floats:
    """How far each row is right, in the order of the rows' numbers.

    Args:
        order: the numbers of all rows, cut into blocks as they come.
        replies: row number → the row whose reply counts as its right one; None: its own.
    """
    right = np.full(len(order), np.nan)
    for block in blocks(order, size):
        candidates = block if replies is None else replies[block]
        right[block] = right_at_1(scores(block, candidates))
    return right
