"""Timed updates of a model, and the forecasts that they correct."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from finished_stages import MODEL, finish, opened
from small_models import make_model
from tasktransfer.config.model_sizes import ModelSize
from tasktransfer.core.specs import Family
from tasktransfer.operate.forecast import estimate, machine_cache, rates, timed_updates
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.forecast.machine_cache import cache_measurement, describe_machine
from tasktransfer.operate.forecast.rates import Rates
from tasktransfer.operate.forecast.timed_updates import time_model_updates
from tasktransfer.results.study import Study
from tasktransfer.training.update_speed import TimedModel, time_updates

RATES = {"flops": {"float32": 1e11, "bfloat16": 1e11}, "where": "a core"}
WORDS = ["i am happy to see you", "this is sad news"] * 5
SIZE = ModelSize(22_000_000, 384, 6, 30_000, "its files")
SLOW: dict[str, Any] = {"updates": 3, "tokens": 4800, "seconds": 60.0, "device": "cpu"}
"""Updates that take longer than computed."""


@pytest.fixture(autouse=True)
def _machine(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    monkeypatch.setattr(estimate, "list_devices", list)
    cache_measurement(rates.FILE, describe_machine("cpu"), RATES)


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    """Return a study whose model is as large as MiniLM."""
    monkeypatch.setattr(Estimates, "_compute_model_size", lambda *_: SIZE)
    return opened()


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> list[dict[str, Any]]:
    """Replace the timing process by one that prints ``text``, and return its requests."""
    requests: list[dict[str, Any]] = []

    def run(command: list[str], env: dict[str, str], **_: Any) -> Any:
        assert env["CUDA_VISIBLE_DEVICES"] == ""  # forecasts for a CPU are not measured on a GPU
        requests.append(json.loads(command[-1]))
        return type("Done", (), {"stdout": text + "\n"})

    monkeypatch.setattr(timed_updates.subprocess, "run", run)
    return requests


def test_timed_updates_scale_the_forecast(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Estimates(study)
    computed = before.speed("tiny-bert", "float32")
    requests = answer(monkeypatch, json.dumps(SLOW))
    (text,) = time_model_updates(before)
    assert text.startswith("One training update of tiny-bert takes 20 s on this machine")
    after = Estimates(study)
    timed = after.speed("tiny-bert", "float32")
    assert timed.basis == "timed"
    assert 4800 * timed.train + 3 * timed.update == pytest.approx(60.0)
    assert timed.read / timed.train == pytest.approx(computed.read / computed.train)
    stage = study.plan.stages[0]
    assert after.estimate_cost(stage).seconds > 2 * before.estimate_cost(stage).seconds
    (request,) = requests
    assert request["training"]["batch_size"] == stage.training.batch_size
    assert request["length"] == after.compute_mean_length(stage) > 1
    TypeAdapter(TimedModel).validate_python(request)  # the process can read the request


def test_updates_are_timed_once_and_remembered_for_a_day(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimates = Estimates(study)
    stage = study.plan.stages[0]
    tokens = 3 * stage.training.batch_size * estimates.compute_mean_length(stage)
    requests = answer(monkeypatch, json.dumps(SLOW | {"tokens": tokens}))
    assert time_model_updates(estimates) == time_model_updates(estimates)
    assert len(requests) == 1
    time_model_updates(estimates, again=True)
    assert len(requests) == 2
    later = machine_cache.time.time() + 25 * 3600
    monkeypatch.setattr(machine_cache.time, "time", lambda: later)
    cache_measurement(rates.FILE, describe_machine("cpu"), RATES)
    assert Estimates(study).speed("tiny-bert", "float32").basis == "calibrated"


def test_without_a_writable_cache_updates_are_timed_once_per_process(
    study: Study, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_cache, "_MEASURED", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "study.yaml"))  # a file
    cache_measurement(rates.FILE, describe_machine("cpu"), RATES)
    requests = answer(monkeypatch, json.dumps(SLOW))
    time_model_updates(Estimates(study))
    assert Estimates(study).speed("tiny-bert", "float32").basis == "timed"
    assert len(requests) == 1


def test_a_relative_cache_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    file = machine_cache.locate_cache_file("a.json")
    assert file == Path.home() / ".cache" / "tasktransfer" / "a.json"


def test_updates_are_timed_again_if_texts_are_much_longer(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = answer(monkeypatch, json.dumps(SLOW | {"tokens": 300}))
    estimates = Estimates(study)
    time_model_updates(estimates)
    time_model_updates(estimates)
    assert len(requests) == 2


@pytest.mark.parametrize(
    "content", ["{}", "[]", '{"updates": 3}', '{"updates": 3, "tokens": 0, "seconds": 1}', "nan"]
)
def test_a_damaged_measurement_is_ignored(
    study: Study, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    answer(monkeypatch, json.dumps(SLOW))
    time_model_updates(Estimates(study))
    file = machine_cache.locate_cache_file(timed_updates.FILE)
    (key,) = json.loads(file.read_text())
    file.write_text(f'{{"{key}": {content}}}')
    assert Estimates(study).speed("tiny-bert", "float32").basis == "calibrated"


@pytest.mark.parametrize(
    "text", ["", "killed", '{"updates": 3}', "[]", json.dumps(SLOW | {"device": "cuda"})]
)
def test_without_a_measurement_the_forecast_is_computed(
    study: Study, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    answer(monkeypatch, text)
    estimates = Estimates(study)
    assert time_model_updates(estimates) == []
    assert estimates.speed("tiny-bert", "float32").basis == "calibrated"


@pytest.mark.parametrize(
    "size",
    [
        replace(SIZE, parameters=200_000),
        replace(SIZE, basis="its name"),
        replace(SIZE, parameters=7_000_000_000, hidden=4096, layers=32),
    ],
    ids=["very small", "not on this machine", "very large"],
)
def test_some_models_are_not_timed(monkeypatch: pytest.MonkeyPatch, size: ModelSize) -> None:
    monkeypatch.setattr(Estimates, "_compute_model_size", lambda *_: size)
    requests = answer(monkeypatch, json.dumps(SLOW))
    assert time_model_updates(Estimates(opened())) == []
    assert requests == []


def test_timed_updates_are_not_used_for_another_machine(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = answer(monkeypatch, json.dumps(SLOW))
    time_model_updates(Estimates(study))
    faster = Rates("cpu", {"float32": 2e11, "bfloat16": 2e11}, "another core", "measured")
    elsewhere = Estimates(study, rates=faster)
    assert elsewhere.speed("tiny-bert", "float32").basis == "calibrated"
    assert time_model_updates(elsewhere) == []
    assert len(requests) == 1


def test_records_count_more_than_timed_updates(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, json.dumps(SLOW))
    time_model_updates(Estimates(study))
    finish(study, study.plan.stages[0])
    assert Estimates(study).speed("tiny-bert", "float32").basis == "measured"


@pytest.mark.parametrize("family", ["encoder", "decoder", "encoder_decoder"])
def test_the_process_times_updates_of_a_model(
    here: Path, monkeypatch: pytest.MonkeyPatch, family: Family
) -> None:
    folder = make_model(family, WORDS, here / "model")
    model = MODEL | {"checkpoint": str(folder), "family": family, "max_unknown_words": 1.0}
    stage = opened(models=[model]).plan.stages[0]
    training = replace(stage.training, batch_size=4, precision="float32")
    measured = time_updates(TimedModel(stage.model, str(folder), training, 2, 50))
    assert measured["updates"] == 2
    assert float(measured["tokens"]) >= 2 * 4 * 50
    assert 0 < float(measured["seconds"]) < 60
