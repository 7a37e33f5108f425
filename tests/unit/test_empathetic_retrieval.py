"""P@1 by hand, and what its blocks refuse."""

from __future__ import annotations

import numpy as np
import pytest

from tasktransfer.errors import DataError
from tasktransfer.metrics.retrieval import p_at_1, right_at_1

SCORES = np.array(
    [
        [3.0, 1.0, 0.0, 9.0, 0.0],
        [2.0, 2.0, 1.0, 0.0, 0.0],
        [5.0, 0.0, 4.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, 2.0],
        [0.0, 0.0, 0.0, 1.0, 3.0],
    ]
)


def scores(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return SCORES[np.ix_(rows, columns)]


def test_ties_count_by_halves_and_the_last_block_is_short() -> None:
    """Blocks of 3: row 0 right, row 1 tied with another, row 2 wrong; the short block of 2: row 3
    wrong, row 4 right."""
    assert p_at_1(scores, np.arange(5), 3).tolist() == [1, 0.5, 0, 0, 1]


def test_the_papers_code_drops_the_last_block_always() -> None:
    dropped = p_at_1(scores, np.arange(5), 3, drop_last=True)
    assert dropped[:3].tolist() == [1, 0.5, 0]
    assert np.isnan(dropped[3:]).all()
    assert np.isnan(p_at_1(scores, np.arange(4), 2, drop_last=True)[2:]).all()


def test_another_order_puts_other_rows_together() -> None:
    order = np.array([0, 3, 1, 2, 4])
    assert p_at_1(scores, order, 3).tolist()[0] == 0  # row 3's reply beats its own


def test_of_equal_scores_one_is_drawn() -> None:
    assert right_at_1(np.zeros((4, 4))).tolist() == [0.25] * 4


def test_random_scores_are_right_by_chance() -> None:
    chance = np.random.default_rng(0)
    drawn = chance.random((3000, 100))
    hits = [right_at_1(drawn[i : i + 100]).mean() for i in range(0, 3000, 100)]
    assert 100 * np.mean(hits) == pytest.approx(1.0, abs=3 * 100 * np.std(hits) / 30**0.5)


def test_fewer_rows_than_a_block_are_refused() -> None:
    with pytest.raises(DataError, match=r"P@1,6: 5 rows are fewer than a block; give more test"):
        p_at_1(scores, np.arange(5), 6)
