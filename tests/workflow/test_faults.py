"""Small real studies that lose processes, and end as if nothing had happened.

chaos.py does the same by hand with the demo; by_hand_slurm.py with jobs and nodes of a real Slurm.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chaos
import pytest
import yaml

STUDY: dict[str, Any] = {
    "study": "faults",
    "data": {"release": "tiny_world", "tiny_world": {"dialogues": 120}},
    "datasets": {"DailyDialog": {"tasks": ["emotion_recognition", "topic_classification"]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    "algorithms": "all",
    "training": {"learning_rate": 2e-3, "batch_size": 8, "epochs": 4},
}
TRAININGS = 8
"""Of one seed: two baselines, two multitask trainings, four fine-tunings."""

NOTHING = {"differences": [], "half files": [], "trained twice": []}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the study of one seed and that of two."""
    folder = tmp_path_factory.mktemp("faults")
    for name, seeds in (("one", 1), ("two", 2)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(STUDY | {"seeds": seeds}))
    return folder


@pytest.fixture(scope="module")
def calm(base: Path) -> Path:
    """The study of one seed, run without disturbance."""
    chaos.undisturbed(base / "calm", base / "one.yaml")
    return base / "calm"


def test_a_study_under_fire_ends_like_an_undisturbed_one(base: Path, calm: Path) -> None:
    fire = base / "fire"
    toll = chaos.under_fire(fire, base / "one.yaml", kills=12, every=2.5)
    chaos.undisturbed(fire, base / "one.yaml")
    assert chaos.verdict(fire, calm) == NOTHING
    assert toll.kills.total() >= 6, toll
    assert chaos.attempts(fire)["finished"] == TRAININGS
