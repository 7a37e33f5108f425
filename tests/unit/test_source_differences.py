"""The test of whether the sources of a target differ, on simulated scores."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import source_differences
from benchmarks.source_differences import Pairs

TARGETS, SOURCES, SEEDS = 6, 5, 3


def simulate(random: np.random.Generator, seeds: int, planted: float) -> dict[str, Pairs]:
    """Simulate scores of sources that differ by ``planted``, with noise per run and per half."""
    pairs: dict[str, Pairs] = {}
    for target in range(TARGETS):
        runs = random.normal(size=(seeds, SOURCES)) + planted * random.normal(size=SOURCES)
        scores = runs + 0.5 * random.normal(size=(2, seeds, SOURCES))
        scores -= scores.mean(axis=-1, keepdims=True)
        pairs[str(target)] = {
            (a, b): (scores[0, a][None], scores[1, b][None])
            for a in range(seeds)
            for b in range(seeds)
            if a != b
        }
    return pairs


@pytest.mark.parametrize("seeds", [2, SEEDS])
def test_equal_sources_are_rejected_as_often_as_the_level_says(
    monkeypatch: pytest.MonkeyPatch, seeds: int
) -> None:
    monkeypatch.setattr(source_differences, "PERMUTATIONS", 199)
    random = np.random.default_rng(0)
    p = [source_differences.test_covariance(simulate(random, seeds, 0.0))[2] for _ in range(300)]
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=0.035)  # two standard errors


def test_planted_differences_are_found() -> None:
    row = source_differences.test_covariance(simulate(np.random.default_rng(0), 2, 1.5))
    assert row[1] > 0.3
    assert row[2] < 0.01
