"""Statistics of ratings: raters of a set, correlations, averages, tests, ceilings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from constructed_frames import make_frames
from tasktransfer.designs.panel.frames import FRAMES, ITEMS, RATINGS
from tasktransfer.designs.panel.names import OWN_MINUS_OTHERS
from tasktransfer.metrics.measures import compute_balanced_accuracy, compute_spearman
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import build_frame
from tasktransfer.stats.clustered import (
    compare_raters,
    compute_reliability,
    compute_split_half_agreement,
    compute_williams_test,
)
from tasktransfer.stats.draws import sample_unit_weights
from tasktransfer.stats.shares import compute_wilson_interval

DOMAINS = ("Harbour", "Orchard", "Workshop")
SETS = ("Harbour_Tiny", "Market_Tiny")
CONTEXTS, RESPONSES = 30, 4


def studied(**constant: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ratings and items in which Harbour's expert is good at its set.

    The others are noise there; methods in ``constant`` rate all items equally.
    """
    random = np.random.default_rng(0)
    items: list[tuple[Any, ...]] = []
    ratings: list[tuple[Any, ...]] = []
    for rated in SETS:
        gold = np.repeat(random.random(CONTEXTS), RESPONSES) + 0.2 * random.random(
            CONTEXTS * RESPONSES
        )
        names = [f"{rated}-{n}" for n in range(len(gold))]
        for n, name in enumerate(names):
            few = [float(gold[n] + 0.05 * random.standard_normal()) for _ in range(3)]
            items.append(
                (rated, name, f"c{n // RESPONSES}", float(gold[n]), few, 2, 5, 4, random.random())
            )
        raters = [("panel", domain) for domain in DOMAINS]
        raters += [("collection", domain) for domain in DOMAINS]
        raters += [("single", ""), *((method, "") for method in constant)]
        for method, domain in raters:
            for seed in (0, 1, 2):
                noise = random.random(len(gold))
                good = domain == "Harbour" or method == "single"
                values = 0.7 * gold + 0.3 * noise if good else noise
                if method in constant:
                    values = np.full(len(gold), constant[method])
                ratings += [
                    (method, domain, seed, rated, name, float(value))
                    for name, value in zip(names, values, strict=True)
                ]
    return build_frame(ratings, RATINGS), build_frame(items, ITEMS)


def made(ratings: pd.DataFrame, items: pd.DataFrame) -> Frames:
    return make_frames(FRAMES, {"set": SETS, "domain": DOMAINS}, ratings=ratings, items=items)


def number(frame: pd.DataFrame, column: str, **where: object) -> float:
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return float(frame[column].item())


def test_the_domains_expert_rates_its_set_and_all_of_them_another() -> None:
    ratings, items = studied()
    found = made(ratings, items)["correlations"]
    for rated, raters in (("Harbour_Tiny", ["Harbour"]), ("Market_Tiny", list(DOMAINS))):
        some = ratings[(ratings["method"] == "panel") & (ratings["set"] == rated)]
        gold = items[items["set"] == rated]["gold"].to_numpy(float)
        by_seed = []
        for seed in (0, 1, 2):
            mine = some[(some["seed"] == seed) & some["domain"].isin(raters)]
            mean = mine.groupby("item", sort=False)["value"].mean().to_numpy(float)
            by_seed.append(100 * compute_spearman(mean, gold))
        value = number(found, "value", method="panel", set=rated)
        assert value == pytest.approx(np.mean(by_seed))
        low, high = (number(found, end, method="panel", set=rated) for end in ("low", "high"))
        assert low < value < high


def test_a_mean_of_fewer_experts_is_no_panel() -> None:
    ratings, items = studied()
    gone = ratings["domain"].eq("Orchard") & ratings["method"].eq("panel")
    found = made(ratings[~gone], items)
    mine = found["correlations"][found["correlations"]["method"] == "panel"]
    assert mine["set"].tolist() == ["Harbour_Tiny"]
    over = found["averages"][found["averages"]["method"] == "panel"]["over"].tolist()
    assert "all" not in over
    assert "in-domain" in over
    one_seed = gone & ratings["seed"].eq(1)
    found = made(ratings[~one_seed], items)
    assert number(found["correlations"], "seeds", method="panel", set="Market_Tiny") == 2
    assert number(found["averages"], "seeds", method="panel", over="all") == 2


def test_a_rater_that_tells_nothing_apart_has_0_and_not_nan() -> None:
    found = made(*studied(untrained=0.5))
    of = {"method": "untrained", "set": "Market_Tiny"}
    assert number(found["correlations"], "value", **of) == 0
    assert number(found["correlations"], "constant", **of) == 3
    assert not found["averages"]["value"].isna().any()


def test_two_raters_are_compared_on_the_seeds_that_both_have() -> None:
    """The mean of three seeds' ratings is more reliable than that of two.

    Otherwise this would appear as a difference.
    """
    ratings, items = studied()
    lacks = ratings["method"].eq("single") | ratings["domain"].eq("Orchard")
    found = made(ratings[~(lacks & ratings["seed"].eq(1))], items)
    without = made(ratings[ratings["seed"].ne(1)], items)
    of = {"method": "panel", "set": "Harbour_Tiny"}
    assert number(found["experts"], "seeds", expert="Harbour", **of) == 3
    assert number(found["experts"], "seeds", expert=OWN_MINUS_OTHERS, **of) == 2
    for table, columns_, where in (
        ("experts", ("value", "low", "high", "p"), {"expert": OWN_MINUS_OTHERS}),
        ("tests", ("r_method", "r_against", "difference", "p", "t", "seeds_low"),
            {"against": "single", "seed": "mean"}),
    ):  # fmt: skip
        for column in columns_:
            wanted = number(without[table], column, **of, **where)
            assert number(found[table], column, **of, **where) == pytest.approx(wanted)


