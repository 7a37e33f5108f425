"""Training options beyond the paper: budgets in updates, schedules, groups, mean pooling."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from small_models import KilledError, Loader, flatten_weights, small_stage, train_quietly
from tasktransfer.core.identity import compute_digest
from tasktransfer.core.specs import FAMILIES, Family, LowRank, Rounds, Sampler, Selection, Training
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.heads import Head
from tasktransfer.training.loop import Trained
from tasktransfer.training.optimisers import create_optimiser
from tasktransfer.training.samplers import Schedule
from tasktransfer.training.schedules import create_scheduler

TASK = get_task("DailyDialog", "emotion_recognition")
PLAIN = Training(epochs=2, batch_size=2, learning_rate=1e-3, dropout=0.3)
EVERY_OPTION = replace(
    PLAIN,
    updates=7,
    schedule="linear",
    warmup=0.3,
    weight_decay=0.1,
    decays="matrices",
    head_learning_rate=1e-2,
)


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
    assert [of[id(parameter)] for parameter in moving] == [
        (1e-3, 0.1),
        *[(1e-3, 0.0)] * 3,
        (1e-2, 0.1),
        (1e-2, 0.0),
    ]


def test_options_at_their_default_are_not_part_of_an_identity() -> None:
    before = compute_digest(PLAIN.identity)
    assert not {"updates", "schedule", "warmup", "decays"} & {*PLAIN.identity}
    assert PLAIN.identity["epochs"] == 2
    for change in ({"updates": 7}, {"schedule": "linear"}, {"warmup": 0.1}, {"min_updates": 9}):
        assert compute_digest(replace(PLAIN, **change).identity) != before
    budget = replace(PLAIN, updates=7)
    assert replace(budget, epochs=30).identity == budget.identity
    assert (PLAIN.multiply_budget(2).budget, budget.multiply_budget(2).budget) == (
        "4_epochs",
        "14_updates",
    )


def test_rounds_fill_in_what_a_selection_leaves_open() -> None:
    open_selection, own = Selection(("a",)), Selection(("a",), every=5)
    assert Rounds().apply_to(open_selection) == open_selection
    assert Rounds(20, 3).apply_to(open_selection) == Selection(("a",), every=20, patience=3)
    assert Rounds(20, 3).apply_to(own) == Selection(("a",), every=5, patience=3)


# --- trainings ------------------------------------------------------------------------------------


def run(
    model: FamilyModel,
    split: EncodedSplit,
    folder: Path | None = None,
    dies_after: int = 0,
    **of: Any,
) -> Trained:
    """Train with every option, two updates to a round; the process ends after a round."""
    stage = small_stage(
        TASK.name,
        seed=3,
        **{"training": EVERY_OPTION, "selection": Selection((TASK.name,), every=2)} | of,
    )
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


def test_heads_read_the_mean_over_the_tokens(load: Loader) -> None:
    packed, split = load("encoder", "DailyDialog", TASK.name, reads="mean")
    padded, _ = load("encoder", "DailyDialog", TASK.name, plain=True, reads="mean")
    examples = range(len(split))
    with torch.no_grad():
        losses = [float(model.compute_loss(split, examples)) for model in (packed, padded)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    (backbone,) = [part for name, part in padded.module.named_children() if name == "backbone"]
    ids = torch.tensor(split.sequences[0], dtype=torch.long)[None]
    types = (torch.arange(ids.shape[1]) >= int(split.second_starts[0])).long()[None]
    with torch.no_grad():
        states = backbone(input_ids=ids, token_type_ids=types).last_hidden_state
        expected = padded.module["heads"][TASK.name](states.mean(1))
        got = padded._compute_logits(TASK, padded.prepare_inputs(split, [0]))  # type: ignore[attr-defined]
    assert torch.allclose(got, expected, atol=1e-5)
    run(packed, split)
