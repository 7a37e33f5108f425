"""The comparison with other packages scores predictions correctly, and the page has its table."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from benchmarks.own_data_peers import (
    SCRIPTS,
    compare_methods,
    compute_f1,
    find_error,
    measure_process,
)
from tasktransfer.core.references import CONTRASTIVE, FROZEN

ROOT = Path(__file__).parents[2]


def test_f1_is_that_of_scikit_learn() -> None:
    chance = np.random.default_rng(0)
    golds = np.concatenate([np.arange(5), chance.integers(5, size=40)])
    predictions = chance.integers(-1, 5, size=45)
    weights = np.vstack([np.ones(45), chance.multinomial(45, np.full(45, 1 / 45), size=2)])
    found = compute_f1(golds, predictions, weights, 5)
    for draw, sampled in enumerate(weights.astype(int)):
        one, other = np.repeat(golds, sampled), np.repeat(predictions, sampled)
        macro = f1_score(one, other, labels=range(5), average="macro", zero_division=0)
        assert found[:, draw] == pytest.approx([100 * (one == other).mean(), 100 * macro])


def test_equal_predictions_have_no_difference_and_errors_are_counted() -> None:
    golds = ["a", "b", "c"] * 20
    fit = {"status": 0, "seconds": 2.0, "ready_seconds": 1.0, "megabytes": 10.0}
    good, bad = golds[:50] + ["other"] * 10, ["a"] * 60
    results = {
        "one": [{**fit, "predictions": good}],
        "two": [{**fit, "predictions": good}, {**fit, "seconds": 4.0, "predictions": good}],
        "three": [{**fit, "predictions": bad}],
        "four": [{"status": 1, "seconds": 1.0, "megabytes": 5.0, "error": "ValueError: no"}],
    }
    table = compare_methods(golds, results, "one").set_index("method")
    assert table.loc["two", ["delta", "delta_low", "delta_high"]].tolist() == [0.0, 0.0, 0.0]
    assert table.loc["two", "seconds"] == 3.0 and table.loc["two", "seeds"] == 2
    assert table.loc["three", "delta_high"] < 0
    assert table.loc["three", "micro_f1"] == pytest.approx(100 / 3)
    assert table.loc["three", "macro_f1"] == pytest.approx(100 / 6)
    assert table.loc["four", "errors"] == 1 and np.isnan(table.loc["four", "micro_f1"])


def test_a_process_is_measured(tmp_path: Path) -> None:
    used = measure_process([sys.executable, "-c", "import sys; sys.exit(3)"], tmp_path / "log")
    assert used["status"] == 3
    # A process starts with the peak memory of its parent, which is large here.
    assert 0 < used["seconds"] < 60 and used["megabytes"] > 1


def test_the_error_is_the_last_exception() -> None:
    log = "Traceback\nValueError: first\nTraceback\npydantic.ValidationError: 1 error\n  hint\n"
    assert find_error(log) == "pydantic.ValidationError: 1 error"
    assert find_error("killed\n") == "killed" and not find_error("")


def test_methods_that_all_end_in_errors_are_compared() -> None:
    fit = {"status": 1, "seconds": 4.0, "megabytes": 450.0, "error": "ValueError: too few"}
    (row,) = compare_methods(["a", "b"], {"peer": [fit]}, "peer").to_dict("records")
    assert (row["errors"], row["error"], row["seconds"]) == (1, "ValueError: too few", 4.0)


def test_every_script_exists() -> None:
    for module, _ in SCRIPTS.values():
        assert (ROOT / "benchmarks" / "peers" / f"{module}.py").is_file()


# --- the page -------------------------------------------------------------------------------------

TABLE = ROOT / "docs" / "development" / "own-data-peers.csv"
SECTION = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
SECTION = SECTION.partition("## Comparison with other packages")[2]


def format_row(row: dict[str, object]) -> list[str]:
    """Return the cells of the page's table for a row of the benchmark's table."""
    if pd.isna(row["micro_f1"]):
        scores, difference, seeds = "ends in an error", "", ""
    else:
        scores, seeds = f"{row['micro_f1']:.1f}/{row['macro_f1']:.1f}", f"{row['seeds']:.0f}"
        ends = f"[{row['delta_low']:+.1f}, {row['delta_high']:+.1f}]"
        difference = f"{row['delta']:+.1f} {ends}".replace("-", "−")
        if pd.isna(row["delta"]):
            difference = ""
        elif row["method"] == CONTRASTIVE:
            difference = "–"
    costs = f"{row['seconds']:.0f}", f"{row['megabytes'] / 1000:.1f}"
    return [f"{row['size']:,}", f"`{row['method']}`", seeds, scores, difference, *costs]


def test_the_page_has_the_benchmarks_table() -> None:
    expected = [format_row(row) for row in pd.read_csv(TABLE).to_dict("records")]
    lines = re.findall(r"^\| .* \|$", SECTION, flags=re.MULTILINE)
    assert [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[1:]] == expected


def test_what_the_page_says_of_the_packages() -> None:
    table = pd.read_csv(TABLE).set_index(["size", "method"])
    others = table.drop(index=CONTRASTIVE, level="method").dropna(subset="delta")
    assert set(others.reset_index()["size"]) == {50, 300, 1000} and (others["delta_high"] < 0).all()
    seconds = table["seconds"]
    for size, factor in ((50, 4.4), (300, 4.6), (1000, 4.4)):
        assert round(seconds[size, "setfit"] / seconds[size, CONTRASTIVE], 1) == factor
        assert abs(seconds[size, "scikit-learn"] / seconds[size, FROZEN] - 1) < 0.1
    presets = [f"autointent-{name}" for name in ("classic-light", "classic-medium")]
    scores = table.loc[1000].loc[["scikit-learn", *presets], ["micro_f1", "macro_f1"]]
    assert scores["micro_f1"].nunique() == 1 and scores.loc[presets, "macro_f1"].nunique() == 1
    for size in (50, 300):
        for preset in (*presets, "autointent-transformers-light"):
            assert table.loc[(size, preset), "error"].startswith("ValueError: ")
