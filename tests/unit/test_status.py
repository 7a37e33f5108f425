"""The state of a study while it runs and afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from finished_stages import HOST, TASKS, finish, finish_all, make, opened
from tasktransfer import cli
from tasktransfer.cli import operate as commands
from tasktransfer.core.nodes import Stage
from tasktransfer.files import locks
from tasktransfer.operate.costs import as_text as costs_as_text
from tasktransfer.operate.costs import summarise_costs
from tasktransfer.operate.pace import Piece, estimate_pace
from tasktransfer.operate.status import ProgressWatcher, read_progress
from tasktransfer.operate.status_text import as_text
from tasktransfer.results import damage
from tasktransfer.results.node_folders import read_folder_state, read_node_state
from tasktransfer.results.state import claim_folder, is_in_use, record_event, try_to_claim_folder
from tasktransfer.results.study import Study

BAR = (
    "DailyDialog tiny-bert ER seed 0 [#########           ]  47 % 181/s, 0:04 gone, 0:05 left | "
    "epoch 3: loss emotion_recognition 0.8886 | dev 9.63 | best epoch 3\n"
)
NAMED = {"dataset": "DailyDialog", "target": TASKS[2], "sources": TASKS[:2]}


pytestmark = pytest.mark.usefixtures("here")


def begin(study: Study, stage: Stage, log: str = BAR) -> Path:
    folder = Path(study.get_node_folder(stage))
    folder.mkdir(parents=True)
    (folder / "train.log").write_text(log)
    record_event(folder, "started", attempt=1)
    return folder


def ago(seconds: float) -> str:
    moment = datetime.fromtimestamp(time.time() - seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_every_state_is_counted() -> None:
    study = opened()
    stages = study.plan.stages
    finish(study, stages[0])
    begin(study, stages[1], "Traceback (most recent call last):\nerror: the loss became nan\n")
    begin(study, stages[2])
    running = begin(study, stages[3])
    with claim_folder(running, print) as tell:
        tell(device="GPU-1")
        seen = ProgressWatcher(study).get_progress()
    assert seen["totals"] == {"done": 1, "running": 1, "waiting": 3, "failed": 1, "interrupted": 1}
    assert seen["left"] == 6
    (item,) = seen["running"]
    assert (item["device"], item["percent"], item["left"]) == ("GPU-1", 47, "0:05")
    assert item["pid"] == os.getpid()
    (failed,) = seen["failed"]
    assert failed["error"] == "the loss became nan"
    assert failed["log"] == f"{study.get_node_folder(stages[1])}/train.log"
    assert [item["digest"] for item in seen["interrupted"]] == [stages[2].digest]
    text = as_text(seen)
    assert "the loss became nan" in text
    assert failed["log"] in text
    assert "47 %, 0:05 left (GPU-1" in text
    assert "1 of 7 trainings done (14.3 %)" in text


@pytest.mark.parametrize("job", ["tiny world", "data", "tiny model", "token ids"])
def test_a_failed_job_that_is_not_a_training_is_reported(job: str) -> None:
    study = opened()
    logs, data = Path("results/logs"), Path(study.get_instances_folder("DailyDialog"))
    model, encoded = (
        Path(study.get_created_model_folder("tiny-bert")),
        Path(study.get_encoded_folder(study.get_released_data("DailyDialog"), "tiny-bert")),
    )
    log, whole = {
        "tiny world": (logs / "tiny_world.log", Path(study.tiny_world)),
        "data": (logs / "instances" / f"{data.name}.log", data / "manifest.json"),
        "tiny model": (logs / "models" / f"{model.name}.log", model / "config.json"),
        "token ids": (
            logs / "encoded" / data.name / f"{encoded.name}.log",
            encoded / "manifest.json",
        ),
    }[job]
    log.parent.mkdir(parents=True)
    log.write_text("reading\nerror: it cannot be\n")
    seen = ProgressWatcher(study).get_progress()
    (item,) = seen["inputs"]
    assert item["label"].startswith(job)
    assert (item["state"], item["error"], item["log"]) == ("failed", "it cannot be", str(log))
    assert "failed:" in as_text(seen)
    assert f"it cannot be\n    {log}" in as_text(seen)
    log.write_text("reading\ninterrupted\n")
    assert ProgressWatcher(study).get_progress()["inputs"][0]["state"] == "interrupted"
    whole.parent.mkdir(parents=True, exist_ok=True)
    whole.touch()
    assert ProgressWatcher(study).get_progress()["inputs"] == []


def test_groups_are_models_and_algorithms() -> None:
    study = opened(
        datasets={"DailyDialog": {"tasks": TASKS}},
        algorithms=["pretrain_finetune", "multitask_finetune"],
        multi_source={"mode": "named", "named": [NAMED]},
    )
    finish_all(study)
    seen = ProgressWatcher(study).get_progress()
    counts = {row["algorithm"]: row["states"]["done"] for row in seen["groups"]}
    # No run is multitask here, so the first halves of multitask_finetune are told by their kind.
    assert counts == {
        "baseline": 3,
        "pretrain_finetune": 7,
        "multitask_finetune": 7,
        "(multitask)": 4,
    }
    assert seen["left"] == 0
    assert "nothing is left to compute" in as_text(seen)


def test_a_checkpoint_trained_again_is_not_done() -> None:
    study = opened()
    finish_all(study)
    stages = study.plan.stages
    child, parent = next((s, p) for s in stages for p in s.parents if p.kind == "multitask")
    Path(study.get_record_path(child)).unlink()
    seen = ProgressWatcher(study).get_progress()
    assert (seen["left"], seen["again"], seen["totals"]["done"]) == (2, 1, 5)
    with claim_folder(Path(study.get_node_folder(parent)), print):
        assert ProgressWatcher(study).get_progress()["totals"]["running"] == 1


def test_looking_never_keeps_a_claim() -> None:
    study = opened()
    folder = begin(study, study.plan.stages[0])
    (folder / ".claim").touch()
    ProgressWatcher(study).get_progress()
    assert not locks.is_held(folder / ".claim")


# --- other machines -----------------------------------------------------------------------------


def claimed_elsewhere(folder: Path, log_age: float = 0.0) -> None:
    (folder / ".claim").write_text(json.dumps({"host": "node7", "pid": 1, "started": ago(60)}))
    then = time.time() - log_age
    for name in ("train.log", ".claim"):
        os.utime(folder / name, (then, then))


def test_a_claim_of_another_host_with_a_fresh_log_is_running() -> None:
    study = opened()
    folder = begin(study, study.plan.stages[0])
    claimed_elsewhere(folder)
    (item,) = ProgressWatcher(study).get_progress()["running"]
    assert item["host"] == "node7"
    assert read_folder_state(folder) == ("running", None)
    assert read_node_state(study, study.plan.stages[0]) == ("running", None)
    claimed_elsewhere(folder, log_age=400)
    assert ProgressWatcher(study).get_progress()["totals"]["interrupted"] == 1


def test_a_training_that_ended_elsewhere_is_not_running() -> None:
    study = opened()
    folder = begin(study, study.plan.stages[0], "error: no\n")
    record_event(folder, "failed", cause="TrainingError", error="no")
    claimed_elsewhere(folder)
    assert ProgressWatcher(study).get_progress()["totals"]["failed"] == 1


def test_a_folder_is_held_only_if_no_process_trains_there(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    with try_to_claim_folder(folder) as held:
        assert held
        assert is_in_use(folder)
        with try_to_claim_folder(folder) as again:
            assert not again
    assert not is_in_use(folder)
    (folder / "train.log").touch()
    claimed_elsewhere(folder)
    with try_to_claim_folder(folder) as held:
        assert not held


# --- pace ---------------------------------------------------------------------------------------


def test_the_throughput_is_that_of_the_last_hour() -> None:
    study = opened()
    stages = study.plan.stages
    for stage, age in zip(stages, (7300, 600, 300), strict=False):
        finish(study, stage, started=ago(age), seconds={"train": 250.0, "total": 300.0})
    with claim_folder(begin(study, stages[3]), print):
        seen = ProgressWatcher(study).get_progress()
    # Two in the ten minutes since the first of them began; the other one ended two hours ago.
    assert seen["finished_last_hour"] == 2
    assert seen["per_hour"] == pytest.approx(12, rel=0.02)
    assert seen["seconds_left"] > 0


def test_time_left_follows_from_the_work_and_the_pace() -> None:
    now = 10_000.0
    ended = [Piece("a", now - 1000, now - 500, 10.0), Piece("b", now - 500, now, 10.0)]
    running = [Piece("c", now - 100, now, 5.0)]
    seen = estimate_pace(ended, running, left=50.0, now=now, typical=10.0)
    assert seen["seconds_left"] == pytest.approx(50.0 / ((25.0 + 10.0) / (1000 + 10)))
    assert seen["per_hour"] == pytest.approx(7.2)
    for left, seconds in ((50.0, None), (0.0, 0.0)):
        idle = estimate_pace(ended, [], left=left, now=now, typical=10.0)
        assert idle["seconds_left"] == seconds


def test_the_start_of_a_first_training_hardly_changes_the_forecast() -> None:
    """After 90 seconds of loading, 2 seconds of work are done; an hour of work is left."""
    begun = [Piece("c", 0.0, 90.0, 2.0)]
    seen = estimate_pace([], begun, left=3600.0, now=90.0, typical=600.0)
    assert seen["seconds_left"] == pytest.approx(3600 * (90 + 300) / (2 + 300))
    later = [Piece("c", 0.0, 3600.0, 1000.0)]
    seen = estimate_pace([], later, left=3600.0, now=3600.0, typical=600.0)
    assert seen["seconds_left"] == pytest.approx(3600 * 3900 / 1300)


def test_work_before_the_window_does_not_count() -> None:
    now = 10_000.0
    long = Piece("a", now - 7200, now, 100.0)
    assert long.get_work_since(now - 3600) == 50.0
    assert Piece("b", now - 9000, now - 5000, 1.0).get_work_since(now - 3600) == 0.0


@pytest.mark.parametrize("log", ["", "loading\n", "x" * 20000])
def test_a_log_without_a_bar_tells_nothing(log: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(log)
    assert read_progress(tmp_path / "train.log")["percent"] is None
    assert read_progress(tmp_path / "nowhere")["percent"] is None


def test_starts_after_errors_and_kills_are_distinguished() -> None:
    study = opened()
    killed, failed = (finish(study, stage) for stage in study.plan.stages[:2])
    for folder, events in ((killed, "ss"), (failed, "sfsfs")):
        for event in events:
            record_event(folder, {"s": "started", "f": "failed"}[event])
        record_event(folder, "finished")
    watcher = ProgressWatcher(study)
    expected = {"trainings": 2, "times": 3, "after_errors": 2}
    assert watcher.get_progress()["started_again"] == expected
    assert watcher.get_progress()["started_again"] == expected
    assert "2 after an error, 1 after a kill" in as_text(watcher.get_progress())


# --- the command --------------------------------------------------------------------------------


def test_watch_ends_when_nothing_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = opened()
    for stage in study.plan.stages[1:]:
        finish(study, stage)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        finish(study, study.plan.stages[0])

    monkeypatch.setattr(commands.time, "sleep", sleep)
    assert cli.main(["status", "--config", "study.yaml", "--watch", "3"]) == 0
    assert slept == [3]
    out = capsys.readouterr().out
    assert "6 of 7" in out
    assert "7 of 7" in out
    assert "\x1b" not in out  # no terminal: nothing is redrawn


def test_control_c_ends_it_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened()

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands.time, "sleep", interrupt)
    assert cli.main(["status", "--config", "study.yaml", "--watch"]) == 0
    assert "0 of 7" in capsys.readouterr().out


def test_unknown_inputs_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("study.yaml").write_text(
        "study: s\ndata: {release: nowhere}\ndatasets: {Friends: {tasks: all}}\n"
        "models: [{name: m, family: encoder, checkpoint: tiny}]\n"
    )
    assert cli.main(["status", "--config", "study.yaml"]) == 3
    assert "nowhere" in capsys.readouterr().err


def test_a_record_is_read_once_however_often_one_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One model of the paper's study, 1,735 folders; this keeps ``status`` fast."""
    study = opened(datasets={"DailyDialog": {"tasks": "all"}, "Friends": {"tasks": "all"}}, seeds=5)
    assert len(study.plan.stages) == 1735
    for stage in study.plan.stages:
        folder = Path(study.get_node_folder(stage))
        folder.mkdir(parents=True)
        record = make(stage)
        if stage.tested:
            sha256 = hashlib.sha256(b"").hexdigest()
            record["rows"] = {
                "file": "rows.parquet",
                "rows": 4 * len(stage.tested),
                "sha256": sha256,
            }
            (folder / "rows.parquet").touch()
        (folder / "metrics.json").write_text(json.dumps(record))
        (folder / "history.jsonl").touch()
    read = Counter[Path]()
    examined = damage.inspect_record

    def counting(folder: Path, *rest: Any) -> Any:
        read[folder] += 1
        return examined(folder, *rest)

    monkeypatch.setattr(damage, "inspect_record", counting)
    watcher = ProgressWatcher(study)
    for _ in range(3):
        assert watcher.get_progress()["totals"]["done"] == 1735
    assert ProgressWatcher(study).get_progress()["totals"]["done"] == 1735
    assert read == Counter(Path(study.get_node_folder(stage)) for stage in study.plan.stages)


