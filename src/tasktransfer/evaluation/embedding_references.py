"""References on a model's embeddings: logistic regression and the nearest neighbour.

Embeddings are mean-pooled states of a checkpoint before training. Each instance has up to two: one
of the query joined with the part in focus, and one of the context before that part. Embeddings have
the length 1. For choices, features of the regression are products of embeddings, scaled to the mean
0 and variance 1 over the training instances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tasktransfer.core.references import REGULARISATION
from tasktransfer.evaluation.linear_models import estimate_probabilities
from tasktransfer.evaluation.reference import (
    Answers,
    Embed,
    predict_from_features,
    split_input_parts,
)
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.tasks.compose import build_option_texts

Floats = npt.NDArray[np.float64]
FineTune = Callable[[Task, Sequence[Instance], int], Embed]
"""Function (card, training instances, seed) → ``Embed`` of an encoder fine-tuned on them."""


def predict_by_regression(
    embed: Embed, task: Task, train: Sequence[Instance], test: Sequence[Instance], seed: int
) -> Answers:
    """Predict by logistic regression on frozen embeddings.

    The options of a choice are ranked by a regression on the product of the embeddings of context
    and option.
    """
    if task.kind == "multiple_choice":
        return _predict_options(embed, task, train, test, seed)
    train_features, test_features = _embed_instances(
        build_normalised_embedder(embed), task, train, test
    )
    return predict_from_features(task, train, train_features, test_features, seed, REGULARISATION)


def predict_by_nearest_neighbour(
    embed: Embed, task: Task, train: Sequence[Instance], test: Sequence[Instance], seed: int
) -> Answers:
    """Predict the answer of the training instance with the highest cosine similarity.

    The similarities of both embeddings are summed. An empty text has the similarity 0. For a
    multiple-choice task, the option that is most similar to the context is predicted.
    """
    if task.kind == "multiple_choice":
        products = _multiply_options(build_normalised_embedder(embed), task, test)
        return [(task.labels[int(rows.sum(axis=1).argmax())],) for rows in products]
    train_features, test_features = _embed_instances(
        build_normalised_embedder(embed), task, train, test
    )
    nearest = (test_features @ train_features.T).argmax(axis=1)
    answers = [train[index].target for index in nearest]
    return [tuple(sorted(a)) for a in answers] if task.kind == "multi_label" else answers


def predict_by_fine_tuned_regression(
    fine_tune: FineTune, task: Task, train: Sequence[Instance], test: Sequence[Instance], seed: int
) -> Answers:
    """Predict by logistic regression on the embeddings of a fine-tuned encoder."""
    return predict_by_regression(fine_tune(task, train, seed), task, train, test, seed)


def _embed_instances(
    embed: Embed, task: Task, train: Sequence[Instance], test: Sequence[Instance]
) -> tuple[Floats, Floats]:
    """Compute the features of training and test instances, each (instances, size)."""
    parts = build_part_texts(task, [*train, *test]).values()
    features = np.hstack([embed_distinct_texts(embed, p) for p in parts if any(p[: len(train)])])
    return features[: len(train)], features[len(train) :]


def build_part_texts(task: Task, instances: Sequence[Instance]) -> dict[str, list[str]]:
    """Return two texts per instance, which are embedded separately.

    ``focus`` is the query with the part of the context in focus, and ``before`` is the context
    before that part.
    """
    texts = split_input_parts(task, instances)
    return {
        "focus": [f"{query} {focus}".strip() for query, focus, _ in texts],
        "before": [before.strip() for _, _, before in texts],
    }


def build_normalised_embedder(embed: Embed) -> Embed:
    """Return a function that embeds texts as vectors of length 1."""

    def embed_normalised(texts: Sequence[str]) -> Floats:
        vectors = np.asarray(embed(texts), np.float64)
        scaled: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return scaled

    return embed_normalised


def embed_distinct_texts(embed: Embed, texts: Iterable[str]) -> Floats:
    """Embed each distinct text once, with zeros for empty texts."""
    texts = list(texts)
    distinct = [text for text in dict.fromkeys(texts) if text.strip()]
    vectors = np.asarray(embed(distinct or [" "]), np.float64)[: len(distinct)]
    vectors = np.vstack([vectors, np.zeros(vectors.shape[1])])
    places = {text: index for index, text in enumerate(distinct)}
    return vectors[[places.get(text, len(distinct)) for text in texts]]


def _standardise_features(train_features: Floats, test_features: Floats) -> tuple[Floats, Floats]:
    """Standardise training and test features by the training features' mean and deviation."""
    spread = train_features.std(axis=0)
    spread[spread == 0] = 1.0
    mean = train_features.mean(axis=0)
    return (train_features - mean) / spread, (test_features - mean) / spread


def _multiply_options(embed: Embed, task: Task, instances: Sequence[Instance]) -> list[Floats]:
    """Multiply the embeddings of context and options elementwise, each (options, size)."""
    options = [build_option_texts(task, instance) for instance in instances]
    contexts = embed_distinct_texts(embed, [instance.context for instance in instances])
    flat = embed_distinct_texts(embed, [text for texts in options for text in texts])
    ends = np.cumsum([len(texts) for texts in options])[:-1]
    return [part * context for part, context in zip(np.split(flat, ends), contexts, strict=True)]


def _predict_options(
    embed: Embed, task: Task, train: Sequence[Instance], test: Sequence[Instance], seed: int
) -> Answers:
    products = _multiply_options(embed, task, [*train, *test])
    train_features, test_features = products[: len(train)], products[len(train) :]
    golds = [task.labels.index(instance.target[0]) for instance in train]
    is_gold: list[bool] = [
        index == gold
        for part, gold in zip(train_features, golds, strict=True)
        for index in range(len(part))
    ]
    features = _standardise_features(np.vstack(train_features), np.vstack(test_features))
    scores = estimate_probabilities(features[0], is_gold, features[1], seed)
    parts = np.split(scores, np.cumsum([len(part) for part in test_features])[:-1])
    return [(task.labels[int(part.argmax())],) for part in parts]
