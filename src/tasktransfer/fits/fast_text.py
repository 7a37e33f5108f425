"""fastText's text classifier (Joulin et al. 2017): mean of word vectors, linear layer, softmax.

It is trained by SGD on single texts with a learning rate that falls to 0. The library's builds for
these versions of Python and numpy report a NaN loss on data for which this implementation works. It
uses words without n-grams; the updates are those of fastText.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError, TrainingError
from tasktransfer.metrics.bleu import split_words
from tasktransfer.tasks.card import Instance, Task

Features = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]

WEIGHTS, SETTINGS = "classifier.safetensors", "classifier.json"
DEFAULTS = {"lr": 0.5, "epoch": 5, "dim": 32}
"""Default settings by fastText's names: learning rate, epochs, dimension."""
TURN, END = "<SOC>", "</s>"


@dataclass(frozen=True, slots=True)
class FastText:
    """A fitted fastText classifier.

    Attributes:
        vectors: word vectors, (words, dim).
        output: output layer, (labels, dim).
        vocabulary: word → row of ``vectors``.
        names: labels of its card.
    """

    vectors: Vectors
    output: Vectors
    vocabulary: Mapping[str, int]
    names: tuple[str, ...]

    def predict_probabilities(
        self, instances: Sequence[Instance], features: Features | None
    ) -> Features:
        """Predict label probabilities, (instances, labels), with labels in the card's order.

        They are uniform for a text without known words.
        """
        rows = []
        for instance in instances:
            ids = [
                self.vocabulary[w] for w in split_tokens(instance.context) if w in self.vocabulary
            ]
            mean = self.vectors[ids].mean(0) if ids else np.zeros(self.vectors.shape[1])
            rows.append(_compute_softmax(self.output @ mean))
        return np.array(rows, np.float64).reshape(len(rows), len(self.names))

    def save(self, folder: Path) -> None:
        """Save the classifier in an existing folder."""
        from safetensors.numpy import save_file  # noqa: PLC0415  # Tables do not need it.

        save_file({"vectors": self.vectors, "output": self.output}, folder / WEIGHTS)
        content = {"names": self.names, "words": list(self.vocabulary)}
        (folder / SETTINGS).write_text(json.dumps(content), encoding="utf-8")


def fit_fasttext(
    card: Task,
    instances: Sequence[Instance],
    features: Features | None,
    settings: Mapping[str, Any],
    seed: int,
) -> FastText:
    """Fit a fastText classifier that predicts a card's labels from contexts.

    Args:
        settings: values that override ``DEFAULTS``.

    Raises:
        DataError: all instances have the same label.
        TrainingError: a weight is not finite.
    """
    if len({instance.target for instance in instances}) < 2:
        raise DataError(
            f"{card.name}: All training instances have the same label. Provide instances with "
            "several labels."
        )
    chosen = {name: settings.get(name, value) for name, value in DEFAULTS.items()}
    texts = [split_tokens(instance.context) for instance in instances]
    vocabulary = {w: i for i, w in enumerate(sorted({w for text in texts for w in text}))}
    rows = [np.array([vocabulary[w] for w in text]) for text in texts]
    golds = [card.labels.index(instance.target[0]) for instance in instances]
    chance = np.random.default_rng(seed)
    width = chosen["dim"]
    vectors = chance.uniform(-1 / width, 1 / width, (len(vocabulary), width)).astype(np.float32)
    output = np.zeros((len(card.labels), width), np.float32)
    steps, step = chosen["epoch"] * len(rows), 0
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(chosen["epoch"]):
            for row in chance.permutation(len(rows)).tolist():
                rate = np.float32(chosen["lr"] * (1 - step / steps))
                _update_weights(vectors, output, rows[row], golds[row], rate)
                step += 1
    if not np.isfinite(output).all():
        raise TrainingError(
            f"{card.name}: The loss of fastText is NaN with lr {chosen['lr']}, so no classifier is "
            "saved. Reduce lr in the settings of the fit."
        )
    return FastText(vectors, output, vocabulary, card.labels)


def _update_weights(
    vectors: Vectors, output: Vectors, ids: npt.NDArray[Any], gold: int, rate: np.float32
) -> None:
    """Update the weights in place by an SGD step on one text."""
    if not len(ids):
        return
    mean = vectors[ids].mean(0)
    slope = -_compute_softmax(output @ mean)
    slope[gold] += 1
    back = (slope @ output) * (rate / len(ids))
    output += rate * slope[:, None] * mean
    np.add.at(vectors, ids, back)


def load_fasttext(folder: Path) -> FastText:
    """Load a classifier that ``FastText.save`` wrote into a folder.

    Raises:
        DataError: the classifier cannot be read.
    """
    try:
        content = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        from safetensors.numpy import load_file  # noqa: PLC0415  # Tables do not need it.

        weights = load_file(folder / WEIGHTS)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{folder}: The classifier cannot be read ({error}). Delete the folder, and fit the "
            "classifier again."
        ) from error
    vocabulary = {word: number for number, word in enumerate(content["words"])}
    return FastText(weights["vectors"], weights["output"], vocabulary, tuple(content["names"]))


def split_tokens(text: str) -> list[str]:
    """Split a text into lower-case words, with fastText's end of sentence between turns.

    The paper's code does the same.
    """
    parts = [split_words(turn) for turn in text.split(TURN)]
    joined = list(parts[0])
    for part in parts[1:]:
        joined += [END, *part]
    return joined


def _compute_softmax(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    powers = np.exp(scores - scores.max())
    softmax: npt.NDArray[Any] = powers / powers.sum()
    return softmax
