"""Difference between the delta of a to b and that of b to a."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from delta_frames import make_cells, make_deltas
from scipy import stats

from tasktransfer.designs.transfer.statistics.matrices import compute_asymmetry


def test_seeds_alone_give_the_paired_t_test() -> None:
    there, back = [3.0, 4.0, 6.5], [1.0, 0.5, 2.0]
    deltas = make_deltas(
        lambda m, al, source, target, seed: (there if source == "a" else back)[seed],
        tasks="ab",
        seeds=range(3),
    )
    table = compute_asymmetry(make_cells(deltas), deltas)
    assert len(table) == 1
    row = table.iloc[0]
    assert (row.task_a, row.task_b, row.n_seeds) == ("a", "b", 3)
    assert (row.a_to_b, row.b_to_a) == (4.5, pytest.approx(3.5 / 3))
    expected = stats.ttest_rel(there, back)
    interval = expected.confidence_interval()
    assert row.difference == pytest.approx(4.5 - 3.5 / 3)
    assert row.p == pytest.approx(expected.pvalue)
    assert (row.low, row.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert row.q == row.p


def test_dialogues_add_to_the_error() -> None:
    """One seed: the two cells' errors over dialogues, 3 and 4, combine to 5 points."""
    deltas = make_deltas(
        lambda m, al, source, target, seed: 10.0 if source == "a" else 0.0, tasks="ab", seeds=[0]
    )
    cells = make_cells(deltas, instances=101)
    cells["test_error"], cells["instances"] = [3.0, 4.0], 5000
    row = compute_asymmetry(cells, deltas).iloc[0]
    # Two parts of 100 degrees each: between 100 degrees and the normal distribution.
    assert row.p == pytest.approx(2 * stats.t.sf(10 / 5, 100), rel=0.03)
    assert row.high == pytest.approx(10 + stats.t.ppf(0.975, 100) * 5, rel=0.005)
    assert math.isnan(row.q)  # other seeds are unknown
    cells["test_error"] = [3.0, float("nan")]
    row = compute_asymmetry(cells, deltas).iloc[0]
    assert row.difference == 10
    assert math.isnan(row.low)
    assert math.isnan(row.p)


def test_only_seeds_that_both_have_count() -> None:
    deltas = make_deltas(
        lambda m, al, source, target, seed: (
            None if (source, seed) == ("a", 2) else float(seed**2 if source == "a" else -seed)
        ),
        tasks="ab",
        seeds=range(3),
    )
    row = compute_asymmetry(make_cells(deltas), deltas).iloc[0]
    assert (row.n_seeds, row.a_to_b, row.b_to_a) == (2, 0.5, -0.5)
    apart = deltas[(deltas["source"] == "a") != (deltas["seed"] == 1)]
    row = compute_asymmetry(make_cells(apart), apart).iloc[0]
    assert (row.n_seeds, row.a_to_b, row.b_to_a) == (0, 0, -1)
    assert math.isnan(row.p)


def test_order_of_tasks_and_one_way_pairs() -> None:
    deltas = make_deltas(
        lambda m, al, source, target, seed: None if source == "a" else 1.0 + seed, tasks="abc"
    )
    table = compute_asymmetry(make_cells(deltas), deltas, {"task": ["c", "b", "a"]})
    assert table[["task_a", "task_b"]].to_numpy().tolist() == [["c", "b"]]
    one_way = deltas[deltas["source"] < deltas["target"]]
    assert compute_asymmetry(make_cells(one_way), one_way).empty


def sample_symmetric_deltas(noise: np.random.Generator, instance_error: float) -> pd.DataFrame:
    baselines = noise.normal(0, 2, size=(3, 8, 3))
    instances = noise.normal(0, instance_error, size=(3, 8, 8))

    def delta(model: str, _: str, source: str, target: str, seed: int) -> float:
        at, s, t = int(model), int(source), int(target)
        shared = baselines[at, s, seed] - baselines[at, t, seed]
        return float(shared + noise.normal() + instances[at, s, t])

    return make_deltas(delta, tasks="01234567", models="012", seeds=range(3))


@pytest.mark.parametrize("instance_error", [0.0, 0.5])
def test_no_asymmetry_is_seldom_found_and_hardly_ever_marked(instance_error: float) -> None:
    """Pairs share the noise of their baselines, as after pretrain_finetune, with 3 seeds."""
    rejected, marked = [], []
    for study in range(8):
        deltas = sample_symmetric_deltas(np.random.default_rng(study), instance_error)
        table = compute_asymmetry(make_cells(deltas, 1000, instance_error), deltas)
        rejected += list(table["p"] <= 0.05)
        marked.append((table["q"] <= 0.05).any())
    assert 0.02 <= np.mean(rejected) <= 0.08
    assert np.mean(marked) <= 0.25


def test_equal_directions_without_noise_are_no_difference() -> None:
    deltas: pd.DataFrame = make_deltas(lambda *name: 2.0, tasks="ab")
    row = compute_asymmetry(make_cells(deltas), deltas).iloc[0]
    assert (row.difference, row.low, row.high, row.p) == (0, 0, 0, 1)
