"""Cells from the answers of runs: means, differences, intervals and q, on a measure's scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tasktransfer.metrics.labels import Sums, compute_proportion
from tasktransfer.metrics.measures import MEASURES, PACKAGE_MEASURES, Measure
from tasktransfer.stats.bootstrap import compute_q_values
from tasktransfer.stats.cells import (
    COLUMNS,
    NO_SEED,
    Cell,
    Key,
    Scored,
    build_cell_table,
    compute_mean_cell,
    compute_mean_over_test_sets,
    gather_cells,
    score_rank_correlation,
    score_tallies,
)
from tasktransfer.stats.draws import build_dialogue_units, sample_unit_weights

DIALOGUES = [f"d{place}" for place in range(40)]
ACCURACY = MEASURES["accuracy"]
BASE = {"base": {"method": "base"}}


def percent(sums: Sums) -> Sums:
    return 100 * compute_proportion(sums)


def answered(
    right: Sequence[float], clusters: Sequence[str] = DIALOGUES, measure: Measure = ACCURACY
) -> Scored:
    """Return a run with one instance per dialogue."""
    return score_tallies(np.stack([right, np.ones(len(right))], axis=1), clusters, percent, measure)


def noise(of: str, share: float = 0.5) -> Sequence[float]:
    chance = np.random.default_rng(list(of.encode()))
    return [float(each) for each in chance.random(len(DIALOGUES)) < share]


def studied(shares: Mapping[str, float], seeds: int = 3) -> dict[Key, Cell]:
    """Return methods with the given numbers of correct answers; which ones differs by seed."""
    return gather_cells(
        ((method,), seed, answered(noise(f"{method}{seed}", share)))
        for method, share in shares.items()
        for seed in range(seeds)
    )


def row(table: pd.DataFrame, method: str, against: str = "") -> pd.Series:
    rows = table[(table["method"] == method) & (table["against"] == against)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_one_seed_has_the_textbook_interval_of_paired_dialogues() -> None:
    """For a difference of two accuracies, without random sampling."""
    one, other = noise("one", 0.7), noise("other")
    told = gather_cells([(("new",), 0, answered(one)), (("base",), 0, answered(other))])
    table = build_cell_table(told, ["method"], BASE)
    assert list(table.columns) == ["method", *COLUMNS]
    assert table["against"].tolist() == ["", "", "base"]  # and base not with itself
    test = stats.ttest_rel(one, other)
    ends = test.confidence_interval()
    found = row(table, "new", "base")
    assert found["value"] == pytest.approx(100 * (np.mean(one) - np.mean(other)))
    assert (found["low"], found["high"]) == pytest.approx((100 * ends.low, 100 * ends.high))
    assert found["p"] == pytest.approx(test.pvalue)
    assert (found["seeds"], found["clusters"]) == (1, 40)
    assert math.isnan(found["sd"])


def test_a_difference_is_of_the_seeds_that_both_have() -> None:
    told = studied({"base": 0.4, "new": 0.8}, seeds=4)
    told["new",] = replace(told["new",], trainings=told["new",].trainings.select_seeds([3, 1]))
    table = build_cell_table(told, ["method"], BASE)
    found = row(table, "new", "base")
    base = told["base",].trainings
    assert found["seeds"] == 2
    assert found["value"] == pytest.approx(
        told["new",].trainings.scores.mean() - base.scores[[1, 3]].mean()
    )
    assert row(table, "base")["seeds"] == 4
    assert row(table, "base")["sd"] == pytest.approx(base.scores.std(ddof=1))
    told["new",] = replace(told["new",], trainings=replace(told["new",].trainings, seeds=(8, 9)))
    apart = row(build_cell_table(told, ["method"], BASE), "new", "base")
    assert apart["seeds"] == 0
    assert apart[["value", "low", "high", "p"]].isna().all()


def test_the_order_of_instances_tells_nothing() -> None:
    right, clusters = noise("x"), [f"d{place // 3}" for place in range(len(DIALOGUES))]
    order = np.random.default_rng(0).permutation(len(right))
    one = answered(right, clusters)
    other = answered([right[at] for at in order], [clusters[at] for at in order])
    assert other.score == one.score
    assert other.resampled == pytest.approx(one.resampled)
    told = gather_cells([(("base",), 0, one), (("new",), 0, other)])
    found = row(build_cell_table(told, ["method"], BASE), "new", "base")
    assert (found["low"], found["high"], found["p"]) == (0, 0, 1)
    assert found["clusters"] == 14


def test_other_dialogues_are_no_pairs_and_seeds_alone_say_how_sure_it_is() -> None:
    told = studied({"base": 0.4, "new": 0.8})
    renamed = [f"e{place}" for place in range(40)]
    runs = [(("new",), seed, answered(noise(f"new{seed}", 0.8), renamed)) for seed in range(3)]
    found = row(build_cell_table(told | gather_cells(runs), ["method"], BASE), "new", "base")
    pairs = [told[name,].trainings.scores for name in ("new", "base")]
    ends = stats.ttest_rel(*pairs).confidence_interval()
    assert (found["low"], found["high"]) == pytest.approx((ends.low, ends.high))
    mixed = gather_cells([*runs[:2], (("new",), 2, answered(noise("new2")))])["new",]
    assert (mixed.units, mixed.trainings.resampled) == (None, None)
    assert build_cell_table({("new",): mixed}, ["method"], {})["clusters"].tolist() == [0]


def test_what_is_not_trained_is_shown_next_to_every_seed() -> None:
    told = studied({"base": 0.4})
    released = answered(noise("released", 0.8))
    told |= gather_cells([(("released",), NO_SEED, released)] * 3)
    table = build_cell_table(told, ["method"], BASE | {"released": {"method": "released"}})
    assert row(table, "released")["seeds"] == 1
    found, back = row(table, "released", "base"), row(table, "base", "released")
    assert found["seeds"] == back["seeds"] == 3
    repeated = gather_cells((("released",), seed, released) for seed in range(3))
    trained = row(build_cell_table(told | repeated, ["method"], BASE), "released", "base")
    same = ["value", "low", "high", "p"]
    assert found[same].tolist() == trained[same].tolist()
    assert back["value"] == -found["value"]


def test_one_cluster_has_no_interval() -> None:
    told = gather_cells([(("new",), seed, answered([1, 0, 1, seed], ["d"] * 4)) for seed in (0, 1)])
    found = row(build_cell_table(told, ["method"], {}), "new")
    assert found["value"] == 62.5
    assert found[["low", "high", "p"]].isna().all()
    units = build_dialogue_units(["c"] * 4)
    weights = sample_unit_weights("panel", "s", 1)[:, units.of_instance]
    alone = score_rank_correlation(np.arange(4.0), np.arange(4.0), units, weights)
    assert alone.score == 100
    assert np.isnan(alone.resampled).all()


# --- scales -------------------------------------------------------------------------------------


def test_perplexity_is_reported_on_its_logarithm() -> None:
    def tested(nats: float) -> Scored:
        each = [[10 * nats + (place - 19.5) / 10, 10.0] for place in range(40)]
        return score_tallies(
            each, DIALOGUES, lambda s: np.exp(s[..., 0] / s[..., 1]), MEASURES["perplexity"]
        )

    runs = {"base": (4.2, 4.3), "new": (5.2, 5.32)}
    told = gather_cells(((m,), s, tested(n)) for m, of in runs.items() for s, n in enumerate(of))
    table = build_cell_table(told, ["method"], BASE)
    base, found = row(table, "base"), row(table, "new", "base")
    assert base["value"] == pytest.approx(math.exp(4.25))
    assert base["value"] / base["low"] == pytest.approx(base["high"] / base["value"])
    assert found["value"] == pytest.approx(1.01)  # nats
    assert 0 < found["low"] < 1.01 < found["high"]


def test_a_share_stays_within_its_ends_and_a_correlation_within_its_own() -> None:
    share = row(build_cell_table(studied({"new": 0.97}), ["method"], {}), "new")
    assert 0 < share["low"] < share["value"] < share["high"] < 100
    chance = np.random.default_rng(1)
    gold, units = np.arange(40.0), build_dialogue_units(DIALOGUES)
    weights = sample_unit_weights("s", "t", 40)
    runs = [
        (
            ("new",),
            seed,
            score_rank_correlation(20 * chance.normal(size=40) - gold, gold, units, weights),
        )
        for seed in range(4)
    ]
    found = row(build_cell_table(gather_cells(runs), ["method"], {}), "new")
    assert -100 < found["low"] < found["value"] < found["high"] < 0
    z = np.arctanh(found[["low", "value", "high"]].to_numpy(float) / 100)
    assert z[1] - z[0] == pytest.approx(z[2] - z[1])


def test_every_measure_has_a_scale_that_holds_its_range() -> None:
    for measure in (MEASURES[name] for name in PACKAGE_MEASURES):
        logs, fisher = measure.scale == "logarithm", measure.scale == "fisher"
        assert logs == measure.name.endswith("perplexity")
        assert fisher == (measure.low < 0)
        assert (measure.high == 100) == (measure.scale == "logit")


# --- families, means ----------------------------------------------------------------------------


def test_q_is_within_families_and_controls_have_none() -> None:
    told = studied({"base": 0.4, "a": 0.5, "b": 0.6, "c": 0.7, "control": 0.95})

    def family(key: Key, against: str) -> str | None:
        return None if key[0] == "control" else against

    table = build_cell_table(told, ["method"], BASE | {"a": {"method": "a"}}, family)
    own = table[table["method"] != "control"]
    for _, some in own.groupby("against"):
        assert some["q"].tolist() == compute_q_values(some["p"]).tolist()
    control = table[table["method"] == "control"]
    assert control["q"].isna().all()
    assert control["p"].notna().all()
    assert build_cell_table(told, ["method"], BASE)["q"].isna().all()


def test_a_mean_of_cells_is_of_their_shared_seeds_and_smallest_test_set() -> None:
    chance = np.random.default_rng(2)
    told = {}
    for name, count, seeds in (("large", 40, (0, 1, 2)), ("small", 12, (2, 1))):
        gold, units = np.arange(float(count)), build_dialogue_units(DIALOGUES[:count])
        weights = sample_unit_weights("s", name, count)
        told |= gather_cells(
            (
                (name,),
                seed,
                score_rank_correlation(gold + 20 * chance.normal(size=count), gold, units, weights),
            )
            for seed in seeds
        )
    mean = compute_mean_cell([*told.values()])
    large, small = (told[name,].trainings.select_seeds([1, 2]) for name in ("large", "small"))
    assert mean.trainings.seeds == (1, 2)
    assert mean.trainings.scores == pytest.approx((large.scores + small.scores) / 2)
    assert mean.units is not None
    assert mean.units.count == 12
    each = [one.resampled.var() for one in (large, small) if one.resampled is not None]
    assert mean.trainings.resampled is not None
    assert mean.trainings.resampled.var() == pytest.approx(sum(each) / 4, rel=0.2)


def test_references_may_be_other_cells() -> None:
    told = studied({"base": 0.4, "new": 0.8})
    ours = {key: cell for key, cell in told.items() if key != ("base",)}
    table = build_cell_table(ours, ["method"], BASE, references=told)
    assert table[["method", "against"]].to_numpy().tolist() == [["new", ""], ["new", "base"]]


def test_a_mean_over_test_sets_leaves_a_shared_dialogue_out_of_all_at_once() -> None:
    """Compared with the explicit jackknife.

    It takes the mean of both scores without each dialogue in turn.
    """
    draw = np.random.default_rng(0)
    sets = {name: [f"d{n}" for n in draw.integers(0, 12, 40)] for name in ("a", "b")}
    right = {name: draw.integers(0, 2, 40) for name in sets}

    def share(sums: np.ndarray) -> np.ndarray:
        return 100 * sums[..., 0] / sums[..., 1]

    tallies = {n: np.stack([right[n], np.ones(40)], axis=1) for n in sets}
    cells_of = [
        gather_cells(
            [((n,), NO_SEED, score_tallies(tallies[n], sets[n], share, MEASURES["accuracy"]))]
        )[(n,)]
        for n in sets
    ]
    joined = compute_mean_over_test_sets(cells_of)
    assert joined.trainings.scores[0] == pytest.approx(50 * sum(r.mean() for r in right.values()))
    assert joined.units is not None
    assert joined.units.count == len({*sets["a"], *sets["b"]})
    pulls: dict[str, float] = {}
    for n, of in sets.items():
        names = sorted({*of})
        without = np.array([100 * right[n][np.array(of) != d].mean() for d in names])
        spread = ((len(names) - 1) / len(names)) ** 0.5
        for d, one in zip(names, without, strict=True):
            pulls[d] = pulls.get(d, 0.0) + (one - without.mean()) * spread
    expected = sum((pull / 2) ** 2 for pull in pulls.values())
    assert joined.trainings.resampled is not None
    assert joined.trainings.resampled[0].var(ddof=1) == pytest.approx(expected, rel=1e-9)
