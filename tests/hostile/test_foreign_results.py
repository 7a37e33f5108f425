"""``merge`` copies only nodes from an untrusted results folder, and nothing outside of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finished_stages import finish_all, opened
from tasktransfer import cli
from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import Stage
from tasktransfer.operate.merge import merge_results
from tasktransfer.results.study import Study

SECRET = "the key of another program"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text(SECRET)


@pytest.fixture
def theirs() -> Study:
    study = opened("theirs.yaml", results="theirs")
    finish_all(study)
    return study


def spoil(study: Study, stage: Stage, change: Callable[[dict[str, Any]], Any]) -> None:
    path = Path(study.get_record_path(stage))
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def to_pipe(file: Path) -> None:
    file.unlink(missing_ok=True)
    os.mkfifo(file)


def to_device(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.symlink_to("/dev/zero")


def to_secret(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.symlink_to(Path("secret").resolve())


@pytest.mark.parametrize("how", [to_pipe, to_device, to_secret])
@pytest.mark.parametrize(
    "name",
    ["metrics.json", "rows.parquet", "train.log", "history.jsonl", "checkpoint/model.safetensors"],
)
def test_what_is_not_a_file_is_neither_waited_for_nor_copied(
    name: str, how: Callable[[Path], None], theirs: Study
) -> None:
    for stage in theirs.plan.stages:
        file = Path(theirs.get_node_folder(stage), name)
        if file.parent.is_dir():
            how(file)
    code = cli.main(["merge", "theirs", "--config", opened().config_file])
    assert code in (0, 6)
    copied = [file for file in Path("results").rglob("*") if file.is_file()]
    assert not [file for file in copied if SECRET.encode() in file.read_bytes()]
    assert not [file for file in Path("results").rglob("*") if file.is_symlink()]


@pytest.mark.parametrize("link", ["tables", "tables/labels.parquet"])
def test_a_table_that_is_a_link_is_not_copied(link: str, theirs: Study) -> None:
    place = Path("theirs", link)
    place.parent.mkdir(exist_ok=True)
    if link == "tables":
        Path("elsewhere").mkdir()
        Path("elsewhere/labels.parquet").write_text(SECRET)
        place.symlink_to(Path("elsewhere").resolve())
    else:
        place.symlink_to(Path("secret").resolve())
    seen = merge_results(opened(), Path("theirs"), tables=["tables/labels.parquet"])
    assert seen["tables"] == []
    assert not Path("results/tables").exists()


@pytest.mark.parametrize("kind", ["fit", "data", "evaluation"])
@pytest.mark.parametrize("everything", [False, True])
def test_a_record_of_no_node_is_refused(kind: str, everything: bool, theirs: Study) -> None:
    """The record is in a planned node's folder, and has a consistent digest."""
    stage = theirs.plan.stages[0]

    def change(record: dict[str, Any]) -> None:
        node = {"kind": kind, "label": "x", "dataset": "DailyDialog", "identity": {"a": 1}}
        record["node"] = {**node, "digest": compute_digest(node["identity"])}
        record.pop("training")
        record.update(data_revision="x", few_sample=False)
        record["provenance"].pop("training", None)

    spoil(theirs, stage, change)
    seen = merge_results(opened(), Path("theirs"), everything=everything)
    assert (seen["counts"]["rejected"], seen["counts"]["copied"]) == (1, 6)


def test_a_room_that_is_a_link_is_not_entered(theirs: Study) -> None:
    Path("theirs/stages").rename("elsewhere")
    Path("theirs/stages").symlink_to(Path("elsewhere").resolve())
    assert merge_results(opened(), Path("theirs"))["counts"]["copied"] == 0
