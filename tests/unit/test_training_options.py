"""Training options beyond the paper: budgets, schedules, groups, mean pooling, fitted heads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from small_models import KilledError, Loader, flatten_weights, small_stage, train_quietly
from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import Start
from tasktransfer.core.specs import (
    FAMILIES,
    Family,
    LowRank,
    Reads,
    Rounds,
    Sampler,
    Selection,
    Training,
)
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import ModelError
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.encoder_inputs import get_labels
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.fitted_heads import fit_heads, fit_logistic_regression
from tasktransfer.models.heads import Head
from tasktransfer.tasks.card import Task
from tasktransfer.tasks.initial_heads import select_fitted_tasks
from tasktransfer.training import selection
from tasktransfer.training.loop import Trained
from tasktransfer.training.optimisers import create_optimiser
from tasktransfer.training.samplers import Schedule
from tasktransfer.training.schedules import create_scheduler

TASK = get_task("DailyDialog", "emotion_recognition")
PLAIN = Training(epochs=2, batch_size=2, learning_rate=1e-3, dropout=0.3)
DECAY: Any = {"schedule": "linear", "warmup": 0.3, "weight_decay": 0.1, "decays": "matrices"}
EVERY_OPTION = replace(PLAIN, updates=7, head_learning_rate=1e-2, **DECAY)


def rates(training: Training, updates: int) -> list[float]:
    """Return the rate of each update's step."""
    weight = torch.nn.Parameter(torch.ones(1))
    optimiser = torch.optim.Adam([weight], lr=training.learning_rate)
    scheduler = create_scheduler(optimiser, training, updates)
    seen = []
    for _ in range(updates):
        seen.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        if scheduler is not None:
            scheduler.step()
    return seen


def test_a_rate_warms_up_and_decays_over_the_planned_updates() -> None:
    training = replace(PLAIN, learning_rate=1.0, warmup=0.2)
    rise = [0.0, 0.5]
    assert rates(training, 10) == pytest.approx([*rise, *[1.0] * 8])
    fall = [1 - step / 8 for step in range(8)]
    assert rates(replace(training, schedule="linear"), 10) == pytest.approx([*rise, *fall])
    cosine = [(1 + math.cos(math.pi * step / 8)) / 2 for step in range(8)]
    assert rates(replace(training, schedule="cosine"), 10) == pytest.approx([*rise, *cosine])
    assert create_scheduler(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))]), PLAIN, 9) is None


@pytest.mark.parametrize(
    ("sampler", "updates"),
    [("task_batches", 200), ("mixed", 200), ("together", 100), ("exp3", 100), ("ucb1", 100)],
)
def test_a_budget_in_updates_is_meant_for_each_task(sampler: Sampler, updates: int) -> None:
    training = replace(PLAIN, updates=100, epochs=1)
    schedule = Schedule(sampler, {"a": 30, "b": 30}, training, 0, every=30)
    assert schedule.updates == updates
    counts = [len(list(schedule.iterate_round(number + 1))) for number in range(schedule.rounds)]
    assert sum(counts) == updates
    assert set(counts[:-1]) == {30}


def test_epochs_continue_until_the_least_number_of_updates() -> None:
    least = replace(PLAIN, epochs=3, min_updates=50)
    assert Schedule("task_batches", {"a": 20}, least, 0).updates == 50
    assert Schedule("task_batches", {"a": 2000}, least, 0).updates == 3000
    assert Schedule("task_batches", {"a": 20}, replace(least, min_updates=None), 0).updates == 30


def test_heads_have_a_rate_of_their_own_and_vectors_do_not_decay() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LayerNorm(3), Head(3, 4))
    moving = list(module.parameters())
    one_group = create_optimiser(module, moving, replace(PLAIN, weight_decay=0.1)).param_groups
    assert [len(group["params"]) for group in one_group] == [6]
    groups = create_optimiser(module, moving, EVERY_OPTION).param_groups
    of = {id(p): (g["lr"], g["weight_decay"]) for g in groups for p in g["params"]}
    expected = [(1e-3, 0.1), *[(1e-3, 0.0)] * 3, (1e-2, 0.1), (1e-2, 0.0)]
    assert [of[id(parameter)] for parameter in moving] == expected


