"""Forecasts of a study: speeds, costs, and requests to a batch system."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from finished_stages import HOST, MODEL, finish, opened, write_checkpoint
from tasktransfer import cli
from tasktransfer.core.nodes import Stage
from tasktransfer.designs import open_study
from tasktransfer.errors import TaskTransferError
from tasktransfer.jobs.needs import get_fit_model
from tasktransfer.operate.forecast import estimate, machine_cache, rates
from tasktransfer.operate.forecast.disk import estimate_disk, format_bytes, measure_bytes
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.forecast.model_size import compute_model_size
from tasktransfer.operate.forecast.rates import Rates, find_card_rates, measure_machine_rates
from tasktransfer.operate.forecast.speed import PROCESS_SECONDS
from tasktransfer.operate.overview import WORKFLOW_SECONDS, summarise_study
from tasktransfer.operate.overview_text import as_text
from tasktransfer.results.node_folders import inspect_nodes
from tasktransfer.results.study import Study

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT / "workflow" / "presets" / "paper.yaml"


@pytest.fixture(autouse=True)
def _without_hub(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(here / "no-hub"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    monkeypatch.setattr(estimate, "list_devices", list)


@pytest.fixture(scope="module")
def paper() -> Study:
    return open_study(PAPER, need_inputs=False)


def stage_of(study: Study, kind: str = "baseline", label: str | None = None) -> Stage:
    return next(s for s in study.plan.stages if s.kind == kind and label in (None, s.label))


# --- time and memory ----------------------------------------------------------------------------


def test_more_work_takes_longer(paper: Study) -> None:
    estimates = Estimates(paper, "cuda")
    small, large = stage_of(paper, label="DRSE"), stage_of(paper, label="ER")
    both = next(s for s in paper.plan.stages if s.label == "DRSE+ER")
    seconds = [estimates.estimate_cost(stage).seconds for stage in (small, large, both)]
    assert seconds == sorted(seconds)
    assert seconds[2] < seconds[0] + seconds[1]  # one start; both are evaluated
    on_cpu = Estimates(paper, "cpu").estimate_cost(small)
    assert on_cpu.seconds > 50 * estimates.estimate_cost(small).seconds


def test_a_known_case() -> None:
    """Epochs of 100 instances of 20 tokens, and evaluations on 30 of dev and once 60 of test."""
    limits = {"limit_train": 100, "limit_dev": 30, "limit_test": 60}
    seconds = []
    for epochs in (1, 10):
        study = opened(training={"epochs": epochs, "batch_size": 10, **limits})
        cost = Estimates(study, "cpu").estimate_cost(stage_of(study, label="ER"))
        assert cost.samples == 100 * epochs
        assert cost.tokens == pytest.approx(2000 * epochs, rel=0.01)
        evaluated = 30 * epochs + 60
        assert cost.evaluated == evaluated
        assert cost.evaluated_tokens == pytest.approx(20 * evaluated, rel=0.01)
        seconds.append(cost.seconds)
    assert seconds[1] > seconds[0]


def test_asking_a_batch_system_is_generous_bounded_and_grows(paper: Study) -> None:
    estimates = Estimates(paper, "cuda")
    stages = paper.plan.stages
    for stage in stages:
        minutes = estimates.compute_runtime_minutes(stage, 1)
        assert minutes * 60 >= 2 * estimates.estimate_cost(stage).seconds
        assert minutes >= 20
        later = [estimates.compute_runtime_minutes(stage, attempt) for attempt in (2, 3)]
        assert later == [2 * minutes, 4 * minutes]
        memory = estimates.compute_memory_mb(stage, 1)
        assert memory >= 6000
        assert estimates.compute_memory_mb(stage, 2) == 2 * memory
    sizes = {s.model.name: estimates.compute_memory_mb(s, 1) for s in stages}
    assert sizes["t5-base"] > sizes["bert-base"]
    # Snakemake asks for every job while it builds the DAG.
    began = time.process_time()
    for stage in stages:
        estimates.compute_runtime_minutes(stage, 1)
        estimates.compute_memory_mb(stage, 1)
    assert (time.process_time() - began) / len(stages) < 2e-4


def test_micro_batches_are_those_of_the_trainer() -> None:
    from tasktransfer.training import token_budgets  # noqa: PLC0415  torch, for this test alone

    on_cpu = {precision: tokens for precision, (tokens, _) in token_budgets.CPU_TOKENS.items()}
    assert on_cpu["float32"] == estimate.MICRO_BATCH
    assert on_cpu["bfloat16"] == 2 * on_cpu["float32"], "a byte estimate holds for both"


def test_records_are_believed_first() -> None:
    study = opened(training={"epochs": 1})
    stage = stage_of(study, label="ER")
    tokens = Estimates(study, "cpu").estimate_cost(stage).tokens
    seconds = {"train": tokens * 0.01, "dev": 1.0, "test": 2.0, "total": tokens * 0.01 + 10.0}
    finish(study, stage, seconds=seconds, peak_memory_mb=4000.0)
    estimates = Estimates(study)
    assert estimates.speed("tiny-bert", "float32").basis == "measured"
    # Its own time again, with what comes before the record's clock.
    assert estimates.estimate_cost(stage).seconds == pytest.approx(
        seconds["total"] + PROCESS_SECONDS["cpu"]
    )
    assert estimates.compute_memory_mb(stage, 1) == 6000
    other = stage_of(study, label="DNLI")
    computed = Estimates(opened("other.yaml", training={"epochs": 1}, results="new"), "cpu")
    ratio = estimates.estimate_cost(other).seconds / computed.estimate_cost(other).seconds
    assert ratio > 10, "what is computed is set right by the record"


def test_the_median_record_counts_and_damaged_ones_do_not() -> None:
    study = opened(training={"epochs": 1}, seeds=4)
    stages = [s for s in study.plan.stages if s.label == "ER"]
    tokens = Estimates(study, "cpu").estimate_cost(stages[0]).tokens
    for stage, speed in zip(stages, (0.01, 0.02, 9.0), strict=False):
        finish(study, stage, seconds={"train": tokens * speed, "total": tokens * speed})
    Path(study.get_node_folder(stages[3])).mkdir(parents=True)
    Path(study.get_record_path(stages[3])).write_text('{"provenance": {}}')
    estimates = Estimates(study)
    speed = estimates.speed("tiny-bert", "float32")
    updates = estimates._count_updates(stages[0])
    trained = speed.estimate_training_seconds(stages[0], tokens, updates)
    assert trained == pytest.approx(0.02 * tokens)


def test_another_model_of_the_family_is_set_right_by_the_same() -> None:
    write_checkpoint(Path("small"), (100,))
    write_checkpoint(Path("large"), (300,))
    models = [MODEL | {"name": name, "checkpoint": f"./{name}"} for name in ("small", "large")]
    study = opened(models=models)
    before = {name: Estimates(study, "cpu").speed(name, "float32") for name in ("small", "large")}
    stage = next(s for s in study.plan.stages if s.model.name == "small")
    finish(study, stage, seconds={"train": 100.0, "dev": 0.0, "test": 1.0, "total": 101.0})
    after = {name: Estimates(study).speed(name, "float32") for name in ("small", "large")}
    assert after["large"].basis == "measured with another model"
    small, large = (after[name].train / before[name].train for name in ("small", "large"))
    assert large == pytest.approx(small)
    assert small > 2


def test_records_say_on_what_it_runs() -> None:
    study = opened()
    gpu = HOST | {"device": "cuda", "gpu": "some GPU"}
    finish(study, stage_of(study), host=gpu)
    estimates = Estimates(study)
    assert estimates.device == "cuda"
    assert Estimates(study, "cpu").speed("tiny-bert", "float32").basis == "reference values"


def measuring(monkeypatch: pytest.MonkeyPatch, flops: float) -> list[int]:
    """Simulate a machine with this product rate, and return how often it was measured."""
    told = {"flops": {"float32": flops, "bfloat16": 3 * flops}, "where": "host, a core"}
    times: list[int] = []

    def run(*_: Any, **__: Any) -> Any:
        times.append(1)
        return type("Done", (), {"stdout": json.dumps(told) + "\n"})

    monkeypatch.setattr(rates.subprocess, "run", run)
    return times


def test_a_machine_is_measured_once_and_remembered_for_a_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = opened()
    assert Estimates(study).rates.basis == "reference values"
    times = measuring(monkeypatch, 6e12)
    measured = measure_machine_rates("cpu")
    assert measure_machine_rates("cpu") == measured
    assert len(times) == 1
    fast = Estimates(study).speed("tiny-bert", "float32")
    assert fast.basis == "calibrated"
    slow = Rates("cpu", {"float32": 6e10, "bfloat16": 6e10}, "", "measured")
    assert Estimates(study, rates=slow).speed("tiny-bert", "float32").train > fast.train
    assert measure_machine_rates("cpu", again=True) == measured
    assert len(times) == 2
    later = time.time() + 25 * 3600
    monkeypatch.setattr(machine_cache.time, "time", lambda: later)
    assert Estimates(study).rates.basis == "reference values"
    machine_cache.locate_cache_file(rates.FILE).write_text('{"x": 1, "y": {"at": 0}}')
    assert measure_machine_rates("cpu") == measured
    assert len(times) == 3


def test_a_measurement_that_fails_says_why_where_it_was_requested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rates.sys, "executable", "/nowhere/python")
    with pytest.raises(TaskTransferError, match="--calibrate: The measurement failed"):
        measure_machine_rates("cpu", again=True)
    assert measure_machine_rates("cpu").basis == "reference values"


def test_the_precision_is_the_one_that_will_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(Path("wide"), (100, 384))
    study = opened(models=[MODEL, MODEL | {"name": "wide", "checkpoint": "./wide"}])
    measuring(monkeypatch, 1e11)
    measure_machine_rates("cpu")
    estimates = Estimates(study)
    assert estimates.resolve_precision("tiny-bert", "bfloat16") == "bfloat16"
    assert estimates.resolve_precision("tiny-bert", "auto") == "float32"  # it is narrow
    wide = replace(compute_model_size(study, "wide"), hidden=384)
    monkeypatch.setattr(Estimates, "_compute_model_size", lambda *_: wide)
    assert Estimates(study).resolve_precision("wide", "auto") == "bfloat16"
    assert Estimates(study).resolve_precision("wide", "float32") == "float32"


def test_cards_are_known_by_name() -> None:
    a100, h100 = find_card_rates("A100"), find_card_rates("NVIDIA H100 80GB HBM3")
    assert h100.flops["bfloat16"] > 3 * a100.flops["bfloat16"]
    assert "not measured" in h100.describe()
    names = ("NVIDIA L40S", "Tesla T4", "NVIDIA A100-SXM4-80GB", "GeForce rtx4090", "H100 PCIe")
    cards = ["L40S", "T4", "A100", "RTX 4090", "H100 PCIe"]
    assert [find_card_rates(name).where for name in names] == cards


@pytest.mark.parametrize("name", ["Riva 128", "NVIDIA L40", "RTX A1000", "T400", "GH200", ""])
def test_a_card_that_is_not_known_is_refused_with_those_that_are(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """L40 and L4 have different rates, and neither replaces the other."""
    assert cli.main(["plan", "--card", name, "--config", "/nowhere.yaml"]) == 2
    error = capsys.readouterr().err
    assert f"The card {name!r} is unknown" in error and "RTX 4090" in error and "--on gpu" in error
    assert ("Did you mean" in error) == (name in ("RTX A1000", "T400", "GH200")), error


@pytest.mark.parametrize("option", ["--calibrate", "--on=cpu"])
def test_a_card_and_this_machine_are_not_planned_together(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", "--card", "L4", option, "--config", "/nowhere.yaml"]) == 2
    assert "cannot be combined with" in capsys.readouterr().err


# --- the whole ----------------------------------------------------------------------------------


def test_the_paper_in_hours_and_bytes(paper: Study) -> None:
    began = time.process_time()
    seen = summarise_study(paper, devices=4, device="cuda")
    assert time.process_time() - began < 10
    estimate_ = seen["estimate"]
    assert seen["trainings"]["done"] is None
    assert estimate_["total"]["trainings"] == 5445
    in_parallel = estimate_["total"]["device_hours"] / 4
    assert estimate_["total"]["wall_hours"] == pytest.approx(in_parallel + WORKFLOW_SECONDS / 3600)
    assert 100 < estimate_["total"]["device_hours"] < 5000
    assert sum(row["trainings"] for row in estimate_["by_target"]) == 5445
    hours = sum(row["device_hours"] for row in estimate_["by_target"])
    assert hours == pytest.approx(estimate_["total"]["device_hours"])
    # 255 checkpoints stay: 110M, 124M and 223M parameters of four bytes.
    assert estimate_["disk_bytes"]["kept_checkpoints"] == pytest.approx(155e9, rel=0.01)


def test_what_is_done_is_not_left() -> None:
    study = opened()
    before = summarise_study(study, devices=1)["estimate"]
    assert before["left"] == before["total"]
    for stage in study.plan.stages[:2]:
        finish(study, stage)
    seen = summarise_study(study, devices=1)
    assert (seen["trainings"]["done"], seen["trainings"]["left"]) == (2, 5)
    assert seen["estimate"]["left"]["trainings"] == 5
    rows = {row["short"]: row for row in seen["estimate"]["by_target"]}
    assert (rows["ER"]["done"], rows["ER"]["left"], rows["ER"]["trainings"]) == (1, 2, 3)
    assert rows["ER"]["device_hours_left"] < rows["ER"]["device_hours"]
    for stage in study.plan.stages:
        finish(study, stage)
    left = summarise_study(study, devices=1)["estimate"]["left"]
    assert (left["trainings"], left["device_hours"], left["wall_hours"]) == (0, 0, 0)


def test_a_forecast_says_that_it_has_no_time_for_what_an_endpoint_answers() -> None:
    far = {"model": "far", "endpoint": "http://localhost:1/v1", "shots": [0, 2]}
    seen = summarise_study(opened(prompted=[far]), devices=1)
    asked = sum(row["total"] for row in seen["others"] if row["kind"] == "evaluation")
    assert seen["estimate"]["total"]["answered_by_endpoints"] == asked > 0
    assert f"not included: {asked} evaluations answered by endpoints" in as_text(seen)
    assert "endpoints" not in as_text(summarise_study(opened(), devices=1))


def test_wall_time_is_never_shorter_than_a_chain() -> None:
    study = opened()
    estimates = Estimates(study)
    seconds = {stage.digest: estimates.estimate_cost(stage).seconds for stage in study.plan.stages}
    chain = max(
        seconds[stage.digest] + sum(seconds[parent.digest] for parent in stage.parents)
        for stage in study.plan.stages
    )
    seen = summarise_study(study, devices=1000)["estimate"]
    assert seen["total"]["wall_hours"] * 3600 == pytest.approx(chain + WORKFLOW_SECONDS)


def test_disk_counts_what_is_there_and_what_comes() -> None:
    study = opened()
    estimates = Estimates(study)
    weights = 4 * estimates.model("tiny-bert").parameters
    space = estimate_disk(estimates, study.plan.stages, inspect_nodes(study), devices=2)
    assert space["there"] == 0
    assert space["kept_checkpoints"] == 2 * weights  # the baselines'
    assert space["temporary"] == 2 * weights + 2 * (3 + 2) * weights  # both best rounds, and states
    finish(study, stage_of(study))
    later = estimate_disk(estimates, study.plan.stages[1:], inspect_nodes(study), devices=2)
    parts = ["there", "kept_checkpoints", "temporary", "records_and_predictions"]
    assert later["kept_checkpoints"] == weights
    assert later["there"] == measure_bytes("results") > 0
    assert later["peak"] == sum(later[part] for part in parts)


def test_bytes_in_words() -> None:
    values = (0, 999, 2048, 20 * 2**20, 3 * 2**30, 2**41)
    texts = "0 B, 999 B, 2.0 KiB, 20 MiB, 3.0 GiB, 2.0 TiB"
    assert ", ".join(map(format_bytes, values)) == texts


def test_links_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "big").write_bytes(bytes(5000))
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "small").write_bytes(bytes(10))
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    assert measure_bytes(tmp_path / "inside") < 1000


# --- adapters -----------------------------------------------------------------------------------


def test_an_adapter_costs_what_of_it_moves() -> None:
    """Rank 16 on the linear layers of BERT base has 2,654,208 parameters, as counted by peft."""
    bert = {"family": "encoder", "checkpoint": "google-bert/bert-base-uncased"}
    adapted = bert | {"name": "lora", "adapter": {"kind": "lora", "rank": 16}}
    models = [bert | {"name": "whole"}, adapted]
    study = open_study(PAPER, {"models": models}, need_inputs=False)
    estimates = Estimates(study)
    assert estimates.model("lora").trained == 2_654_208
    whole, lora = (
        next(s for s in study.plan.stages if s.model.name == name and s.kind == "baseline")
        for name in ("whole", "lora")
    )
    assert estimates.estimate_cost(lora).checkpoint == 4 * 2_654_208
    assert estimates.estimate_cost(whole).checkpoint > 400e6
    assert estimates.compute_memory_mb(lora) < estimates.compute_memory_mb(whole)
    speed, of_whole = (estimates.speed(name, "float32") for name in ("lora", "whole"))
    assert 2 / 3 < speed.train / of_whole.train < 0.7
    assert speed.evaluate == of_whole.evaluate


# --- fits of probes -----------------------------------------------------------------------------


def test_layers_take_about_the_measured_time() -> None:
    """Measured on two shared cores (docs/probes.md): 46 s and 4.8 min for the probes of a layer.

    Encoding all layers once took 3.5 min (MiniLM) and 34 min (SmolLM2).
    """
    file = ROOT / "workflow" / "presets" / "probes-layers.yaml"
    rate = Rates("cpu", {"float32": 87e9, "bfloat16": 204e9}, "", "measured")

    def estimate_models(smollm2: Any) -> dict[str, float]:
        models = [dict(model) for model in yaml.safe_load(file.read_text())["models"]]
        models[1]["layers"] = smollm2
        study = open_study(file, {"models": models}, need_inputs=False)
        estimates, seconds = Estimates(study, "cpu", rate), dict[str, float]()
        for fit in study.plan.fits:
            name = get_fit_model(study, fit).name if "layer" in fit.settings else "words"
            seconds[name] = seconds.get(name, 0) + estimates.estimate_seconds(fit)
        return seconds

    six = estimate_models([0, 6, 12, 19, 26, 30])
    assert six["MiniLM"] == pytest.approx(7 * 46 + 3.5 * 60, rel=0.15)
    assert six["SmolLM2-135M"] == pytest.approx(6 * 287 + 34 * 60, rel=0.15)
    every = estimate_models("all")
    assert every["MiniLM"] == pytest.approx(six["MiniLM"])
    assert every["SmolLM2-135M"] == pytest.approx(31 * 287 + 34 * 60, rel=0.15)
