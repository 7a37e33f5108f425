"""Values of selectors: transferability estimates, and the similarity of two tasks' inputs.

Transferability estimates are the fit of a source model's features to a target's labels. They are
computed in closed form or by one small fit. Their inputs are features of the target's training
instances, or probabilities of the source's labels, and the target's classes. Similarity is that of
words or of a model's embeddings. Higher is better. scikit-learn is imported lazily, because that
takes a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Classes = NDArray[np.int64]

MOST_ITERATIONS = 100
VARIANCE_KEPT = 0.8
COMPONENTS_PER_CLASS = 5
"""Components per class in NLEEP, for both its PCA and its mixture (Li et al. 2021, section 4)."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Log evidence per instance of a Bayesian linear regression.

    Attributes:
        value: log evidence.
        alpha: precision of the weights.
        beta: precision of the noise.
    """

    value: float
    alpha: float
    beta: float


class BayesianRegression:
    """Bayesian linear regression of any targets on the same features, with one decomposition.

    Args:
        features: (instances, features), N × D, with any relation of N to D.
    """

    def __init__(self, features: Floats) -> None:
        self.instances, self.features = features.shape
        u, singular, _ = np.linalg.svd(features, full_matrices=False)
        self._u, self._squares = u, singular**2

    def compute_best_evidence(self, y: Floats) -> Evidence:
        """Compute the evidence at the fixed point of the precisions (MacKay).

        Source: You et al. 2021, algorithm 3.

        Args:
            y: (instances,)
        """
        squares, (x, rest) = self._squares, self._transform_target(y)
        alpha = beta = 1.0
        for _ in range(MOST_ITERATIONS):
            t = alpha / beta
            gamma = float((squares / (squares + t)).sum())
            weights, residual = _compute_norms(squares, x, rest, t)
            alpha = gamma / (weights + 1e-5)
            beta = (self.instances - gamma) / (residual + 1e-5)
            if abs(alpha / beta - t) <= 1e-3 * t:
                break
        return Evidence(self.compute_log_evidence(y, alpha, beta), alpha, beta)

    def compute_log_evidence(self, y: Floats, alpha: float, beta: float) -> float:
        """Return the log density of y under N(0, I / beta + F F' / alpha) per instance.

        The log determinant includes directions that no feature spans, D - min(N, D) times log
        alpha. Public code omits them, which is wrong if there are fewer instances than features.
        """
        n, d, k = self.instances, self.features, len(self._squares)
        x, rest = self._transform_target(y)
        weights, residual = _compute_norms(self._squares, x, rest, alpha / beta)
        log_determinant = np.log(alpha + beta * self._squares).sum() + (d - k) * np.log(alpha)
        total = d * np.log(alpha) + n * np.log(beta) - log_determinant
        total -= beta * residual + alpha * weights + n * np.log(2 * np.pi)
        return float(total / 2 / n)

    def _transform_target(self, y: Floats) -> tuple[Floats, float]:
        """Return y in the features' directions, and its squared length in other directions."""
        x = self._u.T @ y
        return x, max(0.0, float(y @ y - x @ x))


def _compute_norms(squares: Floats, x: Floats, rest: float, t: float) -> tuple[float, float]:
    """Compute the squared lengths of the mean weights and of y's residual."""
    weights = float((squares * x**2 / (t + squares) ** 2).sum())
    residual = float((x**2 / (1 + squares / t) ** 2).sum()) + rest
    return weights, residual


def compute_logme(features: Floats, classes: Classes) -> float:
    """Return LogME, the maximum log evidence per instance, averaged over classes (one-vs-rest).

    Source: You et al. 2021, equation 3.

    Args:
        features: (instances, features).
        classes: class of each instance, numbered from 0.
    """
    regression, one_hot = BayesianRegression(features), _encode_one_hot(classes)
    return float(np.mean([regression.compute_best_evidence(y).value for y in one_hot.T]))


def compute_leep(probabilities: Floats, classes: Classes) -> float:
    """Return LEEP, the log likelihood of target labels given source label probabilities.

    Source: Nguyen et al. 2020, equation 2.

    Args:
        probabilities: probabilities of the source's labels, (instances, source labels); rows sum to
            1.
        classes: class of each instance, numbered from 0.
    """
    joint = _encode_one_hot(classes).T @ probabilities / len(classes)
    mass = joint.sum(axis=0)
    given = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
    expected = (given[classes] * probabilities).sum(axis=1)
    return float(np.log(np.maximum(expected, np.finfo(float).tiny)).mean())


def compute_nleep(features: Floats, classes: Classes, seed: int = 0) -> float:
    """Return LEEP with components of a Gaussian mixture instead of source labels.

    It exists for any kind of source (Li et al. 2021). Covariances are diagonal, because full ones
    cannot be estimated from few instances.
    """
    from sklearn.decomposition import PCA  # noqa: PLC0415  # slow to import
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415

    components = min(COMPONENTS_PER_CLASS * (int(classes.max()) + 1), len(classes) // 2)
    reduced = PCA(VARIANCE_KEPT, svd_solver="full").fit_transform(features)
    mixture = GaussianMixture(
        max(1, components), covariance_type="diag", reg_covar=1e-4, random_state=seed
    )
    return compute_leep(mixture.fit(reduced).predict_proba(reduced), classes)


def compute_hscore(features: Floats, classes: Classes) -> float:
    """Return the H-score, tr(cov(F)^-1 cov(E[F | y])) (Bao et al. 2019, definition 2).

    The covariance of F is shrunk by Ledoit and Wolf's method (Ibrahim et al. 2022).
    """
    from sklearn.covariance import ledoit_wolf  # noqa: PLC0415  # slow to import

    covariance, _ = ledoit_wolf(features)
    one_hot = _encode_one_hot(classes)
    means = (one_hot.T @ features) / one_hot.sum(axis=0)[:, None]
    between = np.cov(means[classes], rowvar=False, bias=True)
    return float(np.trace(np.linalg.solve(covariance, np.atleast_2d(between))))


def compute_esm_logme(
    base_of_source: Floats, features_of_source: Floats, base_of_target: Floats, classes: Classes
) -> float:
    """Return LogME of the target's base features after a map between embedding spaces.

    Source: Schulte et al. 2024. The map is linear. It is learnt on the source's instances, from
    base features to features of the source's model. The target's instances therefore pass through
    the base model only.

    Args:
        base_of_source: base features, (source instances, features).
        features_of_source: the source model's features of the same instances.
        base_of_target: base features, (target instances, features).
    """
    return compute_logme(map_features(base_of_source, features_of_source, base_of_target), classes)


def map_features(given: Floats, wanted: Floats, others: Floats, seed: int = 0) -> Floats:
    """Transform ``others`` by an affine map that is fitted from ``given`` to ``wanted``.

    It minimises the mean squared error by AdamW with learning rate 1e-3, weight decay 0.01, and 10
    epochs with batch size 32.
    """
    rows, columns = given.shape[1] + 1, wanted.shape[1]
    random = np.random.default_rng(seed)
    bound = (rows - 1) ** -0.5
    weights = random.uniform(-bound, bound, (rows, columns))
    padded = np.column_stack([given, np.ones(len(given))])
    first, second, step = np.zeros_like(weights), np.zeros_like(weights), 0
    for _ in range(10):
        order = random.permutation(len(padded))
        for batch in (order[begin : begin + 32] for begin in range(0, len(order), 32)):
            error = padded[batch] @ weights - wanted[batch]
            gradient = 2 * padded[batch].T @ error / error.size
            step += 1
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            reach = (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            weights = weights * (1 - 1e-3 * 0.01) - 1e-3 * reach
    result: Floats = np.column_stack([others, np.ones(len(others))]) @ weights
    return result


def _encode_one_hot(classes: Classes) -> Floats:
    return np.eye(int(classes.max()) + 1)[classes]


TARGET_INPUTS, SOURCE_INPUTS = 32, 100
"""Numbers of inputs for retrieval of experts, as in TaskWeb (Kim et al. 2023)."""


def compute_mean_tfidf(texts: Mapping[str, Sequence[str]]) -> dict[str, Floats]:
    """Return each task's mean TF-IDF vector, with document frequencies over all tasks."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415  # slow to import

    vectorizer = TfidfVectorizer()
    vectorizer.fit([text for of_task in texts.values() for text in of_task])
    return {
        task: np.asarray(vectorizer.transform(of_task).mean(axis=0)).ravel()
        for task, of_task in texts.items()
    }


def compute_cosine(a: Floats, b: Floats) -> float:
    """Return the cosine similarity of two vectors, or 0 if one of them is zero."""
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / length if length > 0 else 0.0


def compute_retrieval_similarity(target: Floats, source: Floats) -> float:
    """Return the mean, over target inputs, of the highest cosine similarity to a source input.

    Args:
        target, source: embeddings, (inputs, size); the first ``TARGET_INPUTS`` and
            ``SOURCE_INPUTS`` are read.
    """
    t, s = _normalise_rows(target[:TARGET_INPUTS]), _normalise_rows(source[:SOURCE_INPUTS])
    return float((t @ s.T).max(axis=1).mean())


def _normalise_rows(rows: Floats) -> Floats:
    """Divide each row by its Euclidean length; rows of zeros stay unchanged."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Floats = rows / np.where(length > 0, length, 1)
    return result
