"""P@1: whether the right reply scores highest among those of its block (Rashkin et al., 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError

Floats = npt.NDArray[np.float64]
Scores = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], Floats]
"""(contexts, candidates), as row numbers → (contexts, candidates)."""


def right_at_1(scores: Floats) -> Floats:
    """How far the reply of each row (the diagonal) is the best of it, (rows,): 1, or 0, or of n
    that are equally good 1/n, which is what drawing one of them gives."""
    best = scores >= scores.max(axis=1, keepdims=True)
    return np.asarray(best.diagonal() / best.sum(axis=1), np.float64)


def blocks(
    order: npt.NDArray[np.int64], size: int, *, drop_last: bool
) -> Iterator[npt.NDArray[np.int64]]:
    """Consecutive rows; the last block may be smaller, or is left out: always, as the paper's code
    does, which loses a whole one too.

    Raises:
        DataError: there are fewer rows than a block has.
    """
    if len(order) < size:
        raise DataError(
            f"P@1,{size}: {len(order)} rows are fewer than a block; give more test instances "
            "(evaluation.limit), or a smaller evaluation.block"
        )
    cuts = range(0, len(order), size)
    for begin in cuts[:-1] if drop_last else cuts:
        yield order[begin : begin + size]


def p_at_1(
    scores: Scores,
    order: npt.NDArray[np.int64],
    size: int,
    *,
    drop_last: bool = False,
    replies: npt.NDArray[np.int64] | None = None,
) -> Floats:
    """The share of each row that is right, in the given order, NaN for rows that are left out.

    Args:
        order: row numbers, cut into blocks as they come.
        replies: row number → the row whose reply counts as its right one; None: its own.
    """
    right = np.full(len(order), np.nan)
    for block in blocks(order, size, drop_last=drop_last):
        candidates = block if replies is None else replies[block]
        right[block] = right_at_1(scores(block, candidates))
    return right
