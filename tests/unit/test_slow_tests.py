"""The list of slow tests is complete, and a change selects the tests of what it changes."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from slow_tests import EVERY_TEST, ROOT, SLOW, list_files, select_files

MARK = re.compile(r"pytest\.mark\.slow")
PATHS = sorted({path for tested in SLOW.values() for path in (*tested, *EVERY_TEST)})


def test_the_list_has_every_file_with_a_slow_test() -> None:
    found = {
        path.relative_to(ROOT / "tests").as_posix()
        for path in (ROOT / "tests").glob("*/test_*.py")
        if MARK.search(path.read_text(encoding="utf-8")) and path.name != "test_slow_tests.py"
    }
    assert found == set(SLOW)


@pytest.mark.parametrize("path", PATHS)
def test_every_path_is_there(path: str) -> None:
    assert [*ROOT.glob(f"{path}*")] if not path.endswith("/") else (ROOT / path).is_dir()


@pytest.mark.parametrize(
    ("changed", "there", "absent"),
    [
        ("src/tasktransfer/training/loop.py", "planted_truth", "report"),
        ("docs/running.md", "documented_commands", "planted_truth"),
        ("src/tasktransfer/present/page/page.js", "report", "slurm"),
        ("workflow/rules/train.smk", "slurm", "report"),
        ("tests/workflow/test_wheel.py", "wheel", "report"),
    ],
)
def test_a_change_selects_what_tests_it(changed: str, there: str, absent: str) -> None:
    selected = select_files([changed])
    assert f"tests/workflow/test_{there}.py" in selected
    assert f"tests/workflow/test_{absent}.py" not in selected


def test_a_change_of_nothing_tested_selects_nothing() -> None:
    assert select_files(["CHANGELOG.md"]) == []


@pytest.mark.parametrize("words", [[], ["no-such-commit"]])
def test_without_a_known_commit_all_are_printed(words: list[str]) -> None:
    command = [sys.executable, ROOT / "tests" / "slow_tests.py", *words]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.split() == list_files()
