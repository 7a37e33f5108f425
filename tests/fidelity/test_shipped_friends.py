"""The transfers between the tasks of Friends with ``recipe: auto`` agree with docs/transfer.md."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shipped_records import build_shipped_tables, signed
from tasktransfer.results.frames import Frames
from tasktransfer.results.study import Study

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "transfer.md").read_text().split("### Friends with the recipe")[1]
SECTION = PAGE.split("### Do the gains come from")[0]
TEXT = " ".join(SECTION.split())
PERMUTATIONS = 9999


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("friends")
    return build_shipped_tables("friends-recipe.parquet", "friends-recipe.yaml", folder)


@pytest.fixture(scope="module")
def cells(study: Study, frames: Frames) -> pd.DataFrame:
    """Return the trained transfers, with the matrix's delta of the same transfer as ``former``."""
    keys = ["dataset", "algorithm", "source", "target"]
    former = frames["cells"][[*keys, "delta"]].rename(columns={"delta": "former"})
    table = read_table(study, "cells")
    return table[table["delta"].notna()].merge(former, on=keys)


def read_table(study: Study, name: str) -> pd.DataFrame:
    return pd.read_parquet(Path(study.tables) / f"{name}.parquet")


def test_the_table_has_these_targets(study: Study, cells: pd.DataFrame) -> None:
    best = read_table(study, "references").query("is_best").set_index("target")
    assert len(best) == 7
    expected = []
    for target, row in best.iterrows():
        own = cells[cells["target"] == target]
        effects = [signed(own[name].mean()) if len(own) else "–" for name in ("delta", "former")]
        expected.append(
            f"| {str(target).replace('_', ' ')} | {row['score']:.1f} | "
            f"{row['reference_score']:.1f} | {signed(row['delta'])} [{signed(row['low'])}, "
            f"{signed(row['high'])}] | {len(own)} | {(own['delta'] > 0).sum()} | "
            f"{' | '.join(effects)} |"
        )
    lines = re.findall(r"^\| \w.* \| \d.*\|$", SECTION, flags=re.M)
    assert sorted(lines) == sorted(expected), "\n".join(expected)


def test_the_text_has_the_averages(study: Study, cells: pd.DataFrame) -> None:
    best = read_table(study, "references").query("is_best")
    assert f"{(best['state'] == 'learned').sum()} of the 7 baselines" in TEXT
    assert f"{len(cells)} of the 42 transfers" in TEXT
    now, before = cells["delta"].mean(), cells["former"].mean()
    assert f"change scores by {signed(now)} points on average" in TEXT, now
    assert f"{signed(before)} points in the matrix" in TEXT, before
    above, below = int((cells["low"] > 0).sum()), int((cells["high"] < 0).sum())
    assert f"above 0 for {above} transfers, and below 0 for {below}" in TEXT, (above, below)


def test_the_text_compares_the_sources(cells: pd.DataFrame) -> None:
    """The p value comes from permutations of the sources of each target (one-sided)."""
    centred = cells[["delta", "former"]] - cells.groupby("target")[["delta", "former"]].transform(
        "mean"
    )
    groups = [own.to_numpy().T for _, own in centred.groupby(cells["target"])]
    random = np.random.default_rng(0)
    sums = np.array(
        [sum(random.permutation(a) @ b for a, b in groups) for _ in range(PERMUTATIONS)]
    )
    observed = sum(a @ b for a, b in groups)
    p = (1 + (sums >= observed - 1e-9).sum()) / (1 + PERMUTATIONS)
    correlation = centred["delta"].corr(centred["former"])
    assert f"in the matrix is {signed(correlation, '.2f')} (p = {p:.2f}" in TEXT, (correlation, p)
