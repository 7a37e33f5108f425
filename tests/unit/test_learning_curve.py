"""Learning curves: nested samples, gains in pairs, and the forecast's honesty."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from test_find_errors import STUDY, WORDS

from study_records import write_records
from tasktransfer import cli
from tasktransfer.core.nodes.data import FRACTIONS, NEXT
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.data.recipes import Ingredients
from tasktransfer.data.samples import (
    derive_sampled_dialogues,
    select_dialogues,
    select_instances,
)
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.runs import SAMPLES, is_sample, select_transfer_runs
from tasktransfer.jobs.learning_curve import describe_curve
from tasktransfer.stats.bootstrap import Trainings
from tasktransfer.stats.cells import Cell
from tasktransfer.stats.draws import build_instance_units
from tasktransfer.stats.learning_curve import compute_curve

UNITS = build_instance_units(200)


def build_cells(scores: Sequence[float], noise: float = 0.0, seed: int = 0) -> dict[float, Cell]:
    """Return runs of five samples, or of all dialogues, whose mean scores vary by ``noise``."""
    chance, cells = np.random.default_rng(seed), {}
    for fraction, score in zip(FRACTIONS, scores, strict=True):
        seeds = (-1,) if fraction == 1 else tuple(range(5))
        of_seeds = score + noise * chance.normal(size=len(seeds))
        spread = chance.normal(size=(len(seeds), 200)) * noise
        cells[fraction] = Cell(
            Trainings(seeds, of_seeds, of_seeds[:, None] + spread), UNITS, "logit"
        )
    return cells


def predict_power_law(sizes: Sequence[float], rate: float) -> list[float]:
    return [90 - 60 * (size * 4) ** -rate for size in sizes]


def test_samples_of_a_seed_are_nested_and_those_of_seeds_differ() -> None:
    names = [f"d{number}" for number in range(40)]
    small, half, most = (select_dialogues(names, fraction, 3) for fraction in (0.25, 0.5, 0.75))
    assert small < half < most < set(names)
    assert [len(sample) for sample in (small, half, most)] == [10, 20, 30]
    assert select_dialogues(names, 0.25, 4) != small


def test_gains_are_differences_from_the_fraction_before() -> None:
    points = compute_curve(build_cells([50, 60, 64, 66], noise=0.5))
    assert [point.fraction for point in points] == [*FRACTIONS, NEXT]
    assert math.isnan(points[0].gain)
    for before, point in pairwise(points[:4]):
        assert point.gain == pytest.approx(point.score - before.score)
        assert point.gain_low < point.gain < point.gain_high


@pytest.mark.parametrize("rate", [0.2, 0.5, 1.0, 2.0])
def test_the_forecast_of_a_power_law_includes_the_truth(rate: float) -> None:
    points = compute_curve(build_cells(predict_power_law(FRACTIONS, rate), noise=1e-6))
    (truth,) = predict_power_law([NEXT], rate)
    assert points[-1].score == pytest.approx(truth, abs=1e-3)
    assert points[-1].low - 1e-3 <= truth <= points[-1].high
    assert points[-1].gain < points[2].gain + points[3].gain


@pytest.mark.slow
def test_the_forecast_covers_the_truth_despite_noise() -> None:
    covered = []
    for seed in range(40):
        cells = build_cells(predict_power_law(FRACTIONS, 0.5), noise=2.0, seed=seed)
        forecast = compute_curve(cells)[-1]
        truth = predict_power_law([2.0], 0.5)[0] - predict_power_law([1.0], 0.5)[0]
        covered.append(forecast.gain_low <= truth <= forecast.gain_high)
    assert np.mean(covered) >= 0.9


def test_a_gain_that_never_varies_has_no_interval() -> None:
    """It is not certain: no test dialogue and no sample shows how it would vary."""
    *_, whole, _ = compute_curve(build_cells([66, 66, 66, 66]))
    assert whole.gain == 0 and math.isnan(whole.gain_low) and math.isnan(whole.gain_high)


def test_the_forecast_stays_within_the_scale() -> None:
    *_, whole, forecast = compute_curve(build_cells([40, 60, 75, 95], noise=1.0))
    assert 0 <= forecast.low <= forecast.score <= forecast.high == 100
    assert forecast.gain_high == pytest.approx(100 - whole.score)


def test_the_sentence_says_what_more_labels_are_likely_to_give() -> None:
    nan = math.nan
    names = ("Tickets", "bert", "intent", "frozen_logistic")
    rows: list[tuple[Any, ...]] = [
        (*names, 1.0, 42, 42, 1, 66.0, 60.0, 72.0, 2.1, 0.4, 3.8),
        (*names, 2.0, 84, 84, 0, 68.0, nan, nan, 2.0, -1.0, 5.0),
    ]
    assert describe_curve(rows) == [
        "frozen_logistic (bert): 75 → 100 % of the 42 training dialogues gave +2.1 [+0.4, +3.8] "
        "points. Labelling about as many again is likely to give +2.0 [−1.0, +5.0]."
    ]


@pytest.mark.parametrize(
    ("ends", "gains", "words"),
    [
        ((90.0, 100.0), (-5.0, 5.0), "ends at the forecast, because a score cannot be above 100."),
        ((0.0, 9.0), (-95.0, -86.0), "begins at the forecast, because a score cannot be below 0."),
        ((99.0, 99.99), (4.0, 4.99), ""),
    ],
)
def test_the_sentence_explains_an_interval_at_the_end_of_the_scale(
    ends: tuple[float, float], gains: tuple[float, float], words: str
) -> None:
    names, score = ("Tickets", "bert", "intent", "frozen_logistic"), 0 if ends[0] == 0 else ends[1]
    rows = [
        (*names, 1.0, 42, 42, 1, 95.0, 90.0, 99.0, 2.1, 0.4, 3.8),
        (*names, 2.0, 84, 84, 0, score, *ends, score - 95, *gains),
    ]
    (sentence,) = describe_curve(rows)
    assert sentence.endswith(f"]. The interval {words}" if words else "+5.0].")


@pytest.fixture
def folder_of_tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a study of 120 dialogues with prepared instances, and change to its folder."""
    monkeypatch.chdir(tmp_path)
    names, chance = list(WORDS), np.random.default_rng(0)
    rows = []
    for number in range(120):
        words = [WORDS[names[number % 3]][0], *chance.choice(sum(WORDS.values(), ()), 3)]
        text = " ".join(map(str, words))
        rows.append({"id": f"t{number}", "intent": names[number % 3], "messages": [{"text": text}]})
    Path("tickets.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    datasets = json.loads(json.dumps(STUDY["datasets"]))
    del datasets["Tickets"]["tasks"]["mood"]
    limited = {"seeds": 2, "training": {"epochs": 1, "limit_train": 60}}
    Path("study.yaml").write_text(yaml.safe_dump({**STUDY, "datasets": datasets, **limited}))
    study = open_study("study.yaml")
    cache_dataset(
        "Tickets", study.get_release("Tickets"), False, study.get_instances_folder("Tickets")
    )
    return tmp_path


def test_the_command_writes_the_table_and_the_report_shows_it(
    folder_of_tickets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["learning-curve", "study.yaml", "--seeds", "3", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    frame = pd.read_parquet("results/tables/learning_curve.parquet")
    assert len(printed) == len(frame) == 5
    assert frame["n_seeds"].tolist() == [3, 3, 3, 1, 0]
    assert frame["dialogues"].is_monotonic_increasing
    assert frame["score"].iloc[3] > frame["score"].iloc[0]
    assert cli.main(["learning-curve", "study.yaml", "--task", "intent"]) == 0
    assert "Labelling about as many again" in capsys.readouterr().out
    assert len(pd.read_parquet("results/tables/learning_curve.parquet")) == 5, "replaced"
    config = yaml.safe_load(Path("study.yaml").read_text())
    del config["references"]
    Path("study.yaml").write_text(yaml.safe_dump(config))
    write_records(open_study("study.yaml"))
    for command in ("collect", "statistics", "figures", "report"):
        assert cli.main([command, "study.yaml"]) == 0, capsys.readouterr().err
    assert Path("results/figures/learning_curve.png").exists()
    assert "Scores by number of training dialogues" in Path("results/report.html").read_text()


def test_fine_tuning_trains_on_the_samples_that_references_are_fitted_on(
    folder_of_tickets: Path,
) -> None:
    config = yaml.safe_load(Path("study.yaml").read_text())
    without = open_study("study.yaml").plan
    Path("curve.yaml").write_text(yaml.safe_dump({**config, "learning_curve": True}))
    study = open_study("curve.yaml")
    assert {node.digest for node in without.nodes} < {node.digest for node in study.plan.nodes}
    samples = [run for run in study.plan.runs if is_sample(run)]
    assert len(samples) == 2 * 3
    assert not set(samples) & set(select_transfer_runs(study.plan))
    train = read_instances(study.get_instances_folder("Tickets"), "intent", "train")
    dialogues = sorted({instance.dialogue_id for instance in train})
    for run in samples:
        (stage,) = run.stages
        assert stage.data.settings["limit_train"] == 60 and stage.seed == run.seed
        ingredients = Ingredients(
            (Path(study.get_instances_folder("Tickets")),), (), (), ("intent",), stage.data.settings
        )
        derived = derive_sampled_dialogues(ingredients)
        limited = select_instances(train, 60)
        ids = sorted({instance.dialogue_id for instance in limited})
        assert len(ids) == 60 < len(dialogues)
        kept = select_dialogues(ids, stage.data.settings["fraction"], run.seed)
        assert {one.dialogue_id for one in derived["intent", "train"]} == kept
        test = read_instances(study.get_instances_folder("Tickets"), "intent", "test")
        assert derived["intent", "test"] == test


def test_fine_tuning_is_in_the_curve_if_its_samples_were_trained(
    folder_of_tickets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["learning-curve", "study.yaml", "--seeds", "2"]) == 0
    assert "set learning_curve: true in the config" in capsys.readouterr().out
    config = yaml.safe_load(Path("study.yaml").read_text())
    Path("curve.yaml").write_text(
        yaml.safe_dump({**config, "learning_curve": True, "baseline_seeds": 3})
    )
    study = open_study("curve.yaml")
    assert cli.main(["learning-curve", "curve.yaml", "--seeds", "2"]) == 0
    told = capsys.readouterr().out
    assert "bert: The curve lacks 2 of 2 seeds of fine-tuning" in told
    accuracy = {**SAMPLES, "baseline": 1.0}
    write_records(study, lambda run: 0.4 + 0.5 * accuracy[run.method])
    assert cli.main(["learning-curve", "curve.yaml", "--seeds", "2", "--json"]) == 0
    rows = pd.DataFrame(json.loads(capsys.readouterr().out))
    tuned = rows[rows["method"] == "fine_tuning"]
    assert tuned["fraction"].tolist() == [*FRACTIONS, NEXT]
    assert tuned["n_seeds"].tolist() == [2, 2, 2, 2, 0]
    assert tuned["score"].is_monotonic_increasing
    assert tuned["dialogues"].tolist() == [15, 30, 45, 60, 120]
    sample = next(run for run in study.plan.runs if is_sample(run))
    Path(study.get_record_path(sample.stages[0])).unlink()
    assert cli.main(["learning-curve", "curve.yaml", "--seeds", "2"]) == 0
    assert "bert: The curve lacks 1 of 2 seeds of fine-tuning" in capsys.readouterr().out
    for command in ("collect", "statistics", "figures", "report"):
        assert cli.main([command, "curve.yaml"]) == 0, capsys.readouterr().err
    assert "fine-tuning" in Path("results/figures/learning_curve.md").read_text()
    assert (
        cli.main(["explain", "learning_curve", "fine_tuning", "0.25", "--config", "curve.yaml"])
        == 0
    )
    told = capsys.readouterr().out
    assert "baseline_25_percent" in told and "baseline_50_percent" not in told
