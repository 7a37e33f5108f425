"""The answer to "which source first?": significant, not significant, and runs that would decide."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from tasktransfer.designs.transfer.report.advice import describe_first_sources
from tasktransfer.present.numbers import format_signed

CELL: dict[str, Any] = {
    "dataset": "Tickets",
    "model": "bert",
    "algorithm": "pretrain_finetune",
    "source": "DailyDialog/emotion_recognition",
    "target": "intent",
    "n_sources": 1,
    "n_seeds": 4,
    "dialogues": 50,
    "delta": 4.0,
    "low": 2.0,
    "high": 6.0,
    "standard_error": 1.0,
    "test_error": 0.6,
    "degrees": 20.0,
    "significant": True,
    "q": 0.004,
}
RUNS = pd.DataFrame(
    {
        "dataset": "Tickets",
        "model": "bert",
        "algorithm": ["baseline", "pretrain_finetune"],
        "source": ["", CELL["source"]],
        "target": "intent",
        "seconds": [1200.0, 2400.0],
    }
)


def collapsed(*rows: tuple[str, str, int, int]) -> pd.DataFrame:
    """Return algorithm, source, and numbers of collapsed and of all runs of the target's cells."""
    names = ["algorithm", "source", "n_collapsed", "n_runs"]
    return pd.DataFrame(rows, columns=names).assign(
        dataset="Tickets", model="bert", target="intent"
    )


def sentences(*cells: dict[str, Any], one_label: pd.DataFrame | None = None) -> str:
    frame = pd.DataFrame([CELL | cell for cell in cells])
    return " ".join(describe_first_sources(frame, RUNS, one_label))


def test_the_best_source_is_named_with_its_gain_interval_and_chance() -> None:
    other = {"source": "urgency", "delta": 1.0, "significant": False}
    assert sentences(other, {}) == (
        "For Tickets/intent, train on DailyDialog/emotion_recognition first (Pre-train → "
        "fine-tune): +4.0 points [+2.0, +6.0], chance of a gain > 99 %, q = 0.004."
    )


def test_none_is_named_where_nothing_is_significant() -> None:
    unsure = {"delta": 1.0, "low": -1.0, "high": 3.0, "significant": False}
    text = sentences(unsure, {**unsure, "source": "urgency", "delta": 0.2})
    assert "none of the 2 sources helps significantly. The best source is DailyDialog/" in text
    assert "[−1.0, +3.0], chance of a gain 84 %" in text
    assert "train on" not in text


def test_what_would_tell_is_seeds_with_their_hours_or_labels() -> None:
    """One source: the gain must be 1.96 errors.

    0.64 of the squared error falls with seeds and 0.36 with dialogues.
    """
    text = sentences({"delta": 1.8, "significant": False})
    needed = (1.8 / 1.959964) ** 2
    seeds = math.ceil(4 * 0.64 / (needed - 0.36)) - 4
    labels = math.ceil((0.36 / (needed - 0.64) - 1) * 50)
    assert f"{seeds} more seeds (about {seeds * 3600 / 3600:.2g} more hours of training)" in text
    assert f"or {labels} more test dialogues with labels would make the gain significant" in text


def test_a_gain_needs_more_seeds_if_more_gains_are_tested() -> None:
    """With 6 tests, the gain must be 2.64 errors."""
    cell = CELL | {"delta": 2.0, "significant": False}
    tested = pd.DataFrame([cell] * 6 + [cell | {"dataset": "Other"}])
    text = " ".join(describe_first_sources(pd.DataFrame([cell]), RUNS, tested=tested))
    seeds = math.ceil(4 * 0.64 / ((2.0 / 2.638257) ** 2 - 0.36)) - 4
    assert f"{seeds} more seeds (about" in text


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ({"delta": -1.0, "significant": True}, "No source has a gain that more runs"),
        ({"n_seeds": 1, "significant": False}, "With one run of each method, the variation"),
        ({"delta": 0.01, "significant": False}, "would need several times as many seeds"),
    ],
)
def test_what_cannot_be_told_is_not_promised(cell: dict[str, Any], words: str) -> None:
    text = sentences(cell)
    assert words in text and "train on" not in text


@pytest.mark.parametrize(
    ("delta", "told"),
    [(-9.0, "< 1 %"), (9.0, "> 99 %"), (0.0, "50 %"), (-2.4, "1 %"), (-2.7, "< 1 %")],
)
def test_a_chance_is_reported_in_whole_percent(delta: float, told: str) -> None:
    text = sentences({"delta": delta, "significant": False})
    assert f"chance of a gain {told}" in text


@pytest.mark.parametrize("delta", [-3.7, 4.0])
@pytest.mark.parametrize("significant", [False, True])
def test_one_run_bears_neither_a_chance_nor_a_claim(delta: float, significant: bool) -> None:
    other = {"source": "urgency", "delta": -9.0}
    cells = [
        {**cell, "n_seeds": 1, "significant": significant} for cell in ({"delta": delta}, other)
    ]
    text = sentences(*cells)
    assert text.startswith("For Tickets/intent, the best of 2 sources is DailyDialog/emotion")
    shown = format_signed(delta, "+.1f")
    assert f"{shown} points [+2.0, +6.0]. The change is not tested for significance," in text
    assert "chance" not in text and "train on" not in text and "q " not in text


def test_what_one_run_cannot_tell_is_said_once() -> None:
    text = sentences(*({"n_seeds": 1, "model": model} for model in ("bert", "gpt", "t5")))
    assert text.count("With one run of each method, the variation") == 1
    assert text.count("The change is not tested") == 3


def test_runs_of_one_label_stand_beside_what_rests_on_them() -> None:
    own, baseline = (CELL["algorithm"], CELL["source"]), ("baseline", "")
    text = sentences({}, one_label=collapsed((*own, 2, 4), (*baseline, 0, 4)))
    assert "+4.0 points [+2.0, +6.0]; 2 of 4 runs predict one label only, q = 0.004." in text
    assert "chance" not in text, "a t distribution says nothing of them"
    text = sentences({"significant": False}, one_label=collapsed((*own, 1, 4), (*baseline, 4, 4)))
    assert "; 1 of 4 runs and 4 of 4 baselines predict one label only." in text
    elsewhere = collapsed((own[0], "urgency", 4, 4))
    assert "one label" not in sentences({}, one_label=elsewhere)
    once = collapsed((*own, 1, 1))
    assert "; the run predicts one label only. The change is not tested" in sentences(
        {"n_seeds": 1}, one_label=once
    )
