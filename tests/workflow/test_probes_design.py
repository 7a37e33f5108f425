"""Effects planted in the tiny world of dialogues, over five seeds, end to end with Snakemake."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import yaml
from calls import ENVIRONMENT, snakemake, snakemake_words
from safetensors.torch import load_file

from tasktransfer.core.architecture import parse_weights
from tasktransfer.datasets.multiwoz.tiny_world import generate_release
from tasktransfer.designs import open_study
from tasktransfer.designs.commands import read_frames
from tasktransfer.designs.probes.design import PROBES
from tasktransfer.models.next_utterance import Network
from tasktransfer.results.rounds import ROUNDS

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {"family": "encoder_decoder", "max_length": 100}
STUDY: dict[str, Any] = {
    "study": "planted",
    "design": "probes",
    "data": {"release": "world", "few_sample": False},
    "corpora": ["MultiWOZ"],
    "models": [
        {"name": "LSTM", **SMALL, "architecture": {"kind": "lstm", "embedding": 24, "units": 32}},
        {
            "name": "Transformer",
            **SMALL,
            "architecture": {
                "kind": "transformer",
                "embedding": 32,
                "units": 32,
                "feed_forward": 64,
            },
        },
    ],
    "seeds": 5,
    "training": {
        "learning_rate": 4e-3,
        "batch_size": 16,
        "epochs": 3,
        "precision": "float32",
        "limit_dev": 15,
        "limit_test": 15,
    },
    "probes": {"tasks": ["RecentTopic", "AllSlots", "Coin"], "snapshots": ["untrained", "last"]},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    generate_release(folder / "world", dialogues=120)
    snakemake(folder, "all")
    return folder


@pytest.fixture
def intervals(study: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(study)
    opened = open_study("study.yaml")
    frame = read_frames(opened, PROBES.analysis(opened))["intervals"]
    return frame.query("snapshot in ('last', 'words')").set_index(
        ["compared_with", "probe", "model"]
    )


@pytest.mark.parametrize("model", ["LSTM", "Transformer"])
def test_the_topic_is_read_and_the_coin_is_not(intervals: pd.DataFrame, model: str) -> None:
    assert intervals.loc[("prior", "RecentTopic", model), "low"] > 0
    coin = intervals.loc[("prior", "Coin", model)]
    assert coin["low"] <= 0
    selectivity = intervals.loc[("shuffled", "Coin", model)]
    assert selectivity["low"] <= 0 <= selectivity["high"]


@pytest.mark.parametrize("model", ["words", "Transformer"])
def test_all_slots_can_be_read(intervals: pd.DataFrame, model: str) -> None:
    """After three epochs, the small LSTM's last state does not contain all of them."""
    assert intervals.loc[("prior", "AllSlots", model), "low"] > 0


def test_round_0_is_the_untrained_model_bit_for_bit(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study)
    opened = open_study("study.yaml")
    stage = next(s for s in opened.plan.stages if s.model.name == "LSTM" and s.seed == 3)
    rounds = Path(opened.get_node_folder(stage), ROUNDS)
    assert sorted(each.name for each in rounds.iterdir()) == ["0", "3"]
    weights: Mapping[str, Any] = load_file(rounds / "0" / "model.safetensors")
    torch.manual_seed(3)
    words = weights["encoder.embed.weight"].shape[0]
    untrained = Network(parse_weights(stage.model.weights), words).state_dict()
    assert all(torch.equal(weight, untrained[name]) for name, weight in weights.items())
    last = load_file(rounds / "3" / "model.safetensors")
    assert not torch.equal(last["decoder.words.weight"], weights["decoder.words.weight"])


def test_tables_and_figures_are_there_and_nothing_is_done_twice(study: Path) -> None:
    figures = study / "results" / "figures"
    for name in ("f1_by_epoch", "representations", "bleu_against_f1", "ties"):
        assert (figures / f"{name}.png").stat().st_size > 5000
    caption = (figures / "table5.md").read_text()
    assert "SYNTHETIC" in caption
    assert "substitute" not in caption.lower()
    assert "RecentTopic" in (figures / "one_dialogue.md").read_text()
    for name in ("claims", "agreement", "unsolved", "table3"):
        assert (figures / f"{name}.md").is_file()
    assert "Coin" in (figures / "unsolved.csv").read_text()
    assert "Nothing to be done" in snakemake(study, "all")


