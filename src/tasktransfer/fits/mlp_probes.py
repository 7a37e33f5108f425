"""Probes with one hidden layer: multi-class for single labels, binary outputs for sets of labels.

scikit-learn's early stopping uses accuracy, which for sets is the fraction of exact matches. This
stays 0 for a long time with hundreds of labels. Here the log loss on dialogues held out from the
training split is used instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

HIDDEN_UNITS = 100
EPOCHS, PATIENCE = 200, 5
"""Maximum number of epochs, and of epochs without a lower loss before the fit stops."""
HELD_OUT_FRACTION = 0.1
"""Fraction of the training dialogues that are held out."""


@dataclass(frozen=True, slots=True)
class MlpProbe:
    """A fitted probe with one hidden layer.

    Attributes:
        labels: labels of the training split, sorted.
        one: whether each instance gets exactly one label.
        epochs: number of epochs after which the loss was lowest.
    """

    labels: tuple[str, ...]
    model: Any
    one: bool
    epochs: int

    def predict(self, features: Any) -> list[tuple[str, ...]]:
        """Predict exactly one label per row, or all labels with a probability above 0.5."""
        probable = self.model.predict_proba(features)[:, : len(self.labels)]
        if self.one:
            classes = self.model.classes_[probable.argmax(axis=1)]
            return [(self.labels[number],) for number in classes]
        return [tuple(self.labels[k] for k in np.flatnonzero(row > 0.5)) for row in probable]


def fit_mlp(
    features: Any,
    golds: Sequence[tuple[str, ...]],
    dialogues: Sequence[str],
    seed: int,
    *,
    one: bool,
) -> MlpProbe:
    """Fit an MLP probe with early stopping, and return the probe of the best epoch.

    The best epoch has the lowest log loss on held-out dialogues.

    Args:
        features: (rows, features), dense or sparse.
        golds: gold labels of each row. Each row has exactly one if ``one`` is true.
        dialogues: dialogue id of each row.
    """
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415  # slow to import

    labels = tuple(sorted({label for gold in golds for label in gold}))
    number = {label: index for index, label in enumerate(labels)}
    wanted = np.zeros((len(golds), len(labels)), np.int64)
    for row, gold in enumerate(golds):
        wanted[row, [number[label] for label in gold]] = 1
    targets = wanted.argmax(axis=1) if one else wanted
    if not one and len(labels) == 1:  # scikit-learn does not support a single binary label.
        targets = np.hstack([wanted, 1 - wanted])
    held = _sample_held_out_rows(dialogues, seed)
    model = MLPClassifier(HIDDEN_UNITS, random_state=seed)
    classes = np.arange(len(labels) if one else targets.shape[1])
    best, lowest, weights = 0, np.inf, None
    for epoch in range(1, EPOCHS + 1):
        model.partial_fit(features[~held], targets[~held], classes=classes)
        probable = model.predict_proba(features[held])[:, : len(labels)]
        loss = compute_log_loss(probable, wanted[held], one=one)
        if loss < lowest:
            best, lowest = epoch, loss
            weights = [w.copy() for w in (*model.coefs_, *model.intercepts_)]
        elif epoch - best >= PATIENCE:
            break
    assert weights is not None
    model.coefs_, model.intercepts_ = weights[:2], weights[2:]
    return MlpProbe(labels, model, one, best)


def compute_log_loss(probable: Floats, wanted: npt.NDArray[np.int64], *, one: bool) -> float:
    """Compute the mean negative log-probability of the gold labels over rows.

    A row has one gold class if ``one`` is true. Otherwise it has one binary value per label, and
    their log-probabilities are summed.
    """
    clipped = np.clip(probable, 1e-12, 1 - 1e-12)
    right = np.where(wanted == 1, np.log(clipped), 0.0 if one else np.log1p(-clipped))
    return -float(right.sum(axis=1).mean())


def _sample_held_out_rows(dialogues: Sequence[str], seed: int) -> npt.NDArray[np.bool_]:
    """Return a mask of rows in a held-out tenth of the dialogues, (rows,).

    If there is only one dialogue, a tenth of its rows is held out.
    """
    names = sorted(set(dialogues))
    if len(names) == 1:
        names = [str(row) for row in range(len(dialogues))]
        dialogues = names
    count = max(1, round(HELD_OUT_FRACTION * len(names)))
    drawn = np.random.default_rng([seed, len(dialogues)]).permutation(len(names))[:count]
    held = {names[index] for index in drawn}
    return np.array([name in held for name in dialogues])
