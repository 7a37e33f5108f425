"""Statistics of the empathetic study: perplexity on a logarithmic scale."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from constructed_frames import make_frames
from tasktransfer.designs.empathetic.frames import FRAMES, MEASURED, ROWS
from tasktransfer.designs.empathetic.statistics import find_untrained_cells
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import build_frame

SCORED = [name for name, _, _ in MEASURED]
NATS = {("base", 0): 4.2, ("base", 1): 4.3, ("pretrained", 0): 5.2, ("pretrained", 1): 5.32}
"""Method and seed → nats a token."""


NONE = build_frame([], MEASURED)


def compute_frames(rows: pd.DataFrame, measured: pd.DataFrame = NONE) -> Frames:
    return make_frames(FRAMES, rows=rows, measured=measured)


def rows_of(nats: dict[tuple[str, int], float]) -> pd.DataFrame:
    """Return twenty dialogues of ten tokens each, whose nats differ slightly by dialogue."""
    rows = []
    for (method, seed), mean in nats.items():
        for place in range(20):
            run = ("generation", method, "writer", seed)
            names = ("perplexity", "", f"d{place}", f"d{place}-1", "", "")
            rows.append((*run, *names, [10 * mean + (place - 9.5) / 10, 10.0]))
    return pd.DataFrame(rows, columns=[name for name, _, _ in ROWS])


def test_perplexity_is_averaged_and_compared_on_its_logarithm() -> None:
    told = compute_frames(rows_of(NATS))
    (base, pretrained) = told["summary"].to_dict("records")
    assert base["value"] == pytest.approx(math.exp(4.25))
    assert 0 < base["low"] < base["value"] < base["high"]
    assert base["value"] / base["low"] == pytest.approx(base["high"] / base["value"])
    assert pretrained["value"] == pytest.approx(math.exp(5.26))
    (difference,) = told["differences"].to_dict("records")
    assert difference["measure"] == "log perplexity"
    assert difference["difference"] == pytest.approx(1.01)
    assert 0 < difference["low"] < 1.01 < difference["high"]


def p_at_1_rows(right: dict[tuple[str, int], float]) -> pd.DataFrame:
    """Return forty dialogues of one reply, of which a given fraction is correct.

    Which ones differs by method and seed.
    """
    rows = []
    for number, ((method, seed), share) in enumerate(right.items()):
        run = ("retrieval", method, "minilm", seed)
        for place in range(40):
            names = ("p_at_1", "", f"d{place}", f"d{place}-1", "sad", "")
            rows.append((*run, *names, [float((place + 7 * number) % 40 < 40 * share), 1.0]))
    return pd.DataFrame(rows, columns=[name for name, _, _ in ROWS])


def test_a_method_equal_to_base_differs_by_nothing_whichever_seeds_are_there() -> None:
    """Seeds differ widely: the mean of two minus that of five is not a difference."""
    base = {("base", seed): 0.1 + 0.2 * seed for seed in range(5)}
    rows = p_at_1_rows(base)
    same = rows.assign(method="multitask")
    some = compute_frames(pd.concat([rows, same[same["seed"] < 2]]))["differences"].iloc[0]
    assert (some["seeds"], some["difference"]) == (2, 0.0)
    assert some["low"] <= 0 <= some["high"]
    assert some["p"] > 0.99


def test_without_shared_seeds_there_is_no_difference_and_the_table_says_so() -> None:
    base = p_at_1_rows({("base", seed): 0.1 + 0.2 * seed for seed in range(3)})
    other = p_at_1_rows({("multitask", seed): 0.9 for seed in (3, 4)})
    told = compute_frames(pd.concat([base, other]))["differences"]
    (row,) = told.to_dict("records")
    assert row["seeds"] == 0
    assert all(math.isnan(row[name]) for name in ("difference", "low", "high", "p", "q"))


METHODS = {
    (method, seed): value + seed / 40
    for method, value in (("base", 0.3), ("multitask", 0.35), ("emoprepend-1", 0.4))
    for seed in range(3)
}


def test_controls_are_not_part_of_the_family_of_q() -> None:
    """Rows that must be significant cannot make others significant by chance."""
    alone = compute_frames(p_at_1_rows(METHODS))["differences"].set_index("method")
    controls = {
        (f"emoprepend-{name}", seed): share
        for name, share in (("gold", 0.95), ("random", 0.3))
        for seed in range(3)
    }
    both = compute_frames(p_at_1_rows(METHODS | controls))["differences"].set_index("method")
    for name in ("multitask", "emoprepend-1"):
        assert both.loc[name, "q"] == alone.loc[name, "q"]
        assert alone.loc[name, "q"] > 0
    for name in ("emoprepend-gold", "emoprepend-random"):
        assert math.isnan(both.loc[name, "q"])
        assert 0 <= both.loc[name, "p"] <= 1


def test_a_model_as_released_is_one_evaluation() -> None:
    rows = p_at_1_rows(METHODS)
    released = p_at_1_rows({("pretrained", 0): 0.2})
    rows = pd.concat([rows, *(released.assign(seed=seed) for seed in range(3))])
    scores = pd.DataFrame(
        [
            ("retrieval", method, "minilm", seed, "p_at_1", "", 1.0, 40, record, False)
            for seed in range(3)
            for method, record in (("base", f"base-{seed}"), ("pretrained", "released"))
        ],
        columns=SCORED,
    )
    assert find_untrained_cells(scores) == {("retrieval", "pretrained", "p_at_1", "")}
    told = compute_frames(rows, scores)
    summary = told["summary"].set_index("method")
    assert summary["seeds"].to_dict() == {
        "base": 3, "multitask": 3, "emoprepend-1": 3, "pretrained": 1,
    }  # fmt: skip
    alone = compute_frames(released)["summary"].iloc[0]
    assert summary.loc["pretrained", ["low", "high"]].tolist() == alone[["low", "high"]].tolist()
    difference = told["differences"].set_index("method").loc["pretrained"]
    assert difference["seeds"] == 3  # each of Base's, which do differ
    assert difference["low"] < difference["difference"] < difference["high"]
