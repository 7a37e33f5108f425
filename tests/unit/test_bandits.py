"""FLAD's bandits against ten lines of their formulas, and a training that they mix."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch

from small_models import Loader, small_stage
from tasktransfer.core.bandits import RULES, Bandit, Rule, choose_ucb1_arm
from tasktransfer.core.fidelity import Fidelity
from tasktransfer.core.specs import Selection, Training
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError
from tasktransfer.training.ahead import split_into_micro_batches
from tasktransfer.training.gradients import set_gradients, set_pair_gradients
from tasktransfer.training.loop import Trained, train
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.progress import Progress
from tasktransfer.training.samplers import Batch
from tasktransfer.training.setup import Setup

TARGET, SOURCES = "emotion_recognition", ("dialogue_act_classification", "topic_classification")
TASKS = {name: get_task("DailyDialog", name) for name in (*SOURCES, TARGET)}
TRAINING = Training(epochs=2, batch_size=2, learning_rate=1e-3)
SETUP = Setup(torch.device("cpu"), TokenBudget(256, "training"), TokenBudget(256, "evaluation"))


def stage(rule: Rule, training: Training = TRAINING) -> Any:
    return small_stage(
        *TASKS, training=training, sampler=rule, selection=Selection((TARGET,)), tests=()
    )


def bandit(rule: Rule, fidelity: Fidelity | None = None) -> Bandit:
    training = replace(TRAINING, fidelity=fidelity) if fidelity else TRAINING
    found = Bandit.start(stage(rule, training))
    assert found is not None
    return found


def played(of: Bandit, rewards: tuple[float, ...], turns: int) -> list[list[float]]:
    """Return each turn's probabilities in a game in which each source has a constant reward."""
    seen = []
    for _ in range(turns):
        seen.append(of.probabilities)
        target, source = of.choose_source()
        assert target == TARGET
        of.add_reward(source, rewards[of.sources.index(source)])
    return seen


@pytest.mark.parametrize("steps", ["taken", "released"])
def test_exp3_is_its_formula(steps: Any) -> None:
    found = bandit("exp3", Fidelity(exp3_steps=steps))
    rewards, (cumulated, before) = (0.9, -0.2), ([0.0, 0.0], 0.5)
    for turn, shares in enumerate(played(found, rewards, 60)):
        tau = turn + 1 if steps == "taken" else 10 * turn + 1
        now = min(1 / 2, math.sqrt(math.log(2) / (2 * tau)))
        powers = [math.exp(before * one) for one in cumulated]
        wanted = [(1 - 2 * now) * one / sum(powers) + now for one in powers]
        assert shares == pytest.approx(wanted, rel=1e-12)
        (arm,) = Random(f"0 {turn}").choices(range(2), shares)
        cumulated[arm] += rewards[arm] / wanted[arm]
        before = now
    assert found.rewards == pytest.approx(cumulated)
    assert shares[0] > 0.8  # it has found the better one


def test_ucb1_is_its_formula() -> None:
    found = bandit("ucb1")
    rewards, means, pulls = (0.6, 0.1), [0.0, 0.0], [0, 0]
    for turn, shares in enumerate(played(found, rewards, 60)):
        bounds = [m + math.sqrt(2 * math.log(turn) / n) if n else math.inf
                  for m, n in zip(means, pulls, strict=True)]  # fmt: skip
        arm = max(range(2), key=lambda one: (bounds[one], -one))
        assert shares == [float(one == arm) for one in range(2)]
        means[arm] = 0.9 * means[arm] + 0.1 * rewards[arm] if pulls[arm] else rewards[arm]
        pulls[arm] += 1
    assert (found.rewards, found.pulls) == (pytest.approx(means), pulls)
    assert pulls[0] > 1.5 * pulls[1] > 0
    assert choose_ucb1_arm([0.5, 0.9, 0.1], [3, 0, 0]) == 1  # each once first


def test_the_reward_is_the_cosine_of_two_gradients_and_the_update_their_sum(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TARGET)
    model.module.eval()
    pair = (Batch(TARGET, (0, 1)), Batch(TARGET, (2, 3)))
    moving, splits = list(model.module.parameters()), {TARGET: split}
    alone = []
    for batch in pair:
        parts = split_into_micro_batches(model, splits, (batch,), 256)
        set_gradients(model, moving, splits, (batch,), parts, SETUP)
        alone.append(torch.cat([p.grad.flatten() for p in moving if p.grad is not None]))
    made = split_into_micro_batches(model, splits, pair, 256)
    _, cosine = set_pair_gradients(model, moving, splits, pair, made, SETUP)
    wanted = torch.nn.functional.cosine_similarity(*alone, dim=0)
    assert float(cosine) == pytest.approx(float(wanted), abs=1e-4)
    total = torch.cat([p.grad.flatten() for p in moving if p.grad is not None])
    assert torch.allclose(total, alone[0] + alone[1], rtol=1e-4, atol=1e-6)


def trained(load: Loader, rule: Rule) -> Trained:
    model, _ = load("encoder", "DailyDialog", TARGET, others=SOURCES)
    splits = {name: load("encoder", "DailyDialog", name)[1] for name in TASKS}
    told = stage(rule)
    dev = {TARGET: splits[TARGET]}
    return train(model, told, TASKS, splits, dev, SETUP, Progress(1, "test", io.StringIO()))


@pytest.mark.parametrize("rule", RULES)
def test_a_training_says_what_it_mixed(rule: Rule, load: Loader) -> None:
    history = trained(load, rule)
    assert [set(one.mixing) for one in history.rounds] == [{*SOURCES}] * 2
    assert all(sum(one.mixing.values()) == pytest.approx(1) for one in history.rounds)
    assert TARGET in history.rounds[0].train_loss
    assert history.bandit is not None
    assert sum(history.bandit.pulls) == history.bandit.turns > 2
    again = trained(load, rule)
    assert [one.mixing for one in again.rounds] == [one.mixing for one in history.rounds]


def test_a_bandit_needs_one_target_and_a_source() -> None:
    assert Bandit.start(small_stage(TARGET)) is None
    with pytest.raises(ConfigError, match="needs source tasks and a single target"):
        Bandit.start(
            small_stage(*TASKS, sampler="exp3", selection=Selection(tuple(TASKS)), tests=())
        )
    with pytest.raises(ConfigError, match="needs source tasks and a single target"):
        Bandit.start(small_stage(TARGET, sampler="ucb1"))
