"""Mean, interquartile mean, fraction above 0 and ranks with their intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from delta_frames import make_deltas

from tasktransfer.designs.transfer.statistics import summary as module
from tasktransfer.designs.transfer.statistics.summary import compute_summary

INTERVALS = ("mean", "iqm", "positive", "rank")


def only(table: pd.DataFrame, **keys: str) -> pd.Series:
    for key, value in keys.items():
        table = table[table[key] == value]
    assert len(table) == 1
    return table.iloc[0]


def test_by_hand() -> None:
    values = {("a", "b"): [-4, 0], ("b", "a"): [1, 2], ("a", "c"): [3, 5], ("c", "a"): [0, 100]}
    deltas = make_deltas(
        lambda m, al, source, target, seed: values.get((source, target), [None, None])[seed],
        tasks="abc",
    )
    row = only(compute_summary(deltas))
    assert (row.n_cells, row.n_seeds) == (4, 2)
    assert row["mean"] == pytest.approx((-2 + 1.5 + 4 + 50) / 4)
    assert row.iqm == pytest.approx((0 + 1 + 2 + 3) / 4)  # of -4 0 0 1 2 3 5 100 the middle four
    assert row.positive == pytest.approx((5 + 2 * 0.5) / 8)
    assert (row["rank"], row.rank_low, row.rank_high, row.rank_cells) == (1, 1, 1, 4)


def test_a_cell_with_fewer_seeds_weighs_as_much_in_the_mean() -> None:
    deltas = make_deltas(
        lambda m, al, source, target, seed: (
            None if (source, seed) == ("a", 1) else 10.0 if source == "a" else 0.0
        ),
        tasks="ab",
    )
    row = only(compute_summary(deltas))
    assert row["mean"] == 5.0
    assert row.positive == pytest.approx((1 + 2 * 0.5) / 3)


def test_ranks_are_over_the_cells_that_all_algorithms_have_and_ties_share() -> None:
    gain = {"best": 3.0, "tied": 1.0, "also": 1.0}
    deltas = make_deltas(
        lambda m, al, source, target, seed: (
            None if al == "tied" and source == "a" else -gain[al] if target == "a" else gain[al]
        ),
        tasks="abc",
        algorithms=gain,
    )
    table = compute_summary(deltas, {"algorithm": ["best", "tied", "also"]})
    assert list(table["algorithm"]) == ["best", "tied", "also"]
    # Pairs b>a, c>a (reversed), b>c, c>b: "best" is third twice and first twice.
    assert list(table["rank"]) == [2.0, 2.0, 2.0]
    assert list(table["rank_cells"]) == [4, 4, 4]
    assert list(table["n_cells"]) == [6, 4, 6]


def test_no_spread_over_seeds_gives_an_interval_of_no_width() -> None:
    deltas = make_deltas(lambda m, al, source, target, seed: ord(source) - ord(target))
    row = only(compute_summary(deltas))
    for column in INTERVALS:
        assert row[f"{column}_low"] == pytest.approx(row[column])
        assert row[f"{column}_high"] == pytest.approx(row[column])


def test_one_seed_has_numbers_and_no_intervals() -> None:
    row = only(compute_summary(make_deltas(lambda *name: 1.0, seeds=[3])))
    assert (row["mean"], row.iqm, row.positive, row["rank"]) == (1, 1, 1, 1)
    assert row[[f"{column}_{end}" for column in INTERVALS for end in ("low", "high")]].isna().all()


def test_intervals_stay_where_the_number_can_be() -> None:
    noise = np.random.default_rng(0)
    deltas = make_deltas(
        lambda m, al, *_: noise.normal(2.0 if al == "good" else -2.0), algorithms=["good", "bad"]
    )
    table = compute_summary(deltas)
    assert (table["positive_high"] <= 1).all()
    assert (table["positive_low"] >= 0).all()
    assert (table["rank_low"] >= 1).all()
    assert (table["rank_high"] <= 2).all()


def test_a_shared_baseline_makes_the_mean_as_unsure_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All noise is the baseline's: 4 targets x 3 seeds of it, for any number of sources.

    If the 12 deltas of a seed were treated as independent, about 75 of 100 intervals would contain
    the true value.
    """
    monkeypatch.setattr(module, "RESAMPLES", 300)
    held = []
    for study in range(120):
        noise = np.random.default_rng(study)
        baselines = {(task, seed): noise.normal() for task in "abcd" for seed in range(3)}
        deltas = make_deltas(
            lambda m, al, source, target, seed, drawn=baselines: 1.0 - drawn[target, seed],
            seeds=range(3),
        )
        row = only(compute_summary(deltas))
        held.append(row.mean_low <= 1.0 <= row.mean_high)
    assert 0.90 <= np.mean(held) <= 0.99


def test_the_same_deltas_in_another_order_give_the_same_numbers() -> None:
    noise = np.random.default_rng(1)
    deltas = make_deltas(lambda *name: noise.normal(), models=["x", "y"], algorithms=["p", "q"])
    shuffled = deltas.sample(frac=1, random_state=2)
    order = {"model": ["x", "y"], "algorithm": ["p", "q"]}
    pd.testing.assert_frame_equal(compute_summary(deltas, order), compute_summary(shuffled, order))
    alone = compute_summary(deltas[deltas["model"] == "y"], order)
    both = compute_summary(deltas, order)
    rest = both[both["model"] == "y"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, rest)


def test_memory_is_bounded_by_parts_that_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(3)
    deltas = make_deltas(lambda *name: noise.normal())
    whole = compute_summary(deltas)
    monkeypatch.setattr(module, "MOST_VALUES", 100)
    pd.testing.assert_frame_equal(compute_summary(deltas), whole)


def test_several_sources_and_lost_baselines_are_left_alone() -> None:
    deltas = make_deltas(lambda *name: 1.0)
    several = deltas.assign(n_sources=2, delta=99.0)
    lost = deltas.assign(delta=float("nan"))
    pd.testing.assert_frame_equal(
        compute_summary(pd.concat([deltas, several, lost])), compute_summary(deltas)
    )


def test_pairing_is_the_correlation_of_run_and_baseline_within_cells() -> None:
    deltas = make_deltas(lambda m, al, source, target, seed: 0.0, tasks="ab", seeds=range(3))
    # Differences between tasks are not pairing: within cells, scores and baselines are opposed.
    of_target = np.where(deltas["target"] == "a", 30.0, 0.0)
    deltas["baseline_score"] = of_target + deltas["seed"]
    deltas["score"] = of_target + 5 - deltas["seed"]
    assert only(compute_summary(deltas)).pairing == pytest.approx(-1)
    deltas["score"] = of_target + np.array([0, 1, 0] * 2)
    assert only(compute_summary(deltas)).pairing == pytest.approx(0)
    alone = deltas[deltas["seed"] == 0]
    assert np.isnan(only(compute_summary(alone)).pairing)
