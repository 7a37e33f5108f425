"""A live view of training runs: values by round, and nothing else that changes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from small_models import Loader, small_stage
from tasktransfer.config.sections import Tracking
from tasktransfer.core.specs import Training
from tasktransfer.designs import load_config
from tasktransfer.errors import ConfigError
from tasktransfer.results.records import read_record, select_comparable_parts
from tasktransfer.results.schema import Record
from tasktransfer.training.job import Job
from tasktransfer.training.run import train_stage
from tasktransfer.training.tracking import format_project_name, open_tracker

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "workflow" / "presets" / "demo.yaml"
STAGE = SimpleNamespace(
    path="stages/baseline/seed0",
    dataset="DailyDialog",
    model=SimpleNamespace(name="tiny"),
    label="ER",
    seed=0,
    digest="ab12",
)


class FakeClient(ModuleType):
    """A client with the functions of trackio and wandb that notes its calls."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[tuple[str, Any]] = []

    def init(self, **options: Any) -> None:
        self.calls.append(("init", options))

    def log(self, values: Mapping[str, float], step: int) -> None:
        self.calls.append(("log", (step, dict(values))))

    def finish(self) -> None:
        self.calls.append(("finish", None))


def job(tracking: str | None, folder: Path) -> Job:
    facts = {"study": "A study: 2", "tracking": tracking, "tracking_folder": str(folder)}
    return cast(Job, SimpleNamespace(stage=STAGE, **facts))


@pytest.mark.parametrize("name", ["trackio", "wandb"])
def test_a_client_gets_the_values_of_each_round(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = FakeClient(name)
    monkeypatch.setitem(sys.modules, name, client)
    energy = iter([None, 12.5])
    with open_tracker(job(name, tmp_path / "tracking"), lambda: next(energy)) as on_round:
        assert on_round is not None
        on_round(1, {"ER": 0.5, "TC": 0.25}, [40.0], 0.001)
        on_round(2, {"ER": 0.4}, [41.0, 42.0], 0.0005)
    (begin, options), first, second, (end, _) = client.calls
    assert (begin, end) == ("init", "finish")
    assert (options["project"], options["name"]) == ("A-study--2", "stages/baseline/seed0")
    assert options["config"]["digest"] == "ab12"
    assert ("dir" in options) == (name == "wandb"), "its files are in the results folder"
    assert first == (
        "log",
        (1, {"loss/ER": 0.5, "loss/TC": 0.25, "dev/score": 40.0, "learning_rate": 0.001}),
    )
    assert second[1][1]["dev/score_2"] == 42.0
    assert second[1][1]["energy_joules"] == 12.5


@pytest.mark.parametrize("name", ["tensorboard", "trackio", "wandb"])
def test_a_missing_package_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "torch.utils.tensorboard" if name == "tensorboard" else name
    monkeypatch.setitem(sys.modules, module, None)
    where = job(name, tmp_path)
    match = rf"pip install 'tasktransfer\[{name}\]'"
    with pytest.raises(ConfigError, match=match), open_tracker(where, lambda: None):
        pass


def test_nothing_is_tracked_by_default(tmp_path: Path) -> None:
    assert load_config(DEMO).tracking is None
    with open_tracker(job(None, tmp_path), lambda: None) as on_round:
        assert on_round is None
    assert list(tmp_path.iterdir()) == []


def test_project_names_have_no_special_characters() -> None:
    assert format_project_name("FETA's matrix / 2") == "FETA-s-matrix---2"


def test_other_clients_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tracking"):
        load_config(DEMO, {"tracking": "mlflow"})


def test_the_key_changes_no_digest_and_no_record(
    load: Loader, models_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = FakeClient("trackio")
    monkeypatch.setitem(sys.modules, "trackio", client)
    plain, tracked = (load_config(DEMO, {"tracking": name}) for name in (None, "trackio"))
    assert plain.digest == tracked.digest
    first, second = (train(models_folder, tmp_path, name) for name in (None, "trackio"))
    assert select_comparable_parts(first) == select_comparable_parts(second)
    assert [call for call, _ in client.calls] == ["init", "log", "log", "finish"]
    logged = [values for call, values in client.calls if call == "log"]
    assert [step for step, _ in logged] == [1, 2]
    scores = second["training"]["selections"][0]["scores"]
    rounds = second["training"]["rounds"]
    assert [values for _, values in logged] == [
        {"loss/emotion_recognition": loss, "dev/score": score, "learning_rate": 1e-3}
        for loss, score in zip(
            [each["train_loss"]["emotion_recognition"] for each in rounds], scores, strict=True
        )
    ]


def test_tensorboard_reads_the_values(load: Loader, models_folder: Path, tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    record = train(models_folder, tmp_path, "tensorboard")
    (folder,) = {path.parent for path in (tmp_path / "tracking").rglob("events.*")}
    events = reader.EventAccumulator(str(folder))
    events.Reload()
    scores = [event.value for event in events.Scalars("dev/score")]
    assert scores == pytest.approx(record["training"]["selections"][0]["scores"])
    assert [event.step for event in events.Scalars("loss/emotion_recognition")] == [1, 2]


def train(models: Path, folder: Path, tracking: Tracking | None) -> Record:
    training = Training(epochs=2, batch_size=2, learning_rate=1e-3, precision="float32")
    stage = small_stage("emotion_recognition", family="encoder", training=training)
    out = folder / str(tracking)
    where = (stage, models / "DailyDialog-encoder", str(models / "encoder"), None, out)
    there = str(folder / "tracking")
    train_stage(Job(*where, True, 1, "small", "c", tracking=tracking, tracking_folder=there))
    return read_record(out / "metrics.json")
