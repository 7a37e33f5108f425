"""The planted data sets of the recommendation: their measurement, and its table in the docs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import planted_recommendation
from benchmarks.planted_recommendation import World, measure, summarise

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "planted-recommendation.csv"
COLUMNS = ["within", "lost", "within_by_best", "lost_by_best", "false_claims"]


def test_the_page_has_the_measured_numbers() -> None:
    page = (ROOT / "docs" / "analysis.md").read_text("utf-8")
    for row in pd.read_csv(FIXTURE).to_dict("records"):
        cells = [f"{int(row['test']):,}", *(f"{row[name]:.1f}" for name in COLUMNS)]
        assert f"| {' | '.join(cells)} |" in page


def test_false_claims_are_as_rare_as_their_level() -> None:
    """The level is 5 %; the standard error of 400 data sets is 1.1."""
    claims = pd.read_csv(FIXTURE)["false_claims"]
    assert claims.max() <= 5 + 2 * 1.1
    assert claims.mean() <= 5.5


def count_letters(texts: Sequence[str]) -> np.ndarray:
    return np.array(
        [[text.count(letter) for letter in "abdefgiklmnoprstu"] for text in texts], float
    )


def test_a_data_set_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted_recommendation, "TESTED", (100,))
    monkeypatch.setattr(planted_recommendation, "HELD_OUT", 300)
    monkeypatch.setattr(planted_recommendation, "PERMUTATIONS", 4)
    easy = World(1, words=5, signal=3, noise=0.0, train=100)
    (row,) = measure(easy, count_letters)
    assert row["claims"], "TF-IDF is better than a constant"
    assert row["lost"] == 0
    table = summarise(pd.DataFrame([row, {**row, "lost": 3.0}]))
    assert table[["within", "lost"]].to_numpy().tolist() == [[50.0, 1.5]]
