"""A finished study of one's own dialogues with a small model, whose methods can be exported."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from small_models import make_model
from tasktransfer.core.nodes import Stage
from tasktransfer.core.references import CONTRASTIVE_SETTINGS, REFERENCES
from tasktransfer.data.cache import cache_dataset
from tasktransfer.designs import get_design, open_study
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.jobs import node_jobs
from tasktransfer.jobs.predictor import Predictor
from tasktransfer.results.study import Study
from tasktransfer.training.attempt import train_if_needed
from tasktransfer.training.job import Job

WORDS = {
    "billing": ("invoice", "refund", "payment"),
    "login": ("password", "account", "locked"),
    "shipping": ("parcel", "courier", "delivery"),
}
CONFIG: dict[str, Any] = {
    "study": "tickets",
    "datasets": {
        "Tickets": {
            "files": {"train": "./tickets.jsonl"},
            "shares": {"dev": 0.2, "test": 0.25},
            "dialogue": {"turns": "messages", "text": "text", "speaker": "role", "id": "id"},
            "tasks": {
                "intent": {"kind": "dialogue_classification", "label": "intent"},
                "mood": {"kind": "utterance_classification", "label": "messages[].mood"},
            },
        }
    },
    "models": [
        {"name": "small", "family": "encoder", "checkpoint": "./small", "max_length": 24},
        {
            "name": "mean",
            "family": "encoder",
            "checkpoint": "./small",
            "max_length": 24,
            "reads": "mean",
        },
    ],
    "references": [*REFERENCES],
    "algorithms": ["baseline"],
    "seeds": 2,
    "training": {"epochs": 2, "learning_rate": 1e-3, "limit_train": 40},
}


@pytest.fixture(scope="module", autouse=True)
def few_updates() -> Iterator[None]:
    """Fine-tune contrastively for few updates in a module that imports this fixture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CONTRASTIVE_SETTINGS, "updates", 4)
        yield


def list_training_dialogues(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return dialogues of two or three turns, whose words give intent and mood."""
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        intent = chance.choice(list(WORDS))
        messages = []
        for turn in range(chance.randint(2, 3)):
            mood = chance.choice(["calm", "angry"])
            word = chance.choice(WORDS[intent])
            text = f"the {word} {'is awful' if mood == 'angry' else 'is fine'} number {number}"
            role = "agent" if turn % 2 else "customer"
            messages.append({"role": role, "text": text, "mood": mood})
        rows.append({"id": f"t{number}", "intent": intent, "messages": messages})
    return rows


def list_texts(count: int) -> list[str]:
    """Return dialogues as text with the roles of speakers."""
    return [
        " ".join(f"{turn['role']}: {turn['text']}" for turn in row["messages"])
        for row in list_training_dialogues(count, seed=7)
    ]


def compute_own_logits(predictor: Predictor, texts: list[str]) -> np.ndarray:
    """Return the logits of an exported model for texts, without other libraries."""
    build = predictor.exported.build_instance
    return predictor.compute([build("", text, len(text), {}) for text in texts], 8)


def write_dialogues(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def finish_study(keep: bool = True) -> Study:
    """Write a study into the working directory, and run its fits and trainings.

    ``keep``: whether checkpoints are kept.
    """
    rows = list_training_dialogues(80)
    write_dialogues(Path("tickets.jsonl"), rows)
    texts = [f"{m['role']}: {m['text']}" for row in rows for m in row["messages"]]
    make_model("encoder", texts * 5, Path("small"))
    Path("study.yaml").write_text(yaml.safe_dump(CONFIG))
    study = open_study("study.yaml")
    design = get_design(study.config)
    data = study.get_released_data("Tickets")
    cache_dataset(
        "Tickets", study.get_release("Tickets"), True, study.get_instances_folder("Tickets")
    )
    for folder, (_, name) in study.encoded_folders.items():
        spec = study.revisions.models[name]
        encode_dataset(
            Path(study.get_cache_folder(data)),
            "Tickets",
            study.list_tasks(data),
            study.get_checkpoint_source(name),
            None,
            "encoder",
            24,
            Path(folder),
            model=spec.identity,
        )
    for fit in study.plan.fits:
        node_jobs.fit_node(study, fit, design)
    for stage in study.plan.stages:
        train_if_needed(_make_job(study, stage, keep))
    return study


def _make_job(study: Study, stage: Stage, keep: bool) -> Job:
    return Job(
        stage=stage,
        encoded=Path(study.get_encoded_folder(stage.data, stage.model.name)),
        base=study.get_checkpoint_source(stage.model.name),
        revision=None,
        out=Path(study.get_node_folder(stage)),
        save_checkpoint=keep,
        threads=1,
        study=study.config.study,
        config_digest=study.config.digest,
    )
