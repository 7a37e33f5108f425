"""Colour limits, ticks, folded names and signed numbers of figures."""

from __future__ import annotations

import numpy as np
import pytest

from tasktransfer.present.kit.style import (
    choose_log_ticks,
    compute_colour_limit,
    compute_improvement_limit,
    fold_name,
    format_signed,
)


def test_colour_limits_are_round_and_ignore_one_outlier() -> None:
    assert compute_colour_limit(np.array([np.nan])) == 1.0
    assert compute_colour_limit(np.array([-12.0, 8.0])) == 20.0
    assert compute_colour_limit(np.array([5.0] * 99 + [900.0])) == 5.0
    assert compute_colour_limit(np.array([-1000.0, 1000.0])) == 1000.0
    assert compute_colour_limit(np.array([])) == 1.0


@pytest.mark.parametrize(
    ("improvements", "limit"),
    [
        ([5.0, -8.0, 954.5], 20.0),
        ([2.2, -26.3, 54.6, -100.0, 365.2, 954.5, 605.0], 100.0),
        ([3.0, -4.0, 6.0, -2.0, 5.0, 1.0, 2.0, -3.0, 954.5], 20.0),
        ([-100.0, 954.5], 100.0),
        ([300.0] * 40, 100.0),
        ([0.0, 0.0, np.nan, 0.2], 1.0),
        ([0.0, -53.4], 100.0),
        ([0.0, 0.0, 0.0, -53.4], 10.0),
    ],
)
def test_limits_of_improvements_are_robust_in_small_studies(
    improvements: list[float], limit: float
) -> None:
    assert compute_improvement_limit(np.array(improvements)) == limit


def test_ticks_of_logarithmic_axes_are_round_and_few() -> None:
    assert choose_log_ticks(0.02, 50) == [0.1, 1.0, 10.0]
    assert choose_log_ticks(100, 1000) == [100.0, 200.0, 500.0, 1000.0]
    assert choose_log_ticks(120, 196) == [120, 196]
    assert choose_log_ticks(7, 7) == [7]


def test_long_names_are_folded() -> None:
    assert fold_name("bert-base", 2, 10) == "bert-base"
    assert fold_name("an-organisation/bert-base-uncased", 1.5, 10) == (
        "an-organisation/\nbert-base-uncased"
    )
    assert fold_name("Multitask → fine-tune", 1, 10) == "Multitask →\nfine-tune"
    assert max(map(len, fold_name("x" * 50, 1, 10).split("\n"))) <= 12


def test_signed_numbers() -> None:
    assert [format_signed(x) for x in (1.26, -0.04, 0.0, -3.0, 1234.5)] == [
        "+1.3", "0.0", "0.0", "−3.0", "+1234",
    ]  # fmt: skip
