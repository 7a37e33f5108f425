"""Missing data of a study are reported before training, and nothing else is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finished_stages import TASKS, finish_all, opened
from releases import TinyRelease, tiny_release
from tasktransfer import cli
from tasktransfer.data.cache import cache_dataset
from tasktransfer.datasets.feta import archive
from tasktransfer.designs import open_study
from tasktransfer.operate import missing_inputs as lacking
from tasktransfer.results.study import Study

TASK = TASKS[1]
FEW_DEV = "TTiDB_0.1_percent_few_shot_dev_ids.txt"
Spoil = Callable[[TinyRelease], object]
Write = Callable[[TinyRelease, Path], Path]


pytestmark = pytest.mark.usefixtures("here")


def not_annotated(release: TinyRelease) -> None:
    release.content["metadata"]["tasks"].remove(TASK)


def metadata_last(release: TinyRelease) -> None:
    not_annotated(release)
    release.content["metadata"] = release.content.pop("metadata")


def lists_are_empty(*dialogues: str) -> Spoil:
    def spoil(release: TinyRelease) -> None:
        for dialogue in release.content["data"]:
            if dialogue["dialogue_id"] in dialogues:
                dialogue[TASK] = []

    return spoil


def dialogue_names_no_task(release: TinyRelease) -> None:
    del release.content["data"][2]["dialogue_metadata"][TASK]


def on(spoil: Spoil | None = None, write: Write = TinyRelease.write, **keys: Any) -> Study:
    """Open a study of TASKS[:2] on a release of five dialogues that is damaged in one place."""
    release = tiny_release("DailyDialog")
    if spoil:
        spoil(release)
    write(release, Path.cwd())
    return opened(**({"data": {"release": "."}} | keys))


def test_a_release_that_holds_everything_is_complete() -> None:
    assert lacking.list_missing_inputs(on()) == ()
    assert lacking.list_missing_inputs(opened()) == ()  # the tiny world, not generated yet


@pytest.mark.parametrize("spoil", [not_annotated, metadata_last])
@pytest.mark.parametrize(
    ("write", "place"),
    [
        (TinyRelease.write, "TLiDB_DailyDialog/TLiDB_DailyDialog.json: "),
        (TinyRelease.pack, "TLiDB_DailyDialog.zip (TLiDB_DailyDialog.json): "),
    ],
)
def test_a_task_that_is_not_annotated(spoil: Spoil, write: Write, place: str) -> None:
    (text,) = lacking.list_missing_inputs(on(spoil, write))
    assert text.startswith(place)
    assert f"metadata.tasks does not list '{TASK}'" in text
    assert f"remove '{TASK}' from datasets.DailyDialog.tasks" in text
    assert "study.yaml" in text


@pytest.mark.parametrize(
    ("spoil", "few_sample", "part"),
    [
        (lists_are_empty("c"), True, f"in the dev split ({FEW_DEV})"),
        (dialogue_names_no_task, True, f"in the dev split ({FEW_DEV})"),
        (lists_are_empty("a", "d", "e"), True, "in the train and test split"),
        (lists_are_empty("c"), False, "in the dev split (TTiDB_dev_ids.txt)"),
        (lists_are_empty("a", "d"), False, None),  # b and e have some
    ],
)
def test_a_split_without_instances(spoil: Spoil, few_sample: bool, part: str | None) -> None:
    study = on(spoil, data={"release": ".", "few_sample": few_sample})
    found = lacking.list_missing_inputs(study)
    assert len(found) == (part is not None)
    assert all(f"no instances of '{TASK}' {part}" in text for text in found)


def test_a_task_that_is_a_source_only_needs_its_train_split() -> None:
    named = [{"dataset": "DailyDialog", "target": TASKS[0], "sources": [TASK]}]
    keys = {
        "datasets": {"DailyDialog": {"tasks": [TASKS[0], TASKS[2]]}},
        "algorithms": ["multitask"],
        "multi_source": {"mode": "named", "named": named},
    }
    assert lacking.list_missing_inputs(on(lists_are_empty("c", "d", "e"), **keys)) == ()
    assert len(lacking.list_missing_inputs(on(lists_are_empty("a"), **keys))) == 1


def test_other_tasks_of_the_release_do_not_matter() -> None:
    others = {"DailyDialog": {"tasks": [TASKS[0], TASKS[2]]}}
    assert lacking.list_missing_inputs(on(not_annotated, datasets=others)) == ()


def test_a_release_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lacking.list_missing_inputs(on(not_annotated))
    with monkeypatch.context() as patched:
        patched.delattr(archive, "read_files")
        assert lacking.list_missing_inputs(open_study("study.yaml")) == before
    assert lacking.list_missing_inputs(on()) == ()  # changed, so it is read again


def test_prepared_instances_are_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lacking, "_read_release", None)
    for spoil, count in ((lists_are_empty("c"), 1), (not_annotated, 1), (None, 0)):
        study = on(spoil)
        cache_dataset("DailyDialog", ".", True, study.get_instances_folder("DailyDialog"))
        assert len(lacking.list_missing_inputs(study)) == count
    shutil.rmtree("TLiDB_DailyDialog")
    assert lacking.list_missing_inputs(open_study("study.yaml")) == ()


def test_what_is_finished_or_tokenised_needs_no_data() -> None:
    finish_all(on())
    shutil.rmtree("TLiDB_DailyDialog")
    assert lacking.list_missing_inputs(open_study("study.yaml")) == ()
    more = opened(data={"release": "."}, seeds=2)
    (text,) = lacking.list_missing_inputs(more)
    assert "There is no release of DailyDialog" in text
    manifest = Path(
        more.get_encoded_folder(more.get_released_data("DailyDialog"), "tiny-bert"), "manifest.json"
    )
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    assert lacking.list_missing_inputs(more) == ()


def test_a_damaged_release_is_reported() -> None:
    study = on(lambda release: release.content["data"][2].pop("dialogue"))
    (text,) = lacking.list_missing_inputs(study)
    assert "dialogue 'c': The key 'dialogue' is missing" in text


def test_plan_and_validate_tell_it(capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = lacking.list_missing_inputs(on(not_annotated))
    assert cli.main(["plan", "--config", "study.yaml"]) == 0
    assert f"CANNOT BE RUN: {text}" in capsys.readouterr().out
    assert cli.main(["plan", "--config", "study.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lacking"] == [text]
    assert cli.main(["validate", "--config", "study.yaml"]) == 3
    assert capsys.readouterr().err == f"error: {text}\n"


# --- encode -------------------------------------------------------------------------------------


def encode(task: str, spoil: Spoil | None = None) -> tuple[int, Path]:
    """Run ``tasktransfer encode`` for a study of one task with a decoder of few tokens."""
    from small_models import make_model  # noqa: PLC0415  # needs torch

    words = [json.dumps(d) for d in tiny_release("DailyDialog").content["data"]]
    if not Path("gpt").exists():
        make_model("decoder", words * 5, Path("gpt"))
    model = {"name": "gpt", "family": "decoder", "checkpoint": "./gpt", "max_length": 64}
    datasets = {"DailyDialog": {"tasks": [task]}}
    study = on(spoil, datasets=datasets, models=[model], algorithms=["baseline"])
    cache_dataset("DailyDialog", ".", True, study.get_instances_folder("DailyDialog"))
    out = Path(study.get_encoded_folder(study.get_released_data("DailyDialog"), "gpt"))
    where = ["--dataset", "DailyDialog", "--model", "gpt", "--out", str(out)]
    return cli.main(["encode", "--config", "study.yaml", *where]), out


def long_question(release: TinyRelease) -> None:
    cause = release.dialogue["causal_emotion_span_extraction"][0]["qas"][0]
    cause["question"] = "Which of these spans causes disgust? " * 30


def test_a_study_of_topics_encodes_topics_only(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = encode("topic_classification", long_question)
    assert code == 0, capsys.readouterr().err
    tasks = {file.name.rsplit("-", 1)[0] for file in out.glob("*.arrow")}
    assert tasks == {"topic_classification"}


def test_an_instance_that_cannot_fit_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = encode("causal_emotion_span_extraction", long_question)
    error = capsys.readouterr().err
    assert code == 4
    assert "instance a_cause0 of causal_emotion_span_extraction" in error
    assert "more than max_length 64. Raise the model's max_length to" in error
    assert not out.exists()


def test_encode_tells_what_the_prepared_data_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = encode(TASK, not_annotated)
    assert code == 3
    assert f"metadata.tasks does not list '{TASK}'" in capsys.readouterr().err
    assert not out.exists()
