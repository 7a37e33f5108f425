"""Many logistic regressions on the same features, fitted as one problem in float64.

The objective is that of scikit-learn: C times the summed log loss plus half the squared weights,
without penalty on intercepts. Over labels (one-vs-rest) it is a sum of independent problems, so the
joint optimum is the optimum of each. Over classes (multinomial) it is one problem.

L-BFGS works on preconditioned variables with similar curvature for all labels. Features are centred
and rotated to their principal axes. The weight of axis j and label k is divided by
sqrt(1 + C p(1 - p) lambda). Here lambda is the axis's sum of squares, and p the label's fraction of
rows. This changes the speed of convergence, but not the optimum.
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
"""Tolerance for the gradient's largest element, in the preconditioned variables."""

STORED_STEPS = 10
MAX_HALVINGS = 30
GROUP_SIZE = 64
"""Number of binary classifiers that are fitted together."""

Limits = tuple[int, float]
"""Maximum number of iterations, and tolerance."""

Loss = Callable[[Floats], tuple[Floats, Floats]]
"""Function of scores (rows, labels) → loss of each label, and its derivative by the scores."""


@dataclass(frozen=True, slots=True)
class LinearClassifier:
    """A fitted linear classifier.

    Attributes:
        weights: weights, (features + 1, labels), with the intercepts last.
        iterations: number of iterations of L-BFGS.
        converged: whether it ended before the maximum number of iterations.
    """

    weights: Floats
    iterations: int
    converged: bool

    def compute_scores(self, features: Any) -> Floats:
        """Compute scores, (rows, labels), where labels above 0 are more likely than not."""
        scores: Floats = np.asarray(features @ self.weights[:-1]) + self.weights[-1]
        return scores


def fit_one_vs_rest_classifiers(
    features: Any, labels: Floats, cost: float, max_iter: int, tolerance: float = TOLERANCE
) -> LinearClassifier:
    """Fit one binary classifier per label.

    Args:
        features: (rows, features), dense or sparse.
        labels: (rows, labels), 0 or 1. A constant label gets an infinite intercept.
    """
    fractions = labels.mean(axis=0)
    weights = np.zeros((features.shape[1] + 1, labels.shape[1]))
    weights[-1] = np.where(fractions >= 1, np.inf, -np.inf)
    varying = np.flatnonzero((fractions > 0) & (fractions < 1))
    axes, limits = _compute_axes(features), (max_iter, tolerance)
    iterations, converged = 0, True
    # Labels of similar frequency need similar numbers of iterations. Small groups fit into the
    # processor's cache.
    ordered = varying[np.argsort(fractions[varying], kind="stable")]
    for begin in range(0, len(ordered), GROUP_SIZE):
        group = ordered[begin : begin + GROUP_SIZE]
        loss = partial(_compute_log_loss, labels[:, group])
        fitted = _fit_weights(axes, loss, fractions[group], cost, limits, separate=True)
        weights[:, group] = fitted.weights
        iterations, converged = max(iterations, fitted.iterations), converged and fitted.converged
    return LinearClassifier(weights, iterations, converged)


