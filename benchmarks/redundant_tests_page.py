"""Write docs/development/tests.md: which tests other tests make redundant, and what was decided.

    python -m benchmarks.redundant_tests_page                       # the page, from its results
    python -m benchmarks.redundant_tests_page "panel" build/lean    # first add a group to these

``build/lean`` is a folder of ``benchmarks.redundant_tests``. Decisions on redundant tests are
written into the file of results by whoever has read the tests.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.mutants import ROOT
from benchmarks.redundant_tests import LEAST, get_file, get_function

FOLDER = ROOT / "docs" / "development"
RESULTS = FOLDER / "redundant-tests.json"
SHORTENED = FOLDER / "shortened-tests.csv"
PAGE = FOLDER / "tests.md"
UNREAD = "not read"
TEXT = """# Redundant tests

`python -m benchmarks.redundant_tests` looks for tests that could be removed:

1. Each test runs once, and the branches that it executes are recorded.
2. Mutants are sampled, starting with lines that few tests cover. A mutant is a copy of a function
   with one changed operator, condition, constant, text, call or error.
3. All tests that cover a mutant's changed line are run on the mutant.

A test function is redundant if it kills at least {least} mutants, and if the remaining tests also
kill each of these mutants and cover each of its branches. The remaining tests are the other tests
of the same group and tier, without those that already count as redundant. The longest test
functions are examined first.

## Results

The column "no own branch" counts the test functions whose branches are all covered by the remaining
test functions.

{groups}

{summary}

The mutants do not represent all faults: none of them omits a sort, changes a preset or removes a
library. In these measurements, the first test of each file was not run on mutants, because its
branches were attributed to the file. If the first tests had been run, more mutants might have been
killed.

## Decisions

Before a redundant test is removed, someone reads it. The test is kept if it checks a property that
no mutant changes, for example the order of a result or a value in a preset.

{decisions}

## Shortened tests

In November 2026, the tests were shortened by about 4,000 of 74,567 lines: set-ups are shared,
similar test functions are parametrised, and test functions that others repeat were deleted. We
ran the same mutants against 22 groups of tests before and after this change, with `python -m
benchmarks.redundant_tests --before`. The tests killed {before} of {mutants} mutants before the
change and {after} after it. Every mutant that was killed before is still killed. In the other
groups, the deleted test functions were only read and compared with the remaining ones.

{shortened}
"""
HEAD = (
    "| group | files | functions | lines | no own branch | lines | mutants | killed | redundant "
    "| lines |"
)


def read_results() -> dict[str, Any]:
    """Return the results of each group."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def compute_group(folder: Path, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a group, with the decisions that it had before."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    with (folder / "killers.jsonl").open(encoding="utf-8") as log:
        killers = [{*map(get_function, json.loads(line)["killers"])} for line in log]
    old = before.get("redundant", {})
    report["redundant"] = {
        test: {
            "lines": lines,
            "mutants": sum(test in tests for tests in killers),
            "decision": old.get(test, {}).get("decision", UNREAD),
        }
        for test, lines in sorted(report["redundant"].items())
    }
    return dict(report)


def render_page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of the page."""
    groups = [HEAD, f"|---|{'---:|' * 9}"]
    decisions = ["| file | function | lines | mutants | decision |", "|---|---|---:|---:|---|"]
    for name, group in results.items():
        redundant = group["redundant"]
        counts = [group[key] for key in ("files", "functions", "lines")]
        counts += [*group["without_own_branch"], group["mutants"], group["killed"]]
        counts += [len(redundant), sum(row["lines"] for row in redundant.values())]
        groups.append(f"| {name} | {' | '.join(map(str, counts))} |")
        for test, row in redundant.items():
            cells = [get_file(test).removeprefix("tests/"), f"`{test.partition('::')[2]}`"]
            cells += map(str, [row["lines"], row["mutants"], row["decision"]])
            decisions.append(f"| {' | '.join(cells)} |")
    tested = [group for group in results.values() if group["mutants"]]
    found = [row for group in tested for row in group["redundant"].values()]
    removed = sum(row["decision"] == "removed" for row in found)
    summary = (
        f"In the {len(tested)} groups with mutants, {len(found)} of "
        f"{sum(group['functions'] for group in tested)} test functions are redundant, with "
        f"{sum(row['lines'] for row in found)} of {sum(group['lines'] for group in tested)} lines. "
        f"{removed or 'None'} of the redundant test functions were removed."
    )
    with SHORTENED.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    titles = [name.replace("_", " ") for name in names]
    lines = [titles, ["---", *["---:"] * (len(names) - 1)], *rows]
    mutants, killed_before, killed_after = (
        sum(int(row[column]) for row in rows) for column in range(1, 4)
    )
    return TEXT.format(
        least=LEAST,
        groups="\n".join(groups),
        summary=summary,
        decisions="\n".join(decisions),
        mutants=f"{mutants:,}",
        before=killed_before,
        after=killed_after,
        shortened="\n".join(f"| {' | '.join(line)} |" for line in lines),
    )


def main(words: Sequence[str]) -> None:
    """Add a group if one is named, and write the page."""
    results = read_results() if RESULTS.exists() else {}
    if words:
        name, folder = words
        results[name] = compute_group(Path(folder), results.get(name, {}))
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(render_page(results), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
