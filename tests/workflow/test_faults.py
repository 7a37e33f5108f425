"""Small real studies that lose processes, and end as if nothing had happened.

chaos.py does the same by hand with the demo; test_slurm.py with jobs and nodes of a real Slurm.
"""

from __future__ import annotations

from pathlib import Path

import chaos
import pytest
import yaml
from chaos import NOTHING, SMALL_STUDY

TRAININGS = 7
"""Of one seed: two baselines, two multitask trainings, four fine-tunings."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the study."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "one.yaml").write_text(yaml.safe_dump(SMALL_STUDY | {"seeds": 1}))
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
