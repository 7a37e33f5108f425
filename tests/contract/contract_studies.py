"""The smallest study of each design that has every kind of node the design can have."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_worlds import REAL, make_world

from packed_results import WEIGHTS, is_current, prepare_data, restore
from tasktransfer.cli import main
from tasktransfer.datasets.multiwoz.tiny_world import generate_release
from tasktransfer.designs import open_study
from tasktransfer.results.study import Study

DESIGN_FILE = Path(__file__).resolve().parents[1] / "toy_design.py"
TINY = {"name": "tiny", "family": "encoder", "checkpoint": "tiny", "max_length": 64}
CHAT = {"name": "chat", "family": "decoder", "checkpoint": "tiny", "max_length": 480,
        "max_unknown_words": 1.0, "trained": False}  # fmt: skip
TINY_WORLD = {"release": "tiny_world", "tiny_world": {"dialogues": 120}}
LSTM = {"kind": "lstm", "embedding": 8, "units": 8}
BUILT = {
    "layers": 1,
    "hidden": 16,
    "heads": 2,
    "feed_forward": 16,
    "positions": 64,
    "vocabulary_size": 500,
}

STUDIES: dict[str, dict[str, Any]] = {
    "transfer": {
        "data": TINY_WORLD,
        "datasets": {
            "DailyDialog": {
                "tasks": [
                    "emotion_recognition",
                    "dialogue_act_classification",
                    "topic_classification",
                ]
            }
        },
        "models": [TINY, CHAT],
        "algorithms": ["pretrain_finetune", "multitask"],
        "controls": ["shuffled_source"],
        "references": ["most_frequent"],
        "selectors": ["tfidf"],
        "seeds": 2,
        "training": {"learning_rate": 2e-3, "batch_size": 16, "epochs": 1, "limit_train": 16,
                     "limit_dev": 8, "limit_test": 12},
        "prompted": [{"model": "chat", "shots": [0], "chat": "no", "limit_test": 4}],
    },
    "empathetic": {
        "design": "empathetic",
        "data": {"few_sample": False, "release": "tiny_world", "tiny_world": {"dialogues": 200}},
        "models": [{"name": "retriever", "family": "dual_encoder", "checkpoint": "built",
                    "max_length": 32, "architecture": BUILT}],
        "seeds": 2,
        "training": {"learning_rate": 3.0e-3, "batch_size": 16, "epochs": 1, "limit_train": 32,
                     "limit_dev": 8},
        "pretraining": {"retrieval": False},
        "retrieval": {"model": "retriever", "methods": ["base", "emoprepend-1"]},
        "evaluation": {"block": 10, "shuffles": 2, "limit": 20, "limit_pool": 60, "pools": ["ED"]},
        "emotions": {"epochs": 1},
        "controls": ["random"],
    },
    "panel": {
        "design": "panel",
        "data": {"few_sample": False, "release": "tiny_world", "tiny_world": {"dialogues": 120}},
        "models": [{**TINY, "max_unknown_words": 1.0}],
        "seeds": 2,
        "training": {"learning_rate": 1.0e-3, "batch_size": 16, "limit_test": 12},
        "domains": ["Harbour", "Orchard"],
        "rated_sets": ["Harbour_Tiny", "Orchard_Tiny", "Market_Tiny"],
        "pairs": {"train": 32, "dev": 16, "candidates_per_pair": 1.5, "labels": "made"},
        "joint": {"epochs": 1, "round_updates": None},
        "experts": {"epochs": 1, "round_updates": None},
        "reduction": 16,
        "methods": ["panel", "single", "panel-mean"],
        "few_shot": {"sets": ["Market_Tiny"], "percentages": [20], "draws": 1,
                     "sampling_units": ["contexts", "items"], "batch_size": 16, "epochs": 1},
        "controls": ["untrained"],
        "selection": {"domain": "Harbour", "limit_train": 16, "limit_test": 8, "candidates": 4,
                      "personas": ["none"]},
    },
    "probes": {
        "design": "probes",
        "data": {"release": "world", "few_sample": False},
        "corpora": ["MultiWOZ"],
        "models": [{"name": "LSTM", "family": "encoder_decoder", "max_length": 60,
                    "architecture": LSTM}],
        "seeds": 2,
        "training": {"learning_rate": 4e-3, "batch_size": 16, "epochs": 1,
                     "precision": "float32", "limit_train": 64, "limit_dev": 8, "limit_test": 8},
        "probes": {"tasks": ["RecentTopic", "Coin"], "snapshots": ["untrained", "last"]},
    },
    "toy": {
        "design": "toy",
        "plugins": [str(DESIGN_FILE)],
        "data": TINY_WORLD,
        "models": [TINY],
        "seeds": 2,
        "training": {"learning_rate": 2e-3, "batch_size": 16, "epochs": 1, "limit_train": 32,
                     "limit_dev": 8},
        "part": 7,
    },
}  # fmt: skip

KINDS: dict[str, tuple[str, ...]] = {
    "transfer": ("stage", "fit", "data", "evaluation"),
    "empathetic": ("stage", "fit", "data", "evaluation"),
    "panel": ("stage", "data", "evaluation"),
    "probes": ("stage", "fit", "data"),
    "toy": ("stage", "fit", "data", "evaluation"),
}
"""Design → kinds of nodes in its study."""
WITH_ROWS: dict[str, tuple[str, ...]] = {
    "transfer": ("stage", "fit", "evaluation"),
    "empathetic": ("fit", "evaluation"),
    "panel": ("stage", "evaluation"),
    "probes": ("stage", "fit"),
    "toy": ("stage", "fit", "evaluation"),
}
"""Design → kinds of nodes of which some write predictions or rows."""

CITED: dict[str, tuple[str, ...]] = {
    "transfer": ("published_check",),
    "empathetic": ("table3", "table5"),
    "panel": ("table6", "published_resources"),
    "probes": ("table7",),
}
"""Design → printed tables without numbers from records, only from the paper or from formulas."""
CELLS: dict[str, tuple[str, ...]] = {
    "transfer": (
        *("DailyDialog", "tiny", "multitask"),
        *("dialogue_act_classification", "topic_classification"),
    ),
    "empathetic": ("base", "retriever", "retrieval"),
    "panel": ("panel", "tiny", "Harbour"),
    "probes": ("last", "LSTM", "MultiWOZ", "RecentTopic"),
    "toy": ("frozen", "tiny", "topic_classification"),
}
"""Design → words that name a cell: method, model, and the attributes of its runs."""


def config_of(name: str) -> dict[str, Any]:
    """Return the config of a design's study, or of one on a real world (None removes a key)."""
    config = {"study": name, **STUDIES[design_name(name)], **REAL.get(name, {})}
    return {key: value for key, value in config.items() if value is not None}


def design_name(name: str) -> str:
    """Return the design of a study."""
    return name.partition("-")[0]


def compute_study(name: str, folder: Path, *, packed: bool = True) -> Study:
    """Compute the records of a study in a folder, and return the study.

    Models and their inputs are deleted afterwards, because steps after the records must not need
    them.

    Args:
        name: name of the study.
        folder: an existing, empty folder.
        packed: whether to take the records from the study's pack, if it is current.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("study.yaml").write_text(yaml.safe_dump(config_of(name)))
        if name in REAL:
            make_world(design_name(name))
        elif name == "probes":
            generate_release(Path("world"), dialogues=60)
        study = open_study("study.yaml")
        if packed and is_current(study, name):
            prepare_data(study)
            restore(study, name)
        else:
            from empathetic_study import make  # noqa: PLC0415  # imports torch

            make(study)
    for place in WEIGHTS:
        for folder_of_weights in folder.glob(f"results/stages/*/*/*/*/*/{place}"):
            shutil.rmtree(folder_of_weights)
    for place in ("models", "data/encoded"):
        shutil.rmtree(folder / "results" / place, ignore_errors=True)  # some designs have none
    return study


def show_study(folder: Path) -> None:
    """Compute the tables and figures of a study with all records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in ("collect --complete", "statistics", "figures"):
            run(*command.split())


def run(*words: str) -> None:
    """Run a command on the study in the working directory, which must succeed."""
    assert main([words[0], "--config", "study.yaml", *words[1:]]) == 0, words
