"""What the tiny world of domains plants is found again over five seeds: every method rates, an
untrained one does not, and a domain's own expert rates it best. And what a panel leaves behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml
from safetensors.torch import load_file, save_file

from empathetic_study import make
from tasktransfer import datasets
from tasktransfer.cli import main
from tasktransfer.data.cache import prepare
from tasktransfer.datasets import DATASETS
from tasktransfer.designs import design_of, open_study
from tasktransfer.designs.panel.config import METHODS
from tasktransfer.designs.panel.sources import tiny
from tasktransfer.designs.panel.sources.dataset import PANEL_TINY
from tasktransfer.models.adapters import ADAPTERS_FILE
from tasktransfer.results.finished import look
from tasktransfer.results.study import Study
from tasktransfer.training.tiny import build

DEMO = Path(__file__).resolve().parents[2] / "workflow" / "presets" / "panel-demo.yaml"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    folder = tmp_path_factory.mktemp("planted")
    before = dict(DATASETS)
    datasets.add(PANEL_TINY)
    tiny.write(folder / "words", 0, 600)
    shutil.rmtree(folder / "words" / "ratings")  # they have no training texts to learn from
    prepare(PANEL_TINY.name, folder / "words", False, folder / "cache")
    build("encoder", [folder / "cache"], folder / "bert")
    config = yaml.safe_load(DEMO.read_text())
    model = {"name": "small", "family": "encoder", "checkpoint": str(folder / "bert")}
    config |= {
        "results": str(folder / "results"),
        "models": [{**model, "max_length": 64}],
        "seeds": 5,
        "pairs": {"train": 600, "dev": 100, "made": 2.0},
        "labeller": {"model": "small", "learning_rate": 1e-3, "epochs": 5},
        "joint": {"learning_rate": 1e-3, "epochs": 4, "every": 56},
        "experts": {"learning_rate": 1e-3, "epochs": 6, "every": None},
        "reduction": 4,
    }
    config["data"]["tiny_world"]["dialogues"] = 600
    del config["few_shot"], config["selection"]
    (folder / "study.yaml").write_text(yaml.safe_dump(config))
    opened = open_study(folder / "study.yaml")
    make(opened)
    design = design_of(opened.config)
    design.collect(opened, True)
    design.statistics(opened)
    yield opened
    DATASETS.clear()
    DATASETS.update(before)


def told(study: Study, table: str, column: str, **where: str) -> float:
    """The one number of a table where columns are so."""
    frame = pd.read_parquet(Path(study.tables, f"{table}.parquet"))
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return float(frame[column].item())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_correlates_with_what_is_planted(study: Study, method: str) -> None:
    assert told(study, "averages", "seeds", method=method, over="all") == 5
    assert told(study, "averages", "value", method=method, over="all") > 40


def test_an_untrained_model_is_within_noise_of_0(study: Study) -> None:
    ends = (told(study, "averages", e, method="untrained", over="all") for e in ("low", "high"))
    low, high = ends
    assert low < 0 < high


@pytest.mark.parametrize("rated", ["Harbour_Tiny", "Orchard_Tiny"])
def test_the_domains_own_expert_rates_it_best(study: Study, rated: str) -> None:
    of = {"method": "panel", "expert": "own - others", "set": rated}
    assert told(study, "experts", "low", **of) > 0


def test_an_expert_leaves_the_encoder_as_it_was(study: Study) -> None:
    joint, harbour, orchard = (
        next(s for s in study.plan.stages if (s.kind, s.label, s.seed) == (kind, label, 0))
        for kind, label in (
            ("joint", "all_domains"), ("expert", "Harbour"), ("expert", "Orchard"),
        )
    )  # fmt: skip
    encoders = [Path(study.checkpoint(s), "model.safetensors") for s in (joint, harbour, orchard)]
    weights = [load_file(file) for file in encoders]
    shared = [name for name in weights[0] if "head" not in name]
    assert len(shared) > 20
    for other in weights[1:]:
        assert all(weights[0][name].equal(other[name]) for name in shared)
    adapters = [load_file(file.with_name(ADAPTERS_FILE)) for file in encoders]
    moved = {name.partition(".")[0] for name in adapters[1]
             if name in adapters[0] and not adapters[0][name].equal(adapters[1][name])}  # fmt: skip
    assert moved == {"Harbour"}


def test_pairs_are_rated_by_each_expert_and_the_panel(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bright = tiny.CLASSES["Harbour"][0]
    said = ["I saw the hammer today."]
    rows = [
        {
            "context": said,
            "response": f"We leave the {bright} home.",
            "domain": "Harbour",
        },
        {"context": said, "response": "the leave home We leave."},
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert main(["rate", "--config", study.config_file, str(file)]) == 0
    good, bad = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert good["panel"] == good["experts"]["Harbour"] > 0.5
    assert bad["panel"] == pytest.approx(sum(bad["experts"].values()) / 3)
    assert bad["experts"]["Harbour"] < good["experts"]["Harbour"]
    assert 0 <= bad["merged"] <= 1
    with file.open("a") as lines:
        lines.write('{"context": ["Hello."], "response": ""}\n')
    assert main(["rate", "--config", study.config_file, str(file)]) != 0
    assert "pairs.jsonl, line 3: response is ''; give its words" in capsys.readouterr().err


def test_a_panel_without_one_of_its_experts_is_refused(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expert = next(s for s in study.plan.stages if (s.kind, s.seed) == ("expert", 1))
    folder = Path(study.checkpoint(expert))
    folder.rename(tmp_path / "elsewhere")
    (tmp_path / "none.jsonl").touch()
    arguments = ["rate", "--config", study.config_file, "--seed", "1", str(tmp_path / "none.jsonl")]
    assert main(arguments) != 0
    said = capsys.readouterr().err
    assert f"the expert of {expert.label} is missing" in said
    assert "checkpoints.keep" in said
    (tmp_path / "elsewhere").rename(folder)


def test_pairs_that_want_labels_are_written(study: Study, tmp_path: Path) -> None:
    assert main(["pairs", "--config", study.config_file, "--out", str(tmp_path)]) == 0
    lines = (tmp_path / "Harbour.jsonl").read_text().splitlines()
    assert {*json.loads(lines[0])} == {"context", "response", "how"}
    assert len(lines) > 600


def test_an_expert_that_is_not_as_its_training_left_it_rates_nothing(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another's weights in its place changed what `rate` says, and one NaN was printed as it is."""
    first, other, *_ = (s for s in study.plan.stages if (s.kind, s.seed) == ("expert", 0))
    pair = tmp_path / "pair.jsonl"
    pair.write_text('{"context": ["Good morning."], "response": "We leave the harbour."}\n')
    arguments = ["rate", "--config", study.config_file, str(pair)]
    kept, record = Path(study.checkpoint(first)), Path(study.record(first))
    shutil.copytree(kept, tmp_path / "kept")
    recorded = record.read_text()
    for name in (ADAPTERS_FILE, "heads.safetensors"):
        shutil.copy(Path(study.checkpoint(other), name), kept / name)
    assert main(arguments) == 6
    seen = capsys.readouterr()
    assert seen.out == ""
    assert f"error: {kept}/{ADAPTERS_FILE}: its SHA-256 is not the one in the record" in seen.err
    assert f"delete {record} and run its study with snakemake" in seen.err
    assert look(study).damaged.keys() == {first.digest}
    # A record from before there were checksums, and one NaN.
    shutil.copytree(tmp_path / "kept", kept, dirs_exist_ok=True)
    old = json.loads(recorded)
    del old["artefacts"]
    record.write_text(json.dumps(old))
    weights = load_file(kept / "heads.safetensors")
    weights[min(weights)].view(-1)[0] = float("nan")
    save_file(weights, kept / "heads.safetensors")
    assert main(arguments) == 4
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "heads.safetensors: " in seen.err
    assert "is NaN or infinite" in seen.err
    shutil.copytree(tmp_path / "kept", kept, dirs_exist_ok=True)
    record.write_text(recorded)
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["panel"] > 0
