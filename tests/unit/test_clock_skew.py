"""Records dated in the future are reported, and dated now, so that Snakemake is not confused."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from finished_stages import finish, finish_all, opened
from tasktransfer.datasets.file_digests import Digests
from tasktransfer.jobs import clock_skew
from tasktransfer.jobs.clock_skew import reset_future_dates
from tasktransfer.operate.pace import WINDOW_SECONDS, estimate_pace, find_ended_trainings
from tasktransfer.operate.status import ProgressWatcher
from tasktransfer.operate.status_text import as_text
from tasktransfer.results.study import Study

YEAR = 365 * 86400


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    monkeypatch.chdir(tmp_path)
    study = opened()
    finish_all(study)
    yield study


def date(path: Path | str, ahead: float) -> None:
    then = time.time() + ahead
    os.utime(path, (then, then))


def times(study: Study) -> set[float]:
    return {p.stat().st_mtime for p in Path(study.config.results).rglob("*")}


@pytest.mark.parametrize("ahead", [60.0, 70 * YEAR])
def test_files_from_the_future_are_dated_now(study: Study, ahead: float) -> None:
    folder = Path(study.get_node_folder(study.plan.stages[0]))
    for name in ("metrics.json", "rows.parquet"):
        date(folder / name, ahead)
    note = reset_future_dates(study)
    assert note is not None and "2 files are dated in the future" in note
    assert f"{datetime.now(UTC) + timedelta(seconds=ahead):%Y-%m-%d}" in note
    assert max(times(study)) <= time.time()
    assert reset_future_dates(study) is None


def test_nothing_changes_without_files_from_the_future(study: Study) -> None:
    date(study.get_record_path(study.plan.stages[0]), -YEAR)
    date(study.get_record_path(study.plan.stages[1]), 1.0)
    before = times(study)
    assert reset_future_dates(study) is None
    assert times(study) == before


def test_files_of_somebody_else_are_reported(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    record = study.get_record_path(study.plan.stages[0])
    date(record, YEAR)
    monkeypatch.setattr(clock_skew, "_set_time", lambda path, now: False)
    note = reset_future_dates(study)
    assert note is not None and f"dates of 1 files cannot be changed, for example {record}" in note
    assert "Run touch on these files" in note


def test_status_tells_records_from_the_future(study: Study) -> None:
    stages = study.plan.stages
    for stage, started in zip(
        stages, ("9999-12-31T23:59:59+00:00", "2126-01-01T00:00:00Z"), strict=False
    ):
        finish(study, stage, started=started)
        date(study.get_record_path(stage), 70 * YEAR)
    seen = ProgressWatcher(study).get_progress()
    assert seen["dated_in_the_future"] == 2
    assert "2 records dated in the future, because a clock is ahead" in as_text(seen)
    assert seen["left"] == 0


def test_a_clock_that_is_ahead_makes_no_pace(study: Study) -> None:
    """Ten minutes of work that end in five minutes from now count as ten minutes of work."""
    now = time.time()
    stage = study.plan.stages[0]
    begun = datetime.fromtimestamp(now - 300, UTC).isoformat()
    finish(study, stage, started=begun, seconds={"total": 600.0})
    date(study.get_record_path(stage), 300)
    pieces = find_ended_trainings(
        [(stage.digest, Path(study.get_record_path(stage)))], {stage.digest: 8.0}, now
    )
    (piece,) = pieces
    assert (piece.end, piece.start) == pytest.approx((now, now - 600), abs=1)
    assert estimate_pace(pieces, [], 0.0, now, 8.0)["per_hour"] == pytest.approx(6, rel=0.01)
    date(study.get_record_path(stage), 2 * WINDOW_SECONDS)
    assert not find_ended_trainings(
        [(stage.digest, Path(study.get_record_path(stage)))], {stage.digest: 8.0}, now
    )


def test_a_data_file_from_the_future_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "dialogues.jsonl"
    file.write_text("{}\n")
    date(file, YEAR)
    digests = Digests({})
    digest = digests.get_digest(file)
    assert digests.get_cached_digest(str(file.absolute()), file.stat()) == digest
