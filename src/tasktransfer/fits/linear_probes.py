"""Many logistic regressions on the same features, fitted as one problem in float64.

What is minimised is scikit-learn's objective, C times the summed log loss plus half the squared
weights, intercepts free. Over labels (one-vs-rest) it is a sum of separate problems, so that the
optimum of all at once is the optimum of each; over classes (multinomial) it is one problem anyway.

L-BFGS sees other variables than the weights, in which all labels are about equally curved: features
are centred and turned to their principal axes, and the weight of axis j and label k is divided by
sqrt(1 + C p(1 - p) lambda), with lambda the axis's sum of squares and p the label's share of rows.
That changes how soon the optimum is reached and not where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

Floats = npt.NDArray[np.float64]

TOLERANCE = 1e-4
"""Of the gradient's largest element, in the variables of the search."""

MEMORY = 10
MOST_HALVINGS = 30
TOGETHER = 64
"""Binary classifiers that are fitted at once."""

Limits = tuple[int, float]
"""The most iterations, and the tolerance."""

Loss = Callable[[Floats], tuple[Floats, Floats]]
"""Scores (rows, labels) → the loss of each label, and its derivative by the scores."""


@dataclass(frozen=True, slots=True)
class Linear:
    """``weights`` (features + 1, labels), the intercepts last. ``iterations``: of the search.
    ``converged``: whether it ended before the most that were allowed."""

    weights: Floats
    iterations: int
    converged: bool

    def scores(self, features: Any) -> Floats:
        """(rows, labels); above 0 a label is more likely than not."""
        scores: Floats = np.asarray(features @ self.weights[:-1]) + self.weights[-1]
        return scores


def fit_one_vs_rest(
    features: Any, labels: Floats, cost: float, max_iter: int, tolerance: float = TOLERANCE
) -> Linear:
    """A binary classifier a label.

    Args:
        features: (rows, features), dense or sparse.
        labels: (rows, labels), 0 or 1. A label that every row has, or none, is not fitted: its
            intercept is infinite.
    """
    shares = labels.mean(axis=0)
    weights = np.zeros((features.shape[1] + 1, labels.shape[1]))
    weights[-1] = np.where(shares >= 1, np.inf, -np.inf)
    varying = np.flatnonzero((shares > 0) & (shares < 1))
    axes, limits = _axes(features), (max_iter, tolerance)
    iterations, converged = 0, True
    # Like labels need about as many iterations, and few at a time stay in the processor's cache.
    ordered = varying[np.argsort(shares[varying], kind="stable")]
    for begin in range(0, len(ordered), TOGETHER):
        some = ordered[begin : begin + TOGETHER]
        loss = partial(_log_loss, labels[:, some])
        fitted = _minimised(axes, loss, shares[some], cost, limits, separate=True)
        weights[:, some] = fitted.weights
        iterations, converged = max(iterations, fitted.iterations), converged and fitted.converged
    return Linear(weights, iterations, converged)