def test_status_needs_nothing_heavy() -> None:
    opened()
    code = (
        "import sys\nfrom tasktransfer import cli\ncli.main(['status', '--config', 'study.yaml'])\n"
        "print(sorted({'torch', 'pandas', 'pyarrow', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# --- cost ---------------------------------------------------------------------------------------


def test_costs_are_added_up() -> None:
    study = opened()
    seconds = {
        "read": 1.0,
        "load": 2.0,
        "train": 3600.0,
        "dev": 60.0,
        "test": 30.0,
        "total": 3700.0,
    }
    made: dict[str, Any] = {"seconds": seconds, "tokens": 7200, "samples": 720}
    first, second = study.plan.stages[:2]
    finish(study, first, **made, energy_joules=3.6e6, peak_memory_mb=800.0)
    notes = ["interrupted and resumed after epoch 2"]
    gpu = HOST | {"device": "cuda"}
    finish(study, second, **made, notes=notes, host=gpu, peak_gpu_memory_mb=99.0)
    seen = summarise_costs(study)
    (row,) = seen["groups"]
    assert (row["model"], row["algorithm"], row["trainings"]) == ("tiny-bert", "baseline", 2)
    assert row["hours"] == pytest.approx(7400 / 3600)
    assert row["hours_train"] == pytest.approx(2.0)
    assert row["hours_other"] == pytest.approx(20 / 3600)
    assert (row["tokens"], row["samples"], row["samples_per_second"]) == (14400, 1440, 0.2)
    assert (row["peak_memory_mb"], row["peak_gpu_memory_mb"]) == (800.0, 99.0)
    assert (row["energy_kwh"], row["energy_metered_trainings"]) == (1.0, 1)
    assert (row["resumed_trainings"], row["gpu_trainings"]) == (1, 1)
    assert seen["total"] == {k: v for k, v in row.items() if k not in ("model", "algorithm")}
    text = costs_as_text(seen)
    assert "2 of 7 trainings" in text
    assert "resumed from an epoch: 1 training\n" in text


def test_costs_of_nothing_and_of_damaged_records(capsys: pytest.CaptureFixture[str]) -> None:
    study = opened()
    assert "no record yet" in costs_as_text(summarise_costs(study))
    finish(study, study.plan.stages[0])
    for stage, text in zip(study.plan.stages[1:3], ("{", '{"provenance": {}}'), strict=True):
        Path(study.get_node_folder(stage)).mkdir(parents=True)
        Path(study.get_record_path(stage)).write_text(text)
    assert cli.main(["status", "--config", "study.yaml", "--summary"]) == 0
    assert "left out: 2 records" in capsys.readouterr().out
    assert summarise_costs(study)["total"]["trainings"] == 1