def test_options_at_their_default_are_not_part_of_an_identity() -> None:
    before = compute_digest(PLAIN.identity)
    options: dict[str, Any] = {"updates": 7, "schedule": "linear", "warmup": 0.1, "min_updates": 9}
    options["head_initialization"] = "logistic_regression"
    assert not {*options} & {*PLAIN.identity}
    assert PLAIN.identity["epochs"] == 2
    for name, value in options.items():
        assert compute_digest(replace(PLAIN, **{name: value}).identity) != before
    budget = replace(PLAIN, updates=7)
    assert replace(budget, epochs=30).identity == budget.identity
    assert PLAIN.multiply_budget(2).budget == "4_epochs"
    assert budget.multiply_budget(2).budget == "14_updates"


def test_rounds_fill_in_what_a_selection_leaves_open() -> None:
    open_selection, own = Selection(("a",)), Selection(("a",), every=5)
    assert Rounds().apply_to(open_selection) == open_selection
    assert Rounds(20, 3).apply_to(open_selection) == Selection(("a",), every=20, patience=3)
    assert Rounds(20, 3).apply_to(own) == Selection(("a",), every=5, patience=3)


# --- trainings ------------------------------------------------------------------------------------


def run(
    model: FamilyModel, split: EncodedSplit, folder: Path | None = None, dies_after: int = 0
) -> Trained:
    """Train with every option, two updates to a round; the process ends after a round."""
    selection = Selection((TASK.name,), every=2)
    stage = small_stage(TASK.name, seed=3, training=EVERY_OPTION, selection=selection)
    return train_quietly(model, stage, {TASK.name: split}, None, folder, dies_after)


@pytest.mark.parametrize("adapter", [None, LowRank(rank=2)])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_killed_training_resumes_its_schedule(
    family: Family, adapter: LowRank | None, load: Loader, tmp_path: Path
) -> None:
    def loaded() -> tuple[FamilyModel, EncodedSplit]:
        return load(family, "DailyDialog", TASK.name, adapter=adapter)

    model, split = loaded()
    whole, expected = run(model, split), flatten_weights(model)
    other, split = loaded()
    with pytest.raises(KilledError):
        run(other, split, tmp_path, dies_after=3)
    other, split = loaded()
    resumed = run(other, split, tmp_path)
    assert resumed.resumed_after == [2]
    assert [r.train_loss for r in resumed.rounds] == [r.train_loss for r in whole.rounds]
    assert len(whole.rounds) == math.ceil(7 / 2)
    assert torch.equal(flatten_weights(other), expected)


