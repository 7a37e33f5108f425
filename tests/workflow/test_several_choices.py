"""A plan with two successive choices in one call; the second follows from the first."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from calls import ROOT, call, snakemake

from race_design import RATE, RATES, SOURCE, SOURCES
from tasktransfer.designs import open_study

pytestmark = pytest.mark.slow

STUDY: dict[str, Any] = {
    "study": "race",
    "design": "race",
    "plugins": [str(ROOT / "tests" / "race_design.py")],
    "data": {"tiny_world": {"dialogues": 120}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    "training": {"batch_size": 16, "limit_train": 64, "limit_dev": 32, "limit_test": 16},
    "seeds": 2,
}


def jobs(told: str) -> Counter[str]:
    """Count the runs of each of the design's rules."""
    return Counter(re.findall(r"Rule: (source|target|choose|collect)\)", told))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("race")
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    return folder, snakemake(folder, "all")


def test_one_call_makes_both_choices_and_what_follows(
    made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = made
    monkeypatch.chdir(folder)
    study = open_study("study.yaml")
    assert [choice.name for choice in study.plan.choices] == [SOURCE, RATE]
    assert study.pending_choices == ()
    source, rate = (
        json.loads(Path(study.get_choice_path(c)).read_text()) for c in study.plan.choices
    )
    assert source in SOURCES and rate in RATES
    counts = Counter((stage.kind, stage.seed) for stage in study.plan.stages)
    # The second seed trains its own source; the first seed's target was in the race.
    assert counts == {("source", 0): 2, ("target", 0): 2, ("source", 1): 1, ("target", 1): 1}
    rows = pd.read_parquet("results/tables/race.parquet").itertuples(index=False, name=None)
    assert ("target", source, 1, rate) in [*rows]


def test_a_finished_race_rests_and_its_choices_are_pinned(made: tuple[Path, str]) -> None:
    folder, told = made
    assert jobs(told)["choose"] == 2
    assert "Nothing to be done" in snakemake(folder, "all")
    record = next((folder / "results/stages/source").rglob("metrics.json"))
    record.unlink()
    assert jobs(snakemake(folder, "all")) == {"source": 1, "collect": 1}


def test_a_choice_that_is_deleted_is_made_again(made: tuple[Path, str]) -> None:
    folder, _ = made
    file = folder / f"results/tables/{RATE}.json"
    before = file.read_text()
    file.unlink()
    told = call(folder, "tasktransfer", "plan", "--config", "study.yaml", "--json")
    assert json.loads(told)["runs"]["choice_pending"]
    # The same choice leads to no missing jobs.
    assert jobs(snakemake(folder, "all")) == {"choose": 1}
    assert file.read_text() == before
