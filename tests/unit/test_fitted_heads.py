"""Heads that are fitted by logistic regression before the first update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from small_models import KilledError, Loader, small_stage, train_quietly
from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import Start
from tasktransfer.core.specs import Selection, Training
from tasktransfer.datasets import get_task
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.encoder_inputs import get_labels
from tasktransfer.models.fitted_heads import fit_heads, fit_logistic_regression
from tasktransfer.models.heads import Head
from tasktransfer.tasks.card import Task
from tasktransfer.training import selection
from tasktransfer.training.loop import Trained
from tasktransfer.training.starts import list_new_heads

EMOTION = get_task("DailyDialog", "emotion_recognition")
FITTED = Training(head_initialization="logistic_regression")


def draw_problem(classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return states, (90, 6), and a class of each, from overlapping clusters."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(90) % classes
    centres = torch.randn(classes, 6, generator=generator, dtype=torch.float64)
    noise = torch.randn(90, 6, generator=generator, dtype=torch.float64)
    return centres[labels] + noise, labels


def get_heads(model: Encoder) -> dict[str, Head]:
    return {name: head for name, head in model.heads.items() if isinstance(head, Head)}


def small_task(task: Task, count: int) -> Task:
    return replace(task, labels=tuple("abcdefg"[:count]))


def predict_by_scikit_learn(states: torch.Tensor, labels: torch.Tensor, c: float = 1.0) -> Any:
    model = LogisticRegression(C=c, tol=1e-8, max_iter=10_000).fit(states, labels)
    return pytest.approx(model.predict_proba(states), abs=1e-4)


def test_a_fitted_head_is_the_logistic_regression_of_scikit_learn() -> None:
    states, labels = draw_problem(3)
    weight, bias = fit_logistic_regression(small_task(EMOTION, 3), states, labels[:, None])
    probabilities = torch.softmax(states @ weight.T + bias, 1)
    assert probabilities.numpy() == predict_by_scikit_learn(states, labels)


def test_a_multi_label_head_is_one_regression_per_label() -> None:
    states, classes = draw_problem(4)
    labels = torch.stack([classes % 2, classes // 2, (classes == 3).long()], 1)
    task = small_task(replace(EMOTION, kind="multi_label"), 3)
    weight, bias = fit_logistic_regression(task, states, labels)
    probabilities = torch.sigmoid(states @ weight.T + bias)
    for label in range(3):
        both = torch.stack([1 - probabilities[:, label], probabilities[:, label]], 1)
        assert both.numpy() == predict_by_scikit_learn(states, labels[:, label])


def test_a_multi_output_head_is_one_regression_per_output() -> None:
    states, classes = draw_problem(4)
    labels = torch.stack([classes % 2, classes // 2], 1)
    task = replace(small_task(EMOTION, 2), kind="multi_output", outputs=("x", "y"))
    weight, bias = fit_logistic_regression(task, states, labels)
    probabilities = torch.softmax((states @ weight.T + bias).view(-1, 2, 2), -1)
    for output in range(2):
        # The squared norms of two opposite vectors are half that of their difference.
        expected = predict_by_scikit_learn(states, labels[:, output], 2.0)
        assert probabilities[:, output].numpy() == expected


def test_heads_of_labels_are_fitted_and_others_stay_random(load: Loader) -> None:
    span = get_task("DailyDialog", "causal_emotion_span_extraction")
    model, split = load("encoder", "DailyDialog", EMOTION.name, others=(span.name,), reads="mean")
    assert isinstance(model, Encoder)
    before = {name: head.weight.clone() for name, head in get_heads(model).items()}
    _, spans = load("encoder", "DailyDialog", span.name)
    tasks = {EMOTION.name: EMOTION, span.name: span}
    fit_heads(model, tasks, {EMOTION.name: split, span.name: spans}, 256)
    assert torch.equal(get_heads(model)[span.name].weight, before[span.name])
    with torch.no_grad():
        states = model.compute_head_inputs(split, range(len(split)))
    labels = torch.from_numpy(get_labels(split, range(len(split))))
    weight, _ = fit_logistic_regression(EMOTION, states.double(), labels)
    assert torch.allclose(get_heads(model)[EMOTION.name].weight.double(), weight, atol=1e-4)


def test_only_heads_without_an_earlier_training_are_new() -> None:
    both = small_stage("a", "b", kind="multitask")
    after = small_stage("b", kind="finetune")
    assert list_new_heads(both) == ("a", "b")
    assert list_new_heads(replace(after, starts=(Start(both),))) == ()
    assert list_new_heads(replace(after, starts=(Start(small_stage("a")),))) == ("b",)
    encoder = Start(both, parts=("encoder",))
    assert list_new_heads(replace(after, starts=(encoder,))) == ("b",)
    head = Start(both, parts=("head.a",), into=("head.b",))
    assert list_new_heads(replace(after, starts=(head,))) == ()


def test_random_heads_do_not_change_an_identity() -> None:
    assert "head_initialization" not in Training().identity
    assert compute_digest(FITTED.identity) != compute_digest(Training().identity)


# --- round 0 --------------------------------------------------------------------------------------


def run(
    load: Loader, training: Training, folder: Path | None = None, dies_after: int = 0
) -> Trained:
    """Train with fitted heads; the process ends after a round if ``dies_after`` is its number."""
    model, split = load("encoder", "DailyDialog", EMOTION.name, reads="mean")
    assert isinstance(model, Encoder)
    fit_heads(model, {EMOTION.name: EMOTION}, {EMOTION.name: split}, 256)
    selection = Selection((EMOTION.name,), patience=None if folder else 1)
    stage = small_stage(EMOTION.name, training=training, selection=selection)
    return train_quietly(model, stage, {EMOTION.name: split}, None, folder, dies_after)


@pytest.fixture
def worsens(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make every round after round 0 worse than the one before."""
    compute, calls = selection.compute_dev_measures, iter(range(100))

    def measure(*given: object) -> object:
        dev, _ = compute(*given)  # type: ignore[arg-type]
        return dev, {EMOTION.name: [90.0 - next(calls)]}

    monkeypatch.setattr("tasktransfer.training.loop.compute_dev_measures", measure)
    yield