@pytest.mark.parametrize("reads", ["mean", "turn"])
def test_heads_read_the_mean_over_the_tokens(reads: Reads, load: Loader) -> None:
    packed, split = load("encoder", "DailyDialog", TASK.name, reads=reads)
    padded, _ = load("encoder", "DailyDialog", TASK.name, plain=True, reads=reads)
    examples = range(len(split))
    with torch.no_grad():
        losses = [float(model.compute_loss(split, examples)) for model in (packed, padded)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    (backbone,) = [part for name, part in padded.module.named_children() if name == "backbone"]
    ids = torch.tensor(split.sequences[1], dtype=torch.long)[None]
    types = (torch.arange(ids.shape[1]) >= int(split.second_starts[1])).long()[None]
    with torch.no_grad():
        states = backbone(input_ids=ids, token_type_ids=types).last_hidden_state
        assert split.turn_starts is not None and split.turn_starts[1] > 1
        first = int(split.turn_starts[1]) if reads == "turn" else 0
        expected = padded.module["heads"][TASK.name](states[:, first:].mean(1))
        got = padded._compute_logits(TASK, padded.prepare_inputs(split, [1]))  # type: ignore[attr-defined]
    assert torch.allclose(got, expected, atol=1e-5)
    run(packed, split)


def test_token_ids_of_an_older_version_do_not_have_turns(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name, reads="turn")
    with pytest.raises(ModelError, match="Delete the folder data/encoded"):
        model.prepare_inputs(replace(split, turn_starts=None), [0])


# --- heads fitted by logistic regression before the first update ----------------------------------


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
    """Predict by a regression on states that are scaled to a mean squared norm of 1."""
    scaled = states / states.square().sum(1).mean().sqrt()
    model = LogisticRegression(C=c, tol=1e-8, max_iter=10_000).fit(scaled, labels)
    return pytest.approx(model.predict_proba(scaled), abs=1e-4)


@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_a_fitted_head_is_the_logistic_regression_of_scikit_learn(scale: float) -> None:
    states, labels = draw_problem(3)
    states = scale * states
    weight, bias = fit_logistic_regression(small_task(TASK, 3), states, labels[:, None])
    probabilities = torch.softmax(states @ weight.T + bias, 1)
    assert probabilities.numpy() == predict_by_scikit_learn(states, labels)


def test_a_multi_label_head_is_one_regression_per_label() -> None:
    states, classes = draw_problem(4)
    labels = torch.stack([classes % 2, classes // 2, (classes == 3).long()], 1)
    task = small_task(replace(TASK, kind="multi_label"), 3)
    weight, bias = fit_logistic_regression(task, states, labels)
    probabilities = torch.sigmoid(states @ weight.T + bias)
    for label in range(3):
        both = torch.stack([1 - probabilities[:, label], probabilities[:, label]], 1)
        assert both.numpy() == predict_by_scikit_learn(states, labels[:, label])


def test_a_multi_output_head_is_one_regression_per_output() -> None:
    states, classes = draw_problem(4)
    labels = torch.stack([classes % 2, classes // 2], 1)
    task = replace(small_task(TASK, 2), kind="multi_output", outputs=("x", "y"))
    weight, bias = fit_logistic_regression(task, states, labels)
    probabilities = torch.softmax((states @ weight.T + bias).view(-1, 2, 2), -1)
    for output in range(2):
        # The squared norms of two opposite vectors are half that of their difference.
        expected = predict_by_scikit_learn(states, labels[:, output], 2.0)
        assert probabilities[:, output].numpy() == expected


def test_heads_of_labels_are_fitted_and_others_stay_random(load: Loader) -> None:
    span = get_task("DailyDialog", "causal_emotion_span_extraction")
    model, split = load("encoder", "DailyDialog", TASK.name, others=(span.name,), reads="mean")
    assert isinstance(model, Encoder)
    before = {name: head.weight.clone() for name, head in get_heads(model).items()}
    _, spans = load("encoder", "DailyDialog", span.name)
    tasks = {TASK.name: TASK, span.name: span}
    fitted = select_fitted_tasks(tasks, "logistic_regression")
    fit_heads(model, fitted, {TASK.name: split, span.name: spans}, 256)
    assert torch.equal(get_heads(model)[span.name].weight, before[span.name])
    with torch.no_grad():
        states = model.compute_head_inputs(split, range(len(split)))
    labels = torch.from_numpy(get_labels(split, range(len(split))))
    weight, _ = fit_logistic_regression(TASK, states.double(), labels)
    assert torch.allclose(get_heads(model)[TASK.name].weight.double(), weight, atol=1e-4)


def test_auto_fits_the_heads_of_tasks_that_label_turns() -> None:
    names = ("emotion_recognition", "topic_classification", "dialogue_reasoning_span_extraction")
    turns, dialogues, spans = (get_task("DailyDialog", name) for name in names)
    tasks = {task.name: task for task in (turns, dialogues, spans)}
    assert select_fitted_tasks(tasks, "auto") == {turns.name: turns}
    both = {turns.name: turns, dialogues.name: dialogues}
    assert select_fitted_tasks(tasks, "logistic_regression") == both
    assert select_fitted_tasks(tasks, "random") == {}


def test_only_heads_without_an_earlier_training_are_new() -> None:
    both = small_stage("a", "b", kind="multitask")
    after = small_stage("b", kind="finetune")
    assert both.new_heads == ("a", "b")
    assert replace(after, starts=(Start(both),)).new_heads == ()
    assert replace(after, starts=(Start(small_stage("a")),)).new_heads == ("b",)
    encoder = Start(both, parts=("encoder",))
    assert replace(after, starts=(encoder,)).new_heads == ("b",)
    head = Start(both, parts=("head.a",), into=("head.b",))
    assert replace(after, starts=(head,)).new_heads == ()


# --- round 0 --------------------------------------------------------------------------------------


def run_fitted(
    load: Loader, training: Training, folder: Path | None = None, dies_after: int = 0
) -> Trained:
    """Train with fitted heads; the process ends after a round if ``dies_after`` is its number."""
    model, split = load("encoder", "DailyDialog", TASK.name, reads="mean")
    assert isinstance(model, Encoder)
    fit_heads(model, {TASK.name: TASK}, {TASK.name: split}, 256)
    selection = Selection((TASK.name,), patience=None if folder else 1)
    stage = small_stage(TASK.name, training=training, selection=selection)
    return train_quietly(model, stage, {TASK.name: split}, None, folder, dies_after)


@pytest.fixture
def worsens(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make every round after round 0 worse than the one before."""
    compute, calls = selection.compute_dev_measures, iter(range(100))

    def measure(*given: object) -> object:
        dev, _ = compute(*given)  # type: ignore[arg-type]
        return dev, {TASK.name: [90.0 - next(calls)]}

    monkeypatch.setattr("tasktransfer.training.loop.compute_dev_measures", measure)
    yield


@pytest.mark.usefixtures("worsens")
def test_the_fitted_model_is_kept_if_no_update_improves_it(load: Loader) -> None:
    training = replace(FITTED, epochs=4, batch_size=2, learning_rate=1e-3)
    trained = run_fitted(load, training)
    (best,) = trained.best
    assert [entry.round for entry in trained.rounds] == [0, 1]  # patience of one round
    assert (best.round, best.score, best.scores) == (0, 90.0, [90.0, 89.0])
    assert best.weights


@pytest.mark.usefixtures("worsens")
def test_with_auto_the_fitted_model_is_measured_but_not_kept(load: Loader) -> None:
    """A source whose best round is 0 would transfer an untrained encoder."""
    training = replace(FITTED, epochs=4, batch_size=2, learning_rate=1e-3)
    trained = run_fitted(load, replace(training, head_initialization="auto"))
    (best,) = trained.best
    assert [entry.round for entry in trained.rounds] == [0, 1, 2]  # patience of one round
    assert (best.round, best.score, best.scores) == (1, 89.0, [90.0, 89.0, 88.0])


@pytest.mark.usefixtures("worsens")
def test_without_fitted_heads_round_0_is_neither_measured_nor_chosen(load: Loader) -> None:
    trained = run_fitted(load, Training(epochs=4, batch_size=2, learning_rate=1e-3))
    (best,) = trained.best
    assert (trained.rounds[0].round, best.round, best.score) == (1, 1, 90.0)


@pytest.mark.usefixtures("worsens")
def test_a_resumed_training_still_keeps_the_fitted_model(load: Loader, tmp_path: Path) -> None:
    training = replace(FITTED, epochs=3, batch_size=2, learning_rate=1e-3)
    with pytest.raises(KilledError):
        run_fitted(load, training, tmp_path, dies_after=2)
    resumed = run_fitted(load, training, tmp_path)
    (best,) = resumed.best
    assert resumed.resumed_after == [1]
    assert (resumed.last, best.round, best.score) == (3, 0, 90.0)
    model, split = load("encoder", "DailyDialog", TASK.name, reads="mean")
    assert isinstance(model, Encoder)
    fit_heads(model, {TASK.name: TASK}, {TASK.name: split}, 256)
    fitted = get_heads(model)[TASK.name].weight
    assert torch.equal(best.weights[f"heads.{TASK.name}.weight"], fitted.detach())
