"""Forecasts are compared with the recorded times of the shipped study's trainings."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shipped_records import merged
from tasktransfer.core.nodes import Stage
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.forecast.rates import Rates
from tasktransfer.results.costs import read_cost
from tasktransfer.results.study import Study

ROOT = Path(__file__).parents[2]
PRESET = ROOT / "workflow" / "presets" / "minilm-study.yaml"
RATES = Rates("cpu", {"float32": 112e9, "bfloat16": 489e9}, "its machine", "measured")
"""Rates of one thread of the training machine, half of the rate of two threads
(docs/development/performance.md)."""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Merge the shipped study's records, without data and model."""
    folder = tmp_path_factory.mktemp("shipped")
    return merged("minilm-study.parquet", "minilm-study.yaml", folder / "results")


def measured(study: Study, stage: Stage) -> float:
    """Return the seconds of a training from its record."""
    cost = read_cost(Path(study.get_record_path(stage)))
    assert cost is not None
    return sum(cost.seconds.values())


@pytest.fixture(scope="module")
def hours(study: Study) -> float:
    return sum(measured(study, stage) for stage in study.plan.stages) / 3600


def forecast(study: Study) -> float:
    estimates = Estimates(study, "cpu", RATES)
    return sum(estimates.estimate_seconds(node) for node in study.plan.nodes) / 3600


def test_without_a_record_it_is_right_within_a_factor_of_a_half(
    study: Study, hours: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Estimates, "samples", [])
    assert hours / 1.5 < forecast(study) < 1.5 * hours
    estimates = Estimates(study, "cpu", RATES)
    assert estimates.model("minilm").basis == "its name"
    told = sum(estimates.estimate_cost(stage).tokens for stage in study.plan.stages)
    read = sum(
        cost.tokens
        for stage in study.plan.stages
        if (cost := read_cost(Path(study.get_record_path(stage)))) is not None
    )
    assert told == pytest.approx(read, rel=0.15)


def test_after_five_records_it_is_right_within_a_fifth(study: Study, hours: float) -> None:
    """The five records are those that a workflow finishes first: baselines of seed 0."""
    for stage in study.plan.stages[5:]:
        shutil.rmtree(study.get_node_folder(stage))
    assert len(Estimates(study, "cpu", RATES).samples) == 5
    assert forecast(study) == pytest.approx(hours, rel=0.2)
