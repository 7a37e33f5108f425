"""Files that no run needs are removed, and nothing else."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from finished_stages import MODEL, TASKS, finish, finish_all, opened, write_checkpoint
from tasktransfer import cli
from tasktransfer.cli import operate as commands
from tasktransfer.core.nodes import Stage
from tasktransfer.datasets import DATASETS
from tasktransfer.errors import ConfigError
from tasktransfer.files.locks import try_lock
from tasktransfer.operate.garbage import Garbage, find_garbage, remove_garbage
from tasktransfer.operate.garbage_text import as_text
from tasktransfer.results.node_folders import is_finished
from tasktransfer.results.state import claim_folder
from tasktransfer.results.study import Study

pytestmark = pytest.mark.usefixtures("here")


def caches(study: Study) -> None:
    """Write every cache and model that a study reads or is built from."""
    folders = [study.tiny_world, study.get_created_model_folder("tiny-bert")]
    folders += [study.get_tiny_instances_folder(dataset) for dataset in DATASETS]
    for dataset in study.config.datasets:
        folders += [
            study.get_instances_folder(dataset.name),
            study.get_encoded_folder(study.get_released_data(dataset.name), "tiny-bert"),
        ]
    for folder in folders:
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, "manifest.json").write_text("{}")


def kinds(found: Garbage) -> Counter[str]:
    return Counter(item.kind for item in found.items)


def everything() -> set[str]:
    return {str(path) for path in Path("results").rglob("*") if not path.name.endswith(".lock")}


def first(study: Study, kind: str = "baseline") -> Stage:
    return next(s for s in study.plan.stages if s.kind == kind)


def test_other_settings_lose_bulk_and_records_on_request() -> None:
    old = opened(training={"epochs": 3})
    finish_all(old)
    study = opened()
    finish_all(study)
    before = everything()
    found = find_garbage([study])
    assert kinds(found) == {"checkpoints of other settings": 2}
    assert len(found.kept) == 7
    assert found.bytes == sum(item.bytes for item in found.items) > 0
    gone = remove_garbage(found)
    assert (gone.items, gone.bytes, gone.left) == (2, found.bytes, ())
    lost = before - everything()
    assert lost
    assert all("/checkpoint" in path for path in lost)
    assert find_garbage([study]).items == ()
    records = find_garbage([study], records=True)
    assert kinds(records) == {"records and predictions of other settings": 7}
    remove_garbage(records)
    assert not [s for s in old.plan.stages if Path(old.get_node_folder(s)).exists()]
    assert all(is_finished(study, stage) for stage in study.plan.stages)


def test_nothing_of_several_studies_is_garbage() -> None:
    studies = [opened(), opened("second.yaml", training={"epochs": 3})]
    for study in studies:
        finish_all(study)
        caches(study)
    for name in ("tables/runs.parquet", "figures/table2.md", "notes.txt", "data/digests.json"):
        Path("results", name).parent.mkdir(parents=True, exist_ok=True)
        Path("results", name).touch()
    found = find_garbage(studies, records=True)
    assert found.items == ()
    assert "nothing to remove" in as_text(found)


def test_studies_of_different_folders_are_refused() -> None:
    with pytest.raises(ConfigError, match="different results folders"):
        find_garbage([opened(), opened("second.yaml", results="elsewhere")])


def test_checkpoints_states_and_halves_of_this_study() -> None:
    study = opened()
    finish_all(study)
    for stage in study.plan.stages:
        if stage.kind == "multitask":
            write_checkpoint(Path(study.get_checkpoint_folder(stage)))
    folder = Path(study.get_node_folder(first(study)))
    (folder / ".resume").mkdir()
    (folder / ".metrics.json.77.part").touch()
    (folder / ".checkpoint.77.part").mkdir()
    found = find_garbage([study])
    assert kinds(found) == {
        "checkpoints that nothing starts from any more": 1,
        "states of trainings that are finished": 1,
        "half-written files": 1,
    }
    remove_garbage(found)
    assert find_garbage([study]).items == ()
    assert all(is_finished(study, stage) for stage in study.plan.stages)


def test_what_is_still_needed_stays() -> None:
    """A temporary checkpoint whose fine-tuning is missing, and a state to resume from."""
    study = opened()
    finish_all(study)
    stages = study.plan.stages
    child, parent = next((s, p) for s in stages for p in s.parents if p.kind == "multitask")
    write_checkpoint(Path(study.get_checkpoint_folder(parent)))
    Path(study.get_record_path(child)).unlink()
    (Path(study.get_node_folder(child)) / ".resume").mkdir()
    assert find_garbage([study]).items == ()


def test_a_checkpoint_that_another_study_keeps_stays() -> None:
    study = opened()
    keeper = opened("keeper.yaml", checkpoints={"keep": "all"})
    finish_all(keeper)
    assert kinds(find_garbage([study])) == {"checkpoints that nothing starts from any more": 5}
    assert find_garbage([study, keeper]).items == ()


def test_an_unfinished_training_of_other_settings_goes_whole() -> None:
    old = opened(training={"epochs": 3})
    folder = finish(old, first(old))
    (folder / "metrics.json").unlink()
    (folder / ".resume").mkdir()
    study = opened()
    found = find_garbage([study])
    assert kinds(found) == {"unfinished work of other settings": 1}
    remove_garbage(found)
    assert not folder.exists()
    assert not folder.parent.exists()


def test_what_a_user_put_there_stays() -> None:
    old = opened(training={"epochs": 3})
    folder = finish(old, first(old))
    (folder / "my notes.txt").write_text("mine")
    (folder.parent / "readme").write_text("mine")
    remove_garbage(find_garbage([opened()], records=True))
    assert {path.name for path in folder.iterdir()} == {"my notes.txt", ".claim"}
    assert (folder.parent / "readme").exists()


def test_what_is_trained_now_stays() -> None:
    study = opened()
    finish_all(study)
    multitask = first(study, "multitask")
    write_checkpoint(Path(study.get_checkpoint_folder(multitask)))
    found = find_garbage([study])
    with claim_folder(Path(study.get_node_folder(multitask)), print):
        assert find_garbage([study]).items == ()
        gone = remove_garbage(found)  # found before the training began
        assert gone.items == 0
        assert "in use now" in gone.left[0]
    assert Path(study.get_checkpoint_folder(multitask)).exists()


def test_another_workflow_on_the_folder_keeps_all_of_its_own() -> None:
    old = opened(training={"epochs": 3})
    finish_all(old)
    caches(old)
    study = opened(data={"tiny_world": {"seed": 1}})
    with claim_folder(Path(old.get_node_folder(old.plan.stages[3])), print):
        found = find_garbage([study], records=True)
        assert found.items == ()
        assert "is in use" in found.remarks[0]
    assert find_garbage([study], records=True).items


def test_caches_and_models_of_other_settings() -> None:
    old = opened(data={"tiny_world": {"seed": 5}})
    caches(old)
    study = opened()
    caches(study)
    found = find_garbage([study])
    assert kinds(found) == {
        "caches of other data or models": 5,  # the world, three of instances, one of token ids
        "models of other settings": 1,
    }
    remove_garbage(found)
    for each, is_kept in ((old, False), (study, True)):
        encoded = each.get_encoded_folder(each.get_released_data("DailyDialog"), "tiny-bert")
        assert Path(each.tiny_world).exists() == Path(encoded).exists() == is_kept
    assert Path(study.get_created_model_folder("tiny-bert")).exists()


def test_half_made_caches_go_unless_they_are_being_made() -> None:
    study = opened()
    caches(study)
    place = Path(study.get_instances_folder("DailyDialog"))
    draft = place.with_name(f".{place.name}.draft")
    draft.mkdir()
    found = find_garbage([study])
    assert [item.paths for item in found.items] == [(str(draft),)]
    with place.with_name(f".{place.name}.lock").open("a") as stream:
        assert try_lock(stream.fileno())
        assert remove_garbage(found).items == 0
    assert draft.exists()
    assert remove_garbage(found).items == 1
    assert not draft.exists()


def test_links_are_neither_followed_nor_removed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    old = opened(training={"epochs": 3})
    finish_all(old)
    folder = Path(old.get_node_folder(first(old)))
    shutil.move(folder / "checkpoint", outside)
    (folder / "checkpoint").symlink_to(outside)
    model = Path("results/stages/baseline/DailyDialog/linked")
    model.symlink_to(folder.parent.parent)
    study = opened()
    finish_all(study)
    remove_garbage(find_garbage([study], records=True))
    assert (outside / "model.safetensors").exists()
    assert (folder / "checkpoint").is_symlink()
    assert model.is_symlink()


def test_a_linked_upper_folder_is_reported_and_left(tmp_path: Path) -> None:
    old = opened(training={"epochs": 3})
    caches(old)
    shutil.move("results/models", tmp_path / "big-disk")
    Path("results/models").symlink_to(tmp_path / "big-disk")
    found = find_garbage([opened(models=[MODEL | {"checkpoint": "tiny", "max_length": 65}])])
    assert not [item for item in found.items if "models" in item.paths[0].split("/")]
    assert any("is a link" in remark for remark in found.remarks)


def test_something_that_became_a_link_is_not_removed(tmp_path: Path) -> None:
    old = opened(training={"epochs": 3})
    finish_all(old)
    found = find_garbage([opened()])
    checkpoint = Path(found.items[0].paths[0])
    shutil.move(checkpoint, tmp_path / "moved")
    checkpoint.symlink_to(tmp_path / "moved")
    gone = remove_garbage(found)
    assert "has become a link" in gone.left[0]
    assert (tmp_path / "moved" / "model.safetensors").exists()


def test_while_auto_has_not_picked_other_trainings_stay() -> None:
    auto = {"mode": "auto", "targets_per_dataset": 1, "sources_per_target": 2}
    old = opened(training={"epochs": 3})
    finish_all(old)
    study = opened(datasets={"DailyDialog": {"tasks": TASKS}}, multi_source=auto)
    found = find_garbage([study], records=True)
    assert found.items == ()
    assert "is still pending" in found.remarks[0]


def test_the_command_removes_only_when_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = opened("old.yaml", training={"epochs": 3})
    finish_all(old)
    opened()
    before = everything()
    assert cli.main(["gc", "--config", "study.yaml"]) == 0
    out = capsys.readouterr().out
    assert "Nothing was deleted" in out
    assert "7 records of other settings" in out
    assert everything() == before
    assert cli.main(["gc", "--config", "study.yaml", "old.yaml", "--yes"]) == 0
    assert everything() == before
    monkeypatch.setattr(commands.sys.stdin, "isatty", lambda: True, raising=False)
    for answer, left in (("n", before), ("y", None)):
        monkeypatch.setattr("builtins.input", lambda _, answer=answer: answer)
        assert cli.main(["gc", "--config", "study.yaml"]) == 0
        assert (everything() == before) == (left is not None)
    finish(old, first(old))
    assert cli.main(["gc", "--config", "study.yaml", "--yes", "--records", "--json"]) == 0
    captured = capsys.readouterr()
    start = captured.out.rindex("\n{\n") if "\n{\n" in captured.out else 0
    assert len(json.loads(captured.out[start:])["items"]) == 7
    assert not list(Path("results").rglob("metrics.json"))


def test_a_study_of_unknown_data_removes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    finish_all(opened("old.yaml"))
    Path("study.yaml").write_text(
        "study: s\ndata: {release: nowhere}\ndatasets: {Friends: {tasks: all}}\n"
        "models: [{name: m, family: encoder, checkpoint: tiny}]\n"
    )
    before = everything()
    assert cli.main(["gc", "--config", "study.yaml", "--yes", "--records"]) == 3
    assert everything() == before
