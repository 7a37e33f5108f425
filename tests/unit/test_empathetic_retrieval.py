"""P@1 computed by hand, and inputs that its blocks refuse."""

from __future__ import annotations

import numpy as np
import pytest
from small_splits import build_split

from tasktransfer.core.nodes import Data, Evaluation, Outcome
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import DataError
from tasktransfer.evaluation.replies import select_candidates
from tasktransfer.jobs.recorded_job import JobOutput
from tasktransfer.jobs.word_ranking_job import evaluate_word_ranking
from tasktransfer.metrics.retrieval import (
    compute_diagonal_precision,
    compute_p_at_1,
    select_block_rows,
)
from tasktransfer.tasks.card import Instance

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
    """Blocks of 3: row 0 correct, row 1 tied with another, row 2 wrong.

    The short block of 2: row 3 wrong, row 4 correct.
    """
    assert compute_p_at_1(scores, np.arange(5), 3).tolist() == [1, 0.5, 0, 0, 1]


def test_the_papers_code_drops_the_last_block_always() -> None:
    assert select_block_rows(5, 3).tolist() == [0, 1, 2, 3, 4]
    assert select_block_rows(5, 3, drop_last=True).tolist() == [0, 1, 2]
    assert select_block_rows(4, 2, drop_last=True).tolist() == [0, 1]


def test_a_limit_takes_whole_blocks_as_they_are_in_the_whole_test_set() -> None:
    """Rows sampled singly would separate those of a dialogue, which are hard to distinguish."""
    limited = select_block_rows(5257, 100, most=10)
    assert len(limited) == 1000
    for block in limited.reshape(10, 100):
        assert block[0] % 100 == 0
        assert block.tolist() == list(range(block[0], block[0] + 100))
    assert len(np.unique(limited)) == 1000
    assert limited[-1] - limited[0] > 3000  # from all over the test set
    assert limited.tolist() == select_block_rows(5257, 100, most=10, drop_last=True).tolist()
    assert len(select_block_rows(5257, 100, most=53)) == 5257


def test_another_order_puts_other_rows_together() -> None:
    order = np.array([0, 3, 1, 2, 4])
    assert compute_p_at_1(scores, order, 3).tolist()[0] == 0  # row 3's reply beats its own


def test_of_equal_scores_one_is_drawn() -> None:
    assert compute_diagonal_precision(np.zeros((4, 4))).tolist() == [0.25] * 4


def pool(*replies: str) -> tuple[list[Instance], EncodedSplit]:
    """Return rows with these replies as token ids.

    A word is 7, and "huh", which is unknown, is 1.
    """
    rows = [Instance(str(i), str(i), "r", "c", 0, {}, (), (r,)) for i, r in enumerate(replies)]
    ids = [[1 if word == "huh" else 7 for word in reply.split()] for reply in replies]
    sides = [side for reply in ids for side in ([7], reply)]
    return rows, build_split("r", sides, 2, targets=[row.target for row in rows])


def test_candidates_are_short_known_and_none_twice() -> None:
    rows, split = pool("i see", "a b c d", "oh huh", "i see", "> quoted", "fine")
    assert select_candidates(rows, split, 1, None, 3, "ED") == [0, 5]


def test_a_pool_that_its_filter_empties_is_refused() -> None:
    rows, split = pool("a b c d", "huh")
    with pytest.raises(
        DataError, match=r"ED: None of the 2 candidates passes the filter \(at most 3"
    ):
        select_candidates(rows, split, 1, None, 3, "ED")


def test_fewer_rows_than_a_block_are_refused() -> None:
    with pytest.raises(
        DataError,
        match=r"P@1,6: The test set has 5 rows, which are too few for a block of 6. Use a larger",
    ):
        select_block_rows(5, 6)
    assert select_block_rows(5, 5).tolist() == [0, 1, 2, 3, 4]
    told = r"P@1,5: The test set has 5 rows, .*, and release_compat leaves the last 5 out\. Use"
    with pytest.raises(DataError, match=told):
        select_block_rows(5, 5, drop_last=True)


def test_a_ranking_by_words_counts_rare_words_more() -> None:
    """The words that the context and its reply share decide, and ties count by halves."""

    def say(number: int, context: str, reply: str) -> Instance:
        return Instance(str(number), str(number), "r", context, 0, {}, (), (reply,))

    train = [say(0, "the dog and the cat", "the bird"), say(1, "my job", "the rain and the dog")]
    test = [
        say(2, "the dog", "a dog"),
        say(3, "the job and the rain", "rain again"),
        say(4, "hm", "oh"),  # shares no word, so all three replies tie
    ]
    outcome = Outcome(())
    data = Data("EmpatheticDialogues", "r")
    settings = {"block": 3, "shuffles": 2, "words": "tf-idf"}
    node = Evaluation(outcome, data, "listener_reply", ("p_at_1",), settings=settings)
    output = JobOutput()
    evaluate_word_ranking(node, train, test, output)
    assert [row.score for row in output.rows] == pytest.approx([100, 100, 100 / 3])
    assert output.results["listener_reply"]["measures"] == {"p_at_1": pytest.approx(700 / 9)}
    assert node.label == "listener_reply-test_of_tf-idf"
