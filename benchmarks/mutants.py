"""Mutants of a package that its unit tests kill, and unit tests that kill no other mutants.

    python -m benchmarks.mutants stats --sample 60 --out build/mutants-stats.json

A mutant is a module with one changed operator, comparison, condition or number. Mutants are sampled
from the lines that the tests cover. Each is tested by the test files that cover its line, in a fork
of a process that has imported the libraries; programs that tests start use the original module.
Needs the package ``coverage``.

The report names each surviving mutant, and each test function whose covered lines and killed
mutants are subsets of those of one other test function. It is evidence for reading such a test, not
for deleting it unread: a sample has only some mutants of each line.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
LIBRARIES = ("numpy", "pandas", "pyarrow.parquet", "scipy.stats", "hypothesis", "pydantic", "yaml")
"""Modules that most tests import, imported once."""
SECONDS = 120
"""Processor time after which a mutant counts as killed."""
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
"""Operator → the operator that replaces it."""

Lines = dict[str, dict[str, list[int]]]
"""Test → file below ``src`` → covered lines."""


@dataclass(frozen=True)
class Mutant:
    """A change of a module: ``place`` is the number of the changed node in the walk of its tree."""

    file: str
    place: int
    line: int
    change: str

    @property
    def name(self) -> str:
        """Name for reports."""
        return f"{self.file}:{self.line} {self.change} #{self.place}"


# --- mutations ------------------------------------------------------------------------------------


def list_mutants(file: str) -> list[Mutant]:
    """Return every mutant of a file below ``src``."""
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    skipped = {id(inner) for node in _list_annotations(tree) for inner in ast.walk(node)}
    return [
        Mutant(file, place, getattr(node, "lineno", 0), change)
        for place, node in enumerate(ast.walk(tree))
        if id(node) not in skipped and (change := _mutate(node))
    ]


def mutate(mutant: Mutant) -> str:
    """Return the text of a mutant's module."""
    tree = ast.parse((SOURCE / mutant.file).read_text(encoding="utf-8"))
    _mutate([*ast.walk(tree)][mutant.place])
    return ast.unparse(ast.fix_missing_locations(tree))


