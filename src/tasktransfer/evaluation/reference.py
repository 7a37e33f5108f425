"""References: simple predictors without a trained language model, which should exceed them.

Each learns from a task's training instances and predicts its test instances. ``most_frequent``
predicts the most frequent training answer. ``by_frequency`` samples answers with their training
frequencies. ``tfidf_logistic`` uses TF-IDF and logistic regression of scikit-learn with default
settings, except sublinear counts and a tolerance of 0.001. ``tfidf_svm`` uses the same features and
a linear support vector machine with default settings. ``frozen_logistic`` uses logistic regression
with less regularisation (``core.references.REGULARISATION``) on a model's embeddings,
and ``nearest_neighbour`` copies the answer of the training instance with the most similar
embedding. Nothing is tuned on a study's data.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tasktransfer.core.references import FROZEN, MOST_FREQUENT, NEAREST, SVM, TFIDF
from tasktransfer.evaluation.linear_models import (
    FitClassifier,
    build_vectorizer,
    estimate_probabilities,
    fit_logistic_regression,
    fit_svm,
)
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.tasks.compose import build_encoder_text, build_option_texts

Answers = list[tuple[str, ...]]
Reference = Callable[[Task, Sequence[Instance], Sequence[Instance], int], Answers]
"""Function (card, training instances, test instances, seed) → one answer per test instance."""
Embed = Callable[[Sequence[str]], Any]
"""Function texts → embeddings, (texts, size)."""

BY_FREQUENCY = "by_frequency"

MAX_FREQUENT_ANSWERS = 100
"""Number of the most frequent training answers that are searched for in a context."""

_SENTENCE = re.compile(r"[^.?!]+[.?!]*")
_SPEAKER = re.compile(r"^\s*#?[\w. ]{1,30}: ")


def predict_most_frequent(
    task: Task, train: Sequence[Instance], test: Sequence[Instance], seed: int = 0
) -> Answers:
    """Predict the most frequent training answer for every test instance and output.

    In a tie, it is the answer that comes first in the training instances.
    """
    if task.kind == "multi_output":
        traits = zip(*(instance.target for instance in train), strict=True)
        answer = tuple(Counter(trait).most_common(1)[0][0] for trait in traits)
    else:
        answer = Counter(_select_gold_answer(task, instance) for instance in train).most_common(1)[
            0
        ][0]
    return [answer] * len(test)


def sample_answers_by_frequency(
    task: Task, train: Sequence[Instance], test: Sequence[Instance], seed: int = 0
) -> Answers:
    """Sample predictions from the training answers, separately for each output."""
    draw = random.Random(f"{seed} {task.name}")
    answers = [_select_gold_answer(task, instance) for instance in train]
    if task.kind == "multi_output":
        columns = list(zip(*answers, strict=True))
        return [tuple(draw.choice(column) for column in columns) for _ in test]
    return [draw.choice(answers) for _ in test]


def predict_by_tfidf(
    task: Task,
    train: Sequence[Instance],
    test: Sequence[Instance],
    seed: int = 0,
    fit: FitClassifier = fit_logistic_regression,
) -> Answers:
    """Predict by a linear classifier, by default logistic regression, on TF-IDF features.

    The features are those of the query, of the part in focus, and of the context before it.

    There is one classifier for single labels, and one per label or output otherwise. Options are
    ranked by their words and their overlap with the context. Candidates for a span's answer are
    ranked by their words and their overlap with query and context. The candidates are the context's
    sentences, answers of other instances that occur in it, and the texts for unanswerable
    instances.

    Raises:
        DataError: scikit-learn is not installed.
    """
    predict = {"multiple_choice": _predict_options, "span": _predict_spans}.get(
        task.kind, _predict_labels
    )
    return predict(task, train, test, seed, fit)


MODEL_FREE_REFERENCES: dict[str, Reference] = {
    MOST_FREQUENT: predict_most_frequent,
    BY_FREQUENCY: sample_answers_by_frequency,
    TFIDF: predict_by_tfidf,
}


def get_predictor(name: str, embed: Embed | None) -> Reference:
    """Return the function that predicts as a reference does.

    Args:
        name: name of a reference in ``core.references.REFERENCES``, or ``by_frequency``.
        embed: function that embeds texts, for references that read a model's embeddings.
    """
    if name in MODEL_FREE_REFERENCES:
        return MODEL_FREE_REFERENCES[name]
    if name == SVM:
        return partial(predict_by_tfidf, fit=fit_svm)
    from tasktransfer.evaluation.embedding_references import (
        predict_by_nearest_neighbour,
        predict_by_regression,
    )

    assert embed is not None, f"{name} needs a model"
    return partial(
        {FROZEN: predict_by_regression, NEAREST: predict_by_nearest_neighbour}[name], embed
    )


def _select_gold_answer(task: Task, instance: Instance) -> tuple[str, ...]:
    """Return an instance's gold answer as a prediction.

    It is the first gold answer of a span, or the labels in sorted order.
    """
    if task.kind == "span":
        return instance.target[:1]
    return tuple(sorted(instance.target)) if task.kind == "multi_label" else instance.target


# --- features -------------------------------------------------------------------------------------


def _build_features(columns: Sequence[tuple[list[str], list[str]]]) -> tuple[Any, Any]:
    """Compute TF-IDF features of training and test instances, (instances, words).

    Args:
        columns: (training texts, test texts) of each part of the inputs.
    """
    from scipy import sparse

    trains, tests = [], []
    for train, test in columns:
        if not any(re.search(r"\w", text) for text in train):
            continue
        vectorizer = build_vectorizer()
        trains.append(vectorizer.fit_transform(train))
        tests.append(vectorizer.transform(test))
    return sparse.hstack(trains).tocsr(), sparse.hstack(tests).tocsr()


def split_input_parts(task: Task, instances: Sequence[Instance]) -> list[tuple[str, str, str]]:
    """Split each instance into (query, part in focus, preceding context)."""
    return [
        (
            build_encoder_text(task, instance)[0],
            instance.context[instance.focus :],
            instance.context[: instance.focus],
        )
        for instance in instances
    ]


# --- by kind of task ------------------------------------------------------------------------------


def _predict_labels(
    task: Task, train: Sequence[Instance], test: Sequence[Instance], seed: int, fit: FitClassifier
) -> Answers:
    train_texts, test_texts = split_input_parts(task, train), split_input_parts(task, test)
    features, others = _build_features(
        [
            ([texts[i] for texts in train_texts], [texts[i] for texts in test_texts])
            for i in range(3)
        ]
    )
    return predict_from_features(task, train, features, others, seed, fit=fit)


def predict_from_features(
    task: Task,
    train: Sequence[Instance],
    features: Any,
    others: Any,
    seed: int,
    strength: float = 1.0,
    fit: FitClassifier = fit_logistic_regression,
) -> Answers:
    """Predict labels from features by a linear classifier.

    Args:
        features: features of the training instances, (training instances, size), dense or sparse.
        others: features of the instances to predict, (instances, size).
        strength: scikit-learn's ``C``, the inverse of the regularisation.
        fit: fits the classifier.
    """
    if task.kind == "multi_label":
        probabilities = [
            estimate_probabilities(
                *(features, [label in instance.target for instance in train], others),
                *(seed, strength, fit),
            )
            for label in task.labels
        ]
        minimum = min(len(instance.target) for instance in train)
        return [
            _select_likely_labels(task, row, minimum) for row in np.stack(probabilities, axis=1)
        ]
    columns = zip(*(instance.target for instance in train), strict=True)
    answers = [
        _predict_classes(features, list(column), others, seed, strength, fit) for column in columns
    ]
    return list(zip(*answers, strict=True))


def _select_likely_labels(task: Task, probabilities: Any, minimum: int) -> tuple[str, ...]:
    """Select the labels with a probability above one half, but at least ``minimum`` labels.

    ``minimum`` is the smallest number of labels of a training instance.
    """
    most_likely = set(np.argsort(-probabilities, kind="stable")[:minimum])
    return tuple(
        label
        for index, label in enumerate(task.labels)
        if probabilities[index] > 0.5 or index in most_likely
    )


def _predict_classes(
    features: Any, labels: list[str], others: Any, seed: int, strength: float, fit: FitClassifier
) -> list[str]:
    if len(set(labels)) < 2:
        return [labels[0]] * others.shape[0]
    model = fit(features, labels, strength, seed)
    return [str(label) for label in model.predict(others)]


class _Choice(NamedTuple):
    """An instance as a choice among candidate texts."""

    query: str
    context: str
    candidates: list[str]


def _predict_options(
    task: Task, train: Sequence[Instance], test: Sequence[Instance], seed: int, fit: FitClassifier
) -> Answers:
    def build_choice(instance: Instance) -> _Choice:
        return _Choice(
            " ".join(instance.query.values()),
            instance.context,
            build_option_texts(task, instance),
        )

    right = [task.labels.index(example.target[0]) for example in train]
    best = _choose_candidates(
        list(map(build_choice, train)), right, list(map(build_choice, test)), seed, fit
    )
    return [(task.labels[index],) for index in best]


def _predict_spans(
    task: Task, train: Sequence[Instance], test: Sequence[Instance], seed: int, fit: FitClassifier
) -> Answers:
    unanswerable = sorted({example.target[0] for example in train if example.starts[:1] == (-1,)})
    answers = Counter(example.target[0] for example in train if example.starts[:1] != (-1,))
    frequent = [answer for answer, _ in answers.most_common(MAX_FREQUENT_ANSWERS)]

    def build_choice(instance: Instance) -> _Choice:
        query, context = build_encoder_text(task, instance)[0], instance.context.casefold()
        contained = [answer for answer in frequent if answer.casefold() in context]
        return _Choice(
            query,
            instance.context,
            [*_split_sentences(instance.context), *contained, *unanswerable],
        )

    choices, others = list(map(build_choice, train)), list(map(build_choice, test))
    right = [
        _find_nearest_piece(choice.candidates, example.target[0])
        for choice, example in zip(choices, train, strict=True)
    ]
    best = _choose_candidates(choices, right, others, seed, fit)
    return [(choice.candidates[index],) for choice, index in zip(others, best, strict=True)]


def _split_sentences(context: str) -> list[str]:
    pieces = (_SPEAKER.sub("", match[0]).strip() for match in _SENTENCE.finditer(context))
    return [piece for piece in pieces if piece] or [context]


def _find_nearest_piece(pieces: Sequence[str], answer: str) -> int:
    """Find the piece with the largest word overlap (Jaccard) with an answer."""
    answer_words = set(answer.casefold().split())

    def compute_overlap(piece: str) -> float:
        words = set(piece.casefold().split())
        return len(words & answer_words) / max(1, len(words | answer_words))

    return max(range(len(pieces)), key=lambda index: compute_overlap(pieces[index]))


def _choose_candidates(
    train: Sequence[_Choice],
    right: Sequence[int],
    test: Sequence[_Choice],
    seed: int,
    fit: FitClassifier,
) -> list[int]:
    """Choose the most probable candidate of each test instance.

    Args:
        right: index of the gold candidate of each training instance.
    """
    from scipy import sparse

    words = build_vectorizer().fit(
        [text for example in train for text in (example.context, *example.candidates)]
    )

    def compute_features(instances: Sequence[_Choice]) -> Any:
        rows = [row for row, instance in enumerate(instances) for _ in instance.candidates]
        pieces = words.transform([text for instance in instances for text in instance.candidates])
        shared = [
            np.asarray(pieces.multiply(words.transform(texts)[rows]).sum(axis=1))
            for texts in (
                [instance.query for instance in instances],
                [instance.context for instance in instances],
            )
        ]
        return sparse.hstack([pieces, *map(sparse.csr_matrix, shared)]).tocsr()

    is_right = [
        index == chosen
        for example, chosen in zip(train, right, strict=True)
        for index in range(len(example.candidates))
    ]
    probabilities = estimate_probabilities(
        compute_features(train), is_right, compute_features(test), seed, fit=fit
    )
    ends = np.cumsum([len(example.candidates) for example in test])
    return [int(part.argmax()) for part in np.split(probabilities, ends[:-1])]
