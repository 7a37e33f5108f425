"""Temperatures and calibration errors."""

from __future__ import annotations

import numpy as np
import pytest

from tasktransfer.stats.calibration import (
    compute_calibration_error,
    compute_confidence,
    compute_coverage,
    compute_crossfitted_error,
    fit_temperature,
)


def sample(count: int, temperature: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return logits that are too large by a factor, and labels from the true probabilities."""
    chance = np.random.default_rng(seed)
    logits = chance.normal(size=(count, 4)) * 2
    raised = np.exp(logits)
    cumulated = np.cumsum(raised / raised.sum(axis=1, keepdims=True), axis=1)
    golds = (chance.random(count)[:, None] > cumulated).sum(axis=1)
    return logits * temperature, golds


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_the_temperature_of_overconfident_logits_is_found(temperature: float) -> None:
    logits, golds = sample(4000, temperature)
    assert fit_temperature(logits, golds) == pytest.approx(temperature, rel=0.08)


def test_scaling_lowers_the_error_on_other_data() -> None:
    logits, golds = sample(2000, 5.0)
    others, right = sample(2000, 5.0, seed=1)
    fitted = fit_temperature(logits, golds)
    before = compute_calibration_error(others, right, 1.0)
    after = compute_calibration_error(others, right, fitted)
    assert before > 20
    assert after < 4
    clusters = [str(number // 4) for number in range(2000)]
    assert compute_crossfitted_error(logits, golds, clusters) < 5


def test_a_model_without_errors_is_not_taken_for_certain() -> None:
    logits = np.eye(3)[np.arange(30) % 3] * 5
    confidence = compute_confidence(logits, fit_temperature(logits, np.arange(30) % 3))
    assert confidence == pytest.approx(31 / 32, abs=1e-3)


def test_labels_that_the_model_does_not_know_are_wrong_and_change_no_temperature() -> None:
    logits, golds = sample(500, 2.0)
    more = np.vstack([logits, logits[:50]])
    unknown = np.append(golds, np.full(50, -1))
    assert fit_temperature(more, unknown) == pytest.approx(fit_temperature(logits, golds))
    rows = compute_coverage(more, unknown, 1.0, [0.0])
    expected = 100 * (logits.argmax(axis=1) == golds).sum() / 550
    assert rows[0] == {
        "min_probability": 0.0,
        "coverage": 100.0,
        "accuracy": pytest.approx(expected, abs=0.05),
    }


def test_certain_inputs_are_fewer_and_more_often_right() -> None:
    logits, golds = sample(3000, 1.0)
    rows = compute_coverage(logits, golds, 1.0, [0.0, 0.5, 0.8, 1.1])
    coverage = [row["coverage"] for row in rows]
    assert coverage == sorted(coverage, reverse=True)
    accuracies = [row["accuracy"] for row in rows[:3]]
    assert accuracies == sorted(accuracies)  # type: ignore[type-var]
    assert rows[-1] == {"min_probability": 1.1, "coverage": 0.0, "accuracy": None}
