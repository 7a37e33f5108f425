"""Tests whose branches and killed mutants other tests have too.

    python -m benchmarks.redundant_tests tests/unit/test_heatmap.py … --seconds 600 --out build/lean

1. Each test runs once, and the branches that it covers are recorded (needs the package
   ``coverage``). Caches of the project are emptied before each test; the branches of a fixture that
   tests share count for each of them.
2. Mutants of covered lines are drawn. Lines of few tests come first, since a mutant of a line that
   many tests cover is nearly always killed. Each mutant is tested, in a fork, by every test that
   covers its line.
3. A test function is redundant if it kills at least ``LEAST`` mutants, other test functions that
   are not redundant kill each of them, and cover each of its branches. Longest functions first.

``--before`` tests the mutants of an earlier run again. The report lists the mutants that were
killed then but survive now.

The report is evidence for reading a test before deleting it. A test of declarations, files or
programs kills no mutant of a function, and is never called redundant.
"""

from __future__ import annotations

import argparse
import ast
import functools
import gc
import importlib
import json
import os
import random
import resource
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants import (
    ROOT,
    SOURCE,
    Mutant,
    compile_mutant,
    find_functions,
    list_mutants,
)

LEAST = 3
"""Mutants that a redundant test must kill: without any, nothing is known about it."""
PER_LINE = 4
"""Mutants of one line at most."""
Branch = tuple[str, int, int]


class Recorder:
    """pytest plugin that collects failures and times, and with ``coverage`` the branches."""

    def __init__(self, coverage: Any = None, limits: dict[str, float] | None = None) -> None:
        self.coverage, self.limits = coverage, limits or {}
        self.test, self.failed = "", set[str]()
        self.seconds: dict[str, float] = defaultdict(float)
        self.caches = find_caches() if coverage else []

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Attribute the following branches to a test."""
        if self.coverage:
            for cache in self.caches:
                cache.cache_clear()
            self.test = item.nodeid
            self.coverage.switch_context(self.test)
        elif self.limits:
            signal.setitimer(signal.ITIMER_PROF, max(3, 10 * self.limits[item.nodeid]), 1)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Attribute the branches of a shared fixture to the fixture."""
        if self.coverage and fixturedef.scope != "function":
            self.coverage.switch_context(f"fixture {fixturedef.baseid}::{fixturedef.argname}")
            yield
            self.coverage.switch_context(self.test)
        else:
            yield

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failed test, and the time of a test."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)


def find_caches() -> list[Any]:
    """Return the cached functions of the project and of its tests."""
    files = (ROOT / "tests").rglob("*.py")
    modules = {"tasktransfer", "benchmarks", *(file.stem for file in files)}
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, functools._lru_cache_wrapper)
        and str(getattr(each.__wrapped__, "__module__", "")).split(".")[0] in modules
    ]


def run_items(items: Sequence[pytest.Item], recorder: Recorder) -> None:
    """Run collected tests one after another."""
    items[0].config.pluginmanager.register(recorder)
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)