def _compute_log_loss(wanted: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Compute the loss log(1 + e^s) - y s of each label, and its derivative in s.

    Both use one exponential.
    """
    small = np.exp(-np.abs(scores))
    values: Floats = (np.log1p(small) + np.maximum(scores, 0) - wanted * scores).sum(axis=0)
    above = 1 / (1 + small)
    residual: Floats = np.where(scores >= 0, above, 1 - above) - wanted
    return values, residual


def fit_multinomial_classifier(
    features: Any,
    classes: npt.NDArray[np.int64],
    cost: float,
    max_iter: int,
    tolerance: float = TOLERANCE,
) -> LinearClassifier:
    """Fit a single softmax classifier over classes.

    Two classes are fitted as one binary problem, as in scikit-learn.

    Args:
        classes: class of each row, (rows,), numbered from 0. There are at least two, and each
            occurs.
    """
    count = int(classes.max()) + 1
    if count == 2:
        binary = fit_one_vs_rest_classifiers(
            features, (classes == 1)[:, None].astype(np.float64), cost, max_iter, tolerance
        )
        both = np.hstack([np.zeros_like(binary.weights), binary.weights])
        return LinearClassifier(both, binary.iterations, binary.converged)
    rows = np.arange(len(classes))

    def compute_loss(scores: Floats) -> tuple[Floats, Floats]:
        logs = scores - special.logsumexp(scores, axis=1, keepdims=True)
        residual = np.exp(logs)
        residual[rows, classes] -= 1
        losses: Floats = np.bincount(classes, -logs[rows, classes], minlength=count).astype(float)
        return losses, residual

    fractions = np.bincount(classes, minlength=count) / len(classes)
    return _fit_weights(
        _compute_axes(features),
        compute_loss,
        fractions,
        cost,
        (max_iter, tolerance),
        separate=False,
    )


@dataclass(frozen=True, slots=True)
class _PrincipalAxes:
    """Features on their principal axes: ``features`` = ``on`` @ ``turn``.T + ``mean``.

    Sparse features are neither centred nor rotated.

    Attributes:
        squares: sum of squares on each axis.
    """

    on: Any
    turn: Floats | None
    mean: Floats
    squares: Floats


def _compute_axes(features: Any) -> _PrincipalAxes:
    if sparse.issparse(features):
        squares = np.asarray(features.multiply(features).sum(axis=0)).ravel()
        return _PrincipalAxes(features.tocsr(), None, np.zeros(features.shape[1]), squares)
    mean = features.mean(axis=0)
    centred = features - mean
    squares, turn = np.linalg.eigh(centred.T @ centred)
    return _PrincipalAxes(centred @ turn, turn, mean, np.maximum(squares, 0))


def _fit_weights(
    axes: _PrincipalAxes,
    loss: Loss,
    fractions: Floats,
    cost: float,
    limits: Limits,
    *,
    separate: bool,
) -> LinearClassifier:
    """Fit the weights that minimise the objective, by L-BFGS with backtracking.

    Args:
        separate: whether each label is a separate problem with its own curvature and steps.
    """
    spread = cost * fractions * (1 - fractions)
    scale = np.vstack(
        [
            1 / np.sqrt(1 + np.outer(axes.squares, spread)),
            1 / np.sqrt(axes.on.shape[0] * spread),
        ]
    )
    memory = _LbfgsMemory([], separate)
    point, scores = np.zeros_like(scale), np.zeros((axes.on.shape[0], len(fractions)))
    values, residual = loss(scores)
    gradient = _compute_gradient(axes, residual, point, scale, cost)
    iterations, (max_iter, tolerance) = 0, limits
    while np.abs(gradient).max() > tolerance and iterations < max_iter:
        iterations += 1
        direction = memory.compute_direction(gradient)
        change = direction * scale
        moved = np.asarray(axes.on @ change[:-1]) + change[-1]
        line = _Line(scores, moved, values, (point * scale)[:-1], change[:-1], cost)
        step, values, residual = memory.search_line(
            line, loss, memory.compute_dot_products(gradient, direction)
        )
        point, scores, before = point + step * direction, scores + step * moved, gradient
        gradient = _compute_gradient(axes, residual, point, scale, cost)
        memory.store_step(step * direction, gradient - before)
    weights = point * scale
    inner = weights[:-1] if axes.turn is None else axes.turn @ weights[:-1]
    intercepts = weights[-1] - axes.mean @ inner
    converged = bool(np.abs(gradient).max() <= tolerance)
    return LinearClassifier(np.vstack([inner, intercepts]), iterations, converged)


def _compute_gradient(
    axes: _PrincipalAxes, residual: Floats, point: Floats, scale: Floats, cost: float
) -> Floats:
    """Compute the gradient in preconditioned variables, (features + 1, labels)."""
    inner = cost * np.asarray(axes.on.T @ residual) + point[:-1] * scale[:-1]
    gradient: Floats = np.vstack([inner, cost * residual.sum(axis=0)]) * scale
    return gradient


@dataclass(frozen=True, slots=True)
class _Line:
    """The start and direction of a line search: scores, losses and weights of labels."""

    scores: Floats
    moved: Floats
    values: Floats
    weights: Floats
    change: Floats
    cost: float

    def compute_penalty(self, step: Floats) -> Floats:
        """Compute half the sum of squared weights after a step, (labels,)."""
        penalty: Floats = 0.5 * ((self.weights + step * self.change) ** 2).sum(axis=0)
        return penalty


@dataclass
class _LbfgsMemory:
    """The stored steps of L-BFGS (Nocedal and Wright 2006, algorithm 7.4).

    They belong to one joint problem, or to one problem per label (``separate``).
    """

    pairs: list[tuple[Floats, Floats, Floats]]
    separate: bool

    def compute_dot_products(self, first: Floats, second: Floats) -> Floats:
        """Compute the dot product for each label, (labels,), or (1,) for a joint problem."""
        return self.sum_joint_labels(np.einsum("dk,dk->k", first, second))

    def sum_joint_labels(self, values: Floats) -> Floats:
        """Return the values of each label, or their sum (1,) for a joint problem."""
        summed: Floats = values if self.separate else values.sum(keepdims=True)
        return summed

    def compute_direction(self, gradient: Floats) -> Floats:
        """Compute the descent direction, (features + 1, labels)."""
        direction = gradient.copy()
        lengths: list[Floats] = []
        for step, change, rho in reversed(self.pairs):
            lengths.append(rho * self.compute_dot_products(step, direction))
            direction -= lengths[-1] * change
        if self.pairs:
            step, change, rho = self.pairs[-1]
            length = rho * self.compute_dot_products(change, change)
            direction *= np.divide(1.0, length, out=np.ones_like(rho), where=length > 0)
        for (step, change, rho), length in zip(self.pairs, reversed(lengths), strict=True):
            direction += step * (length - rho * self.compute_dot_products(change, direction))
        return -direction

    def store_step(self, step: Floats, change: Floats) -> None:
        """Store a step and its gradient change, unless the curvature is too small."""
        along = self.compute_dot_products(step, change)
        enough = along > 1e-12 * self.compute_dot_products(change, change)
        rho = np.divide(1.0, along, out=np.zeros_like(along), where=enough)
        self.pairs = [*self.pairs[1 - STORED_STEPS :], (step, change, rho)]

    def search_line(self, line: _Line, loss: Loss, slope: Floats) -> tuple[Floats, Floats, Floats]:
        """Halve the steps, (labels,) or (1,), until the objective decreases sufficiently.

        Scores are linear along the line, so a step needs no product with the features.

        Returns:
            The steps, and the losses and residuals after them.
        """
        step = np.ones_like(slope)
        begin = self.sum_joint_labels(
            line.cost * line.values + line.compute_penalty(np.zeros_like(step))
        )
        for _ in range(MAX_HALVINGS):
            values, residual = loss(line.scores + step * line.moved)
            now = self.sum_joint_labels(line.cost * values + line.compute_penalty(step))
            failed = now > begin + 1e-4 * step * slope + 1e-13 * np.abs(begin)
            if not failed.any():
                break
            step = np.where(failed, step / 2, step)
        return step, values, residual
