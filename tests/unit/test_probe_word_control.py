"""The probes' strongest control: encoders minus counts of the words that they read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasktransfer.designs.probes.answer import write_answer
from tasktransfer.designs.probes.effects import plot_difference_from_words
from tasktransfer.designs.probes.intervals import (
    build_intervals,
    compare_with_words,
    gather_classifier_cells,
)
from tasktransfer.designs.probes.printed import summarise_above_words
from tasktransfer.metrics import open_labels
from tasktransfer.metrics.measures import MEASURES
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata
from tasktransfer.stats.cells import Scored, score_tallies

PROBES = ("RecentTopic", "AllSlots", "Coin")
TURNS = 400
READINGS = {"Long": "words as Long", "Short": "words as Short"}


def score(right: np.ndarray[Any, Any]) -> Scored:
    """Score answers with one label per turn; eight turns are a dialogue."""
    tallies = np.stack([right, np.ones(TURNS), np.ones(TURNS)], axis=1)
    dialogues = [f"d{place // 8}" for place in range(TURNS)]
    return score_tallies(
        tallies,
        dialogues,
        lambda sums: 100 * open_labels.compute_micro_f1(sums),
        MEASURES["micro_f1"],
    )


def build_estimates(
    shares: dict[tuple[str, str], float], seeds: int = 2, runs: int = 0
) -> dict[Any, Any]:
    """Return the cells of probes with a fraction of right answers.

    Args:
        shares: (model, snapshot) → fraction. Word counts have one fit.
        seeds: number of seeds of an encoder.
        runs: number that changes the answers.
    """
    rows, scored = [], {}
    for (model, snapshot), share in shares.items():
        for probe in PROBES:
            for seed in range(seeds if snapshot == "last" else 1):
                record = f"{model}-{snapshot}-{probe}-{seed}"
                epoch = 1 if snapshot == "last" else None
                rows.append(("MultiWOZ", model, snapshot, epoch, probe, seed, record))
                chance = np.random.default_rng([runs, seed, *record.encode()])
                task = f"MultiWOZ_{probe}"
                scored[record] = {
                    name: score(chance.random(TURNS) < part)
                    for name, part in (
                        (task, share), (f"{task}+prior", 0.2), (f"{task}+shuffled", 0.2)
                    )
                }  # fmt: skip
    columns = ["corpus", "model", "snapshot", "epoch", "probe", "seed", "record"]
    return gather_classifier_cells(scored, pd.DataFrame(rows, columns=columns))


SHARES = {
    ("Long", "last"): 0.9,
    ("Short", "last"): 0.5,
    ("words as Long", "words"): 0.6,
    ("words as Short", "words"): 0.5,
}


def compare(shares: dict[tuple[str, str], float], **options: int) -> pd.DataFrame:
    table = compare_with_words(build_estimates(shares, **options), READINGS)
    return table.set_index(["model", "snapshot", "probe"])


def test_an_encoder_is_compared_with_the_words_that_it_reads() -> None:
    estimates = build_estimates(SHARES)
    table = compare(SHARES)
    own = {key: cell.trainings.scores.mean() for key, cell in estimates.items() if key[-1] == ""}
    for model, words in READINGS.items():
        differences = {
            probe: own["MultiWOZ", model, "last", probe, ""]
            - own["MultiWOZ", words, "words", probe, ""]
            for probe in PROBES
        }
        for probe, difference in differences.items():
            assert table.loc[(model, "last", probe), "value"] == pytest.approx(difference)
        mean = np.mean([differences[probe] for probe in PROBES if probe != "Coin"])
        assert table.loc[(model, "last", "all"), "value"] == pytest.approx(mean)
        assert table.loc[(model, "last", "all"), "probes"] == 2
    both = table.loc[("all", "last", "all")]
    assert both["probes"] == 4
    expected = table.loc[[(m, "last", "all") for m in READINGS], "value"].mean()
    assert both["value"] == pytest.approx(expected)
    assert {name for name, *_ in table.index} == {"Long", "Short", "all"}


def test_a_planted_difference_is_significant_and_none_is_not() -> None:
    table = compare(SHARES)
    assert table.loc[("Long", "last", "all"), "q"] < 0.05
    assert table.loc[("Short", "last", "all"), "q"] > 0.05
    printed = summarise_above_words(table.reset_index()).set_index("model")
    assert printed.loc[["Long", "Short"], "higher"].tolist() == [2, 0]


def test_the_answers_figure_shows_the_means_and_fills_significant_ones() -> None:
    no_study: Any = None
    frame = compare(SHARES).reset_index()
    frames = Frames(no_study, {"above_words": frame}, Metadata("s", "0" * 64, False, 2))
    figure = plot_difference_from_words(frames)
    assert figure is not None
    [panel] = figure.axes
    assert [label.get_text() for label in panel.get_yticklabels()] == [*READINGS, "all encoders"]
    means = frame[frame["probe"] == "all"].set_index("model").loc[["Long", "Short", "all"]]
    points = [line for line in panel.lines if line.get_marker() == "o"]
    values = [float(point.get_xdata()[0]) for point in points]
    assert values == pytest.approx(means["value"].tolist())
    hollow = [point.get_markerfacecolor() == "white" for point in points]
    assert hollow == (means["q"] > 0.05).tolist() == [False, True, False]


def test_one_run_has_an_interval_and_no_q() -> None:
    table = compare(SHARES, seeds=1)
    assert table["q"].isna().all()
    assert table[["low", "high"]].notna().all(axis=None)
    printed = summarise_above_words(table.reset_index())
    assert printed[["higher", "lower"]].isna().all(axis=None)


@pytest.mark.slow
def test_without_a_difference_intervals_of_means_hold_zero() -> None:
    shares = {("Long", "last"): 0.6, ("words as Long", "words"): 0.6}
    held = 0
    for run in range(100):
        mean = compare(shares, seeds=3, runs=run).loc[("Long", "last", "all")]
        held += mean["low"] <= 0 <= mean["high"]
    assert held >= 90


def say(shares: dict[tuple[str, str], float], claims: pd.DataFrame, seeds: int = 2) -> str:
    estimates = build_estimates(shares, seeds)
    frames: Any = {
        "intervals": build_intervals(estimates),
        "above_words": compare_with_words(estimates, READINGS),
        "claims": claims,
    }
    return " ".join(write_answer(frames))


def claim(within: tuple[float, ...], between: tuple[float, ...]) -> pd.DataFrame:
    """Return correlations with their intervals, beside one over all trained epochs."""
    rows = [("within", *within), ("between", *between), ("trained", 0.79, 0.42, 0.94)]
    frame = pd.DataFrame(rows, columns=["over", "rho", "low", "high"])
    return frame.assign(corpus="MultiWOZ", probe="all", points=60)


def test_the_answer_names_the_control_and_both_correlations() -> None:
    nan = float("nan")
    text = say(SHARES, claim((0.8, 0.07, 0.97), (0.9, -0.99, 1.0)))
    table = compare(SHARES).loc[("all", "last", "all")]
    value = f"{table['value']:+.1f} [{table['low']:+.1f}, {table['high']:+.1f}] points"
    assert value.replace("-", "−") in text
    assert "significantly higher on the encoder than on word counts in 2 of 4 pairs" in text
    assert "Over the epochs of a model" in text
    assert "significantly positively correlated (Spearman 0.80 [0.07, 0.97])" in text
    assert "not significantly correlated (Spearman 0.90 [−0.99, 1.00])" in text
    assert "0.79" not in text, "a correlation over all models mixes two questions"
    alone = say(SHARES, claim((0.8, nan, nan), (nan, nan, nan)), seeds=1)
    assert "differences are not tested" in alone
    assert "for which no interval can be computed" in alone
    assert "q =" not in alone
