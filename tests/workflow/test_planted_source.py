"""The report of a study of own dialogues finds a planted source, except after too few updates."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.planted_own_data import CELLS, is_right, read_answer, run_study, write_study

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("world", ["helped", "crippled"])
def test_the_answer_is_right(world: str, tmp_path: Path) -> None:
    write_study(tmp_path, world, 0, 3)
    run_study(tmp_path, CELLS)
    answer, cells = read_answer(tmp_path)
    assert is_right(world, answer), answer
    assert set(cells["source"]) == {"Sources/kin", "Sources/mood"}
