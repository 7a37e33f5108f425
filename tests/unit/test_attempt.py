"""Work of an attempt at a stage before and after training, which is replaced here."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from record_factory import make_plan, make_record

from tasktransfer.core.nodes import Stage
from tasktransfer.errors import (
    DataError,
    MemoryShortageError,
    StorageError,
    TaskTransferError,
    TrainingError,
)
from tasktransfer.results.damage import find_damage
from tasktransfer.results.records import describe_node
from tasktransfer.results.schema import Record
from tasktransfer.results.state import CALL, read_history, read_last_error, read_unfinished_state
from tasktransfer.training import attempt as module
from tasktransfer.training.attempt import train_if_needed
from tasktransfer.training.job import Job

Trainings = list[Callable[[Job], None]]

RUN = ("DailyDialog", "bert", "baseline", (), "dialogue_nli", 0)
RECORD = make_record(RUN, 50.0)
(STAGE,) = make_plan([RUN]).stages


def job(out: Path, *, stage: Stage = STAGE, checkpoint: bool = False) -> Job:
    return Job(
        stage=stage,
        encoded=out,
        base="base",
        revision=None,
        out=out,
        save_checkpoint=checkpoint,
        threads=1,
        study="study",
        config_digest="c",
    )


def finished(record: Record = RECORD) -> str:
    """Return the text of a record with empty rows next to it."""
    sha256 = hashlib.sha256(b"").hexdigest()
    rows = {"file": "rows.parquet", "rows": 4, "sha256": sha256}
    return json.dumps({**record, "rows": rows})


def finish(out: Path, record: Record = RECORD) -> None:
    (out / "rows.parquet").write_bytes(b"")
    (out / "metrics.json").write_text(finished(record))


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> Trainings:
    """Define the following trainings, in order; those that remain were not run."""
    planned: Trainings = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv(CALL, "one")

    def train(what: Job) -> None:
        planned.pop(0)(what)

    monkeypatch.setattr(module, "_train", train)
    return planned


def failing(error: Exception) -> Callable[[Job], None]:
    def train(_: Job) -> None:
        raise error

    return train


def succeeding(what: Job) -> None:
    finish(what.out)


@pytest.mark.parametrize("lost", ["metrics.json", "rows.parquet", "checkpoint"])
def test_an_incomplete_stage_is_trained(lost: str, tmp_path: Path, trainings: Trainings) -> None:
    finish(tmp_path)
    (tmp_path / "checkpoint").mkdir()
    path = tmp_path / lost
    path.rmdir() if path.is_dir() else path.unlink()
    trainings += [succeeding]
    train_if_needed(job(tmp_path, checkpoint=True))
    assert trainings == []


def test_a_stage_whose_rounds_are_gone_is_trained(tmp_path: Path, trainings: Trainings) -> None:
    keeping = replace(STAGE, selection=replace(STAGE.selection, keep="every"))
    record = {**RECORD, "node": describe_node(keeping)}
    finish(tmp_path, record)  # type: ignore[arg-type]
    for number in range(record["training"]["rounds"][-1]["round"] + 1):  # type: ignore[index]
        (tmp_path / "rounds" / str(number)).mkdir(parents=True)
    train_if_needed(job(tmp_path, stage=keeping))
    (tmp_path / "rounds" / "1").rmdir()
    trainings += [lambda what: finish(what.out, record)]  # type: ignore[arg-type]
    train_if_needed(job(tmp_path, stage=keeping))
    assert trainings == []


def test_the_record_of_another_stage_is_not_mistaken_for_this_one(
    tmp_path: Path, trainings: Trainings
) -> None:
    finish(tmp_path, make_record((*RUN[:-1], 1), 50.0))
    trainings += [succeeding]
    train_if_needed(job(tmp_path))
    assert trainings == []


@pytest.mark.parametrize("name", ["metrics.json", "rows.parquet"])
def test_damaged_results_are_kept_beside_those_that_are_trained_again(
    name: str, tmp_path: Path, trainings: Trainings
) -> None:
    finish(tmp_path)
    (tmp_path / name).write_bytes(b"cut off")
    trainings += [succeeding]
    train_if_needed(job(tmp_path))
    assert trainings == []
    assert (tmp_path / f"{name}.damaged-1").read_bytes() == b"cut off"
    assert find_damage(tmp_path, STAGE.digest) is None
    assert [event["event"] for event in read_history(tmp_path)] == [
        "set aside",
        "started",
        "finished",
    ]
    train_if_needed(job(tmp_path))  # trained already


@pytest.mark.parametrize("error", [DataError("no such split"), TrainingError("became nan")])
def test_bad_input_is_not_tried_again(
    error: TaskTransferError,
    tmp_path: Path,
    trainings: Trainings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same call of Snakemake does not retry.

    Before a new call the input may have been fixed.
    """
    trainings += [failing(error), succeeding]
    with pytest.raises(type(error)):
        train_if_needed(job(tmp_path))
    with pytest.raises(
        type(error), match=f"{error} .*earlier attempt with the same input"
    ) as again:
        train_if_needed(job(tmp_path))
    assert again.value.exit_code == error.exit_code
    assert len(trainings) == 1
    monkeypatch.setenv(CALL, "another")
    train_if_needed(job(tmp_path))
    assert trainings == []


