"""Krippendorff's alpha of human raters, on his own example and on simulated raters."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from tasktransfer.cli import main
from tasktransfer.errors import DataError
from tasktransfer.stats.rater_agreement import Counts, estimate_agreement

EXAMPLE = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""Krippendorff's example of four raters and twelve items, without the item that nobody rated."""


def count(raters: tuple[str, ...]) -> Counts:
    items = zip(*(line.split() for line in raters), strict=True)
    return np.array([[item.count(str(answer)) for answer in range(1, 6)] for item in items])


def test_the_published_example_has_its_published_alpha() -> None:
    pytest.importorskip("krippendorff")
    counts = count(EXAMPLE)
    names = [str(n) for n in range(len(counts))]
    ordinal = estimate_agreement(counts, names, "ordinal", "example")
    assert ordinal.alpha == pytest.approx(0.815, abs=5e-4)
    assert (ordinal.items, ordinal.clusters) == (11, 11)  # the last item has one rating
    assert ordinal.low < ordinal.alpha < ordinal.high <= 1
    nominal = estimate_agreement(counts, names, "nominal", "example")
    assert nominal.alpha == pytest.approx(0.743, abs=5e-4)


def test_the_interval_is_over_clusters_and_not_over_items() -> None:
    pytest.importorskip("krippendorff")
    chance = np.random.default_rng(0)
    answers = chance.integers(0, 5, (40, 1)) + chance.integers(0, 2, (40, 3))
    counts = np.array([np.bincount(row, minlength=6) for row in answers])
    once = estimate_agreement(counts, [str(n) for n in range(40)], "ordinal", "a")
    repeated = np.repeat(counts, 5, axis=0)
    clusters = [str(n) for n in range(40) for _ in range(5)]
    same = estimate_agreement(repeated, clusters, "ordinal", "a")
    width, naive = same.high - same.low, once.high - once.low
    assert width == pytest.approx(naive, rel=0.05)
    free = estimate_agreement(repeated, [str(n) for n in range(200)], "ordinal", "a")
    assert free.high - free.low < 0.6 * width


def test_raters_who_guess_agree_by_chance_only() -> None:
    pytest.importorskip("krippendorff")
    answers = np.random.default_rng(1).integers(0, 5, (200, 3))
    counts = np.array([np.bincount(row, minlength=5) for row in answers])
    found = estimate_agreement(counts, [str(n) for n in range(200)], "ordinal", "a")
    assert found.low < 0 < found.high
    equal = estimate_agreement(np.array([[3, 0], [3, 0]]), ["a", "b"], "nominal", "a")
    assert math.isnan(equal.alpha) and math.isnan(equal.low)


def test_judgements_write_agreement(tmp_path: Path) -> None:
    pytest.importorskip("krippendorff")
    ratings, choices, out = (tmp_path / name for name in ("ratings.csv", "choices.csv", "out"))
    lines = [f"{m},{n},{r},{1 + n},{1 + n},{1 + (n + len(r)) % 5}"
             for m in ("A", "B") for n in range(5) for r in ("x", "yy")]  # fmt: skip
    ratings.write_text("\n".join(("model,instance,rater,empathy,relevance,fluency", *lines)))
    head = "first,second,instance,rater,choice"  # both prefer A, which is shown on both sides
    lines = [line for n in range(4) for line in (f"A,B,{n},x,first", f"B,A,{n},y,second")]
    lines += ["A,B,9,x,equal", "A,B,9,y,equal", "A,B,8,x,neither"]
    choices.write_text("\n".join((head, *lines)))
    words = ["judgements", "--ratings", str(ratings), "--choices", str(choices), "--out", str(out)]
    assert main(words) == 0
    rows = [line.split(",") for line in (out / "agreement.csv").read_text().splitlines()]
    table = {row[0]: row[1:] for row in rows}
    assert table["question"] == ["alpha", "low", "high", "items", "instances", "raters"]
    assert table["empathy"] == ["1", "1", "1", "10", "5", "2"]
    assert float(table["fluency"][0]) < 0.5
    assert (table["choice"][0], table["choice"][3:]) == ("1", ["5", "5", "2"])


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "krippendorff", None)
    with pytest.raises(DataError, match=r"not installed\. .*tasktransfer\[agreement\]"):
        estimate_agreement(np.array([[1, 1], [2, 0]]), ["a", "b"], "nominal", "a")