@pytest.mark.usefixtures("worsens")
def test_the_fitted_model_is_kept_if_no_update_improves_it(load: Loader) -> None:
    training = replace(FITTED, epochs=4, batch_size=2, learning_rate=1e-3)
    trained = run(load, training)
    (best,) = trained.best
    assert [entry.round for entry in trained.rounds] == [0, 1]  # patience of one round
    assert (best.round, best.score, best.scores) == (0, 90.0, [90.0, 89.0])
    assert best.weights


@pytest.mark.usefixtures("worsens")
def test_without_fitted_heads_round_0_is_neither_measured_nor_chosen(load: Loader) -> None:
    trained = run(load, Training(epochs=4, batch_size=2, learning_rate=1e-3))
    (best,) = trained.best
    assert (trained.rounds[0].round, best.round, best.score) == (1, 1, 90.0)


@pytest.mark.usefixtures("worsens")
def test_a_resumed_training_still_keeps_the_fitted_model(load: Loader, tmp_path: Path) -> None:
    training = replace(FITTED, epochs=3, batch_size=2, learning_rate=1e-3)
    with pytest.raises(KilledError):
        run(load, training, tmp_path, dies_after=2)
    resumed = run(load, training, tmp_path)
    (best,) = resumed.best
    assert resumed.resumed_after == [1]
    assert (resumed.last, best.round, best.score) == (3, 0, 90.0)
    model, split = load("encoder", "DailyDialog", EMOTION.name, reads="mean")
    assert isinstance(model, Encoder)
    fit_heads(model, {EMOTION.name: EMOTION}, {EMOTION.name: split}, 256)
    fitted = get_heads(model)[EMOTION.name].weight
    assert torch.equal(best.weights[f"heads.{EMOTION.name}.weight"], fitted.detach())
