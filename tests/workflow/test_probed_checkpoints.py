"""Probes of checkpoints that the study creates: a tiny model and a GGUF file, with Snakemake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from calls import call, snakemake

from small_gguf import write_gguf
from tasktransfer.cli import main
from tasktransfer.datasets.multiwoz.tiny_world import generate_release

pytestmark = pytest.mark.slow

PROBES = ["RecentTopic", "IsMultiTopic"]


def write_study(folder: Path, *models: dict[str, Any]) -> None:
    generate_release(folder / "world", dialogues=40)
    config = {
        "study": "checkpoints",
        "design": "probes",
        "data": {"release": "world", "few_sample": False, "tiny_world": {"dialogues": 120}},
        "corpora": ["MultiWOZ"],
        "models": list(models),
        "probes": {"tasks": PROBES},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(config))


@pytest.mark.parametrize("kind", ["gguf", "tiny"])
def test_a_model_that_the_study_creates_is_probed(tmp_path: Path, kind: str) -> None:
    """Its folder is created first: both its states and its tokenizer are read."""
    family = "encoder" if kind == "tiny" else "decoder"
    model: dict[str, Any] = {"name": kind, "family": family, "max_length": 64}
    if kind == "gguf":
        write_gguf(tmp_path / "small.gguf")
    write_study(tmp_path, {**model, "checkpoint": "tiny" if kind == "tiny" else "./small.gguf"})
    call(tmp_path, "tasktransfer", "validate", "--config", "study.yaml")
    snakemake(tmp_path, "all")
    probed = pd.read_parquet(tmp_path / "results" / "tables" / "probed.parquet")
    rows = probed.set_index(["model", "probe"])["f1"]
    assert {*rows.index} == {(m, probe) for m in (kind, "words") for probe in PROBES}
    above = pd.read_parquet(tmp_path / "results" / "tables" / "above_words.parquet")
    means = above[above["probe"] == "all"].set_index("model")["value"]
    differences = [rows[kind, probe] - rows["words", probe] for probe in PROBES]
    assert means[kind] == pytest.approx(sum(differences) / 2)
    assert above["q"].notna().all(), "nothing is trained, so dialogues are the only sample"


def test_a_missing_checkpoint_is_reported_before_the_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_study(tmp_path, {"name": "gone", "family": "encoder", "checkpoint": "./gone"})
    monkeypatch.chdir(tmp_path)
    assert main(["validate", "--config", "study.yaml"]) != 0
    assert (
        "model gone: The folder ./gone does not exist. Put the checkpoint there"
        in capsys.readouterr().err
    )


def test_every_layer_is_probed(tmp_path: Path) -> None:
    model = {"name": "tiny", "family": "encoder", "checkpoint": "tiny", "layers": "all"}
    write_study(tmp_path, {**model, "max_length": 64})
    snakemake(tmp_path, "all")
    results = tmp_path / "results"
    layers = pd.read_parquet(results / "tables" / "layers.parquet")
    assert {*layers["layer"]} == {0, 1, 2}
    assert {*layers["probe"]} == {"all", *PROBES}
    assert layers[["f1", "low", "high", "words", "q"]].notna().all(axis=None)
    stored = results / "data" / "layers"
    assert sorted(file.name for file in stored.glob("*/*.npy")) == ["0.npy", "1.npy", "2.npy"]
    assert (results / "figures" / "f1_by_layer.png").stat().st_size > 5000
    assert "strongest control" in (results / "report.html").read_text()
    call(tmp_path, "tasktransfer", "gc", "--yes", "--config", "study.yaml")
    assert not [*stored.glob("*/*.npy")]
    assert "Nothing to be done" in snakemake(tmp_path, "all")
