"""Top-1 by dev and by held-out seeds: no luck in the estimate, and enough of it in the interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.statistics.top1 import top1
from tasktransfer.stats.chosen import chosen_by, half_width, heldout

SOURCES, TARGETS, SEEDS = 9, 4, 5


def null_studies(count: int, targets: int = TARGETS, seed: int = 0) -> np.ndarray[Any, Any]:
    """Deltas without effect, in deviations of a run: studies × sources × targets × seeds. All
    sources of a target lean on one baseline."""
    chance = np.random.default_rng(seed)
    scores = chance.standard_normal((count, SOURCES, targets, SEEDS))
    return scores - chance.standard_normal((count, 1, targets, SEEDS))


def test_without_effect_the_papers_top1_is_luck_and_the_heldout_is_not() -> None:
    studies = null_studies(4000)
    papers = studies.mean(axis=3).max(axis=1).clip(min=0).mean()
    assert papers == pytest.approx(0.69, abs=0.02)
    assert heldout(studies).mean() == pytest.approx(0, abs=0.02)


def test_without_effect_the_heldout_interval_holds_zero_in_95_of_100_studies() -> None:
    studies = null_studies(500)
    means = heldout(studies).mean(axis=(1, 2))
    chance = np.random.default_rng(1)
    held = [
        abs(mean) <= half_width(study, chance, studies=200)
        for study, mean in zip(studies, means, strict=True)
    ]
    assert 0.93 <= np.mean(held) <= 0.97


def test_an_effect_is_found_and_does_not_widen_the_interval() -> None:
    study = null_studies(1)[0]
    chance = np.random.default_rng(2)
    strong = study + 20 * (np.arange(SOURCES) == 3)[:, None, None]
    before, after = (half_width(values, chance) for values in (study, strong))
    assert heldout(strong).mean() == pytest.approx(strong[3].mean())
    assert after < 2 * before


def test_a_seed_has_no_part_in_choosing_its_own_source() -> None:
    values = np.array([[[9.0, -1.0, -1.0]], [[1.0, 1.0, 1.0]]])  # a lucky seed of the first source
    # Seed 0 is judged with the second source; the others choose the first by its lucky seed.
    assert heldout(values).tolist() == [[1.0, -1.0, -1.0]]


def test_the_baseline_is_chosen_where_no_source_looks_better() -> None:
    means = np.array([[-1.0, 2.0], [-2.0, np.nan]])
    values = np.stack([means, means + 5], axis=-1)
    assert chosen_by(means, values).tolist() == [[0.0, 0.0], [2.0, 7.0]]


def frames(test: dict[str, list[float]], dev: dict[str, list[float]]) -> Any:
    """Deltas and runs of sources to one target whose baseline is 50 on test and 40 on dev."""
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
    return frame, pd.DataFrame(runs, columns=["digest", "seed", "dev_score"])


def test_dev_scores_choose_and_test_scores_are_reported() -> None:
    test = {"A": [3.0, 5.0], "B": [8.0, 8.0]}
    dev = {"A": [2.0, 2.0], "B": [1.0, 1.0]}
    (row,) = top1(*frames(test, dev)).to_dict("records")
    assert (row["top1"], row["top1_dev"]) == (8.0, 4.0)
    assert row["top1_dev_low"] < 4 < row["top1_dev_high"]
    assert (row["n_targets"], row["n_pairs"], row["n_seeds"]) == (1, 2, 2)


def test_a_pair_that_lacks_a_seed_is_no_candidate() -> None:
    deltas, runs = frames({"A": [3.0, 5.0], "B": [8.0, 8.0]}, {"A": [1, 1], "B": [2, 2]})
    row = top1(deltas[~((deltas["source"] == "B") & (deltas["seed"] == 1))], runs).iloc[0]
    assert (row["n_pairs"], row["top1"], row["top1_dev"]) == (1, 4.0, 4.0)


def test_where_the_baseline_is_always_chosen_there_is_no_interval() -> None:
    row = top1(*frames({"A": [-3.0, -1.0]}, {"A": [-1.0, -2.0]})).iloc[0]
    assert (row["top1_dev"], row["top1_heldout"]) == (0.0, 0.0)
    assert np.isnan([row["top1_dev_low"], row["top1_dev_high"]]).all()


def test_one_seed_has_no_interval_and_nothing_held_out() -> None:
    row = top1(*frames({"A": [3.0]}, {"A": [1.0]})).iloc[0]
    assert row["top1_dev"] == 3.0
    assert np.isnan([row["top1_dev_low"], row["top1_heldout"], row["top1_heldout_low"]]).all()


def test_without_transfers_there_is_no_row() -> None:
    empty = columns.frame("deltas", [])
    assert top1(empty, columns.frame("runs", [])).empty