def test_killed_in_a_training_kept_snapshots_are_whole_and_go_on_to_be_chosen_by_word_vectors(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "killed"
    shutil.copytree(study, folder, symlinks=True)
    longer = {**STUDY, "models": STUDY["models"][:1], "seeds": 1}
    longer["training"] = {**STUDY["training"], "epochs": 6}
    chosen = {"snapshots": ["untrained", 1, 4, "last"], "word_vectors": "vectors.txt"}
    longer["probes"] = {**STUDY["probes"], **chosen}
    (folder / "study.yaml").write_text(yaml.safe_dump(longer))
    (folder / "vectors.txt").write_text("the 1 0\nhotel 0 1\n")
    monkeypatch.chdir(folder)
    opened = open_study("study.yaml")
    stage_folder = folder / opened.get_node_folder(opened.plan.stages[0])
    killed_in_round(folder, stage_folder / "train.log", 2)
    assert not (stage_folder / "metrics.json").exists()
    rounds = {each.name: each / "model.safetensors" for each in (stage_folder / ROUNDS).iterdir()}
    kept = {name: load_file(file) for name, file in rounds.items() if not name.startswith(".")}
    assert kept.keys() >= {"0", "1"}
    snakemake(folder, "--unlock")
    snakemake(folder, "all")
    assert {"0", "1", "4", "6"} == {each.name for each in (stage_folder / ROUNDS).iterdir()}
    for name, weights in kept.items():
        again = load_file(rounds[name])
        assert all(torch.equal(weight, again[key]) for key, weight in weights.items())
    chosen_by = pd.read_csv(folder / "results" / "figures" / "table8.csv")
    assert "BERT" in chosen_by.to_string()
    substitute = "vectors.txt (instead of BERT's word vectors)"
    assert substitute in (folder / "results" / "figures" / "table8.md").read_text()
    one_snapshot_more(folder, longer, stage_folder)


def one_snapshot_more(folder: Path, config: dict[str, Any], stage_folder: Path) -> None:
    """A finished training without a round that is now needed is trained again.

    Results computed from its other rounds are kept.
    """
    fits = {
        file: file.stat().st_mtime_ns for file in (folder / "results/fits").rglob("rows.parquet")
    }
    config["probes"] = {**config["probes"], "snapshots": ["untrained", 2, "last"]}
    (folder / "study.yaml").write_text(yaml.safe_dump(config))
    assert "Needed rounds were not kept: 2" in snakemake(folder, "all", "-n")
    snakemake(folder, "all")
    assert {"0", "1", "2", "4", "6"} == {each.name for each in (stage_folder / ROUNDS).iterdir()}
    assert all(file.stat().st_mtime_ns == made for file, made in fits.items())
    scores = pd.read_parquet(folder / "results" / "tables" / "probed.parquet")
    assert "epoch 2" in set(scores["snapshot"])
    assert "Nothing to be done" in snakemake(folder, "all")


def killed_in_round(folder: Path, log: Path, number: int) -> None:
    """Run the study's trainings, and kill everything once a round's line is in a log."""
    running = subprocess.Popen(
        [sys.executable, "-m", *snakemake_words("trainings")],
        cwd=folder,
        env=ENVIRONMENT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.time() + 120
    while time.time() < deadline and not (log.exists() and f"round {number}:" in log.read_text()):
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(30)
    assert f"round {number}:" in log.read_text()


def test_tables_and_figures_need_nothing_that_trains(study: Path) -> None:
    """The environment is as in envs/figures.yaml."""
    absent = ("torch", "safetensors", "sklearn", "transformers", "tokenizers", "datasets")
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from tasktransfer.designs import get_design, open_study
from tasktransfer.designs import commands
opened = open_study("study.yaml", need_inputs=False)
design = get_design(opened.config)
commands.write_collected_tables(design, opened, complete=True)
commands.write_statistics(design, opened)
commands.write_figures(design, opened)
commands.write_report(design, opened)
"""
    subprocess.run([sys.executable, "-c", code], cwd=study, check=True)
