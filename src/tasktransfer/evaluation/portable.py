"""References that are fitted once, and saved in a folder without pickle.

They are the references of ``evaluation.reference`` and ``evaluation.embedding_references`` for
tasks with one label per input, split into a fit and its logits. The nearest neighbour's logit of a
label is the largest cosine similarity to a training instance with this label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError, ModelError
from tasktransfer.evaluation.embedding_references import (
    build_normalised_embedder,
    build_part_texts,
    embed_distinct_texts,
)
from tasktransfer.evaluation.linear_models import (
    FitClassifier,
    build_vectorizer,
    fit_logistic_regression,
)
from tasktransfer.evaluation.reference import Embed, split_input_parts
from tasktransfer.files import json_text
from tasktransfer.tasks.card import Instance, Task

WEIGHTS, VOCABULARY = "classifier.safetensors", "vocabulary.json"
WORD_PARTS = ("query", "focus", "before")

Floats = npt.NDArray[np.float64]


class PortableRegression(NamedTuple):
    """A linear classifier: labels, weights (labels, features) and intercepts (labels,)."""

    labels: tuple[str, ...]
    weight: Floats
    bias: Floats


def fit_regression(
    task: Task,
    features: Any,
    train: Sequence[Instance],
    seed: int,
    strength: float = 1.0,
    fit: FitClassifier = fit_logistic_regression,
) -> PortableRegression:
    """Fit a linear classifier, by default the references' logistic regression.

    Raises:
        DataError: the instances have only one label.
    """
    answers = [instance.target[0] for instance in train]
    if len(set(answers)) < 2:
        raise DataError(
            f"{task.name}: All training instances have the label {answers[0]!r}. Provide "
            "instances with several labels."
        )
    model = fit(features, answers, strength, seed)
    weight, bias = np.asarray(model.coef_), np.asarray(model.intercept_)
    if len(weight) == 1:  # scikit-learn has one column for two labels.
        weight, bias = np.vstack([0 * weight, weight]), np.append(0.0, bias)
    known = [str(label) for label in model.classes_]
    labels = tuple(label for label in task.labels if label in known)
    order = [known.index(label) for label in labels]
    return PortableRegression(labels, weight[order], bias[order])


# --- words ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordWeights:
    """TF-IDF of the words in some parts of an input: a vectorizer for each part."""

    vectorizers: dict[str, Any]

    @classmethod
    def fit(cls, task: Task, train: Sequence[Instance]) -> WordWeights:
        """Fit a vectorizer for each part of the inputs that contains words."""
        texts = _list_part_texts(task, train)
        used = {part: column for part, column in texts.items() if any(map(_has_word, column))}
        return cls({part: build_vectorizer().fit(column) for part, column in used.items()})

    def compute_features(self, task: Task, instances: Sequence[Instance]) -> Any:
        """Compute the features of inputs as a sparse matrix, (instances, words)."""
        from scipy import sparse  # noqa: PLC0415

        texts = _list_part_texts(task, instances)
        parts = [fitted.transform(texts[part]) for part, fitted in self.vectorizers.items()]
        return sparse.hstack(parts).tocsr()

    def write(self, folder: Path) -> dict[str, Floats]:
        """Write the vocabularies, and return the word weights for ``write_arrays``."""
        words = {
            part: [str(word) for word in fitted.get_feature_names_out()]
            for part, fitted in self.vectorizers.items()
        }
        text = json.dumps(words, ensure_ascii=False)
        (folder / VOCABULARY).write_text(text, encoding="utf-8")
        return {f"idf.{part}": fitted.idf_ for part, fitted in self.vectorizers.items()}

    @classmethod
    def read(cls, folder: Path, arrays: dict[str, Floats]) -> WordWeights:
        """Read the vectorizers in a folder. Raises ModelError if a file is damaged."""
        file = folder / VOCABULARY
        try:
            words: dict[str, list[str]] = json_text.read(file)
            vectorizers = {}
            for part, terms in words.items():
                vectorizers[part] = build_vectorizer()
                vectorizers[part].vocabulary = {word: n for n, word in enumerate(terms)}
                vectorizers[part].idf_ = arrays[f"idf.{part}"]
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise ModelError(
                f"{file}: The file is damaged ({error}). Export the model again with "
                "`tasktransfer export-model`."
            ) from None
        return cls(vectorizers)


def _list_part_texts(task: Task, instances: Sequence[Instance]) -> dict[str, list[str]]:
    columns = zip(*split_input_parts(task, instances), strict=True)
    return dict(zip(WORD_PARTS, map(list, columns), strict=True))


def _has_word(text: str) -> bool:
    return re.search(r"\w", text) is not None


# --- embeddings -----------------------------------------------------------------------------------


def list_embedded_parts(task: Task, train: Sequence[Instance]) -> tuple[str, ...]:
    """Return the parts that contain text in a training instance (``build_part_texts``)."""
    return tuple(part for part, texts in build_part_texts(task, train).items() if any(texts))


def compute_embeddings(
    embed: Embed, task: Task, parts: Sequence[str], instances: Sequence[Instance]
) -> Floats:
    """Compute unit-length embeddings of inputs, (instances, parts times size)."""
    texts = build_part_texts(task, instances)
    unit = build_normalised_embedder(embed)
    return np.hstack([embed_distinct_texts(unit, texts[part]) for part in parts])


def compute_similarities(
    train_features: Floats, answers: npt.NDArray[np.int64], features: Floats
) -> Floats:
    """Compute each label's highest similarity to a training instance, (instances, labels).

    Args:
        train_features: features of the training instances, (training instances, size).
        answers: index of each training instance's label.
        features: features of the instances to predict, (instances, size).
    """
    similarities = features @ train_features.T
    return np.stack(
        [similarities[:, answers == label].max(axis=1) for label in range(answers.max() + 1)],
        axis=1,
    )


# --- files ----------------------------------------------------------------------------------------


def write_arrays(folder: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write arrays to ``classifier.safetensors`` in a folder."""
    from safetensors.numpy import save_file  # noqa: PLC0415

    save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, folder / WEIGHTS)


def read_arrays(file: Path) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays in a file. Raises ModelError if the file is missing or damaged."""
    from safetensors import SafetensorError  # noqa: PLC0415
    from safetensors.numpy import load_file  # noqa: PLC0415

    try:
        return load_file(file)
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(
            f"{file}: The file is damaged or missing ({error}). Export the model again with "
            "`tasktransfer export-model`."
        ) from error
