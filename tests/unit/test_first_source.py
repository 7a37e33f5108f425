"""The answer to "what do I train on first?": found, none surely, and what would tell."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from tasktransfer.designs.transfer.report.first_source import first_sources

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


def sentences(*cells: dict[str, Any]) -> str:
    return " ".join(first_sources(pd.DataFrame([CELL | cell for cell in cells]), RUNS))


def test_the_best_source_is_named_with_its_gain_interval_and_chance() -> None:
    other = {"source": "urgency", "delta": 1.0, "significant": False}
    assert sentences(other, {}) == (
        "Tickets/intent: train on DailyDialog/emotion_recognition first (Pre-train → fine-tune): "
        "+4.0 points [+2.0, +6.0], a gain with a chance of more than 99.9 %."
    )


def test_none_is_named_where_nothing_is_sure() -> None:
    unsure = {"delta": 1.0, "low": -1.0, "high": 3.0, "significant": False}
    text = sentences(unsure, {**unsure, "source": "urgency", "delta": 0.2})
    assert "none of the 2 sources helps surely. Best is DailyDialog/emotion_recognition" in text
    assert "[-1.0, +3.0], a gain with a chance of 83.5 %" in text
    assert "train on" not in text


def test_what_would_tell_is_seeds_with_their_hours_or_labels() -> None:
    """One source: the gain has to be 1.96 errors. Of the error's square 0.64 falls with seeds and
    0.36 with dialogues."""
    text = sentences({"delta": 1.8, "significant": False})
    needed = (1.8 / 1.959964) ** 2
    seeds = math.ceil(4 * 0.64 / (needed - 0.36)) - 4
    labels = math.ceil((0.36 / (needed - 0.64) - 1) * 50)
    assert f"{seeds} more seeds, about {seeds * 3600 / 3600:.2g} more hours of training" in text
    assert f"or {labels} more test dialogues with labels would tell it from none" in text


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ({"delta": -1.0, "significant": True}, "No source has a gain that more trainings"),
        ({"n_seeds": 1, "significant": False}, "With one seed nothing tells"),
        ({"delta": 0.01, "significant": False}, "more seeds and more test dialogues together"),
    ],
)
def test_what_cannot_be_told_is_not_promised(cell: dict[str, Any], words: str) -> None:
    text = sentences(cell)
    assert words in text and "train on" not in text
