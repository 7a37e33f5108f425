"""Merging the finished trainings of another results folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from finished_stages import MODEL, finish, finish_all, opened
from tasktransfer import cli
from tasktransfer.core.nodes import Stage
from tasktransfer.errors import ConfigError
from tasktransfer.operate import merge as merging
from tasktransfer.operate.merge import merge_results
from tasktransfer.operate.merge_text import as_text, find_error
from tasktransfer.results.node_folders import inspect_nodes
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import read_rows
from tasktransfer.results.state import claim_folder, read_history
from tasktransfer.results.study import Study

OTHER = Path("theirs")


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def theirs() -> Study:
    """Return the same study, finished, in another results folder."""
    study = opened("theirs.yaml", results=str(OTHER))
    finish_all(study)
    return study


@pytest.fixture
def ours() -> Study:
    return opened()


def merged(ours: Study, **options: Any) -> dict[str, int]:
    seen = merge_results(ours, OTHER, **options)
    return {name: count for name, count in seen["counts"].items() if count}


def files(folder: Path | str) -> dict[str, bytes]:
    root = Path(folder)
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def spoil(theirs: Study, stage: Stage, change: Callable[[dict[str, Any]], Any]) -> None:
    path = Path(theirs.get_record_path(stage))
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_everything_is_taken_and_then_is_there(ours: Study, theirs: Study) -> None:
    before = files(OTHER)
    assert merged(ours) == {"copied": 7}
    assert inspect_nodes(ours).finished == {stage.digest for stage in ours.plan.stages}
    for stage in ours.plan.stages:
        record = read_record(Path(ours.get_record_path(stage)))
        assert record == read_record(Path(theirs.get_record_path(stage)))
        read_rows(Path(ours.get_node_folder(stage)) / "rows.parquet", record["rows"])
        last = read_history(Path(ours.get_node_folder(stage)))[-1]
        assert (last["event"], last["source"]) == ("merged", "theirs")
    assert merged(ours) == {"identical": 7}
    assert files(OTHER) == before
    assert not [name for name in files("results") if ".part" in name]


def test_a_training_that_measured_the_untrained_model_too_is_the_same(
    ours: Study, theirs: Study
) -> None:
    finish_all(ours)

    def measured(record: dict[str, Any]) -> None:
        record["training"]["rounds"].insert(
            0, {**record["training"]["rounds"][0], "round": 0, "train_loss": {}}
        )
        for one in record["training"]["selections"]:
            one["scores"].insert(0, 0.0)

    spoil(theirs, theirs.plan.stages[0], measured)
    there = read_record(Path(theirs.get_record_path(theirs.plan.stages[0])))
    assert there["training"]["rounds"][0]["round"] == 0
    assert merged(ours) == {"identical": 7}


def test_only_checkpoints_that_stay_or_are_needed_are_taken(ours: Study, theirs: Study) -> None:
    """Checkpoints of fine-tunings are offered too, but no node starts from them.

    One fine-tuning from multitask is not offered.
    """
    for stage in theirs.plan.stages:
        finish(theirs, stage, checkpoint=True)
    (multitask,) = [s for s in theirs.plan.stages if s.kind == "multitask"]
    unfinished = theirs.list_dependents(multitask)[0]
    assert isinstance(unfinished, Stage)
    Path(theirs.get_record_path(unfinished)).unlink()
    assert merged(ours) == {"copied": 6}
    here = {s.kind: 0 for s in ours.plan.stages}
    for stage in ours.plan.stages:
        here[stage.kind] += Path(ours.get_checkpoint_folder(stage)).exists()
    assert here == {"baseline": 2, "multitask": 1, "finetune": 0}
    assert len(inspect_nodes(ours).finished) == 6


def test_checkpoints_can_be_left_and_taken_later(ours: Study, theirs: Study) -> None:
    assert merged(ours, checkpoints=False) == {"copied": 7}
    assert not list(Path("results").rglob("checkpoint"))
    assert merged(ours) == {"completed": 2, "identical": 5}
    assert len(list(Path("results").rglob("checkpoint"))) == 2


def test_other_numbers_are_a_conflict_and_nothing_is_overwritten(
    ours: Study, theirs: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = ours.plan.stages[3]
    finish(ours, stage, score=12.5)
    before = files(ours.get_node_folder(stage))
    seen = merge_results(ours, OTHER)
    assert (seen["counts"]["conflict"], seen["counts"]["copied"]) == (1, 6)
    (conflict,) = [item for item in seen["stages"] if item["outcome"] == "conflict"]
    assert conflict["stage"] == stage.path
    assert any("accuracy: 12.5 here, 50.0 there" in reason for reason in conflict["reasons"])
    assert files(ours.get_node_folder(stage)) == before
    assert find_error(seen) is not None
    assert cli.main(["merge", str(OTHER), "--config", "study.yaml"]) == 6
    captured = capsys.readouterr()
    assert stage.path in captured.out
    assert "1 conflict with your numbers" in captured.err


def test_equal_numbers_made_elsewhere_are_no_conflict(ours: Study, theirs: Study) -> None:
    finish(ours, ours.plan.stages[0], seconds={"total": 99.0}, commit=None, dirty=None)
    assert merged(ours) == {"identical": 1, "copied": 6}


def test_equal_predictions_in_another_file_are_no_conflict(
    ours: Study, theirs: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    real = pq.write_table
    monkeypatch.setattr(pq, "write_table", lambda t, p, **_: real(t, p, compression="gzip"))
    finish(ours, ours.plan.stages[0])
    monkeypatch.setattr(pq, "write_table", real)
    assert merged(ours) == {"identical": 1, "copied": 6}
    finish(ours, ours.plan.stages[1], answer="anger")
    assert merged(ours) == {"identical": 6, "conflict": 1}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda r: r["training"].pop("selections"), "selections"),
        (lambda r: r.update(schema=5), "has schema 5"),
        (lambda r: r["node"]["identity"].update(seed=7), "node.identity has digest"),
        (lambda r: r["node"].update(seed=7), "seed"),
        (lambda r: r["node"].update(family="decoder"), "family"),
        (lambda r: r.update(data_revision="mine"), "data_revision"),
        (lambda r: r.update(results={}, rows=None), "results: no task, expected"),
        (lambda r: r.update(rows=None), "rows: The value is null"),
        (lambda r: r["rows"].update(sha256="0" * 64), "SHA-256"),
        (lambda r: r["rows"].update(file="../x/rows.parquet"), ", expected rows.parquet"),
    ],
)
def test_a_record_that_is_not_right_is_refused(
    change: Callable[[dict[str, Any]], Any], part: str, ours: Study, theirs: Study
) -> None:
    stage = next(s for s in ours.plan.stages if s.label == "ER")
    spoil(theirs, stage, change)
    seen = merge_results(ours, OTHER)
    assert (seen["counts"]["rejected"], seen["counts"]["copied"]) == (1, 6)
    (refused,) = [item for item in seen["stages"] if item["outcome"] == "rejected"]
    assert part in refused["reasons"][0]
    assert not Path(ours.get_record_path(stage)).exists()
    assert find_error(seen) is not None
    assert "rejected" in as_text(seen)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("metrics.json", content) for content in (b"", b"{", b"\xff\xfe", b"[]")),
        *(("rows.parquet", content) for content in (b"PAR1", None)),
    ],
)
def test_a_damaged_node_is_refused(
    name: str, content: bytes | None, ours: Study, theirs: Study
) -> None:
    damage(theirs, name, content)
    assert merged(ours) == {"rejected": 1, "copied": 6}


@pytest.mark.parametrize("content", [b"PAR1", None])
def test_damaged_or_lost_predictions_here_are_completed(
    content: bytes | None, ours: Study, theirs: Study
) -> None:
    merged(ours)
    damage(ours, "rows.parquet", content)
    assert merged(ours) == {"completed": 1, "identical": 6}
    assert inspect_nodes(ours).damaged == {}


def damage(study: Study, name: str, content: bytes | None) -> None:
    """Replace a file of the first stage, or remove it if the content is None."""
    file = Path(study.get_node_folder(study.plan.stages[0]), name)
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)


def test_predictions_of_another_stage_are_refused(ours: Study, theirs: Study) -> None:
    """The record names them correctly, but they belong to another stage."""
    first, second = (Path(theirs.get_node_folder(s)) for s in theirs.plan.stages[:2])
    shutil.copy(second / "rows.parquet", first)
    names = json.loads((second / "metrics.json").read_text())["rows"]
    spoil(theirs, theirs.plan.stages[0], lambda record: record.update(rows=names))
    assert merged(ours) == {"rejected": 1, "copied": 6}


def test_a_truncated_checkpoint_is_left_out(ours: Study, theirs: Study) -> None:
    stage = next(s for s in theirs.plan.stages if s.kind == "baseline")
    weights = Path(theirs.get_checkpoint_folder(stage)) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    seen = merge_results(ours, OTHER)
    assert seen["counts"]["copied"] == 7
    assert any("truncated" in r for item in seen["stages"] for r in item["reasons"])
    assert Path(ours.get_record_path(stage)).exists()
    assert not Path(ours.get_checkpoint_folder(stage)).exists()


def test_links_are_not_followed(ours: Study, theirs: Study, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    baselines = [s for s in theirs.plan.stages if s.kind == "baseline"]
    (Path(theirs.get_checkpoint_folder(baselines[0])) / "vocab.txt").symlink_to(tmp_path / "secret")
    log = Path(theirs.get_node_folder(baselines[1])) / "train.log"
    log.unlink()
    log.symlink_to(tmp_path / "secret")
    merged(ours)
    assert b"secret" not in files("results").values()
    assert not [p for p in Path("results").rglob("*") if p.is_symlink()]


def test_a_damaged_record_here_is_kept_beside_the_one_that_is_taken(
    ours: Study, theirs: Study
) -> None:
    stage = ours.plan.stages[0]
    Path(ours.get_node_folder(stage)).mkdir(parents=True)
    Path(ours.get_record_path(stage)).write_text("{")
    assert merged(ours, dry_run=True) == {"copied": 7}
    assert Path(ours.get_record_path(stage)).read_text() == "{"
    seen = merge_results(ours, OTHER)
    assert seen["counts"]["copied"] == 7
    (told,) = [item for item in seen["stages"] if item["reasons"]]
    assert "metrics.json.damaged-1" in told["reasons"][0]
    assert (Path(ours.get_node_folder(stage)) / "metrics.json.damaged-1").read_text() == "{"
    assert len(inspect_nodes(ours).finished) == 7


def test_what_a_killed_training_left_here_gives_way(ours: Study, theirs: Study) -> None:
    folder = finish(ours, ours.plan.stages[0], answer="anger", checkpoint=False)
    (folder / "metrics.json").unlink()
    (folder / ".resume").mkdir()
    (folder / ".metrics.json.123.part").touch()
    assert merged(ours) == {"copied": 7}
    record = read_record(folder / "metrics.json")
    read_rows(folder / "rows.parquet", record["rows"])
    assert not (folder / ".resume").exists()
    assert not (folder / ".metrics.json.123.part").exists()


def test_what_is_trained_here_now_is_left_alone(ours: Study, theirs: Study) -> None:
    folder = Path(ours.get_node_folder(ours.plan.stages[0]))
    with claim_folder(folder, print):
        assert merged(ours) == {"busy": 1, "copied": 6}
        assert not (folder / "metrics.json").exists()
    assert merged(ours) == {"copied": 1, "identical": 6}


def test_unfinished_stages_and_strangers_are_counted(ours: Study, theirs: Study) -> None:
    Path(theirs.get_record_path(theirs.plan.stages[0])).unlink()
    stranger = opened("third.yaml", results=str(OTHER), seeds=[5])
    finish(stranger, stranger.plan.stages[0])
    seen = merge_results(ours, OTHER)
    assert (seen["unfinished"], seen["elsewhere"], seen["lacking"]) == (1, 1, 1)
    assert merged(ours, everything=True) == {"copied": 1, "identical": 6}
    assert Path("results", stranger.plan.stages[0].path, "metrics.json").exists()
    assert Path("results", stranger.plan.stages[0].path, "checkpoint").exists()


def test_another_name_of_the_model_is_not_another_training(ours: Study) -> None:
    theirs = opened("theirs.yaml", results=str(OTHER), models=[MODEL | {"name": "their-bert"}])
    finish_all(theirs)
    assert merged(ours) == {"copied": 7}
    record = read_record(Path(ours.get_record_path(ours.plan.stages[0])))
    assert record["node"]["model"] == "tiny-bert"
    assert record["provenance"]["notes"] == ["merged: the model was called their-bert"]
    assert merged(ours) == {"identical": 7}


def test_a_kill_half_way_leaves_no_half_stage(ours: Study, theirs: Study) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "write_record", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            merge_results(ours, OTHER)
    assert inspect_nodes(ours).finished == frozenset()
    assert merged(ours) == {"copied": 7}
    assert len(inspect_nodes(ours).finished) == 7


@pytest.mark.parametrize("other", ["nowhere", ".", "results"])
def test_what_is_not_another_results_folder_is_refused(other: str, ours: Study) -> None:
    Path("results/stages").mkdir(parents=True)
    with pytest.raises(ConfigError):
        merge_results(ours, Path(other))


def test_the_command_tells_what_it_did(
    ours: Study, theirs: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["merge", str(OTHER), "--config", "study.yaml", "--dry-run"]) == 0
    assert "dry run" in capsys.readouterr().out
    assert cli.main(["merge", str(OTHER), "--config", "study.yaml"]) == 0
    assert "7  copied" in capsys.readouterr().out
    assert cli.main(["merge", str(OTHER), "--config", "study.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["identical"] == 7
