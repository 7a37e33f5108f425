"""Mixing several sources: samplers, merged starts, and the steps of each algorithm."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from tasktransfer.core.plan import From
from tasktransfer.core.specs import Training
from tasktransfer.designs.transfer.algorithms import build_steps
from tasktransfer.models.parts import merge_with_ties
from tasktransfer.training.samplers import SAMPLERS, Schedule

SIZES = {"large": 900, "small": 100}
TRAINING = Training(batch_size=10)


def test_temperature_draws_by_the_square_root_of_sizes() -> None:
    drawn: Counter[str] = Counter()
    for epoch in range(1, 21):
        updates = SAMPLERS["temperature"](SIZES, TRAINING, 0, epoch)
        assert len(updates) == 100
        drawn.update(batch.task for update in updates for batch in update)
    assert drawn["large"] / drawn.total() == pytest.approx(0.75, abs=0.03)


def test_random_weights_are_shares_that_change() -> None:
    updates = SAMPLERS["random_weights"](SIZES, TRAINING, 0, 1)
    assert len(updates) == 50
    weights = np.array([[batch.weight for batch in update] for update in updates])
    assert weights.sum(axis=1) == pytest.approx(np.ones(50))
    assert weights.std() > 0.1
    assert weights.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.1)
    assert {update[0].task for update in updates} == {"large"}
    again = SAMPLERS["random_weights"](SIZES, TRAINING, 0, 2)
    assert again != updates


@pytest.mark.parametrize("sampler", ["temperature", "random_weights", "exp3", "ucb1"])
def test_an_epoch_has_as_many_updates_as_its_schedule_says(sampler: str) -> None:
    schedule = Schedule(sampler, SIZES, TRAINING, 0)  # type: ignore[arg-type]
    assert len(list(schedule.iterate_round(1))) == len(SAMPLERS[sampler](SIZES, TRAINING, 0, 1))  # type: ignore[index]


def test_ties_by_hand() -> None:
    """Ten parameters, of which each start keeps its two largest changes."""
    base = {"w": torch.ones(8), "b": torch.zeros(2)}
    one = {"w": torch.ones(8), "b": torch.zeros(2)}
    other = {name: tensor.clone() for name, tensor in one.items()}
    one["w"][0], one["b"][0], one["w"][5] = 5.0, 2.0, 1.5  # changes 4, 2 and 0.5, too small
    other["w"][0], other["b"][0], other["w"][6] = 3.0, -3.0, 1.1
    merged = merge_with_ties(base, [one, other])
    assert merged["w"][0] == 1 + (4 + 2) / 2  # both agree
    assert merged["b"][0] == -3  # the sign of the sum, and those that have it
    assert merged["w"][5] == merged["w"][6] == 1  # trimmed
    assert torch.equal(merged["w"][1:5], base["w"][1:5])


def test_merged_starts_are_the_baselines_of_the_sources() -> None:
    for algorithm, merged in (("average", "mean"), ("ties", "ties")):
        *alone, last = build_steps(algorithm, ("a", "b"), "t")
        assert [step.train_tasks for step in alone] == [("a",), ("b",)]
        assert all(step.start is None for step in alone)
        assert isinstance(last.start, tuple)
        assert [s.step for s in last.start if isinstance(s, From)] == alone
        assert {s.merged for s in last.start if isinstance(s, From)} == {merged}


def test_samplers_are_all_that_differs_from_multitask() -> None:
    (usual,) = build_steps("multitask", ("a", "b"), "t")
    for name in ("temperature", "random_weights", "exp3", "ucb1"):
        (step,) = build_steps(name, ("a", "b"), "t")
        assert step.sampler == name
        assert (step.train_tasks, step.selection) == (usual.train_tasks, usual.selection)
