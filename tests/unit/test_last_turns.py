"""The study in one file: its plan, its size, and (slow) its page from a training to the report."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from empathetic_study import make
from tasktransfer.cli import main
from tasktransfer.designs import open_study
from tasktransfer.results.study import Study

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "examples" / "last_turns.py"


def write_study(**changes: Any) -> Study:
    """Write the demo's config to the current folder with other keys, and open it."""
    config = yaml.safe_load((ROOT / "examples" / "last-turns-demo.yaml").read_text())
    Path("study.yaml").write_text(yaml.safe_dump({**config, "plugins": [str(FILE)], **changes}))
    return open_study("study.yaml")


def test_every_length_has_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = write_study().plan
    lengths = [(run.about["task"], run.about["turns"], run.seed) for run in plan.runs]
    assert len(set(lengths)) == len(lengths) == 3 * 3 * 3  # tasks, lengths, seeds
    assert len(plan.stages) == len(plan.runs)
    assert {data.settings["turns"] for data in plan.derived} == {1, 2}
    read = {run.about["turns"]: run.stages[0].data.settings.get("turns") for run in plan.runs}
    assert read == {"whole": None, "1": 1, "2": 2}


def test_it_is_short_and_imports_no_private_name() -> None:
    text = FILE.read_text(encoding="utf-8")
    lines = text.count("\n")
    assert lines < 301, "it had 301 lines before frames were declared"
    assert f"a single file of {lines} lines" in (ROOT / "docs/designs.md").read_text()
    imported = [
        part
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for part in (*(node.module or "").split("."), *(alias.name for alias in node.names))
    ]
    assert imported and not [
        part for part in imported if part.startswith("_") and part != "__future__"
    ]


@pytest.mark.slow
def test_its_page_answers_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    training = {"learning_rate": 2e-3, "batch_size": 16, "epochs": 1}
    make(write_study(tasks=["topic_classification"], turns=[1], seeds=2, training=training))
    for command in ("collect", "statistics", "figures", "report"):
        assert main([command, "--config", "study.yaml"]) == 0
    results = Path("results/last-turns-demo")
    page = (results / "report.html").read_text(encoding="utf-8")
    assert "How does truncating the context to its last turns change" in page
    assert "Minus whole" in page and "Score change without the earlier context" in page
    assert (results / "figures" / "lost.png").stat().st_size > 1000
