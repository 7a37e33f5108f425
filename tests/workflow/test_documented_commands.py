"""The command lines of README, docs and shipped pages run as written, page by page.

Each page has a folder with the files that its commands need: the checkout's presets, configs equal
to the demo's, the demo's records, a file of dialogues. Only ``adapted`` changes commands. Snakemake
and make are dry runs; the demos, CI's jobs and ``test_own_data`` execute them completely.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from documented import OURS, commands
from tasktransfer.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "docs/tutorials", "docs/how-to", "docs/explanation", "shipped")
PAGES = ("README.md", *(f"{folder}/*.md" for folder in FOLDERS))
DEMO, PAPER = "workflow/presets/demo.yaml", "workflow/presets/paper.yaml"
LARGE = re.compile(r"workflow/presets/(paper|probes-laptop|minilm-matrix)\.yaml")
"""Studies with other data or models, which the demo replaces in Snakemake's lines."""

NOT_RUN = {
    "tasktransfer data fetch": "tests/unit/test_feta_download.py",
    "tasktransfer errors": "tests/unit/test_find_errors.py",
    "tasktransfer learning-curve": "tests/unit/test_learning_curve.py",
    "tasktransfer score": "tests/unit/test_challenge_round_trip.py",
    "tasktransfer submit": "tests/unit/test_challenge_round_trip.py",
    "tasktransfer leaderboard": "tests/unit/test_challenge_leaderboard.py",
    "tasktransfer items": "tests/unit/test_brought_answers.py",
    "tasktransfer replies": "tests/unit/test_brought_replies.py",
    "tasktransfer sheets": "tests/unit/test_brought_replies.py",
    "tasktransfer read-sheets": "tests/unit/test_rating_sheets.py",
    "tasktransfer judgements": "tests/unit/test_human_judgements.py",
    "tasktransfer rate": "tests/workflow/test_panel_planted.py",
    "tasktransfer recommend": "tests/workflow/test_own_data.py",
    "tasktransfer export-model": "tests/unit/test_export_model.py",
    "tasktransfer predict": "tests/unit/test_predict.py",
    "tasktransfer status --watch": "tests/unit/test_status.py",
    "tasktransfer run": "tests/workflow/test_run_command.py",
}
"""Beginning of a command that is not run here → the test that runs it.

Such a command needs files from another test (submissions, a trained panel or selectors), trains a
whole study, downloads data, or ends only by Ctrl-C.
"""
OWN_PAGES = ("docs/your-own-data.md", "docs/tutorials/own-dialogues.md")
"""Pages of which test_own_data and test_own_dialogues run every line."""


def documented() -> dict[str, list[str]]:
    """Return page → its commands."""
    pages = [page for pattern in PAGES for page in sorted(ROOT.glob(pattern))]
    lines = {page.relative_to(ROOT).as_posix(): commands(page, (*OURS, "mkdir")) for page in pages}
    return {page: found for page, found in lines.items() if found and page not in OWN_PAGES}


def adapted(line: str) -> str:
    """Adapt a command to a folder in which the demo's study replaces other studies."""
    line = re.sub(r" *\[--?[a-z].*?\]|->.*|\s#.*", "", line).strip()
    line = line.replace("/mnt/lab-b/results/paper", "lab-b").replace("--account me --submit", "")
    line = line.replace("./models/all-MiniLM-L6-v2", "tiny")
    line = re.sub(r"(--config(?:file)?) \.\.\.", rf"\1 {DEMO}", line)
    if re.match("tasktransfer (merge|pack|explain)", line):
        line = line.replace(PAPER, DEMO).replace("bert multitask emotion_recognition dialogue_nli",
                                                 "tiny-bert multitask ER TC")  # fmt: skip
    if line.startswith("tasktransfer demo"):
        return f"{line} --dry-run"
    if line.startswith("tasktransfer pack"):
        return f"{line} --with-text"  # a tiny decoder generates answers that are not labels
    if line.startswith("snakemake"):
        line = LARGE.sub(DEMO, line)
        return line if "--unlock" in line else f"{line} --dry-run --quiet all --nolock"
    return re.sub("^make ", f"make --dry-run --directory {ROOT} ", line)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """Write a folder with presets and shipped records of the checkout, and the demo's records."""
    folder = tmp_path_factory.mktemp("documented") / "checkout"
    folder.mkdir()
    for name in ("workflow", "shipped", "profiles", "Snakefile", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    (folder.parent / "shared").symlink_to(shared)
    (folder / "data").mkdir()
    for release in ("feta", "data/feta"):
        (folder / release).symlink_to(shared / "feta")
    text = (ROOT / DEMO).read_text(encoding="utf-8")
    for name in ("config.yaml", "study.yaml", "a.yaml", "b.yaml"):
        (folder / name).write_text(text, encoding="utf-8")
    with zipfile.ZipFile(ROOT / "tests" / "fixtures" / "demo.zip") as archive:
        archive.extract("demo.parquet", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["merge", "demo.parquet", "--config", DEMO]) == 0
        shutil.copytree("results/demo", "lab-b")
        (folder / "shards").mkdir()
        shutil.copy("demo.parquet", "shards/lab-b.parquet")
    for name in ("licences.md", "LICENCES.md"):
        (folder / name).write_text("Generated; Apache-2.0.\n", encoding="utf-8")
    write_tickets(folder / "tickets.jsonl")
    write_matrix(folder / "FILE.csv")
    return folder


def write_tickets(file: Path) -> None:
    intents = ("billing", "login", "shipping")
    rows = [
        {"id": n, "intent": intents[n % 3],
         "messages": [{"role": "customer", "content": f"please help with {intents[n % 3]} {n}"},
                      {"role": "agent", "content": f"of course, this is ticket number {n}"}]}
        for n in range(60)
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def write_matrix(file: Path) -> None:
    rows = ["model,source,target,seed,score,size"]
    rows += [
        f"m,t{source},t{target},{seed},{50 + (7 * source + 3 * target + seed) % 11},{source}"
        for target in range(4)
        for source in range(4)
        for seed in range(2)
        if source != target
    ]
    file.write_text("\n".join(rows), encoding="utf-8")


def first_said() -> list[tuple[str, str]]:
    """Return page and command, each command once."""
    lines: dict[str, tuple[str, str]] = {}
    for page, found in documented().items():
        for line in found:
            if not line.startswith(tuple(NOT_RUN)):
                lines.setdefault(adapted(line), (page, line))
    return list(lines.values())


@pytest.mark.parametrize("page", dict.fromkeys(page for page, _ in first_said()))
def test_the_commands_of_a_page_run(
    page: str, demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(demo)
    for line in (line for of, line in first_said() if of == page):
        words = shlex.split(adapted(line))
        if words[0] == "tasktransfer" and ">" not in words:  # a process each would take a minute
            assert main(words[1:]) == 0, f"{page}: {line}: {capsys.readouterr().err[-2500:]}"
        else:
            run(f"{page}: {line}", adapted(line), demo)


def run(what: str, command: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "HOME": str(folder), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = f"{done.stdout[-1500:]}{done.stderr[-2500:]}"
    assert done.returncode == 0, f"{what}\nrun as: {command}\n{told}"


def test_what_is_run_elsewhere_is_documented_and_is_run_there() -> None:
    lines = [line for found in documented().values() for line in found]
    for words, file in NOT_RUN.items():
        assert any(line.startswith(words) for line in lines), words
        _, command, *_ = words.split()
        assert re.search(rf"\b{command}\b", (ROOT / file).read_text(encoding="utf-8")), words
