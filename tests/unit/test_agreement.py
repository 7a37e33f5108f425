"""Rank correlation of transfer matrices: by hand, against scipy, and without agreement."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from delta_frames import make_deltas
from scipy import stats

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.statistics.matrices import (
    compute_agreement,
    summarise_agreement,
)
from tasktransfer.results.frames import list_column_names
from tasktransfer.results.store import build_frame
from tasktransfer.stats import correlation
from tasktransfer.stats.correlation import compute_matrix_correlation
from tasktransfer.stats.draws import Floats


def square(values: list[list[float]]) -> Floats:
    return np.array(values, dtype=np.float64)


def test_three_tasks_by_hand() -> None:
    # Off the diagonal 1 2 3 4 5 6 against 2 1 3 4 6 5: 1 - 6 * 4 / (6 * 35).
    a = square([[9, 1, 2], [3, 9, 4], [5, 6, 9]])
    b = square([[-9, 2, 1], [3, -9, 4], [6, 5, -9]])
    found = compute_matrix_correlation(a, b)
    assert found.n_pairs == 6
    assert found.value == pytest.approx(1 - 24 / 210)
    assert math.isnan(found.low)  # three tasks are too few
    renamed = []
    for names_ in itertools.permutations(range(3)):
        moved = b[np.ix_(names_, names_)]
        off = ~np.eye(3, dtype=bool)
        renamed.append(stats.spearmanr(a[off], moved[off]).statistic)
    assert found.p == np.mean(np.abs(renamed) >= abs(renamed[0]) - 1e-12)


def test_resampled_correlation_is_that_of_the_repeated_cells() -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=12).round(), random.normal(size=12).round()
    weights = random.integers(0, 4, size=(5, 12))
    found = correlation._compute_weighted_spearman(x, y, weights.astype(float))
    for value, weight in zip(found, weights, strict=True):
        repeated = np.repeat(x, weight), np.repeat(y, weight)
        assert value == pytest.approx(stats.spearmanr(*repeated).statistic)


def test_cells_that_one_lacks_are_left_out() -> None:
    a = square([[0, 4, 11, 1], [7, 0, 2, 9], [12, 5, 0, 3], [6, 10, 8, 0]])
    b = 2 * a
    b[0, 1], b[2, 3] = np.nan, np.nan
    found = compute_matrix_correlation(a, b)
    assert (found.n_pairs, found.value, found.high) == (10, 1.0, 1.0)
    assert found.p == pytest.approx(1 / 24)
    with_hole = a.copy()
    with_hole[3, 0] = np.nan
    assert compute_matrix_correlation(with_hole, b).n_pairs == 9


def test_one_side_constant_or_too_few_cells_cannot_be_told() -> None:
    a = square([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    assert math.isnan(compute_matrix_correlation(a, np.ones((3, 3))).value)
    two = np.full((3, 3), np.nan)
    two[0, 1], two[1, 2] = 1, 2
    found = compute_matrix_correlation(a, two)
    assert found.n_pairs == 2
    assert math.isnan(found.value)
    assert math.isnan(found.p)


@pytest.mark.parametrize("tasks", [5, 8])
def test_p_is_uniform_where_nothing_agrees(tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cells of a row and of a column are correlated, as in transfer."""
    monkeypatch.setattr(correlation, "RESAMPLES", 10)
    monkeypatch.setattr(correlation, "RENAMINGS", 99)
    random = np.random.default_rng(4)

    def drawn() -> Floats:
        rows, columns = random.normal(size=(tasks, 1)), random.normal(size=(1, tasks))
        return rows + columns + random.normal(size=(tasks, tasks))

    p = np.array([compute_matrix_correlation(drawn(), drawn()).p for _ in range(300)])
    assert np.mean(p <= 0.05) <= 0.085
    assert 0.44 <= p.mean() <= 0.56
    assert 0.2 <= np.mean(p <= 0.25) <= 0.32


def test_interval_holds_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "RENAMINGS", 9)
    monkeypatch.setattr(correlation, "RESAMPLES", 500)
    random = np.random.default_rng(6)
    truth = 6 / math.pi * math.asin(0.8 / 2)  # Spearman's of a normal pair with Pearson's 0.8
    held = []
    for _ in range(100):
        a = random.normal(size=(9, 9))
        found = compute_matrix_correlation(a, 0.8 * a + 0.6 * random.normal(size=(9, 9)))
        assert found.low <= found.value <= found.high
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) >= 0.93


TASKS = "abcdefg"


