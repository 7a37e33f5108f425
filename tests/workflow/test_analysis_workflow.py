"""Snakemake and the real commands, from records alone: the files written and kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from calls import require_success, snakemake_words
from forked_snakemake import run_snakemake

from study_records import write_records, write_stage
from tasktransfer.designs import open_study
from tasktransfer.results.study import Study

A, B = "emotion_recognition", "topic_classification"
C, D = "emory_emotion_recognition", "MELD_emotion_recognition"
STUDY: dict[str, Any] = {
    "study": "constructed",
    "datasets": {"DailyDialog": {"tasks": [A, B]}, "Friends": {"tasks": [C, D]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "algorithms": ["multitask"],
    "seeds": 2,
}
SPY = """#!/usr/bin/env bash
# The real command, which first notes what is there when it starts.
echo "$1 $(ls results/tables/cells.parquet 2> /dev/null)" >> asked.log
exec {python} -m tasktransfer "$@"
"""


def snakemake(*arguments: str) -> str:
    programs = f"{Path('bin').resolve()}:{os.environ['PATH']}"
    _, *words = snakemake_words(*arguments)
    done = run_snakemake(words, Path.cwd(), {**os.environ, "PATH": programs})
    return require_success(done, Path.cwd())


def asked() -> list[str]:
    """Return the commands since the last call, each with the cells it found."""
    log = Path("asked.log")
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


def write_study(**changes: Any) -> Study:
    Path("study.yaml").write_text(yaml.safe_dump(STUDY | changes))
    return open_study("study.yaml")


@pytest.fixture
def study(here: Path) -> Study:
    """Write only the records of a finished study: no dialogues, no models, no tables."""
    Path("bin").mkdir()
    spy = Path("bin/tasktransfer")
    spy.write_text(SPY.format(python=sys.executable))
    spy.chmod(0o755)
    made = write_study()
    write_records(made)
    return made


def inodes(pattern: str) -> dict[str, int]:
    """Return the files' inodes, which change when a file is replaced."""
    return {path.name: path.stat().st_ino for path in Path("results/figures").glob(pattern)}


@pytest.mark.slow
def test_figures_from_records_alone_and_only_what_changed_again(study: Study) -> None:
    snakemake("figures")
    assert [line.split()[0] for line in asked()] == ["collect", "statistics", "figures", "report"]
    assert not Path("results/data").exists()
    daily, friends = inodes("*_DailyDialog.p*"), inodes("*_Friends.p*")
    assert len(daily) == len(friends) == 8 * 2
    assert "Nothing to be done" in snakemake("figures")

    # If answers in a record of Friends change, its figures are drawn again, but not DailyDialog's.
    stage = next(s for s in study.plan.stages if s.dataset == "Friends" and s.kind == "multitask")
    write_stage(study, stage, lambda run: 0.95)
    snakemake("figures")
    # The previous statistics still exist when they are computed again.
    assert asked()[1] == "statistics results/tables/cells.parquet"
    assert inodes("*_DailyDialog.p*") == daily
    redrawn = inodes("heatmap_Friends.p*")
    assert redrawn != {name: friends[name] for name in redrawn}
    assert "Nothing to be done" in snakemake("figures")


def test_a_study_of_baselines_has_tables_and_a_report(study: Study) -> None:
    write_study(algorithms=["baseline"])
    snakemake("figures")
    assert inodes("heatmap_*") == {}
    assert inodes("table2.*") == {}  # it has no transfer
    assert len(inodes("table1.*")) == 5
    assert "baselines only" in Path("results/report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_several_sources_have_their_figure(study: Study) -> None:
    """Snakemake's own report also contains the figures with their captions."""
    tasks = [A, B, "dialogue_nli"]
    named = [{"dataset": "DailyDialog", "target": "dialogue_nli", "sources": [A, B]}]
    keys: dict[str, Any] = {
        "datasets": {"DailyDialog": {"tasks": tasks}},
        "multi_source": {"mode": "named", "named": named},
        "seeds": 1,
    }
    write_records(write_study(**keys))
    snakemake("figures")
    assert len(inodes("multi_source_DailyDialog.*")) == 2
    snakemake("figures", "--report", "snakemake-report.html")
    text = Path("snakemake-report.html").read_text(encoding="utf-8")
    for shown in ("heatmap_DailyDialog.png", "table2.csv", "report.html"):
        assert shown in text
    assert "FDR control" in text
