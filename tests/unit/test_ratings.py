"""Tasks with ratings as answers: cards, metrics, and the numbers of answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from tasktransfer import metrics
from tasktransfer.errors import DataError
from tasktransfer.metrics.measures import MEASURES, convert_answers_to_numbers
from tasktransfer.stats.answers import find_common_answer, is_collapsed
from tasktransfer.tasks.card import (
    Instance,
    MetricSpec,
    Prompt,
    Task,
    compute_fraction,
    format_ratings,
)
from tasktransfer.tasks.checks import find_card_problems, find_instance_problem

STARS = Task(
    name="stars",
    short="STARS",
    dataset="Reviews",
    kind="rating",
    labels=("1", "5"),
    metrics=(MetricSpec("closeness"), MetricSpec("accuracy")),
    query="{response}",
    prompt=Prompt("stars:", max_answer_tokens=4),
    description="",
    citation="",
    licence="",
)
ONE = Instance("1", "d", "stars", "context", 7, {"response": "yes"}, (), ("2",))


def test_shares_and_texts_are_each_others_opposite() -> None:
    assert [compute_fraction(STARS, text) for text in ("1", "2", "5")] == [0, 0.25, 1]
    assert format_ratings(STARS, [0.0, 0.25, 1.0]) == [("1",), ("2",), ("5",)]
    close = format_ratings(STARS, [0.9999999, 0.99999991])
    assert close[0] != close[1]


@pytest.mark.parametrize("text", ["0.9", "5.1", "nan", "good", ""])
def test_what_is_no_number_on_the_scale_is_reported(text: str) -> None:
    assert np.isnan(compute_fraction(STARS, text))
    problem = find_instance_problem(STARS, replace(ONE, target=(text,)))
    assert problem is not None and "is not a number from 1 to 5" in problem
    with pytest.raises(DataError, match=r"Gold answer 1 is .* scale from 1 to 5"):
        metrics.evaluate_predictions(STARS, [("2",), ("2",)], [("2",), (text,)])


def test_metrics_by_hand() -> None:
    predictions, golds = [("1",), ("4",), ("?",)], [("2",), ("4",), ("5",)]
    found = metrics.evaluate_predictions(STARS, predictions, golds)
    assert found == pytest.approx({"closeness": 100 * (0.75 + 1 + 0) / 3, "accuracy": 200 / 3})
    assert metrics.score_instances(STARS, predictions, golds) == [75, 100, 0]


def test_the_values_of_ratings_are_themselves() -> None:
    assert convert_answers_to_numbers(STARS, [("1",), ("2.5",)]) == [1, 2.5]


def test_a_scale_has_two_ends_in_order() -> None:
    assert [*find_card_problems(STARS)] == []
    (problem,) = find_card_problems(replace(STARS, labels=("5", "1")))
    assert "lower end first" in problem
    (problem,) = find_card_problems(replace(STARS, labels=("bad", "good")))
    assert "two ends of a scale" in problem


def test_correlations_equal_scipys_on_tied_data() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        one, other = (random.integers(0, 4, 40).astype(float) for _ in range(2))
        for name, function in (
            ("spearman", stats.spearmanr),
            ("pearson", stats.pearsonr),
            ("kendall", stats.kendalltau),
        ):
            of_rows = MEASURES[name].of_rows
            assert of_rows is not None
            assert of_rows(one, other) == pytest.approx(function(one, other).statistic)
            assert of_rows(one, np.ones(40)) == 0.0


@pytest.mark.parametrize(
    ("step", "collapses"), [(0.0002, True), (0.02, False)], ids=["all alike", "different"]
)
def test_ratings_are_one_answer_within_a_hundredth_of_the_scale(
    step: float, collapses: bool
) -> None:
    answers = pa.chunked_array([[[f"{2.95 + step * n:.12g}"] for n in range(100)]])
    assert not is_collapsed(answers)
    assert is_collapsed(answers, STARS) is collapses
    text, _ = find_common_answer(answers, STARS)
    assert float(text) == pytest.approx(2.95 + 49.5 * step)