def study(own: float, noise: float = 0.0) -> pd.DataFrame:
    """Build a study of two models and two algorithms.

    ``own`` is the part of the trends that is the model's own (0-1); the algorithms of a model share
    their trends. ``noise`` is that of each run.
    """
    random = np.random.default_rng(8)
    shared = random.normal(size=(7, 7))
    apart = {model: random.normal(size=(7, 7)) for model in ("bert", "gpt2")}

    def delta(model: str, algorithm: str, source: str, target: str, seed: int) -> float:
        place = TASKS.index(source), TASKS.index(target)
        trend = (1 - own) * shared[place] + own * apart[model][place]
        return float(trend + random.normal(0, noise))

    return make_deltas(
        delta,
        tasks=TASKS,
        models=("bert", "gpt2"),
        algorithms=("multitask", "pretrain_finetune"),
        seeds=range(4),
    )


def test_rows_are_between_models_and_between_algorithms() -> None:
    table = compute_agreement(study(1.0), {"model": ["gpt2", "bert"]})
    keys = ["between", "held", "a", "b"]
    assert list(table[keys].itertuples(index=False, name=None)) == [
        ("model", "multitask", "gpt2", "bert"),
        ("model", "pretrain_finetune", "gpt2", "bert"),
        ("algorithm", "gpt2", "multitask", "pretrain_finetune"),
        ("algorithm", "bert", "multitask", "pretrain_finetune"),
    ]
    assert set(table["n_pairs"]) == {42}


def test_own_trends_show_between_models_only() -> None:
    overall = summarise_agreement(compute_agreement(study(1.0, noise=0.3))).set_index("between")
    assert abs(overall.loc["model", "correlation"]) < 0.35
    assert overall.loc["algorithm", "correlation"] > 0.9
    assert overall.loc["algorithm", "agreeing"] == 2
    assert overall.loc["model", "disjoint"] < overall.loc["model", "reliability"] - 0.5
    assert list(overall["comparisons"]) == [2, 2]


def test_noise_lowers_the_reliability_with_the_correlation() -> None:
    """The trends are equal; the matrices differ by noise, which the reliability shows."""
    overall = summarise_agreement(compute_agreement(study(0.0, noise=1.5))).set_index("between")
    assert overall.loc["model", "correlation"] < 0.85
    assert overall.loc["model", "disjoint"] == pytest.approx(
        overall.loc["model", "reliability"], abs=0.12
    )


def test_a_shared_baseline_lifts_correlation_and_not_disjoint() -> None:
    """All deltas are noise; that of the baselines is twice as large."""
    found = []
    for number in range(12):
        random = np.random.default_rng(number)
        baselines = random.normal(0, 2, size=(7, 2))
        deltas = make_deltas(
            lambda m, al, s, t, seed, random=random, drawn=baselines: float(
                random.normal() - drawn[TASKS.index(t), seed]
            ),
            tasks=TASKS,
            algorithms=("multitask", "pretrain_finetune"),
        )
        found.append(compute_agreement(deltas)[["correlation", "disjoint"]].iloc[0])
    means = pd.DataFrame(found).mean()
    assert means["correlation"] > 0.6
    assert abs(means["disjoint"]) < 0.2


def test_halves_of_the_seeds_by_hand() -> None:
    """Two seeds give one split. bert is equal in both; gpt2 has the reverse order in seed 1."""
    pairs = [(s, t) for s in "abc" for t in "abc" if s != t]
    deltas = make_deltas(
        lambda m, al, s, t, seed: (-1.0 if (m, seed) == ("gpt2", 1) else 1.0) * pairs.index((s, t)),
        tasks="abc",
        models=("bert", "gpt2"),
    )
    row = compute_agreement(deltas).iloc[0]
    assert row.disjoint == pytest.approx(0)  # 1 and -1
    assert row.reliability == 0  # gpt2 with itself: -1, cut at 0
    alone = compute_agreement(deltas[deltas["seed"] == 0]).iloc[0]
    assert alone.correlation == pytest.approx(1)
    assert math.isnan(alone.disjoint)
    assert math.isnan(alone.reliability)


@pytest.mark.parametrize("study_of", ["nothing", "one model", "one task pair"])
def test_small_studies_give_no_numbers_and_no_errors(study_of: str) -> None:
    deltas = {
        "nothing": build_frame([], columns.DELTAS),
        "one model": make_deltas(lambda *name: 1.0),
        "one task pair": make_deltas(lambda *name: 1.0, tasks="ab", models=("x", "y")),
    }[study_of]
    table = compute_agreement(deltas)
    assert list(table.columns) == list_column_names(columns.AGREEMENT)
    assert table["correlation"].isna().all()
    assert table["correlation"].dtype == "float64"
    assert len(table) == (1 if study_of == "one task pair" else 0)
    assert summarise_agreement(table).empty
