"""Impossible configs of three designs, refused by plan, validate and the workflow.

Each is refused within seconds and little memory, with the file, the key and the problem.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import hostile_configs
from hostile_configs import MEBIBYTES, OWN, SECONDS, Case, Seen, base, cases, changed
from tasktransfer.datasets.multiwoz.tiny_world import generate_release
from tasktransfer.designs import load_config

CASES = {case.name: case for case in cases()}
QUICK = [*CASES][::4]
"""Cases of the default tests. The others are slow: together, they take half a minute."""
GROUPS = {True: QUICK, False: [name for name in CASES if name not in QUICK]}


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Seen]]:
    """Return case → results of plan, validate and the workflow's own opening.

    They are measured in processes that hold nothing else.
    """

    @cache
    def measure_group(is_quick: bool) -> dict[str, list[Seen]]:
        folder, group = tmp_path_factory.mktemp("hostile"), GROUPS[is_quick]
        generate_release(folder / "world", dialogues=24)
        files = [f"study{number}.yaml" for number in range(len(group))]
        for file, name in zip(files, group, strict=True):
            (folder / file).write_text(CASES[name].text, encoding="utf-8")
        (folder / "cases.json").write_text(json.dumps(files))
        program = [sys.executable, hostile_configs.__file__, str(folder)]
        done = subprocess.run(program, capture_output=True, text=True, check=True)
        seen = [Seen(**json.loads(line)) for line in done.stdout.splitlines()]
        assert len(seen) == 3 * len(group)
        return {name: seen[3 * n : 3 * n + 3] for n, name in enumerate(group)}

    return lambda name: measure_group(name in QUICK)[name]


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
    assert len({case.text for case in CASES.values()}) == len(CASES)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name, case in CASES.items()
    ],
)
def test_a_hostile_config_is_refused_with_its_key(
    case: Case, measure: Callable[[str], list[Seen]]
) -> None:
    for seen in measure(case.name):
        assert seen.code == 2, seen.said
        assert "study" in seen.said and ".yaml" in seen.said
        for part in case.named:
            assert part in seen.said
        assert seen.seconds < SECONDS
        assert 0 < seen.mebibytes < MEBIBYTES


@pytest.mark.parametrize("design", OWN)
def test_what_is_changed_for_the_cases_is_right_before(design: str, tmp_path: Path) -> None:
    """Otherwise the refusals above could come from an invalid base."""
    file = tmp_path / "study.yaml"
    file.write_text(json.dumps(changed(base(design), "results", str(tmp_path / "results"))))
    assert load_config(file).design == design
