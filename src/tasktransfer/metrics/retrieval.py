"""P@1: precision of the top-ranked reply within a block (Rashkin et al., section 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Scores = Callable[[Numbers, Numbers], Floats]
"""Function from row numbers of contexts and of candidates to scores (contexts, candidates)."""


def compute_diagonal_precision(scores: Floats) -> Floats:
    """Compute P@1 of each row, whose gold candidate is on the diagonal, shape (rows,).

    It is 1 if the score on the diagonal is the highest of its row, 1/n in an n-way tie (the
    expectation for a random choice), and 0 otherwise.
    """
    best = scores >= scores.max(axis=1, keepdims=True)
    return np.asarray(best.diagonal() / best.sum(axis=1), np.float64)


def select_block_rows(
    count: int, size: int, *, most: int | None = None, drop_last: bool = False
) -> Numbers:
    """Select the rows of all blocks of consecutive rows, or of ``most`` of these blocks.

    The composition of blocks affects the measure. Rows of one dialogue are hard to distinguish, and
    rows sampled individually from a large test set would rarely share a dialogue. So complete
    blocks of the whole test set are sampled, by a fixed shuffle.

    The last block may be smaller. With ``drop_last`` it is left out even if it is complete, as in
    the paper's code.

    Args:
        count: number of rows.
        size: number of rows of a block.
        most: maximum number of blocks; None for all.
        drop_last: true to leave out the last block.

    Raises:
        DataError: there are fewer rows than a block has, or only the block that is left out.
    """
    if count < size or (drop_last and count <= size):
        left = f", and release_compat leaves the last {size} out" if count >= size else ""
        raise DataError(
            f"P@1,{size}: The test set has {count} rows, which are too few for a block of "
            f"{size}{left}. Use a larger test set, or set evaluation.block to a smaller number."
        )
    cuts = range(0, count, size)
    begins = np.array(cuts[:-1] if drop_last else cuts)
    if most is not None and most < len(begins):
        whole = begins[begins + size <= count]
        begins = np.sort(np.random.default_rng(0).permutation(whole)[:most])
    return np.concatenate([np.arange(begin, min(begin + size, count)) for begin in begins])


def split_blocks(order: Numbers, size: int) -> Iterator[Numbers]:
    """Yield blocks of consecutive rows, where the last block may be smaller."""
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def compute_p_at_1(
    scores: Scores, order: Numbers, size: int, replies: Numbers | None = None
) -> Floats:
    """Compute P@1 of each row, in the order of row numbers, shape (rows,).

    Args:
        scores: function that scores candidates.
        order: numbers of all rows, split into blocks in this order.
        size: number of rows of a block.
        replies: row number → row whose reply is the gold reply; None for the row's own reply.
    """
    right = np.full(len(order), np.nan)
    for block in split_blocks(order, size):
        candidates = block if replies is None else replies[block]
        right[block] = compute_diagonal_precision(scores(block, candidates))
    return right


def compute_block_measures(
    scores: Scores, order: Numbers, size: int, shuffles: int
) -> tuple[dict[str, float], Floats]:
    """Return the measures of P@1 by name, 0 to 100, and P@1 of each row.

    ``p_at_1_shuffled`` and its ``_sd`` are over random orders of the rows. For
    ``p_at_1_permuted``, each context gets a random reply of its block as gold reply, so only chance
    is left.

    Args:
        shuffles: number of random orders.
    """
    right = compute_p_at_1(scores, order, size)
    chance = np.random.default_rng(0)
    shuffled = [
        float(compute_p_at_1(scores, chance.permutation(order), size).mean())
        for _ in range(shuffles)
    ]
    replies = np.concatenate([chance.permutation(block) for block in split_blocks(order, size)])
    permuted = compute_p_at_1(scores, order, size, replies)
    measures = {
        "p_at_1": 100 * float(right.mean()),
        "p_at_1_shuffled": 100 * float(np.mean(shuffled)),
        "p_at_1_shuffled_sd": 100 * float(np.std(shuffled, ddof=1)) if shuffles > 1 else 0.0,
        "p_at_1_permuted": 100 * float(permuted.mean()),
    }
    return measures, right