def _list_annotations(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if (found := getattr(node, name, None)) is not None:
                yield found


def _mutate(node: ast.AST) -> str | None:
    """Change a node in place, and return a description, or None if it has no mutation."""
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPPED:
            node.op = SWAPPED[type(op)]()  # type: ignore[assignment]
            return f"{type(op).__name__} to {type(node.op).__name__}"
        case ast.Compare(ops=[op]) if type(op) in SWAPPED:
            node.ops = [SWAPPED[type(op)]()]  # type: ignore[list-item]
            return f"{type(op).__name__} to {type(node.ops[0]).__name__}"
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
            return "negated condition"
        case ast.UnaryOp(op=ast.USub()):
            node.op = ast.UAdd()
            return "USub to UAdd"
        case ast.Constant(value=bool() as value):
            node.value = not value
            return f"{value} to {node.value}"
        case ast.Constant(value=int() | float() as number):
            node.value = number + 1
            return f"{number} to {node.value}"
    return None


# --- tests in forks -------------------------------------------------------------------------------


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder of the one module that has another text."""

    def __init__(self, mutant: Mutant, text: str) -> None:
        self.name = mutant.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        self.path, self.text = SOURCE / mutant.file, text

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        """Return the specification of the changed module only."""
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed text."""
        exec(compile(self.text, str(self.path), "exec"), module.__dict__)


class Recorder:
    """pytest plugin that collects failures, and with ``coverage`` the lines of each test."""

    def __init__(self, coverage: Any = None) -> None:
        self.coverage, self.failed, self.seen = coverage, set[str](), set[str]()

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Attribute the following lines to a test."""
        self.seen.add(item.nodeid)
        if self.coverage:
            self.coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failed test."""
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be imported."""
        if report.failed:
            self.failed.add(report.nodeid)


def run_tests(files: Sequence[str], recorder: Recorder) -> None:
    """Run the tests of files that are not slow."""
    words = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no"]
    pytest.main([*words, *files], plugins=[recorder])


def in_fork(work: Any) -> Any:
    """Return what a function returns in a forked process, or None if it takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        if (child := os.fork()) == 0:
            try:
                resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
                out.write_text(json.dumps(work()))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return json.loads(out.read_text()) if out.exists() else None


def measure_lines(package: str, files: Sequence[str]) -> Lines:
    """Return the lines of a package that each test covers; tests that fail are left out."""

    def work() -> Lines:
        from coverage import Coverage  # noqa: PLC0415  # not a dependency of the project

        measured = Coverage(data_file=None, source=[str(SOURCE / package)])
        recorder = Recorder(measured)
        measured.start()
        run_tests(files, recorder)
        measured.stop()
        lines: Lines = defaultdict(dict)
        data = measured.get_data()
        for file in data.measured_files():
            name = str(Path(file).relative_to(SOURCE))
            for line, tests in data.contexts_by_lineno(file).items():
                for test in {*tests} & (recorder.seen - recorder.failed):
                    lines[test].setdefault(name, []).append(line)
        return lines

    found: Lines | None = in_fork(work)
    return found or {}


def list_killers(mutant: Mutant, files: Sequence[str]) -> list[str] | None:
    """Return the tests that fail with a mutant, or None if the tests do not end."""
    text = mutate(mutant)

    def work() -> list[str]:
        sys.meta_path.insert(0, Mutated(mutant, text))
        recorder = Recorder()
        run_tests(files, recorder)
        return sorted(recorder.failed)

    found: list[str] | None = in_fork(work)
    return found


# --- the report -----------------------------------------------------------------------------------


def get_function(test: str) -> str:
    """Return a test's function, without its parameters."""
    return test.partition("[")[0]


def find_subsumed(lines: Lines, killers: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return test functions whose lines and mutants are those of another, with that other one."""
    covered: dict[str, set[tuple[str, int]]] = defaultdict(set)
    killed: dict[str, set[str]] = defaultdict(set)
    for test, by_file in lines.items():
        covered[get_function(test)] |= {(f, line) for f, some in by_file.items() for line in some}
    for mutant, tests in killers.items():
        for test in tests:
            killed[get_function(test)].add(mutant)
    found, left_out = [], set[str]()
    for test in sorted(covered, key=lambda test: (len(covered[test]), test)):
        for other, of_other in covered.items():
            if (
                other != test
                and other not in left_out
                and covered[test] <= of_other
                and killed[test] <= killed[other]
            ):
                found.append((test, other))
                left_out.add(test)
                break
    return found


def test_package(package: str, tests: Sequence[str], sample: int, seed: int) -> dict[str, Any]:
    """Return the report on a package."""
    lines: Lines = {}
    for file in tests:
        lines |= measure_lines(package, [file])
        print(f"{file}: {len(lines)} tests so far", flush=True)
    by_line: dict[tuple[str, int], set[str]] = defaultdict(set)
    for test, by_file in lines.items():
        for file, some in by_file.items():
            for line in some:
                by_line[file, line].add(test.partition("::")[0])
    mutants = [
        mutant
        for file in sorted((SOURCE / package).rglob("*.py"))
        for mutant in list_mutants(str(file.relative_to(SOURCE)))
        if (mutant.file, mutant.line) in by_line
    ]
    killers: dict[str, list[str]] = {}
    chosen = random.Random(seed).sample(mutants, min(sample, len(mutants)))
    for number, mutant in enumerate(chosen, 1):
        found = list_killers(mutant, sorted(by_line[mutant.file, mutant.line]))
        killers[mutant.name] = ["no end"] if found is None else found
        print(f"{number}: {mutant.name}: {len(killers[mutant.name])} killers", flush=True)
    return {
        "package": package,
        "seed": seed,
        "test files": list(tests),
        "tests": len(lines),
        "mutants of covered lines": len(mutants),
        "sampled": len(chosen),
        "killed": sum(map(bool, killers.values())),
        "survivors": [name for name, tests in killers.items() if not tests],
        "killers": killers,
        "subsumed": find_subsumed(lines, killers),
        "lines": lines,
    }


def list_tests(package: str) -> list[str]:
    """Return the unit tests that import a package and no torch."""
    dotted = package.replace("/", ".")
    files = []
    for file in sorted((ROOT / "tests" / "unit").glob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if dotted in text and "torch" not in text:
            files.append(str(file.relative_to(ROOT)))
    return files


def main() -> None:
    """Write the report on a package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", help="below src/tasktransfer: core, results, stats, ...")
    parser.add_argument("--tests", nargs="*", help="test files instead of those that import it")
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCE))
    for name in LIBRARIES:
        import_module(name)
    package = f"tasktransfer/{options.package}"
    tests = options.tests or list_tests(package)
    report = test_package(package, tests, options.sample, options.seed)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1))
    print(f"{report['killed']} of {report['sampled']} mutants killed; {options.out}")


if __name__ == "__main__":
    main()
