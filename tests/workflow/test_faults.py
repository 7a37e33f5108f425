"""Small real studies that lose processes, with the same results as undisturbed ones.

Run chaos.py by hand for the demo. test_slurm.py uses jobs and nodes of a real Slurm.
"""

from __future__ import annotations

from pathlib import Path

import chaos
import pytest
import yaml
from chaos import NOTHING, SMALL_STUDY

pytestmark = pytest.mark.slow

TRAININGS = 7
"""Trainings of one seed: two baselines, two multitask trainings, four fine-tunings."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the study into a folder."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "one.yaml").write_text(yaml.safe_dump(SMALL_STUDY | {"seeds": 1}))
    return folder


@pytest.fixture(scope="module")
def calm(base: Path) -> Path:
    """Run the study of one seed without disturbance."""
    chaos.undisturbed(base / "calm", base / "one.yaml")
    return base / "calm"


def test_a_study_under_fire_ends_like_an_undisturbed_one(base: Path, calm: Path) -> None:
    fire = base / "fire"
    toll = chaos.under_fire(fire, base / "one.yaml", kills=12, every=2.5)
    chaos.undisturbed(fire, base / "one.yaml")
    assert chaos.verdict(fire, calm) == NOTHING
    assert toll.kills.total() >= 6, toll
    assert chaos.attempts(fire)["finished"] == TRAININGS