def run_in_fork(work: Callable[[], Any], seconds: float) -> Any:
    """Return what a function returns in a forked process, or None if it takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        if (child := os.fork()) == 0:
            try:
                limit = int(seconds) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                signal.alarm(10 * limit)
                null = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(null, stream)
                out.write_text(json.dumps(work()))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return json.loads(out.read_text()) if out.exists() else None


class Study:
    """The collected tests, and what is known about them."""

    def __init__(self, items: Sequence[pytest.Item], out: Path) -> None:
        self.items = {item.nodeid: item for item in items}
        self.out = out
        self.seconds: dict[str, float] = {}
        self.branches: dict[str, set[Branch]] = {}
        self.killers: dict[str, list[str]] = {}

    def measure(self) -> None:
        """Run each test once for its branches and its time, and leave out tests that fail."""
        file = self.out / "coverage.sqlite"
        times = self.out / "seconds.json"

        def work() -> dict[str, Any]:
            coverage = importlib.import_module("coverage")  # not a dependency of the project
            measured = coverage.Coverage(data_file=str(file), branch=True, source=[str(SOURCE)])
            recorder = Recorder(measured)
            measured.start()
            run_items([*self.items.values()], recorder)
            measured.stop()
            measured.save()
            return {"seconds": recorder.seconds, "failed": sorted(recorder.failed)}

        if not times.exists():
            found = run_in_fork(work, 3600)
            if found is None:
                raise SystemExit("The tests could not be measured. Their process has ended.")
            times.write_text(json.dumps(found))
        told = json.loads(times.read_text())
        failed = {*told["failed"]}
        self.seconds = {t: s for t, s in told["seconds"].items() if t not in failed}
        contexts = read_branches(file, {*map(get_file, self.items)})
        fixtures = {name: some for name, some in contexts.items() if name.startswith("fixture ")}
        for test in self.seconds:
            if test in self.items:
                self.branches[test] = set(contexts.get(test, set()))
                names = {*getattr(self.items[test], "fixturenames", ())}
                for name, some in fixtures.items():
                    place, _, fixture = name.removeprefix("fixture ").rpartition("::")
                    if fixture in names and test.startswith(place):
                        self.branches[test] |= some
        print(f"{len(self.branches)} tests, {sum(self.seconds.values()):.0f} s", flush=True)

    def list_tests(self) -> dict[tuple[str, int], set[str]]:
        """Return the tests of each covered line."""
        by_line: dict[tuple[str, int], set[str]] = defaultdict(set)
        for test, some in self.branches.items():
            for file, _, line in some:
                if file.endswith(".py"):  # not the templates of pages
                    by_line[file, line].add(test)
        return by_line

    def kill(
        self,
        seconds: float,
        most: float,
        seed: int,
        folders: Sequence[str],
        same: frozenset[str] = frozenset(),
    ) -> None:
        """Test mutants until the time is over.

        Args:
            seconds: time for all mutants.
            most: seconds of one mutant's tests at most.
            seed: of the order of the mutants.
            folders: test only mutants of these folders of the package; all if empty.
            same: names of the mutants to test, instead of sampled ones.
        """
        log = self.out / "killers.jsonl"
        known = [json.loads(line) for line in log.open()] if log.exists() else []
        self.killers = {row["mutant"]: row["killers"] for row in known}
        by_line = self.list_tests()
        candidates = {*find_redundant(self.branches, {}, {}, least=0)}
        print(f"{len(candidates)} functions cover no branch alone", flush=True)
        for file in sorted({file for file, _ in by_line}):
            module = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
            importlib.import_module(module)
        functions = find_functions()
        gc.freeze()  # a fork shares memory only until the collector writes to it
        plan: list[tuple[tuple[int, bool, float], Mutant, list[str]]] = []
        draw = random.Random(seed)
        for file in sorted({file for file, _ in by_line}):
            if folders and not file.removeprefix("tasktransfer/").startswith(tuple(folders)):
                continue
            mutants = list_mutants(file)
            draw.shuffle(mutants)
            lines = Counter[int]()
            for mutant in mutants:
                here = by_line.get((file, mutant.line)) or by_line.get((file, mutant.statement))
                tests = sorted(here or ())
                named = {*map(get_function, tests)}
                wanted = bool(named & candidates) and lines[mutant.line] < PER_LINE
                if mutant.name in same if same else wanted:
                    cost = sum(self.seconds[test] for test in tests)
                    if same or cost <= most:
                        lines[mutant.line] += 1
                        text = mutant.change == "changed text"
                        rank = (len(named), text, draw.random())
                        plan.append((rank, mutant, tests))
        plan.sort(key=lambda row: row[0])
        print(f"{len(plan)} mutants planned, {len(self.killers)} known", flush=True)
        start = time.monotonic()
        with log.open("a") as stream:
            for _, mutant, tests in plan:
                if mutant.name in self.killers:
                    continue
                if time.monotonic() - start > seconds:
                    break
                killers = self.list_killers(mutant, tests, functions)
                if killers is None:
                    continue
                self.killers[mutant.name] = killers
                row = {"mutant": mutant.name, "tests": len(tests), "killers": killers}
                stream.write(json.dumps(row) + "\n")
                stream.flush()
        print(f"{len(self.killers)} mutants tested", flush=True)

    def list_killers(self, mutant: Mutant, tests: list[str], functions: Any) -> list[str] | None:
        """Return the tests that fail with a mutant, or None if it cannot be tested."""
        compiled = compile_mutant(mutant)
        if compiled is None or not functions.get(compiled[0]):
            return None
        key, code = compiled

        def work() -> list[str]:
            for function in functions[key]:
                function.__code__ = code
            signal.signal(signal.SIGPROF, _raise_timeout)
            recorder = Recorder(limits=self.seconds)
            run_items([self.items[test] for test in tests], recorder)
            return sorted(recorder.failed)

        found: list[str] | None = run_in_fork(work, 20 + 10 * sum(self.seconds[t] for t in tests))
        return found


def _raise_timeout(*_: Any) -> None:
    raise TimeoutError("The test takes ten times as long as without the mutant.")


def read_branches(file: Path, files: Iterable[str] = ()) -> dict[str, set[Branch]]:
    """Return the branches of each context in a data file of ``coverage``.

    With ``files``, only of their tests and of shared fixtures.
    """
    found: dict[str, set[Branch]] = defaultdict(set)
    with sqlite3.connect(file) as data:
        paths = {
            number: str(Path(path).relative_to(SOURCE))
            for number, path in data.execute("SELECT id, path FROM file")
        }
        for number, context in data.execute("SELECT id, context FROM context").fetchall():
            if not files or context.startswith(("fixture ", *files)):
                query = "SELECT file_id, fromno, tono FROM arc WHERE context_id = ?"
                found[context] = {(paths[f], a, b) for f, a, b in data.execute(query, [number])}
    return found


# --- the report -----------------------------------------------------------------------------------


def read_killed(out: Path) -> dict[str, bool]:
    """Return whether each mutant of a run was killed; ``out``: the run's folder."""
    with (out / "killers.jsonl").open(encoding="utf-8") as stream:
        return {row["mutant"]: bool(row["killers"]) for row in map(json.loads, stream)}


