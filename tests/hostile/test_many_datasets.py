"""Every hostile dataset is read or refused as expected: no traceback, 10 s, 400 MiB."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_datasets import CASES, TOLD, Case
from measured_worker import Worker, worker

SECONDS, MOST_MIB = 10, 400
LARGE = 10 * 2**20
"""Size in bytes from which a case has a separate process."""
CODES = (0, 2, 3)
"""Expected exit codes: read, unknown command-line argument, refused."""
DRAWN = re.compile(r"note: no (dev|test) split: .*")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


@pytest.fixture(scope="module")
def process() -> Iterator[Worker]:
    with worker() as process:
        yield process


def test_there_are_enough() -> None:
    assert len(CASES) > 200


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_dataset(case: Case, process: Worker, tmp_path: Path) -> None:
    names = case.build(tmp_path)
    words = [names] if isinstance(names, str) else [*names]
    if sum(path.stat().st_size for path in tmp_path.iterdir() if path.is_file()) > LARGE:
        process.stop()  # Arrow reserves a gibibyte once, which the limit does not count again
    outcome = process.run(["data", "check", *words], tmp_path)
    said = outcome.out + outcome.errors
    assert "Traceback" not in said
    assert outcome.code in CODES
    assert outcome.seconds < SECONDS
    assert outcome.memory < MOST_MIB
    assert not CONTROL.search(said)
    assert not (tmp_path / "canary").exists()
    if case.result is not None:
        results = ("note", "refused") if case.result == TOLD else (case.result,)
        assert _result(outcome.code, outcome.errors) in results, said
    assert re.search(case.says, said, re.DOTALL), said


def _result(code: int, errors: str) -> str:
    """Return the result of a dataset.

    The message that splits are sampled appears for every file without splits, so it does not count
    as a note.
    """
    if code != 0:
        return "refused"
    return "note" if "note:" in DRAWN.sub("", errors) else "ok"
