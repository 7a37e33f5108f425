"""Joint fits compared with scikit-learn's, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from tasktransfer.fits.linear_probes import fit_multinomial_classifier, fit_one_vs_rest_classifiers

TIGHT = 1e-7


def features(chance: np.random.Generator, rows: int, size: int) -> np.ndarray:
    return np.tanh(chance.normal(size=(rows, 3)) @ chance.normal(size=(3, size))) + 0.3


@pytest.mark.parametrize("number", range(50))
def test_5000_binary_fits_are_scikit_learns(number: int) -> None:
    chance = np.random.default_rng(number)
    inputs = features(chance, 30, 3)
    wanted = (inputs @ chance.normal(size=(3, 100)) + chance.normal(size=(30, 100)) > 0).astype(
        float
    )
    fitted = fit_one_vs_rest_classifiers(inputs, wanted, 1.0, 500, TIGHT)
    assert fitted.converged
    varying = np.flatnonzero((wanted.mean(0) > 0) & (wanted.mean(0) < 1))
    for label in varying:
        model = LogisticRegression(C=1.0, max_iter=500, tol=1e-7).fit(inputs, wanted[:, label])
        assert fitted.weights[:-1, label] == pytest.approx(model.coef_[0], abs=1e-4)
        assert fitted.weights[-1, label] == pytest.approx(model.intercept_[0], abs=1e-4)
    predicted = fitted.compute_scores(inputs)[:, label] > 0
    assert (predicted == model.predict(inputs)).mean() > 0.99


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_multinomial_fits_are_scikit_learns(classes: int) -> None:
    chance = np.random.default_rng(classes)
    inputs = features(chance, 200, 6)
    gold = (inputs @ chance.normal(size=(6, classes)) + chance.normal(size=(200, classes))).argmax(
        1
    )
    gold = np.unique(gold, return_inverse=True)[1]
    fitted = fit_multinomial_classifier(inputs, gold, 1.0, 500, TIGHT)
    model = LogisticRegression(C=1.0, max_iter=2000, tol=1e-8).fit(inputs, gold)
    ours = fitted.weights[:-1].T
    if len(model.classes_) == 2:
        ours = ours[1:]
    assert ours == pytest.approx(model.coef_, abs=1e-4)
    assert (fitted.compute_scores(inputs).argmax(1) == model.predict(inputs)).all()


def test_sparse_features_give_the_same() -> None:
    chance = np.random.default_rng(0)
    inputs = chance.poisson(0.5, size=(60, 8)).astype(float)
    wanted = (inputs[:, :2] > 0).astype(float)
    dense = fit_one_vs_rest_classifiers(inputs, wanted, 1.0, 500, TIGHT)
    spread = fit_one_vs_rest_classifiers(sparse.csr_matrix(inputs), wanted, 1.0, 500, TIGHT)
    assert spread.weights == pytest.approx(dense.weights, abs=1e-4)


def test_a_label_that_all_or_none_have_is_not_fitted() -> None:
    inputs = np.random.default_rng(0).normal(size=(20, 3))
    wanted = np.stack([np.ones(20), np.zeros(20), inputs[:, 0] > 0], axis=1).astype(float)
    scores = fit_one_vs_rest_classifiers(inputs, wanted, 1.0, 100).compute_scores(inputs)
    assert (scores[:, 0] > 0).all()
    assert (scores[:, 1] < 0).all()


def test_the_same_fit_twice_gives_the_same_numbers() -> None:
    chance = np.random.default_rng(3)
    inputs, gold = chance.normal(size=(100, 5)), chance.integers(0, 4, 100)
    first, second = (fit_multinomial_classifier(inputs, gold, 1.0, 250) for _ in range(2))
    assert (first.weights == second.weights).all()


def test_too_few_iterations_are_said() -> None:
    chance = np.random.default_rng(4)
    inputs, gold = chance.normal(size=(100, 5)), chance.integers(0, 4, 100)
    assert not fit_multinomial_classifier(inputs, gold, 1.0, 2, TIGHT).converged
