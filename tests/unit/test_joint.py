"""The mean over pairs: its interval covers seeds and dialogues, which targets share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasktransfer.designs.transfer.statistics.by_dialogue import (
    DialogueScores,
    compute_joint_interval,
)
from tasktransfer.stats.bootstrap import Estimate, compute_confidence
from tasktransfer.stats.chosen import split_dialogues

TARGETS, SOURCES, SEEDS, DIALOGUES = 3, 2, 5, 50


def study(
    chance: np.random.Generator, shared: bool, luck: float = 1.0
) -> tuple[pd.DataFrame, dict[tuple[str, str], DialogueScores]]:
    """Build deltas without effect.

    ``shared``: all targets are tested on the same dialogues, with the same luck.
    """
    rows, tested = [], {}
    common = chance.standard_normal(DIALOGUES)
    for target in range(TARGETS):
        own = common if shared else chance.standard_normal(DIALOGUES)
        pulls = {}
        for name in ["b", *range(SOURCES)]:
            for seed in range(SEEDS):
                by = DIALOGUES**0.5 * (luck * own * (name != "b"))
                score = by + chance.standard_normal() + 0.3 * chance.standard_normal(DIALOGUES)
                pulls["m", f"{name} {target} {seed}"] = score
        for source in range(SOURCES):
            for seed in range(SEEDS):
                names = [f"{name} {target} {seed}" for name in (source, "b")]
                delta = pulls["m", names[0]].mean() - pulls["m", names[1]].mean()
                rows.append((str(source), f"t{target}", seed, delta, *names))
        apart = {name: (score - score.mean()) / DIALOGUES for name, score in pulls.items()}
        on = "d" if shared else target
        dialogues = tuple(f"{on} {n}" for n in range(DIALOGUES))
        firsts = split_dialogues(DIALOGUES, chance)
        tested["D", f"t{target}"] = DialogueScores(dialogues, DIALOGUES - 1, firsts, {}, apart)
    columns = ["source", "target", "seed", "delta", "digest", "baseline_digest"]
    frame = pd.DataFrame(rows, columns=columns).assign(dataset="D", model="m")
    return frame, tested


@pytest.mark.parametrize("shared", [False, True])
def test_the_interval_holds_the_truth_in_95_of_100_studies(shared: bool) -> None:
    chance = np.random.default_rng(4)
    held = []
    for _ in range(100):
        sure = compute_joint_interval(*study(chance, shared))
        held.append(sure.low <= 0 <= sure.high)
        assert (sure.p > 0.05) is held[-1]
    assert 0.9 <= np.mean(held) <= 0.99


def test_dialogues_that_targets_share_count_once_for_all_of_them() -> None:
    frame, tested = study(np.random.default_rng(5), shared=True)
    apart = {
        key: replace(one, names=tuple(f"{key} {n}" for n in one.names))
        for key, one in tested.items()
    }
    whole, parts = (compute_joint_interval(frame, some) for some in (tested, apart))
    assert whole.high - whole.low > 1.4 * (parts.high - parts.low)


def test_without_dialogues_luck_it_is_that_of_the_seeds() -> None:
    frame, tested = study(np.random.default_rng(6), shared=False)
    still = {
        key: replace(one, pulls={name: 0 * pull for name, pull in one.pulls.items()})
        for key, one in tested.items()
    }
    by_target = frame.groupby(["target", "seed"])["delta"].mean().unstack("seed")
    variances = by_target.var(axis=1, ddof=1) / SEEDS / TARGETS**2
    degrees = (SEEDS - 1) * variances.sum() ** 2 / (variances**2).sum()
    sure = compute_confidence(Estimate(frame["delta"].mean(), ((variances.sum(), degrees),), SEEDS))
    found = compute_joint_interval(frame, still)
    assert (found.low, found.high, found.p) == pytest.approx((sure.low, sure.high, sure.p))


def test_a_hole_one_seed_or_no_predictions_leave_no_interval() -> None:
    frame, tested = study(np.random.default_rng(7), shared=False)
    first = frame[frame["seed"] == 0]
    for rows, some in ((frame.iloc[1:], tested), (first, tested), (frame, {})):
        found = compute_joint_interval(rows, some)
        assert np.isnan([found.low, found.high, found.p]).all()