def get_file(test: str) -> str:
    """Return a test's file."""
    return test.partition("::")[0]


def get_function(test: str) -> str:
    """Return a test's function, without its parameters."""
    return test.partition("[")[0]


def find_redundant(
    branches: dict[str, set[Branch]],
    killers: dict[str, list[str]],
    lengths: dict[str, int],
    least: int = LEAST,
) -> list[str]:
    """Return test functions without which the same branches are covered and mutants killed.

    Each of them kills at least ``least`` mutants. Longest functions first.
    """
    covered: dict[str, set[Branch]] = defaultdict(set)
    killed: dict[str, set[str]] = defaultdict(set)
    for test, some in branches.items():
        covered[get_function(test)] |= some
    for mutant, tests in killers.items():
        for test in tests:
            killed[get_function(test)].add(mutant)
    branch_counts = Counter(branch for some in covered.values() for branch in some)
    kill_counts = Counter(mutant for some in killed.values() for mutant in some)
    found = []
    for test in sorted(covered, key=lambda test: (-lengths.get(test, 0), test)):
        if (
            len(killed[test]) >= least
            and all(kill_counts[mutant] > 1 for mutant in killed[test])
            and all(branch_counts[branch] > 1 for branch in covered[test])
        ):
            found.append(test)
            kill_counts.subtract(killed[test])
            branch_counts.subtract(covered[test])
    return found


def count_lines(files: Sequence[str]) -> dict[str, int]:
    """Return the length of each test function, with its decorators."""
    found = {}
    for file in files:
        for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                found[f"{file}::{node.name}"] = (node.end_lineno or first) - first + 1
    return found


def main() -> None:
    """Write the report on test files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--source", nargs="*", default=(), help="folders below src/tasktransfer")
    parser.add_argument("--seconds", type=float, default=600, help="for testing mutants")
    parser.add_argument("--most", type=float, default=3, help="seconds for one mutant's tests")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="folder")
    parser.add_argument(
        "--before", type=Path, help="--out of an earlier run, to compare killed mutants with"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.out = options.out.resolve()
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCE))
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(options.out / "hypothesis")

    class Session:
        """pytest plugin that measures tests instead of running them."""

        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            """Measure the collected tests, and write the report."""
            study = Study(session.items, options.out)
            study.measure()
            before = read_killed(options.before) if options.before else {}
            same = frozenset(before)
            study.kill(options.seconds, options.most, options.seed, options.source, same)
            lengths = count_lines(sorted({*map(get_file, study.items)}))
            redundant = find_redundant(study.branches, study.killers, lengths)
            without = find_redundant(study.branches, {}, lengths, least=0)
            report = {
                "files": len({*map(get_file, study.items)}),
                "functions": len(lengths),
                "lines": sum(lengths.values()),
                "without_own_branch": [len(without), sum(lengths[test] for test in without)],
                "mutants": len(study.killers),
                "killed": sum(map(bool, study.killers.values())),
                "redundant": {test: lengths[test] for test in redundant},
            }
            if before:
                killed = {name for name, tests in study.killers.items() if tests}
                report["killed_before"] = sum(before.values())
                report["lost"] = sorted(
                    name for name in before if before[name] and name not in killed
                )
            text = json.dumps(report, indent=1)
            (options.out / "report.json").write_text(text, encoding="utf-8")
            print(text)
            return True

    words = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no"]
    pytest.main([*words, "--capture=no", *options.tests], plugins=[Session()])


if __name__ == "__main__":
    main()