def _log_loss(wanted: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """log(1 + e^s) - y s, with one exponential for the loss and its derivative."""
    small = np.exp(-np.abs(scores))
    values: Floats = (np.log1p(small) + np.maximum(scores, 0) - wanted * scores).sum(axis=0)
    above = 1 / (1 + small)
    residual: Floats = np.where(scores >= 0, above, 1 - above) - wanted
    return values, residual


def fit_multinomial(
    features: Any,
    classes: npt.NDArray[np.int64],
    cost: float,
    max_iter: int,
    tolerance: float = TOLERANCE,
) -> Linear:
    """One classifier over classes; of two classes it is the binary one, as scikit-learn has it.

    Args:
        classes: (rows,), numbered from 0, each of them there; two or more.
    """
    count = int(classes.max()) + 1
    if count == 2:
        binary = fit_one_vs_rest(
            features, (classes == 1)[:, None].astype(np.float64), cost, max_iter, tolerance
        )
        both = np.hstack([np.zeros_like(binary.weights), binary.weights])
        return Linear(both, binary.iterations, binary.converged)
    rows = np.arange(len(classes))

    def loss(scores: Floats) -> tuple[Floats, Floats]:
        logs = scores - special.logsumexp(scores, axis=1, keepdims=True)
        residual = np.exp(logs)
        residual[rows, classes] -= 1
        losses: Floats = np.bincount(classes, -logs[rows, classes], minlength=count).astype(float)
        return losses, residual

    shares = np.bincount(classes, minlength=count) / len(classes)
    return _minimised(_axes(features), loss, shares, cost, (max_iter, tolerance), separate=False)


@dataclass(frozen=True, slots=True)
class _Axes:
    """Centred features on their principal axes: ``features`` = ``on`` @ ``turn``.T + ``mean``.
    ``squares``: the sum of squares on each axis. Sparse features stay as they are."""

    on: Any
    turn: Floats | None
    mean: Floats
    squares: Floats


def _axes(features: Any) -> _Axes:
    if sparse.issparse(features):
        squares = np.asarray(features.multiply(features).sum(axis=0)).ravel()
        return _Axes(features.tocsr(), None, np.zeros(features.shape[1]), squares)
    mean = features.mean(axis=0)
    centred = features - mean
    squares, turn = np.linalg.eigh(centred.T @ centred)
    return _Axes(centred @ turn, turn, mean, np.maximum(squares, 0))


def _minimised(
    axes: _Axes, loss: Loss, shares: Floats, cost: float, limits: Limits, *, separate: bool
) -> Linear:
    """L-BFGS with a backtracking line search. ``separate``: each label is a problem of its own,
    with its own curvature and steps; otherwise all are one."""
    spread = cost * shares * (1 - shares)
    scale = np.vstack(
        [
            1 / np.sqrt(1 + np.outer(axes.squares, spread)),
            1 / np.sqrt(axes.on.shape[0] * spread),
        ]
    )
    search = _Search([], separate)
    point, scores = np.zeros_like(scale), np.zeros((axes.on.shape[0], len(shares)))
    values, residual = loss(scores)
    gradient = _gradient(axes, residual, point, scale, cost)
    iterations, (max_iter, tolerance) = 0, limits
    while np.abs(gradient).max() > tolerance and iterations < max_iter:
        iterations += 1
        direction = search.direction(gradient)
        change = direction * scale
        moved = np.asarray(axes.on @ change[:-1]) + change[-1]
        line = _Line(scores, moved, values, (point * scale)[:-1], change[:-1], cost)
        step, values, residual = search.along(line, loss, search.dots(gradient, direction))
        point, scores, before = point + step * direction, scores + step * moved, gradient
        gradient = _gradient(axes, residual, point, scale, cost)
        search.remember(step * direction, gradient - before)
    weights = point * scale
    inner = weights[:-1] if axes.turn is None else axes.turn @ weights[:-1]
    intercepts = weights[-1] - axes.mean @ inner
    converged = bool(np.abs(gradient).max() <= tolerance)
    return Linear(np.vstack([inner, intercepts]), iterations, converged)


def _gradient(axes: _Axes, residual: Floats, point: Floats, scale: Floats, cost: float) -> Floats:
    """In the variables of the search, (features + 1, labels)."""
    inner = cost * np.asarray(axes.on.T @ residual) + point[:-1] * scale[:-1]
    gradient: Floats = np.vstack([inner, cost * residual.sum(axis=0)]) * scale
    return gradient


@dataclass(frozen=True, slots=True)
class _Line:
    """Where a line search begins and what it changes: scores, losses and weights of labels."""

    scores: Floats
    moved: Floats
    values: Floats
    weights: Floats
    change: Floats
    cost: float

    def penalty(self, step: Floats) -> Floats:
        """Half the squared weights after a step, (labels,)."""
        penalty: Floats = 0.5 * ((self.weights + step * self.change) ** 2).sum(axis=0)
        return penalty


@dataclass
class _Search:
    """The memory of L-BFGS (Nocedal and Wright 2006, algorithm 7.4), for one problem or for a
    problem a label."""

    pairs: list[tuple[Floats, Floats, Floats]]
    separate: bool

    def dots(self, first: Floats, second: Floats) -> Floats:
        """(labels,), or (1,) where all are one problem."""
        return self.total(np.einsum("dk,dk->k", first, second))

    def total(self, of_labels: Floats) -> Floats:
        summed: Floats = of_labels if self.separate else of_labels.sum(keepdims=True)
        return summed

    def direction(self, gradient: Floats) -> Floats:
        wanted = gradient.copy()
        lengths: list[Floats] = []
        for step, change, rho in reversed(self.pairs):
            lengths.append(rho * self.dots(step, wanted))
            wanted -= lengths[-1] * change
        if self.pairs:
            step, change, rho = self.pairs[-1]
            length = rho * self.dots(change, change)
            wanted *= np.divide(1.0, length, out=np.ones_like(rho), where=length > 0)
        for (step, change, rho), length in zip(self.pairs, reversed(lengths), strict=True):
            wanted += step * (length - rho * self.dots(change, wanted))
        return -wanted

    def remember(self, step: Floats, change: Floats) -> None:
        """A pair with too little curvature is remembered as nothing."""
        along = self.dots(step, change)
        enough = along > 1e-12 * self.dots(change, change)
        rho = np.divide(1.0, along, out=np.zeros_like(along), where=enough)
        self.pairs = [*self.pairs[1 - MEMORY :], (step, change, rho)]

    def along(self, line: _Line, loss: Loss, slope: Floats) -> tuple[Floats, Floats, Floats]:
        """Steps, (labels,) or (1,), halved until the objective falls enough, with losses and
        residual there. On the line scores move evenly: a step costs no product with the features.
        """
        step = np.ones_like(slope)
        begin = self.total(line.cost * line.values + line.penalty(np.zeros_like(step)))
        for _ in range(MOST_HALVINGS):
            values, residual = loss(line.scores + step * line.moved)
            now = self.total(line.cost * values + line.penalty(step))
            failed = now > begin + 1e-4 * step * slope + 1e-13 * np.abs(begin)
            if not failed.any():
                break
            step = np.where(failed, step / 2, step)
        return step, values, residual
