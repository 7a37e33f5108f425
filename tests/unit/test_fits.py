"""Fits: by a library or joint, their features, recipe, measures and records."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from constructed_records import edit, make_provenance
from small_models import Loader
from tasktransfer.core.nodes import Data, Evaluation, Fit
from tasktransfer.core.specs import ModelSpec
from tasktransfer.data import recipes
from tasktransfer.data.recipes import Ingredients, find_recipe, prepend_labels
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError, DataError, MemoryShortageError, RecordError
from tasktransfer.evaluation import features as evaluation
from tasktransfer.evaluation.features import compute_features
from tasktransfer.fits import LEARNERS, get_learner, rank_labels, select_most_probable_labels
from tasktransfer.fits.linear_probes import fit_multinomial_classifier, fit_one_vs_rest_classifiers
from tasktransfer.metrics.measures import (
    MEASURES,
    compute_pearson,
    compute_spearman,
    find_invalid_value,
)
from tasktransfer.models.representation import BATCH_SIZE, compute_representations
from tasktransfer.results.damage import find_damage
from tasktransfer.results.records import build_node_record, read_record, write_record
from tasktransfer.results.rows import Row, read_record_rows, write_rows
from tasktransfer.results.schema import Provenance, TaskResult
from tasktransfer.tasks.card import Instance
from tasktransfer.training.hardware import Hardware

TASK = get_task("DailyDialog", "emotion_recognition")
WORDS = {"happiness": "glad", "anger": "furious", "sadness": "tears"}


def instance(number: int, label: str) -> Instance:
    text = f"A: I am {WORDS[label]} today , {'very ' * (number % 3)}much"
    ids, query = (f"i{number}", f"d{number // 2}"), {"utterance": text}
    return Instance(*ids, TASK.name, text, 3, query, (), (label,), (4,))


INSTANCES = [instance(number, label) for number in range(20) for label in WORDS]


def test_logistic_regression_on_words_is_scikit_learns(tmp_path: Path) -> None:
    learner = LEARNERS["logistic_texts"]
    classifier = learner.fit(TASK, INSTANCES, None, {"C": 0.5}, 0)
    texts = [f" {one.context}" for one in INSTANCES]
    card = replace(TASK, query="")
    bare = learner.fit(card, INSTANCES, None, {"C": 0.5}, 0)
    counts = CountVectorizer().fit_transform(texts)
    gold = [TASK.labels.index(one.target[0]) for one in INSTANCES]
    theirs = LogisticRegression(C=0.5, max_iter=250).fit(counts, gold)
    ours = bare.predict_probabilities(INSTANCES, None)
    assert np.allclose(ours[:, theirs.classes_], theirs.predict_proba(counts), atol=1e-9)
    assert ours[:, [i for i in range(len(TASK.labels)) if i not in theirs.classes_]].sum() == 0
    classifier.save(tmp_path)
    both = (
        each.predict_probabilities(INSTANCES, None) for each in (classifier, learner.load(tmp_path))
    )
    assert np.array_equal(*both)
    targets = [one.target for one in INSTANCES]
    assert select_most_probable_labels(TASK, ours) == targets
    assert [labels[:1] for labels in rank_labels(TASK, ours)] == targets


def test_logistic_regression_on_two_classes_of_representations() -> None:
    generator = np.random.default_rng(0)
    pair = [one for one in INSTANCES if one.target[0] != "anger"]
    gold = np.array([one.target[0] == "sadness" for one in pair])
    features = generator.normal(size=(len(pair), 4)) + gold[:, None]
    classifier = LEARNERS["logistic"].fit(TASK, pair, features, {}, 0)
    theirs = LogisticRegression(max_iter=250).fit(features, gold).predict_proba(features)[:, 1]
    ours = classifier.predict_probabilities(pair, features)[:, TASK.labels.index("sadness")]
    assert np.allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize(
    ("task", "instances", "part"),
    [
        ("causal_emotion_span_extraction", INSTANCES, "is span, but logistic regression needs"),
        (TASK.name, INSTANCES[:1], "All training instances have the same label"),
    ],
)
def test_what_cannot_be_learnt_is_refused(task: str, instances: list[Instance], part: str) -> None:
    with pytest.raises(DataError, match=part):
        LEARNERS["logistic_texts"].fit(get_task("DailyDialog", task), instances, None, {}, 0)


def test_unknown_names_say_which_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no learner 'fasttxt'\. Choose one of logistic"):
        get_learner("fasttxt", {})
    with pytest.raises(
        ConfigError, match=r"no recipe 'perturb' for .*Choose one of prepend_labels"
    ):
        find_recipe("perturb", {})


def test_labels_are_put_before_the_context_and_offsets_move(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(recipes, "read_instances", lambda cache, task, split: INSTANCES[:2])
    ranks = (lambda task, instances: [("anger", "fear", "disgust")] * len(instances),)
    settings = {"k": 2, "task": TASK.name}
    derived = prepend_labels(Ingredients((tmp_path,), ranks, (), (TASK.name,), settings))
    assert {split for _, split in derived} == {"train", "dev", "test"}
    for before, after in zip(INSTANCES, derived[TASK.name, "train"], strict=False):
        assert after.context == f"anger fear {before.context}"
        assert after.context[after.focus :] == before.context[before.focus :]
        assert after.context[after.starts[0] :] == before.context[before.starts[0] :]


# --- measures -------------------------------------------------------------------------------------


def test_correlations_are_scipys_with_ties_and_without_spread() -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        first, second = generator.integers(0, 5, size=(2, 30)).astype(float)
        assert compute_spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)
    assert compute_pearson(np.ones(5), np.arange(5.0)) == 0.0


def test_a_measure_has_a_direction_and_a_range() -> None:
    assert MEASURES["accuracy"].is_better(51, 50) and MEASURES["loss"].is_better(0.4, 0.5)
    assert MEASURES["loss"].worst_value == math.inf and MEASURES["score"].worst_value == -math.inf
    assert find_invalid_value({"accuracy": 100.0000001, "loss": 900.0, "spearman": -1.0}) is None
    assert find_invalid_value({"spearman": -1.1}) == "spearman is -1.1, outside -1 to 1"
    assert find_invalid_value({"perplexity": 0.9}) == "perplexity is 0.9, outside 1 to inf"
    assert find_invalid_value({"a_measure_of_ours": -5.0}) is None


# --- records --------------------------------------------------------------------------------------

FIT = Fit("logistic_texts", Data("DailyDialog", "r1"), (TASK.name,))
NODE = Evaluation(FIT, FIT.data, TASK.name, ("spearman",))


def finish(folder: Path, spearman: float = 0.5) -> Path:
    """Write the files of an evaluation's job, and return its record's path."""
    row = Row(0, TASK.name, "i1", ("anger",), ("anger",), 100.0, "d1", "test", predicted_value=1.0)
    provenance = make_provenance(recipe=1)
    del provenance["training"]
    result: TaskResult = {"measures": {"spearman": spearman}, "score": None, "instances": 1}
    record = build_node_record(
        NODE,
        synthetic=True,
        sizes={TASK.name: {"test": 1}},
        results={TASK.name: result},
        rows=write_rows(folder, [row], digest=NODE.digest, dataset=NODE.data.name),
        provenance=cast(Provenance, provenance),
    )
    write_record(folder / "metrics.json", record)
    return folder / "metrics.json"


def test_a_record_of_an_evaluation_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = finish(tmp_path)
    (result,) = read_record(file)["results"].values()
    assert (result["measures"], result["score"]) == ({"spearman": 0.5}, None)
    (row,) = read_record_rows(file).to_pylist()
    assert (row["gold"], row["predicted_value"]) == (["anger"], 1.0)
    assert find_damage(tmp_path, NODE.digest) is None
    assert find_damage(tmp_path / "nothing", NODE.digest) is None


def test_a_measure_out_of_its_range_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"spearman is 1\.5, outside -1 to 1"):
        finish(tmp_path, 1.5)
    assert not (tmp_path / "metrics.json").exists()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"node": {}}, "node: The value is {}, but it must be a mapping with the key 'kind'"),
        ({"node__seed": 0}, "node.seed: The key 'seed' is unknown"),
        ({"synthetic": "yes"}, "synthetic: The value is 'yes'"),
        ({"extra": 1}, "extra: The key 'extra' is unknown"),
        ({"training": None}, "training: The value is null"),
    ],
)
def test_a_damaged_record_is_reported(tmp_path: Path, change: dict[str, Any], part: str) -> None:
    edit(finish(tmp_path), **change)
    assert part in str(find_damage(tmp_path, NODE.digest))


def test_lost_rows_and_another_node_are_damage(tmp_path: Path) -> None:
    finish(tmp_path)
    other = replace(NODE, measures=("micro_f1",))
    assert f"expected {other.digest[:12]}" in str(find_damage(tmp_path, other.digest))
    (tmp_path / "rows.parquet").write_bytes(b"x")
    assert "SHA-256" in str(find_damage(tmp_path, NODE.digest))


# --- representations as features ------------------------------------------------------------------


MODEL = ModelSpec("small", "encoder", "w1", 200)
TEXTS = [f"I am glad today , {'very ' * (number % 7)}much so" for number in range(40)]


@pytest.fixture
def small(load: Loader, models_folder: Path) -> tuple[Path, Path]:
    """Write a checkpoint and its tokenizer."""
    return models_folder / "encoder", models_folder / "DailyDialog-encoder" / "tokenizer"


def test_they_are_in_float32_whatever_the_precision(small: tuple[Path, Path]) -> None:
    wide, narrow = (compute_features(*small, MODEL, TEXTS, "mean", Hardware(p)) for p in PRECISIONS)
    assert wide.shape == (len(TEXTS), 64)
    assert np.array_equal(wide, narrow)


PRECISIONS: tuple[Any, Any] = ("float32", "bfloat16")


def test_what_does_not_fit_is_read_in_smaller_parts(
    small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = compute_features(*small, MODEL, TEXTS, "mean", Hardware())
    tried = []

    def of_little_memory(*given: Any, together: int, **more: Any) -> Any:
        tried.append(together)
        if together > 8:
            raise torch.OutOfMemoryError("out of memory")
        return compute_representations(*given, together=together, **more)

    monkeypatch.setattr(evaluation, "compute_representations", of_little_memory)
    assert np.allclose(compute_features(*small, MODEL, TEXTS, "mean", Hardware()), whole, atol=1e-6)
    assert tried == [BATCH_SIZE, BATCH_SIZE // 2, BATCH_SIZE // 4]


def test_where_not_one_text_fits_it_is_said(
    small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(evaluation, "compute_representations", never)
    with pytest.raises(MemoryShortageError, match="memory is not sufficient for representation"):
        compute_features(*small, MODEL, TEXTS, "mean", Hardware())


# --- joint fits -----------------------------------------------------------------------------------


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


def test_too_few_iterations_are_said() -> None:
    chance = np.random.default_rng(4)
    inputs, gold = chance.normal(size=(100, 5)), chance.integers(0, 4, 100)
    assert not fit_multinomial_classifier(inputs, gold, 1.0, 2, TIGHT).converged
