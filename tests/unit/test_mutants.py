"""Mutants of a module, and tests whose lines and mutants are those of another test."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks import mutants

MODULE = '''"""A module with 2 sentences."""


def count(items: list[int], least: int = 3) -> int:
    """Count items of 1 or more."""
    if len(items) < least and items:
        return -1
    return sum(item * 2 for item in items if item != 0)
'''

CHANGES = ["3 to 4", "negated condition", "And to Or", "Lt to LtE", "USub to UAdd", "1 to 2",
           "Mult to Div", "2 to 3", "NotEq to Eq", "0 to 1"]  # fmt: skip


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    return "module.py"


def test_each_mutant_changes_one_place(source: str) -> None:
    found = mutants.list_mutants(source)
    assert sorted(mutant.change for mutant in found) == sorted(CHANGES)
    texts = {mutants.mutate(mutant) for mutant in found}
    assert len(texts) == len(found)
    assert ast.unparse(ast.parse(MODULE)) not in texts
    assert {mutant.line for mutant in found} == {4, 6, 7, 8}


def test_a_test_whose_lines_and_mutants_another_has_is_named() -> None:
    lines = {
        "t.py::a[0]": {"m.py": [1, 2]},
        "t.py::a[1]": {"m.py": [3]},
        "t.py::b": {"m.py": [1, 2, 3]},
        "t.py::c": {"m.py": [1]},
    }
    killers = {"m.py:1": ["t.py::a[0]", "t.py::b"], "m.py:2": ["t.py::c"], "m.py:3": []}
    assert mutants.find_subsumed(lines, killers) == [("t.py::a", "t.py::b")]


def test_a_fork_that_fails_or_takes_too_long_returns_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert mutants.in_fork(lambda: {"a": 1}) == {"a": 1}
    assert mutants.in_fork(lambda: 1 / 0) is None
    monkeypatch.setattr(mutants, "SECONDS", 1)
    assert mutants.in_fork(lambda: sum(iter(int, 1))) is None