def test_williams_leaves_no_test_without_a_difference() -> None:
    assert compute_williams_test(0.5, 0.5, 0.3, 50)[1] == 1
    assert math.isnan(compute_williams_test(0.5, 0.4, 0.3, 3)[0])
    assert math.isnan(compute_williams_test(1.0, 1.0, 1.0, 50)[0])


def test_annotators_that_agree_and_that_do_not() -> None:
    random = np.random.default_rng(0)
    quality = random.random(200)
    agree = [[float(q)] * 4 for q in quality]
    assert compute_split_half_agreement(agree) == pytest.approx(1)
    apart = [random.random(4).tolist() for _ in quality]
    assert abs(compute_split_half_agreement(apart)) < 0.2
    assert math.isnan(compute_split_half_agreement([[1.0]] * 10))


def test_a_ceiling_is_what_the_mean_of_all_annotators_allows() -> None:
    """Simulated: a perfect metric rates true quality.

    Its correlation with the mean rating is the square root of the reliability, and not the
    agreement of halves of the annotators.
    """
    random = np.random.default_rng(2)
    for raters, noise in ((3, 1.0), (8, 3.0), (10, 0.5)):
        quality = random.standard_normal(4000)
        ratings = quality[:, None] + noise * random.standard_normal((4000, raters))
        each = ratings.tolist()
        reliable = compute_reliability(each, compute_split_half_agreement(each, splits=5))
        # Ranks agree a little less than what they are ranks of.
        assert reliable == pytest.approx(1 / (1 + noise**2 / raters), abs=0.05)
        reached = np.corrcoef(quality, ratings.mean(1))[0, 1]
        assert math.sqrt(reliable) == pytest.approx(reached, abs=0.03)
    assert compute_reliability([[1.0, 2.0]] * 5, 0.5) == pytest.approx(2 / 3)  # 2 a / (1 + a)
    assert compute_reliability([[1.0, 2.0]] * 5, -0.1) == 0
    assert math.isnan(compute_reliability([[1.0]] * 5, math.nan))


def test_two_raters_are_compared_by_drawing_contexts() -> None:
    """The responses to a context are similar, so resampling items would overstate the certainty."""
    random = np.random.default_rng(3)
    gold, one, other = (np.repeat(random.random(40), 5) for _ in range(3))
    one = one + gold
    contexts = np.repeat(np.arange(40), 5)
    by_context = sample_unit_weights("d", "t", 40)[:, contexts]
    by_item = sample_unit_weights("d", "t", 200)
    wide = compare_raters(one, other, gold, by_context, 40)
    narrow = compare_raters(one, other, gold, by_item, 200)
    assert (
        wide[0]
        == narrow[0]
        == pytest.approx(compute_spearman(one, gold) - compute_spearman(other, gold))
    )
    assert wide[1] < narrow[1] < narrow[2] < wide[2]
    assert wide[3] > narrow[3]
    same = compare_raters(one, one, gold, by_context, 40)
    assert same[0] == 0
    assert math.isnan(same[3])


def test_controls_stand_beside_every_method_and_are_compared_seed_by_seed() -> None:
    ratings, items = studied()
    cosine = ratings[ratings["method"] == "single"].assign(method="cosine-last")
    cosine = cosine[cosine["seed"] == 0]
    found = made(pd.concat([ratings, cosine]), items)
    methods = set(found["correlations"]["method"])
    assert {"word-overlap", "length", "cosine-last", "panel"} <= methods
    tests = found["tests"]
    assert {*tests["against"]} == {"single", "collection", "cosine-last"}
    assert not {"word-overlap", "length", "cosine-last"} & {*tests["method"]}
    where = {"method": "single", "against": "cosine-last", "set": "Harbour_Tiny"}
    assert number(tests, "difference", **where, seed="0") == 0
    some = tests[(tests["method"] == "single") & (tests["against"] == "cosine-last")]
    assert (
        some["seed"].tolist() == ["mean", "0", "1", "2"] * 2
    )  # one control compared with all seeds
    reached = found["ceilings"].set_index("set").loc["Harbour_Tiny"]
    value = number(found["correlations"], "value", method="word-overlap", set="Harbour_Tiny")
    assert reached["overlap"] == pytest.approx(value)
    assert reached["ceiling"] == pytest.approx(10 * math.sqrt(reached["reliability"]))


def test_a_constant_is_not_a_labeller() -> None:
    gold = np.array([1.0, 0, 0])
    assert compute_balanced_accuracy(np.zeros(3), gold) == 50
    assert compute_balanced_accuracy(np.array([0.9, 0.2, 0.6]), gold) == 75
    assert compute_balanced_accuracy(np.ones(2), np.ones(2)) == 100


def test_wilson_by_hand() -> None:
    low, high = compute_wilson_interval(5, 10)
    assert (low, high) == pytest.approx((0.2366, 0.7634), abs=5e-5)
    assert compute_wilson_interval(0, 20)[0] == pytest.approx(0)
