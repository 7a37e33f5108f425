"""What the study says of its rows: perplexity on the scale of its logarithm."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from tasktransfer.designs.empathetic.columns import ROWS
from tasktransfer.designs.empathetic.statistics import statistics

NATS = {("base", 0): 4.2, ("base", 1): 4.3, ("pretrained", 0): 5.2, ("pretrained", 1): 5.32}
"""Method and seed → nats a token."""


def rows_of(nats: dict[tuple[str, int], float]) -> pd.DataFrame:
    """Twenty dialogues of ten tokens each, whose nats differ a little by dialogue."""
    made = []
    for (method, seed), mean in nats.items():
        for place in range(20):
            run = ("generation", method, "writer", seed)
            names = ("perplexity", "", f"d{place}", f"d{place}-1", "", "")
            made.append((*run, *names, [10 * mean + (place - 9.5) / 10, 10.0]))
    return pd.DataFrame(made, columns=[name for name, _, _ in ROWS])


def test_perplexity_is_averaged_and_compared_on_its_logarithm() -> None:
    told = statistics(rows_of(NATS))
    (base, pretrained) = told["summary"].to_dict("records")
    assert base["value"] == pytest.approx(math.exp(4.25))
    assert 0 < base["low"] < base["value"] < base["high"]
    assert base["value"] / base["low"] == pytest.approx(base["high"] / base["value"])
    assert pretrained["value"] == pytest.approx(math.exp(5.26))
    (difference,) = told["differences"].to_dict("records")
    assert difference["measure"] == "log perplexity"
    assert difference["difference"] == pytest.approx(1.01)
    assert 0 < difference["low"] < 1.01 < difference["high"]
