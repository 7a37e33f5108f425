"""Predictions are compared with their records once, and changes are detected later."""

from __future__ import annotations

from pathlib import Path

import pytest
from cell_studies import of_plan
from test_cells import a_run, record_of, study

from study_records import write_stage
from tasktransfer.designs import open_study
from tasktransfer.results import tallies
from tasktransfer.results.collect import CHECKED
from tasktransfer.results.study import Study
from transfer_frames import write_collected_tables

__all__ = ["study"]
TABLES = Path("results/tables")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the predictions that were read completely."""
    seen: list[Path] = []
    whole = tallies.read_rows

    def counted(path: Path, expected: object = None, columns: object = None) -> object:
        seen.append(path)
        return whole(path, expected, columns)  # type: ignore[arg-type]

    monkeypatch.setattr(tallies, "read_rows", counted)
    return seen


RECORDS = 96 - 18
"""Of 96 runs: three pairs, two models and three seeds of multitask share one."""


def gather() -> tuple[int, list[str]]:
    study = open_study("study.yaml")
    tables = write_collected_tables(study)
    return len(tables["transfer_runs"]), tables["problems"]["error"].tolist()


def test_each_is_checked_once(study: Study, read: list[Path]) -> None:
    assert gather() == (96, [])
    assert len(set(read)) == len(read) == RECORDS
    first = {path.name: path.read_bytes() for path in TABLES.glob("*.parquet")}
    read.clear()
    assert gather() == (96, [])
    assert read == []
    assert {path.name: path.read_bytes() for path in TABLES.glob("*.parquet")} == first


def test_another_result_is_checked(study: Study, read: list[Path]) -> None:
    gather()
    read.clear()
    path = write_stage(study, of_plan(study, a_run(study)), lambda _: 0.3)
    assert gather() == (96, [])
    assert read == [path.with_name("rows.parquet")]


@pytest.mark.parametrize("name", ["changed", "gone", "score"])
def test_what_was_right_and_is_damaged_now_is_found(study: Study, name: str) -> None:
    gather()
    path = record_of(study, a_run(study))
    file = path.with_name("rows.parquet")
    if name == "changed":
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    elif name == "gone":
        file.unlink()
    else:
        text = path.read_text()
        said = text[text.index('"score": ') :].split(",")[0].split("\n")[0]
        path.write_text(text.replace(said, '"score": 12.5'))
    runs, (problem,) = gather()
    assert runs == 94, "both that end with this training are left out"
    assert str(path.parent) in problem


@pytest.mark.parametrize("content", ["", "{}", '{"version": 0, "checked": {}}', "[1]"])
def test_a_damaged_list_of_checks_means_checking_again(
    study: Study, read: list[Path], content: str
) -> None:
    gather()
    (TABLES / CHECKED).write_text(content)
    read.clear()
    assert gather() == (96, [])
    assert len(read) == RECORDS
