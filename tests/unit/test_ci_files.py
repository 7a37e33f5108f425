"""CI's files: jobs have limits, call existing targets, and test what the package states."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS: dict[str, Any] = {
    path.name: yaml.safe_load(path.read_text()) for path in FOLDER.iterdir()
}
JOBS = [(file, name) for file, workflow in WORKFLOWS.items() for name in workflow["jobs"]]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize(("file", "name"), JOBS)
def test_a_job_has_a_time_limit_and_calls_what_exists(file: str, name: str) -> None:
    job = WORKFLOWS[file]["jobs"][name]
    assert 0 < job["timeout-minutes"] <= 90
    matrix = job.get("strategy", {}).get("matrix", {})
    for step in job["steps"]:
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step.get("uses", "a/b@v1")), step
        assert set(re.findall(r"matrix\.(\w+)", str(step))) <= matrix.keys(), step
        for end in matrix.get("end", [""]):
            command = step.get("run", "").replace("${{ matrix.end }}", end)
            for words in re.findall(r"(?<!\w)make ([^\n;&|]+)", command):
                assert {word for word in words.split() if "=" not in word} <= TARGETS, step


def test_every_workflow_ends_what_it_replaces_and_may_only_read() -> None:
    for file, workflow in WORKFLOWS.items():
        assert workflow["permissions"]["contents"] == "read", file
        assert "group" in workflow.get("concurrency", {}), file


def test_every_python_that_the_package_is_for_is_tested_on_linux_and_macos() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    said = [one.rpartition(" ")[2] for one in classifiers if re.search(r":: 3\.\d+$", one)]
    matrix = WORKFLOWS["tests.yml"]["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == said
    assert {system.partition("-")[0] for system in matrix["os"]} == {"ubuntu", "macos"}


def test_publishing_stores_no_secret() -> None:
    text = (FOLDER / "publish.yml").read_text()
    assert "secrets." not in text
    assert WORKFLOWS["publish.yml"]["jobs"]["publish"]["permissions"] == {"id-token": "write"}
