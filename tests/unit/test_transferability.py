"""LogME against the exact evidence, LEEP and H-score against their formulas, similarity by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf

from tasktransfer.selection.transferability import (
    BayesianRegression,
    compute_cosine,
    compute_esm_logme,
    compute_hscore,
    compute_leep,
    compute_logme,
    compute_mean_tfidf,
    compute_nleep,
    compute_retrieval_similarity,
    map_features,
)

RANDOM = np.random.default_rng(0)


def exact(features: np.ndarray, y: np.ndarray, alpha: float, beta: float) -> float:
    """Return the log density of y per instance, from a dense Cholesky factor of its covariance."""
    n = len(y)
    factor = np.linalg.cholesky(np.eye(n) / beta + features @ features.T / alpha)
    white = np.linalg.solve(factor, y)
    total = white @ white + 2 * np.log(np.diag(factor)).sum() + n * np.log(2 * np.pi)
    return float(-total / 2 / n)


@pytest.mark.parametrize(("n", "d"), [(40, 90), (90, 40), (30, 30), (400, 768)])
def test_evidence_is_that_of_bayesian_regression(n: int, d: int) -> None:
    features = RANDOM.normal(size=(n, d)) + RANDOM.normal(size=d)
    classes = RANDOM.integers(0, 3, n)
    regression = BayesianRegression(features)
    values = []
    for label in range(3):
        y = (classes == label).astype(float)
        found = regression.compute_best_evidence(y)
        values.append(exact(features, y, found.alpha, found.beta))
        assert found.value == pytest.approx(values[-1], abs=1e-8)
        assert regression.compute_log_evidence(y, 0.3, 7.0) == pytest.approx(
            exact(features, y, 0.3, 7.0), abs=1e-8
        )
    assert compute_logme(features, classes) == pytest.approx(np.mean(values), abs=1e-8)


def test_the_precisions_are_where_the_evidence_is_best() -> None:
    features = RANDOM.normal(size=(60, 20))
    y = features @ RANDOM.normal(size=20) + RANDOM.normal(size=60)
    regression = BayesianRegression(features)
    best = regression.compute_best_evidence(y)
    for a, b in ((0.9, 1), (1.1, 1), (1, 0.9), (1, 1.1)):
        assert regression.compute_log_evidence(y, best.alpha * a, best.beta * b) < best.value


def test_features_that_have_no_full_rank_are_as_good_as_those_of_their_space() -> None:
    features = RANDOM.normal(size=(50, 3)) @ RANDOM.normal(size=(3, 12))
    y = RANDOM.normal(size=50)
    assert BayesianRegression(features).compute_log_evidence(y, 2.0, 3.0) == pytest.approx(
        exact(features, y, 2.0, 3.0), abs=1e-8
    )


def test_leep_is_its_formula() -> None:
    theta = RANDOM.dirichlet(np.ones(4), 30)
    classes = RANDOM.integers(0, 3, 30)
    joint = np.zeros((3, 4))
    for row, y in zip(theta, classes, strict=True):
        joint[y] += row / 30
    total = 0.0
    for row, y in zip(theta, classes, strict=True):
        total += np.log(sum(joint[y, z] / joint[:, z].sum() * row[z] for z in range(4)))
    assert compute_leep(theta, classes) == pytest.approx(total / 30, abs=1e-12)
    assert compute_leep(np.eye(3)[classes], classes) == 0


def test_hscore_is_its_formula() -> None:
    features = RANDOM.normal(size=(40, 7))
    classes = RANDOM.integers(0, 3, 40)
    means = np.stack([features[classes == y].mean(0) for y in classes])
    centred = means - features.mean(0)
    covariance = LedoitWolf().fit(features).covariance_
    expected = np.trace(np.linalg.inv(covariance) @ (centred.T @ centred / 40))
    assert compute_hscore(features, classes) == pytest.approx(expected, abs=1e-10)


def test_what_tells_classes_apart_is_above_noise() -> None:
    classes = RANDOM.integers(0, 4, 200)
    clear = np.eye(4)[classes] @ RANDOM.normal(size=(4, 16)) * 3 + RANDOM.normal(size=(200, 16))
    noise = RANDOM.normal(size=(200, 16))
    for measure in (compute_logme, compute_nleep, compute_hscore):
        assert measure(clear, classes) > measure(noise, classes), measure.__name__


def test_a_map_that_is_linear_is_learnt() -> None:
    base = RANDOM.normal(size=(2000, 6)) * 0.1
    true = RANDOM.normal(size=(6, 6)) * 0.3
    others = RANDOM.normal(size=(50, 6)) * 0.1
    found, best = map_features(base, base @ true, others), others @ true
    assert np.mean((found - best) ** 2) < 0.25 * np.mean(best**2)
    classes = (others[:, 0] > 0).astype(int)
    assert np.isfinite(compute_esm_logme(base, base @ true, others, classes))


def test_similarity_of_inputs() -> None:
    means = compute_mean_tfidf({"a": ["red apple", "apple"], "b": ["red apple"], "c": ["blue sky"]})
    assert compute_cosine(means["a"], means["b"]) > 0.8
    assert compute_cosine(means["a"], means["c"]) == 0
    target, source = np.eye(3), np.array([[2.0, 0, 0], [0, 1, 1]])
    assert compute_retrieval_similarity(target, source) == pytest.approx((1 + 2 * 0.5**0.5) / 3)
