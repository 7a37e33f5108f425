"""Variance components: by hand, on known components, and undetermined ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from delta_frames import make_deltas

from tasktransfer.designs.transfer.columns import COMPONENTS
from tasktransfer.designs.transfer.statistics.matrices import compute_variance

TASKS = "abcdefgh"


def parts(table: pd.DataFrame, column: str = "variance") -> dict[str, float]:
    assert list(table["component"]) == list(COMPONENTS)
    return dict(zip(table["component"], table[column], strict=True))


def moments(deltas: pd.DataFrame) -> dict[str, float]:
    """Compute the definition by pairs: half the mean squared difference of each kind of pair."""
    rows = list(deltas[["source", "target", "seed", "delta"]].itertuples(index=False, name=None))
    kinds: dict[tuple[bool, bool], list[float]] = {}
    for i, (source, target, seed, delta) in enumerate(rows):
        for other_source, other_target, other_seed, other in rows[:i]:
            if seed != other_seed:
                kind = (source == other_source, target == other_target)
                kinds.setdefault(kind, []).append((delta - other) ** 2 / 2)
    mean = {kind: sum(values) / len(values) for kind, values in kinds.items()}
    neither, cell = mean[False, False], mean[True, True]
    return {
        "source": neither - mean[True, False],
        "target": neither - mean[False, True],
        "source x target": mean[True, False] + mean[False, True] - neither - cell,
        "seed": cell,
    }


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_sums_give_what_the_definition_gives(holes: float) -> None:
    noise = np.random.default_rng(0)
    source = dict(zip(TASKS, noise.normal(0, 3, 8), strict=True))
    target = dict(zip(TASKS, noise.normal(0, 2, 8), strict=True))
    deltas = make_deltas(
        lambda m, al, s, t, seed: (
            None
            if noise.random() < holes
            else source[s] + target[t] + noise.normal(0, 2) + ord(s) * ord(t) % 5
        ),
        tasks=TASKS,
        seeds=range(3),
    )
    expected = moments(deltas)
    assert min(expected.values()) > 0
    assert parts(compute_variance(deltas)) == pytest.approx(expected)


def test_known_components_are_recovered() -> None:
    """Means over 40 studies; components of one study vary, most of all source and target.

    The baseline's noise, which all sources of a target share, belongs to the seed and not to the
    target.
    """
    known = {"source": 4.0, "target": 1.0, "source x target": 2.0, "seed": 3.0}
    found = []
    for study in range(40):
        noise = np.random.default_rng(study)
        source = noise.normal(0, 2, len(TASKS))
        target = noise.normal(0, 1, len(TASKS))
        both = noise.normal(0, 2**0.5, (len(TASKS), len(TASKS)))
        baseline = noise.normal(0, 1, (len(TASKS), 4))
        deltas = make_deltas(
            lambda m, al, s, t, seed, e=(source, target, both, baseline), noise=noise: (
                e[0][TASKS.index(s)]
                + e[1][TASKS.index(t)]
                + e[2][TASKS.index(s), TASKS.index(t)]
                - e[3][TASKS.index(t), seed]
                + noise.normal(0, 2**0.5)
            ),
            tasks=TASKS,
            seeds=range(4),
        )
        table = compute_variance(deltas)
        assert table["share"].sum() == pytest.approx(1)
        found.append(parts(table))
    means = {name: np.mean([one[name] for one in found]) for name in COMPONENTS}
    assert means["seed"] == pytest.approx(known["seed"], rel=0.05)
    assert means["source x target"] == pytest.approx(known["source x target"], rel=0.1)
    assert means["source"] == pytest.approx(known["source"], rel=0.3)
    assert means["target"] == pytest.approx(known["target"], rel=0.3)


def test_negative_estimates_are_cut_and_shares_sum_to_one() -> None:
    noise = np.random.default_rng(5)
    table = compute_variance(
        make_deltas(lambda *name: noise.normal(), tasks="abcde", seeds=range(3))
    )
    assert (table["variance"] == 0).any()
    assert table["share"].sum() == pytest.approx(1)


def test_one_seed_is_in_source_x_target() -> None:
    noise = np.random.default_rng(2)
    deltas = make_deltas(lambda *name: noise.normal(), tasks=TASKS, seeds=[7])
    table = compute_variance(deltas)
    found = parts(table)
    assert np.isnan(found["seed"])
    assert found["source x target"] == pytest.approx(1, rel=0.35)
    assert np.nansum(table["share"]) == pytest.approx(1)


def test_one_target_tells_the_seed_only() -> None:
    deltas = make_deltas(lambda m, al, s, t, seed: float(seed) if t == "a" else None, seeds=(0, 2))
    found = parts(compute_variance(deltas))
    assert found["seed"] == 2.0
    assert all(np.isnan(found[name]) for name in COMPONENTS[:3])


def test_no_spread_at_all_has_no_shares() -> None:
    table = compute_variance(make_deltas(lambda *name: 1.5))
    assert list(table["variance"]) == [0, 0, 0, 0]
    assert table["share"].isna().all()
