"""Mutants of functions, and tests whose branches and mutants other tests have too."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import mutants, redundant_tests, redundant_tests_page

MODULE = '''"""A module with 2 sentences."""


def count(items: list[int], least: int = 3) -> int:
    """Count items of 1 or more."""
    if len(items) < least and items:
        return -1
    return sum(item * 2 for item in items if item != 0)


class Shop:
    def open(self) -> str:
        if not self:
            raise ValueError("closed")
        print()
        return "open"
'''

CHANGES = [
    *("3 to 4", "negated condition", "And to Or", "Lt to LtE", "USub to UAdd", "1 to 2"),
    *("Mult to Div", "2 to 3", "NotEq to Eq", "0 to 1"),
    *("negated condition", "another error", "changed text", "call left out", "changed text"),
]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return an imported module to change."""
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "shop_to_change.py").write_text(MODULE, encoding="utf-8")
    sys.modules.pop("shop_to_change", None)
    return import_module("shop_to_change")


def test_each_mutant_changes_one_place(module: ModuleType) -> None:
    found = mutants.list_mutants("shop_to_change.py")
    assert sorted(mutant.change for mutant in found) == sorted(CHANGES)
    texts = {ast.unparse(mutants.build_mutant_tree(mutant)) for mutant in found}
    assert len(texts) == len(found)
    assert ast.unparse(ast.parse(MODULE)) not in texts


def test_a_mutant_replaces_the_code_of_imported_functions(module: ModuleType) -> None:
    functions = mutants.find_functions()
    compiled = {
        m.change: mutants.compile_mutant(m) for m in mutants.list_mutants(module.__name__ + ".py")
    }
    assert compiled["3 to 4"] is None, "a default is not in the function's code"
    for change, expected in (("USub to UAdd", 1), ("2 to 3", 9)):
        key, code = compiled[change] or pytest.fail(change)
        (function,) = functions[key]
        assert function is module.count
        function.__code__ = code
        assert module.count([1] * (2 if expected == 1 else 3)) == expected
    key, code = compiled["another error"] or pytest.fail("no method")
    (method,) = functions[key]
    assert method is module.Shop.open
    method.__code__ = code
    with pytest.raises(AssertionError):
        module.Shop.open(None)


def test_a_redundant_test_has_neither_a_branch_nor_a_mutant_alone() -> None:
    branches = {
        "t.py::a[0]": {("m.py", 1, 2)},
        "t.py::a[1]": {("m.py", 1, 3)},
        "t.py::b": {("m.py", 1, 2), ("m.py", 1, 3)},
        "t.py::c": {("m.py", 1, 2)},
        "t.py::d": {("m.py", 1, 2)},
    }
    killers = {
        "1": ["t.py::a[0]", "t.py::b"],
        "2": ["t.py::a[1]", "t.py::b", "t.py::c"],
        "3": ["t.py::c"],
        "4": [],
    }
    lengths = {"t.py::a": 9, "t.py::b": 8}
    find = redundant_tests.find_redundant
    # Without a, b is not redundant. Nothing is known about d, which kills no mutant.
    assert find(branches, killers, lengths, least=2) == ["t.py::a"]
    assert find(branches, {}, lengths, least=1) == []


def test_a_fork_that_fails_or_takes_too_long_returns_nothing() -> None:
    assert redundant_tests.run_in_fork(lambda: {"a": 1}, 1) == {"a": 1}
    assert redundant_tests.run_in_fork(lambda: 1 / 0, 1) is None
    assert redundant_tests.run_in_fork(lambda: sum(iter(int, 1)), 0) is None


def test_the_page_of_redundant_tests_shows_its_results() -> None:
    results = redundant_tests_page.read_results()
    assert redundant_tests_page.PAGE.read_text("utf-8") == redundant_tests_page.render_page(results)
    decisions = [
        row["decision"] for group in results.values() for row in group["redundant"].values()
    ]
    assert redundant_tests_page.UNREAD not in decisions
