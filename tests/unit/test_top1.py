"""Top-1 by dev and by held-out seeds: an unbiased estimate with a valid interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from simulated_studies import top1_target
from tasktransfer.designs.transfer.statistics.choices import compute_top1
from tasktransfer.stats.chosen import (
    Target,
    compute_heldout_deltas,
    select_best_source,
    simulate_half_width,
    split_dialogues,
)

SOURCES, TARGETS, SEEDS = 9, 4, 5


def null_study(luck: float, chance: np.random.Generator, effect: float = 0.0) -> list[Target]:
    """Return nine sources of four targets without effect, or the first one with ``effect``."""
    return [top1_target(SOURCES, SEEDS, luck, chance, effect=effect) for _ in range(TARGETS)]


@pytest.mark.parametrize("luck", [0.0, 0.5, 1.0])
def test_without_effect_the_papers_top1_is_luck_and_the_heldout_is_not(luck: float) -> None:
    chance = np.random.default_rng(0)
    targets = [target for _ in range(500) for target in null_study(luck, chance)]
    means = np.array([compute_heldout_deltas(target.halves).mean() for target in targets])
    papers = [target.halves.mean(axis=(0, 1, 3)).max().clip(min=0) for target in targets]
    assert np.mean(papers) > 0.6
    assert abs(means.mean()) < 3 * means.std() / len(means) ** 0.5
    # It can see luck: were dialogues shared, the mean would be above 0.5 and 1.
    assert 3 * means.std() / len(means) ** 0.5 < 0.12


@pytest.mark.slow
@pytest.mark.parametrize("luck", [0.0, 1.0])
def test_without_effect_the_heldout_interval_holds_zero_in_95_of_100_studies(luck: float) -> None:
    chance = np.random.default_rng(1)
    held = []
    for _ in range(200):
        study = null_study(luck, chance)
        mean = np.mean([compute_heldout_deltas(target.halves).mean() for target in study])
        held.append(abs(mean) <= simulate_half_width(study, chance, studies=200))
    # 200 studies: 95 % is off by 1.5 points.
    assert 0.91 <= np.mean(held) <= 0.99


def test_an_effect_is_found_and_does_not_widen_the_interval() -> None:
    weak, strong = (null_study(0.5, np.random.default_rng(2), effect) for effect in (0.0, 20.0))
    chance = np.random.default_rng(3)
    before, after = (simulate_half_width(study, chance) for study in (weak, strong))
    own = np.mean([target.halves[:, :, 0].mean() for target in strong])
    assert np.mean(
        [compute_heldout_deltas(target.halves).mean() for target in strong]
    ) == pytest.approx(own)
    assert after == pytest.approx(before, rel=0.2)


def test_neither_a_seed_nor_a_half_has_a_part_in_choosing_what_it_judges() -> None:
    """The first source has a lucky seed on the first half."""
    first = np.array([[9.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
    second = np.array([[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]])
    # The second half chooses the second source; of the first, seed 0's others too, while the other
    # seeds choose the first source by its lucky seed.
    judged_by_first, judged_by_second = [1.0, 1.0, 1.0], [5.0, 3.0, 4.0]
    found = compute_heldout_deltas(np.stack([first, second]))
    assert found.tolist() == np.mean([judged_by_first, judged_by_second], axis=0).tolist()


def test_halves_part_the_dialogues() -> None:
    firsts = split_dialogues(7, np.random.default_rng(0), splits=4)
    assert firsts.sum(axis=1).tolist() == [3, 3, 3, 3]
    assert len({tuple(row) for row in firsts.tolist()}) > 1


def test_the_baseline_is_chosen_where_no_source_looks_better() -> None:
    means = np.array([[-1.0, 2.0], [-2.0, np.nan]])
    values = np.stack([means, means + 5], axis=-1)
    assert select_best_source(means, values).tolist() == [[0.0, 0.0], [2.0, 7.0]]


def frames(test: dict[str, list[float]], dev: dict[str, list[float]]) -> Any:
    """Return deltas and runs of sources to one target, with baselines of 50 (test) and 40 (dev)."""
    runs, deltas = [], []
    for seed in range(len(next(iter(test.values())))):
        runs.append(("base", seed, 40.0))
        for source in test:
            name = f"{source}{seed}"
            runs.append((name, seed, 40 + dev[source][seed]))
            deltas.append((source, seed, test[source][seed], name))
    frame = pd.DataFrame(deltas, columns=["source", "seed", "delta", "digest"]).assign(
        dataset="D", model="m", algorithm="pretrain_finetune", target="T", n_sources=1
    )
    frame["baseline_digest"] = "base"
    return frame, pd.DataFrame(runs, columns=["digest", "seed", "dev_score"]).assign(target="T")


def test_dev_scores_choose_and_test_scores_are_reported() -> None:
    test = {"A": [3.0, 5.0], "B": [8.0, 8.0]}
    dev = {"A": [2.0, 2.0], "B": [1.0, 1.0]}
    (row,) = compute_top1(*frames(test, dev), {}).to_dict("records")
    assert (row["top1"], row["top1_dev"]) == (8.0, 4.0)
    assert row["top1_dev_low"] < 4 < row["top1_dev_high"]
    assert (row["n_targets"], row["n_pairs"], row["n_seeds"]) == (1, 2, 2)


def test_a_pair_without_a_seed_is_not_a_candidate() -> None:
    deltas, runs = frames({"A": [3.0, 5.0], "B": [8.0, 8.0]}, {"A": [1, 1], "B": [2, 2]})
    row = compute_top1(deltas[~((deltas["source"] == "B") & (deltas["seed"] == 1))], runs, {}).iloc[
        0
    ]
    assert (row["n_pairs"], row["top1"], row["top1_dev"]) == (1, 4.0, 4.0)


def test_where_the_baseline_is_always_chosen_there_is_no_interval() -> None:
    row = compute_top1(*frames({"A": [-3.0, -1.0]}, {"A": [-1.0, -2.0]}), {}).iloc[0]
    assert row["top1_dev"] == 0.0
    assert np.isnan([row["top1_dev_low"], row["top1_dev_high"]]).all()


def test_without_predictions_nothing_is_held_out() -> None:
    """Held-out seeds alone would keep the luck of the dialogues."""
    row = compute_top1(*frames({"A": [3.0, 5.0]}, {"A": [1.0, 1.0]}), {}).iloc[0]
    assert np.isnan([row["top1_heldout"], row["top1_heldout_low"]]).all()


def test_one_seed_has_no_interval_and_nothing_held_out() -> None:
    row = compute_top1(*frames({"A": [3.0]}, {"A": [1.0]}), {}).iloc[0]
    assert row["top1_dev"] == 3.0
    assert np.isnan([row["top1_dev_low"], row["top1_heldout"], row["top1_heldout_low"]]).all()
