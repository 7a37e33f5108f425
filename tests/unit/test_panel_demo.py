"""The packed tables of the panel's demo show that its panel reads the contexts.

docs/panel.md has the same numbers.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import yaml
from test_measured_tables import read_table, show

from response_rules import compute_mean_ratings, rate_by_order
from tasktransfer.designs.panel.sources import tiny
from tasktransfer.metrics.measures import compute_spearman
from tasktransfer.stats.clustered import compare_raters
from tasktransfer.stats.draws import build_dialogue_units, sample_unit_weights

ROOT = Path(__file__).resolve().parents[2]
PACK = ROOT / "tests" / "fixtures" / "panel-demo.zip"
PRESET = ROOT / "workflow" / "presets" / "panel-demo.yaml"
SEEDS = (0, 1, 2)
BY_TOPIC = ("Harbour_Tiny", "Orchard_Tiny")
"""Rated sets of domains in which a response fits by its topic."""
SHOWN = {
    "panel": "panel",
    "panel-exchanged": "panel, contexts exchanged (`panel-exchanged`)",
    "collection": "collection",
    "single": "single",
    "untrained": "untrained model",
}
"""Method → its name in the page."""
HEAD = "| rater | Harbour_Tiny | Orchard_Tiny |"
Cells = dict[tuple[str, str], dict[Hashable, Any]]
"""(method, rated set) → row of the table ``correlations``."""
DRAWS = 300
"""Number of resamples of contexts; the product's tables use more."""


class Response(NamedTuple):
    """Human ratings of a set, and ratings by the order of the responses' words."""

    gold: np.ndarray
    rule: np.ndarray
    contexts: list[str]

    @property
    def correlation(self) -> float:
        return 100 * compute_spearman(self.rule, self.gold)

    def compare(self, rated: np.ndarray) -> tuple[float, float]:
        """Return the interval of a rater's correlation minus the rule's, x 100."""
        units = build_dialogue_units(self.contexts)
        weights = sample_unit_weights("panel", "demo", units.count)[:DRAWS, units.of_instance]
        _, low, high, _ = compare_raters(rated, self.rule, self.gold, weights, units.count)
        return 100 * low, 100 * high


def read_packed(table: str) -> pd.DataFrame:
    with zipfile.ZipFile(PACK) as archive:
        return pd.read_parquet(io.BytesIO(archive.read(f"tables/{table}.parquet")))


@pytest.fixture(scope="module")
def correlations() -> Cells:
    rows = read_packed("correlations").to_dict("records")
    return {(str(row["method"]), str(row["set"])): row for row in rows}


@pytest.fixture(scope="module")
def tests() -> pd.DataFrame:
    return read_packed("tests").set_index(["method", "against", "set", "seed"]).sort_index()


@pytest.fixture(scope="module")
def responses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Response]:
    """Return rated set → human ratings of the demo's tiny world, and the rule's ratings."""
    folder = tmp_path_factory.mktemp("world")
    world = yaml.safe_load(PRESET.read_text(encoding="utf-8"))["data"]["tiny_world"]
    tiny.write_release(folder, world["seed"], world["dialogues"])
    packed = read_packed("items").set_index("set")
    found = {}
    for name in BY_TOPIC:
        lines = (folder / "ratings" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        gold = compute_mean_ratings(rows)
        items = packed.loc[name]
        assert items["gold"].to_numpy() == pytest.approx((gold - 1) / 4), "another tiny world"
        found[name] = Response(gold, rate_by_order(rows), items["context"].tolist())
    return found


@pytest.fixture(scope="module")
def ratings() -> pd.Series:
    """Return the ratings by method, set and seed, from the expert for the set's domain."""
    table = read_packed("ratings")
    own = table[table["domain"] == table["set"].str.removesuffix("_Tiny")]
    return own.set_index(["method", "set", "seed"])["value"].sort_index(kind="stable")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BY_TOPIC)
def test_only_with_its_context_a_response_is_rated_better_than_by_itself(
    responses: dict[str, Response], ratings: pd.Series, name: str, seed: int
) -> None:
    """Compare the panel with a rule that reads the response, with true and other contexts."""

    def compare(method: str) -> tuple[float, float]:
        return responses[name].compare(ratings.loc[(method, name, seed)].to_numpy())

    low, _ = compare("panel")
    assert low > 10
    low, _ = compare("panel-exchanged")
    assert low <= 0


@pytest.mark.parametrize("name", BY_TOPIC)
def test_exchanged_contexts_lower_the_correlation_for_each_seed(
    tests: pd.DataFrame, name: str
) -> None:
    differences = tests.loc[("panel", "panel-exchanged", name)]
    assert {*differences.index} == {"mean", *map(str, SEEDS)}
    assert (differences["low"] > 10).all()
    assert differences.loc["mean", "q"] <= 0.05
    assert differences.loc["mean", "seeds_low"] > 0


def test_the_page_has_the_correlations_of_the_demo(
    correlations: Cells, responses: dict[str, Response]
) -> None:
    def show_cell(method: str, name: str) -> str:
        value, low, high = (
            show(str(correlations[method, name][column]), 0) for column in ("value", "low", "high")
        )
        return f"{value} [{low}, {high}]"

    rows = [
        [shown, *(show_cell(method, name) for name in BY_TOPIC)] for method, shown in SHOWN.items()
    ]
    rule = [show(str(responses[name].correlation), 0) for name in BY_TOPIC]
    assert read_table("panel.md", HEAD) == [
        *rows[:2],
        ["a rule that reads only the order of the response's words", *rule],
        *rows[2:],
    ]


def test_the_page_has_the_other_numbers_of_the_demo(correlations: Cells) -> None:
    text = " ".join((ROOT / "docs" / "panel.md").read_text(encoding="utf-8").split())
    right, wrong = (
        show(str(correlations[method, "Market_Tiny"]["value"]), 0)
        for method in ("panel", "panel-exchanged")
    )
    assert f"{right} with the true contexts and {wrong} with the contexts of other items" in text
    trainings = read_packed("trainings")
    accuracy = trainings.loc[trainings["kind"] == "joint", "dev_score"]
    assert f"instead of {accuracy.min():.0f} to {accuracy.max():.0f} %." in text
