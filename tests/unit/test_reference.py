"""Scores without a model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tasktransfer import metrics
from tasktransfer.core.specs import Training
from tasktransfer.data.cache import cache_dataset, read_instances, read_manifest
from tasktransfer.data.samples import select_indices
from tasktransfer.datasets import get_task
from tasktransfer.datasets.tiny_world import generate_releases
from tasktransfer.designs.transfer import reference
from tasktransfer.designs.transfer.frames import FRAMES
from tasktransfer.designs.transfer.reference import compute_reference_rows
from tasktransfer.errors import RecordError
from tasktransfer.evaluation.linear_models import fit_logistic_regression, fit_svm
from tasktransfer.evaluation.portable import WordWeights, fit_regression
from tasktransfer.evaluation.reference import MODEL_FREE_REFERENCES, get_predictor
from tasktransfer.results.frame_files import read_brought_frame

(FRAME,) = (frame for frame in FRAMES if frame.name == "reference")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    generate_releases(folder / "world", seed=0, dialogues=120)
    for dataset in ("DailyDialog", "Friends"):
        cache_dataset(dataset, folder / "world", True, folder / dataset)
    return folder


@pytest.mark.parametrize("dataset", ["DailyDialog", "Friends"])
def test_every_task_has_every_reference(cache: Path, dataset: str, tmp_path: Path) -> None:
    tasks = list(read_manifest(cache / dataset).tasks)
    rows = compute_reference_rows(cache / dataset, tasks, Training())
    assert Counter(rows["reference"]) == dict.fromkeys(MODEL_FREE_REFERENCES, len(tasks))
    assert rows["score"].between(0, 100).all()
    assert rows["synthetic"].all()
    assert rows.loc[rows["reference"] == "by_frequency", "deviation"].gt(0).any()
    of_a_killed_job = tmp_path / ".reference.parquet.123.part"
    of_a_killed_job.write_bytes(b"")
    reference.write_reference_table(rows, tmp_path / "reference.parquet")
    again = read_brought_frame(tmp_path / "reference.parquet", FRAME)
    assert again.equals(rows)
    assert not of_a_killed_job.exists()


def test_the_most_frequent_answer_is_counted_as_metrics_do(cache: Path) -> None:
    task = get_task("DailyDialog", "dialogue_act_classification")
    train, test = (read_instances(cache / "DailyDialog", task.name, s) for s in ("train", "test"))
    label = Counter(one.target[0] for one in train).most_common(1)[0][0]
    golds = [one.target for one in test]
    wanted = metrics.compute_task_score(
        task, metrics.evaluate_predictions(task, [(label,)] * len(test), golds)
    )
    rows = compute_reference_rows(cache / "DailyDialog", [task.name], Training()).set_index(
        "reference"
    )
    assert rows.loc["most_frequent", "score"] == pytest.approx(wanted)
    assert rows.loc["most_frequent", "answer"] == label
    # A cue word tells the tiny world's acts: words without order are enough.
    assert rows.loc["tfidf_logistic", "score"] > 2 * wanted


@pytest.mark.parametrize("dataset", ["DailyDialog", "Friends"])
def test_a_support_vector_machine_answers_every_task(cache: Path, dataset: str) -> None:
    for name in read_manifest(cache / dataset).tasks:
        task = get_task(dataset, name)
        train, test = (read_instances(cache / dataset, name, s) for s in ("train", "test"))
        predictions = get_predictor("tfidf_svm", None)(task, train, test, 0)
        assert len(predictions) == len(test)
        scores = metrics.evaluate_predictions(task, predictions, [one.target for one in test])
        assert 0 <= metrics.compute_task_score(task, scores) <= 100


def test_a_support_vector_machine_is_that_of_scikit_learn(cache: Path) -> None:
    svm = pytest.importorskip("sklearn.svm")
    task = get_task("DailyDialog", "dialogue_act_classification")
    train, test = (read_instances(cache / "DailyDialog", task.name, s) for s in ("train", "test"))
    words = WordWeights.fit(task, train)
    features, others = (words.compute_features(task, part) for part in (train, test))
    labels = [one.target[0] for one in train]
    wanted = [
        str(label) for label in svm.LinearSVC(random_state=0).fit(features, labels).predict(others)
    ]
    predictions = get_predictor("tfidf_svm", None)(task, train, test, 0)
    assert [label for (label,) in predictions] == wanted
    assert len(set(wanted)) > 1
    saved = fit_regression(task, features, train, 0, fit=fit_svm)
    best = (others @ saved.weight.T + saved.bias).argmax(axis=1)
    assert [saved.labels[index] for index in best] == wanted


def test_limits_are_those_of_trainings(cache: Path) -> None:
    limited = Training(limit_train=30, limit_test=10)
    rows = compute_reference_rows(cache / "Friends", ["relation_extraction"], limited)
    assert rows["train_size"].max() <= 30
    assert rows["test_size"].max() <= 10


def test_under_a_limit_they_are_of_the_instances_that_models_are_tested_on(cache: Path) -> None:
    task = get_task("DailyDialog", "dialogue_act_classification")
    train, test = (read_instances(cache / "DailyDialog", task.name, s) for s in ("train", "test"))
    kept = [[of[n] for n in select_indices(len(of), 20)] for of in (train, test)]
    assert kept[0] != train[:20] and kept[1] != test[:20]
    label = Counter(one.target[0] for one in kept[0]).most_common(1)[0][0]
    golds = [one.target for one in kept[1]]
    wanted = metrics.compute_task_score(
        task, metrics.evaluate_predictions(task, [(label,)] * 20, golds)
    )
    limited = Training(limit_train=20, limit_test=20)
    rows = compute_reference_rows(cache / "DailyDialog", [task.name], limited).set_index(
        "reference"
    )
    assert rows.loc["most_frequent", "score"] == pytest.approx(wanted)
    first = [(label,)] * 20, [one.target for one in test[:20]]
    assert wanted != metrics.compute_task_score(task, metrics.evaluate_predictions(task, *first))


def test_without_scikit_learn_its_row_is_left_out(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "find_spec", lambda name: None)
    said: list[str] = []
    rows = compute_reference_rows(
        cache / "Friends", ["relation_extraction"], Training(), progress=said.append
    )
    assert set(rows["reference"]) == {"most_frequent", "by_frequency"}
    assert "tasktransfer[reference]" in said[0]


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    assert read_brought_frame(tmp_path / "none.parquet", FRAME).empty
    (tmp_path / "reference.parquet").write_bytes(b"nothing")
    with pytest.raises(RecordError, match=r"reference\.parquet.*delete the file"):
        read_brought_frame(tmp_path / "reference.parquet", FRAME)


def test_rare_labels_are_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    features = np.eye(8)
    model = fit_logistic_regression(features, list("aabbcdef"), 1.0, 0)
    assert sorted(model.classes_) == list("abcdef") and not recwarn.list
