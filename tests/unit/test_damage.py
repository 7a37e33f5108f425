"""Damaged input: each kind is named and left out, and changes no number."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from damaged_study import (
    RESULTS,
    TASKS,
    Damage,
    a_run,
    edited,
    gather,
    opened,
    written_study,
)

from study_records import write_records, write_stage
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.designs.transfer.tables.table2 import compute_aggregates
from tasktransfer.files import json_text
from tasktransfer.results.frames import Frames
from tasktransfer.results.state import ROWS
from tasktransfer.results.study import Study


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_study(tmp_path_factory.mktemp("study"))


@pytest.fixture
def study(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Copy the finished study into the working directory."""
    shutil.copytree(finished, tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    return opened()


# --- kinds of damage ----------------------------------------------------------------------------


def truncated(record: Path) -> None:
    record.write_bytes(record.read_bytes()[:-200])


def empty(record: Path) -> None:
    record.write_bytes(b"")


def no_utf8(record: Path) -> None:
    record.write_bytes(record.read_bytes().replace(b"constructed", b"\xff\xfe", 1))


def a_folder(record: Path) -> None:
    record.unlink()
    record.mkdir()


def a_broken_link(record: Path) -> None:
    record.unlink()
    record.symlink_to("nowhere.json")


def another_run(record: Path) -> None:
    other = next(path for path in sorted(RESULTS.rglob("metrics.json")) if path != record)
    shutil.copy(other, record)
    shutil.copy(other.with_name(ROWS), record.with_name(ROWS))


def another_seed_trained_differently(record: Path) -> None:
    """Replace a run by one with other hyperparameters."""
    other = opened(training={"learning_rate": 1e-4}, results="other")
    value = json.loads(record.read_text())["node"]
    wanted = (value["step"], value["label"], value["seed"])
    run = next(
        run
        for run in select_transfer_runs(other.plan)
        if (run.stages[-1].kind, run.stages[-1].label, run.stages[-1].seed) == wanted
    )
    made = write_stage(other, run.stages[-1])
    shutil.rmtree(record.parent)
    shutil.move(made.parent, record.parent)


def no_predictions(record: Path) -> None:
    record.with_name(ROWS).unlink()


def altered_predictions(record: Path) -> None:
    file = record.with_name(ROWS)
    table = pq.read_table(file)
    scores = [100.0 - score for score in table["score"].to_pylist()]
    place = table.schema.get_field_index("score")
    pq.write_table(table.set_column(place, table.schema.field("score"), [scores]), file)


def fewer_predictions(record: Path) -> None:
    file = record.with_name(ROWS)
    pq.write_table(pq.read_table(file).slice(0, 30), file)


def fewer_predictions_that_the_record_owns_to(record: Path) -> None:
    """Remove predictions of the last task, with matching counts and checksum in the record."""
    import hashlib  # noqa: PLC0415

    file = record.with_name(ROWS)
    table = pq.read_table(file)
    pq.write_table(table.slice(0, len(table) - 10), file)
    entry = {"file": ROWS, "rows": len(table) - 10}
    entry["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    value = json.loads(record.read_text())
    value["results"][table["task"][-1].as_py()]["instances"] = 30
    record.write_text(json.dumps(value | {"rows": entry}))


def predictions_of_another_run(record: Path) -> None:
    entry = json.loads(record.read_text())["rows"]
    others = ((path, json.loads(path.read_text())["rows"]) for path in RESULTS.rglob(record.name))
    other, theirs = next(
        (path, rows)
        for path, rows in sorted(others)
        if path != record and rows["rows"] == entry["rows"]
    )
    shutil.copy(other.with_name(ROWS), record.with_name(ROWS))
    edited(rows=theirs)(record)


def torn_predictions(record: Path) -> None:
    file = record.with_name(ROWS)
    file.write_bytes(file.read_bytes()[:-50])


def predictions_folder(record: Path) -> None:
    no_predictions(record)
    record.with_name(ROWS).mkdir()


KINDS: dict[str, tuple[Damage, str]] = {
    "truncated": (truncated, "not valid JSON"),
    "empty": (empty, "not valid JSON"),
    "no UTF-8": (no_utf8, "not valid JSON"),
    "folder": (a_folder, "not a regular file"),
    "broken link": (a_broken_link, "a link to a missing file"),
    "schema": (edited(schema=5), "has schema 5"),
    "no object": (lambda record: record.write_text("[1]"), "must be an object"),
    "NaN": (
        edited(training__selections__0__dev_score=float("nan")),
        "training.selections[0].dev_score: The value is nan",
    ),
    "infinite": (
        edited(training__selections__0__dev_score=float("inf")),
        "training.selections[0].dev_score: The value is inf",
    ),
    "another run": (another_run, "node.digest: "),
    "other hyperparameters": (another_seed_trained_differently, "node.digest: "),
    "other data revision than its digest": (
        edited(data_revision="r2"),
        "data_revision: The value is 'r2'",
    ),
    "no predictions": (no_predictions, "The file is missing"),
    "altered predictions": (altered_predictions, "SHA-256"),
    "fewer predictions": (fewer_predictions, "SHA-256"),
    "fewer predictions, owned to": (fewer_predictions_that_the_record_owns_to, "30 instances"),
    "predictions of another run": (predictions_of_another_run, "The rows belong to node"),
    "torn predictions": (torn_predictions, "SHA-256"),
    "predictions folder": (predictions_folder, "The file is missing"),
}


@pytest.mark.parametrize("algorithm", ["baseline", "multitask"])
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_named_and_changes_no_number(study: Study, kind: str, algorithm: str) -> None:
    damage, said = KINDS[kind]
    run = a_run(study, algorithm)
    record = Path(study.get_record_path(run.stages[-1]))
    without = _without(study, record)
    damage(record)
    tables = gather(study)
    assert tables["problems"]["path"].tolist() == [record.relative_to(RESULTS).as_posix()]
    (error,) = tables["problems"]["error"]
    assert said in error
    assert str(record.parent) in error
    assert "\n" not in error
    _same_numbers(tables, without)
    lost = tables["missing_runs"][
        tables["missing_runs"]["path"] == record.relative_to(RESULTS).as_posix()
    ]
    assert len(lost) == (2 if algorithm == "multitask" else 1), "both runs that end with it"
    assert set(lost["state"]) == {"damaged"} and set(lost["error"]) == {error}
    assert set(lost["reason"]) == {f"damaged: {error}"}


def _without(study: Study, record: Path) -> Frames:
    """Return the tables of the same study without that run."""
    kept = record.parent.with_name("put aside")
    record.parent.rename(kept)
    hidden = kept.rename(Path("hidden"))
    tables = gather(study)
    assert tables["problems"].empty
    hidden.rename(record.parent)
    return tables


def _same_numbers(tables: Frames, without: Frames) -> None:
    for name in ("transfer_runs", "scores", "deltas", "sizes"):
        pd.testing.assert_frame_equal(tables[name], without[name])
    found = compute_aggregates(tables["deltas"], tables["missing_runs"])
    pd.testing.assert_frame_equal(
        found, compute_aggregates(without["deltas"], without["missing_runs"])
    )


def test_a_record_without_a_planned_test_result_is_damaged(study: Study) -> None:
    record = Path(study.get_record_path(a_run(study).stages[-1]))
    edited(results={}, rows=None)(record)
    tables = gather(study)
    assert set(tables["missing_runs"]["path"]) == {record.relative_to(RESULTS).as_posix()}
    assert set(tables["missing_runs"]["state"]) == {"damaged"}
    assert "has no test result for dialogue_nli" in " ".join(tables["missing_runs"]["error"])


def test_a_file_that_cannot_be_read_is_named(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Path(study.get_record_path(a_run(study).stages[-1]))
    read = json_text.read_bytes

    def refuse(path: Path) -> bytes:
        if path == record:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(json_text, "read_bytes", refuse)
    problems = gather(study)["problems"]
    assert problems["error"].tolist() == [
        f"{record}: The record cannot be read (Permission denied). Check the permissions "
        "of the file."
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(study: Study) -> None:
    record = Path(study.get_record_path(a_run(study).stages[-1]))
    record.chmod(0)
    assert "Permission denied" in gather(study)["problems"]["error"].iloc[0]


@pytest.mark.parametrize("score", ["same", "other"])
def test_a_copy_of_a_planned_record_is_named_and_left_out(study: Study, score: str) -> None:
    record = Path(study.get_record_path(a_run(study).stages[-1]))
    whole = gather(study)
    copy = record.parent.with_name("copy") / "metrics.json"
    shutil.copytree(record.parent, copy.parent)
    if score == "other":
        value = json.loads(copy.read_text())
        next(iter(value["results"].values()))["score"] = 99.0
        copy.write_text(json.dumps(value))
    tables = gather(study)
    assert tables["problems"]["path"].tolist() == [copy.relative_to(RESULTS).as_posix()]
    (error,) = tables["problems"]["error"]
    assert f"belongs at {record.relative_to(RESULTS)}, so it is excluded" in error
    assert tables["missing_runs"].empty
    _same_numbers(tables, whole)


def test_results_of_other_hyperparameters_beside_are_no_copies(study: Study) -> None:
    other = opened(training={"learning_rate": 1e-4})
    write_stage(other, a_run(other).stages[-1])
    assert gather(study)["problems"].empty


def test_a_damaged_training_before_the_last_is_named(study: Study) -> None:
    several = {
        "mode": "named",
        "named": [{"dataset": "DailyDialog", "target": TASKS[0], "sources": TASKS[1:]}],
        "algorithms": ["pretrain_finetune"],
    }
    study = opened(multi_source=several)
    write_records(study)
    stage = next(s for s in study.plan.stages if any(len(o.tasks) == 2 for o in s.selections))
    truncated(record := Path(study.get_record_path(stage)))
    tables = gather(study)
    assert tables["problems"]["path"].tolist() == [record.relative_to(RESULTS).as_posix()]
    # Multitask of the two sources is the same training; the run that goes on from it has its own.
    assert set(tables["missing_runs"]["algorithm"]) == {"multitask"}
