"""The tutorial on the sample dialogues: its commands, its output, and the sample itself."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from calls import ENVIRONMENT, ROOT
from nbclient import NotebookClient

from documented import FENCE, commands
from tasktransfer.cli import main
from tasktransfer.operate.forecast import rates

PAGE = ROOT / "docs" / "tutorials" / "own-dialogues.md"
NOTEBOOK = ROOT / "notebooks" / "own-dialogues.ipynb"
MINILM = ROOT / "models" / "all-MiniLM-L6-v2"
LINES = commands(PAGE, ("tasktransfer", "cd", "make"))
TINY, PRETRAINED = LINES[: LINES.index("cd ..")], LINES[LINES.index("cd ..") + 1 :]
RATES = rates.Rates("cpu", {"float32": 168e9, "bfloat16": 1118e9}, "a core", "measured")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def list_outputs() -> list[list[str]]:
    """Return the lines of each block of output on the page, up to omissions."""
    blocks = [block for _, block in FENCE.findall(PAGE.read_text("utf-8"))]
    outputs = [block.splitlines() for block in blocks if not block.startswith(("tasktr", "cd "))]
    return [[line.removesuffix(" ...") for line in lines if line != "..."] for lines in outputs]


CHECKED, WRITTEN, RAN, PREDICTED, BY_MINILM = list_outputs()


def test_the_sample_is_balanced_and_repeats_nothing() -> None:
    rows = [json.loads(line) for line in (ROOT / "examples/support/dialogues.jsonl").open()]
    assert Counter(row["intent"] for row in rows) == {"billing": 20, "delivery": 20, "account": 20}
    assert all(3 <= len(row["messages"]) <= 8 for row in rows)
    turns = Counter(turn["content"] for row in rows for turn in row["messages"])
    assert {text for text, count in turns.items() if count > 1 and len(text) > 12} == set()


def test_check_and_init_print_what_the_page_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(rates, "measure_machine_rates", lambda device: RATES)
    check, init, *_ = TINY
    for command, shown in ((check, CHECKED), (init, WRITTEN)):
        assert main(shlex.split(command)[1:]) == 0
        printed = "".join(capsys.readouterr())
        assert [line for line in shown if line not in printed] == []


@pytest.mark.slow
def test_the_tutorial_runs_from_the_file_to_predictions(folder: Path) -> None:
    text = run(folder, TINY)
    report = (folder / "support/results/report.html").read_text("utf-8")
    assert "use TF-IDF with logistic regression (score 83.3 [44.2, 96.9])" in report
    assert "(baseline: 53.6; TF-IDF with logistic regression: 83.3; difference: −29.7" in report
    assert [line for line in (*RAN[1:], *PREDICTED) if line not in text] == []
    assert "took " in text and "h; forecast " in text


@pytest.mark.slow
@pytest.mark.skipif(not MINILM.exists(), reason="no models/all-MiniLM-L6-v2: make minilm")
def test_init_with_a_pretrained_encoder_prints_what_the_page_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "models").symlink_to(MINILM.parent)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(rates, "measure_machine_rates", lambda device: RATES)
    (init,) = (line for line in PRETRAINED if " init " in line)
    assert main(shlex.split(init)[1:]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == BY_MINILM[:2]


@pytest.mark.slow
@pytest.mark.skipif(not MINILM.exists(), reason="no models/all-MiniLM-L6-v2: make minilm")
def test_the_tutorial_runs_with_a_pretrained_encoder(folder: Path) -> None:
    (folder / "models").symlink_to(MINILM.parent)
    text = run(folder, [line for line in PRETRAINED if not line.startswith("make")])
    assert BY_MINILM[2].partition(", temperature")[0] in text
    predictions = (json.loads(line) for line in text.splitlines() if line.startswith('{"id"'))
    assert [each["label"] for each in predictions] == ["billing", "delivery", None]


@pytest.mark.slow
def test_the_notebook_runs_from_a_config_to_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDY", str(tmp_path))
    monkeypatch.setenv("PATH", ENVIRONMENT["PATH"])
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(notebook, timeout=1200, resources=resources).execute()
    printed = {
        cell.id: "".join(output.get("text", "") for output in cell.get("outputs", []))
        for cell in notebook.cells
    }
    assert "support: 17 of 17 jobs done (100 %)" in printed["run"]
    assert "Exporting tfidf_logistic" in printed["export"]
    labels = [line.split()[0] for line in printed["predict"].splitlines() if line[-3:-2] == "."]
    assert labels == ["billing", "delivery"]


def run(folder: Path, lines: list[str]) -> str:
    """Run commands in one shell, and return what they print."""
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(lines)],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout
