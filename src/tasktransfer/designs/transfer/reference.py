"""Reference rows: what a task's score is worth that no language model was trained for.

A baseline that does not beat the most frequent answer has learnt nothing, and a transfer on top of
it is a difference of nothings. Three ways of answering, on the prepared instances, without a GPU:

``most_frequent``  the most frequent answer of the training split, always
``by_frequency``   an answer drawn from those of the training split, as often as each is there: the
                   mean score of ``DRAWS`` draws
``tfidf``          TF-IDF of words and pairs of words, logistic regression (scikit-learn)

An answer is a label; of several labels the whole set; of several outputs each for itself; of
multiple choice the option's number; of a span the text of the first right answer. ``tfidf`` has no
row for spans, which it cannot point at, and chooses among options by their text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tasktransfer import metrics
from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.datasets import get_task
from tasktransfer.stats.resampling import generator
from tasktransfer.tasks.card import Instance, Task

DRAWS = 20

_WORD = re.compile(r"\w+")

MOST_FEATURES = 20_000
"""Of a text; with more, the regression takes longer and scores no more."""

REFERENCES = {
    "most_frequent": "Most frequent answer",
    "by_frequency": "By training frequencies",
    "tfidf": "TF-IDF, logistic regression",
}
"""Name in tables → name for people."""

REFERENCE_COLUMNS = (
    "dataset",
    "task",
    "short",
    "reference",
    "score",
    "train",
    "test",
    "few_sample",
)

Answer = tuple[str, ...]
Instances = Sequence[Instance]


def reference_rows(folders: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """A row per task and reference of prepared datasets, keys as ``REFERENCE_COLUMNS``.

    ``score``: of the test split, 0-100, as the task's card says. Tasks without training or test
    instances have none. Without scikit-learn there is no ``tfidf``.

    Raises:
        DataError: a folder is no cache of instances.
    """
    for folder in folders:
        manifest = read_manifest(folder)
        for name, counts in manifest.tasks.items():
            if not (counts["train"].samples and counts["test"].samples):
                continue
            card = get_task(manifest.dataset, name)
            train, test = (read_instances(folder, name, split) for split in ("train", "test"))
            for reference, score in scores(card, train, test).items():
                yield {
                    "dataset": manifest.dataset,
                    "task": name,
                    "short": card.short,
                    "reference": reference,
                    "score": score,
                    "train": len(train),
                    "test": len(test),
                    "few_sample": manifest.few_sample,
                }


def scores(card: Task, train: Instances, test: Instances) -> dict[str, float]:
    """Reference → score on ``test``, 0-100; without those that the task cannot have."""
    made = {
        "most_frequent": _score(card, [most_frequent(card, train)] * len(test), test),
        "by_frequency": _mean_of_draws(card, train, test),
    }
    if card.kind != "span" and find_spec("sklearn"):
        made["tfidf"] = _score(card, tfidf(card, train, test), test)
    return made


def _score(card: Task, answers: Sequence[Answer], test: Instances) -> float:
    golds = [instance.target for instance in test]
    return float(metrics.score(card, metrics.evaluate(card, answers, golds)))


def _answer(card: Task, instance: Instance) -> Answer:
    return instance.target[:1] if card.kind == "span" else instance.target


def most_frequent(card: Task, train: Instances) -> Answer:
    """The most frequent answer; of several equally frequent ones the first in the split."""
    answers = [_answer(card, instance) for instance in train]
    if card.kind == "multi_output":
        return tuple(_first_of(column) for column in zip(*answers, strict=True))
    frequent: Answer = _first_of(answers)
    return frequent


def _first_of(values: Sequence[Any]) -> Any:
    return Counter(values).most_common(1)[0][0]


def _mean_of_draws(card: Task, train: Instances, test: Instances) -> float:
    chance = generator("reference", card.dataset, card.name)
    answers = [_answer(card, instance) for instance in train]
    # Of several outputs each is drawn for itself, as each is judged for itself.
    columns = [*zip(*answers, strict=True)] if card.kind == "multi_output" else [answers]
    drawn = []
    for _ in range(DRAWS):
        chosen = [[c[i] for i in chance.integers(len(c), size=len(test))] for c in columns]
        given = [*zip(*chosen, strict=True)] if card.kind == "multi_output" else chosen[0]
        drawn.append(_score(card, given, test))
    return sum(drawn) / DRAWS


# --- TF-IDF and logistic regression ---------------------------------------------------------------


def tfidf(card: Task, train: Instances, test: Instances) -> list[Answer]:
    """Answers of a logistic regression on the words of all that is read, and on the words and pairs
    of words of what the question is about (query, and the context from the focus on)."""
    if card.kind == "multiple_choice":
        return _choices(card, train, test)
    told, asked = _features(
        [_texts(card, instance) for instance in train],
        [_texts(card, instance) for instance in test],
    )
    if card.kind == "multi_label":
        return _label_sets(card, told, [set(instance.target) for instance in train], asked)
    outputs = zip(*(instance.target for instance in train), strict=True)
    predicted = [_classes(told, column, asked) for column in outputs]
    return [*zip(*predicted, strict=True)]


def _texts(card: Task, instance: Instance) -> tuple[str, str]:
    query = card.query.format_map(instance.query)
    return f"{query} {instance.context}", f"{query} {instance.context[instance.focus :]}"


def _features(train: Sequence[tuple[str, str]], test: Sequence[tuple[str, str]]) -> tuple[Any, Any]:
    """Sparse (instances, features), a block per text of an instance that has a word."""
    from scipy.sparse import csr_matrix, hstack  # noqa: PLC0415  # with scikit-learn only
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

    blocks = [(csr_matrix((len(train), 1)), csr_matrix((len(test), 1)))]
    texts = zip(zip(*train, strict=True), zip(*test, strict=True), (1, 2), strict=True)
    for told, asked, most_words in texts:
        if any(map(_WORD.search, told)):
            counter = TfidfVectorizer(
                ngram_range=(1, most_words),
                sublinear_tf=True,
                max_features=MOST_FEATURES,
                token_pattern=_WORD.pattern,
                dtype=np.float32,
            )
            blocks.append((counter.fit_transform(told), counter.transform(asked)))
    return hstack([b[0] for b in blocks]).tocsr(), hstack([b[1] for b in blocks]).tocsr()


def _fitted(features: Any, classes: Sequence[Any]) -> Any:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    return LogisticRegression(C=10.0, tol=1e-3, random_state=0).fit(features, [*classes])


def _classes(told: Any, classes: Sequence[str], asked: Any) -> list[str]:
    if len(set(classes)) == 1:
        return [classes[0]] * asked.shape[0]
    return [str(answer) for answer in _fitted(told, classes).predict(asked)]


def _chances(told: Any, right: Sequence[bool], asked: Any) -> list[float]:
    """How probable it is that an answer is right; the share of the split if all are alike."""
    if len(set(right)) == 1:
        return [float(right[0])] * asked.shape[0]
    return [float(row[1]) for row in _fitted(told, right).predict_proba(asked)]


def _label_sets(card: Task, told: Any, sets: Sequence[set[str]], asked: Any) -> list[Answer]:
    """Every label that is more probable than not, and the most probable where none is."""
    chances = {
        label: _chances(told, [label in labels for labels in sets], asked)
        for label in card.labels
        if any(label in labels for labels in sets)
    }
    answers = []
    for place in range(asked.shape[0]):
        of = {label: values[place] for label, values in chances.items()}
        likely = tuple(label for label, chance in of.items() if chance > 0.5)
        answers.append(likely or (max(of, key=lambda label: of[label]),))
    return answers


def _choices(card: Task, train: Instances, test: Instances) -> list[Answer]:
    """The option whose text is most probably a right one."""

    def rows(instances: Instances) -> list[tuple[str, str]]:
        return [(option, _last_turn(i, option)) for i in instances for option in i.options]

    told, asked = _features(rows(train), rows(test))
    right = [str(n) == i.target[0] for i in train for n in range(len(i.options))]
    chances = iter(_chances(told, right, asked))
    answers: list[Answer] = []
    for instance in test:
        each = [next(chances) for _ in instance.options]
        answers.append((str(each.index(max(each))),))
    return answers


def _last_turn(instance: Instance, option: str) -> str:
    """An option with what it answers: the pairs of words of both ends are its features too."""
    return f"{instance.context[instance.focus :]} {option}"
