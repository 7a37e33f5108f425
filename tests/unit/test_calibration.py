"""Temperatures and calibration errors."""

from __future__ import annotations

import numpy as np
import pytest

from tasktransfer.stats.calibration import (
    compute_calibration_error,
    compute_confidence,
    compute_coverage,
    compute_crossfitted_error,
    compute_reliability,
    fit_temperature,
    suggest_threshold,
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


def test_a_model_without_errors_is_not_mistaken_for_certain() -> None:
    logits = np.eye(3)[np.arange(30) % 3] * 5
    confidence = compute_confidence(logits, fit_temperature(logits, np.arange(30) % 3))
    assert confidence == pytest.approx(31 / 32, abs=1e-3)


def test_labels_that_the_model_does_not_know_are_wrong_and_change_no_temperature() -> None:
    logits, golds = sample(500, 2.0)
    more = np.vstack([logits, logits[:50]])
    unknown = np.append(golds, np.full(50, -1))
    assert fit_temperature(more, unknown) == pytest.approx(fit_temperature(logits, golds))
    is_right = more.argmax(axis=1) == unknown
    rows = compute_coverage(compute_confidence(more, 1.0), is_right, [0.0])
    expected = 100 * (logits.argmax(axis=1) == golds).sum() / 550
    assert rows[0] == {
        "min_probability": 0.0,
        "coverage": 100.0,
        "accuracy": pytest.approx(expected, abs=0.05),
    }


def test_certain_inputs_are_fewer_and_more_often_right() -> None:
    logits, golds = sample(3000, 1.0)
    confidence = compute_confidence(logits, 1.0)
    rows = compute_coverage(confidence, logits.argmax(axis=1) == golds, [0.0, 0.5, 0.8, 1.1])
    coverage = [row["coverage"] for row in rows]
    assert coverage == sorted(coverage, reverse=True)
    accuracies = [row["accuracy"] for row in rows[:3]]
    assert accuracies == sorted(accuracies)  # type: ignore[type-var]
    assert rows[-1] == {"min_probability": 1.1, "coverage": 0.0, "accuracy": None}


def test_percentages_have_one_decimal() -> None:
    (row,) = compute_coverage(np.array([0.9, 0.8, 0.7]), np.array([True, True, False]), [0.0])
    assert (row["coverage"], row["accuracy"]) == (100.0, 66.7)
    (row,) = compute_coverage(np.array([0.9, 0.8, 0.7]), np.ones(3, bool), [0.75])
    assert (row["coverage"], row["accuracy"]) == (66.7, 100.0)


def test_the_bins_of_the_diagram_give_the_calibration_error() -> None:
    logits, golds = sample(700, 3.0)
    bins = compute_reliability(compute_confidence(logits, 1.0), logits.argmax(axis=1) == golds)
    assert sum(row["instances"] for row in bins) == 700
    gaps = [row["instances"] * abs(row["confidence"] - row["accuracy"]) for row in bins]
    assert sum(gaps) / 700 == pytest.approx(compute_calibration_error(logits, golds, 1.0), abs=0.1)
    assert all(row["from"] <= row["confidence"] / 100 <= row["to"] for row in bins)


def test_a_threshold_keeps_the_most_inputs_with_the_accuracy() -> None:
    confidence = np.linspace(0.999, 0.5, 100)
    is_right = np.arange(100) < 60
    threshold = suggest_threshold(confidence, is_right, accuracy=0.9)
    assert threshold is not None
    kept = confidence >= threshold
    assert kept.sum() == 65  # (60 + 1) / (65 + 2) >= 0.9, and 61 / 68 is less
    assert suggest_threshold(confidence, np.zeros(100, bool)) is None


def test_a_few_right_answers_give_no_threshold() -> None:
    assert suggest_threshold(np.full(7, 0.9), np.ones(7, bool)) is None
    assert suggest_threshold(np.full(8, 0.9), np.ones(8, bool)) == pytest.approx(0.9)


def test_a_suggested_threshold_reaches_its_accuracy_on_other_data() -> None:
    reached = []
    for seed in range(200):
        logits, golds = sample(100, 1.0, seed)
        others, right = sample(1000, 1.0, seed + 1000)
        threshold = suggest_threshold(compute_confidence(logits, 1.0), logits.argmax(1) == golds)
        if threshold is not None:
            kept = compute_confidence(others, 1.0) >= threshold
            reached.append((others.argmax(axis=1) == right)[kept].mean())
    assert len(reached) > 150
    assert np.mean(reached) > 0.88