def test_ctrl_c_is_an_interruption_and_no_failure(
    tmp_path: Path, trainings: Trainings, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(_: Job) -> None:
        raise KeyboardInterrupt

    trainings += [stopped, succeeding]
    with pytest.raises(KeyboardInterrupt):
        train_if_needed(job(tmp_path))
    assert read_history(tmp_path)[-1]["event"] == "interrupted"
    for last in ("interrupted", "Traceback (most recent call last):\nKeyboardInterrupt"):
        (tmp_path / "train.log").write_text(f"10 %\n{last}\n")
        assert read_unfinished_state(tmp_path).state == "interrupted"
    train_if_needed(job(tmp_path))
    assert trainings == []


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (MemoryShortageError("too small"), MemoryShortageError, "too small"),
        (KeyError("bug"), KeyError, "bug"),
        (OSError(errno.ENOSPC, "No space left", "a/b"), StorageError, "a/b: No space left.*Free"),
        (
            RuntimeError("No space left on device (28)"),
            StorageError,
            "No space left.*Free",
        ),
        (OSError(errno.EROFS, "Read-only", "a"), StorageError, "a: Read-only.*writable file"),
    ],
)
def test_what_may_pass_is_named_with_its_remedy_and_tried_again(
    error: Exception, raised: type[Exception], said: str, tmp_path: Path, trainings: Trainings
) -> None:
    trainings += [failing(error), succeeding]
    with pytest.raises(raised, match=said):
        train_if_needed(job(tmp_path))
    train_if_needed(job(tmp_path))
    assert trainings == []


HOLDER = """
import sys, time
from pathlib import Path
from tasktransfer.results.state import claim_folder
with claim_folder(Path(sys.argv[1]), print, device="fake") as tell:
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
    if len(sys.argv) > 3:
        Path(sys.argv[1], "rows.parquet").touch()
        Path(sys.argv[1], "metrics.json").write_text(sys.argv[3])
"""


def hold(folder: Path, seconds: float, *result: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", HOLDER, str(folder), str(seconds), *result]
    holder = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_of_two_workflows_one_trains_and_the_other_waits_for_it(
    tmp_path: Path, trainings: Trainings
) -> None:
    holder = hold(tmp_path, 1.0, finished())
    assert read_unfinished_state(tmp_path).state == "running"
    train_if_needed(job(tmp_path))  # trains nothing, because no training is planned
    assert holder.wait(10) == 0
    assert find_damage(tmp_path, STAGE.digest) is None


def test_a_killed_holder_frees_its_stage(tmp_path: Path, trainings: Trainings) -> None:
    holder = hold(tmp_path, 600)
    claim = read_unfinished_state(tmp_path).claim
    assert claim is not None
    assert (claim["pid"], claim["device"]) == (holder.pid, "fake")
    holder.kill()
    holder.wait(10)
    (tmp_path / "train.log").write_text("some progress\n")
    assert read_unfinished_state(tmp_path).state == "interrupted"
    trainings += [succeeding]
    began = time.monotonic()
    train_if_needed(job(tmp_path))
    assert time.monotonic() - began < 5


def test_the_state_of_a_failed_stage_names_the_error(tmp_path: Path) -> None:
    assert read_unfinished_state(tmp_path).state == "waiting"
    log = tmp_path / "train.log"
    log.write_text("10 %\nerror: the loss became nan\n\n")
    assert read_unfinished_state(tmp_path) == read_unfinished_state(tmp_path).__class__(
        "failed", "the loss became nan"
    )
    log.write_text('Traceback (most recent call last):\n  File "x"\nKeyError: 1\n')
    assert read_last_error(log) == "KeyError: 1"
    log.write_bytes(b"\xff" * 100_000 + os.linesep.encode() + b"20 %\n")
    assert read_last_error(log) is None


def test_a_truncated_line_of_the_history_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('{"event": "started"}\n{"event": "fin')
    assert read_history(tmp_path) == [{"event": "started"}]
