"""A study on disk: revisions, paths, and cached facts."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasktransfer.config import from_texts
from tasktransfer.core.nodes import Start
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.collect import build_study_metadata
from tasktransfer.errors import ConfigError, DataError, ModelError, RecordError
from tasktransfer.operate.overview import summarise_study
from tasktransfer.results import revisions
from tasktransfer.results.collect import gather_records
from tasktransfer.results.revisions import UNKNOWN
from tasktransfer.results.study import Study

TASKS = ["emotion_recognition", "dialogue_nli", "topic_classification"]
MODEL = {"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}


pytestmark = pytest.mark.usefixtures("here")


def write(**keys: Any) -> Path:
    study = {"study": "s", "datasets": {"DailyDialog": {"tasks": TASKS}}, "models": [MODEL]}
    path = Path("study.yaml")
    path.write_text(yaml.safe_dump(study | keys))
    return path


def opened(need_inputs: bool = True, **keys: Any) -> Study:
    return open_study(write(**keys), need_inputs=need_inputs)


def encoded(study: Study) -> str:
    return study.get_encoded_folder(study.get_released_data("DailyDialog"), "tiny-bert")


def a_release(folder: Path, text: str = "{}") -> None:
    """Write files with the official names; opening a study digests them without parsing."""
    home = folder / "TLiDB_DailyDialog"
    home.mkdir(parents=True, exist_ok=True)
    for name in (
        "TLiDB_DailyDialog.json",
        *(f"TTiDB_{split}_ids.txt" for split in ("train", "dev", "test")),
        *(f"TTiDB_0.1_percent_few_shot_{split}_ids.txt" for split in ("train", "dev")),
    ):
        (home / name).write_text(text)


def a_checkpoint(folder: Path, weights: str = "w") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_text(weights)


def test_places_are_named_after_content() -> None:
    study, other_world = opened(), opened(data={"tiny_world": {"seed": 1}})
    assert study.tiny_world != other_world.tiny_world
    assert study.get_instances_folder("DailyDialog") != other_world.get_instances_folder(
        "DailyDialog"
    )
    assert study.get_created_model_folder("tiny-bert") != other_world.get_created_model_folder(
        "tiny-bert"
    )
    assert study.get_instances_folder("DailyDialog").startswith(
        "results/data/instances/DailyDialog-"
    )
    assert study.get_instances_folder("DailyDialog").endswith("-few")
    assert opened(data={"few_sample": False}).get_instances_folder("DailyDialog").endswith("-full")


def test_encoded_depends_on_model_data_and_tasks_only() -> None:
    first = encoded(opened())
    assert encoded(opened(training={"epochs": 3})) == first
    assert encoded(opened(models=[MODEL | {"max_length": 65}])) != first
    assert encoded(opened(datasets={"DailyDialog": {"tasks": TASKS[:2]}})) != first
    assert encoded(opened(datasets={"DailyDialog": {"tasks": TASKS[::-1]}})) == first


def test_tiny_models_are_made_from_the_tiny_world_whatever_the_release() -> None:
    a_release(Path("release"))
    real, tiny = opened(data={"release": "release"}), opened()
    assert real.get_created_model_folder("tiny-bert") == tiny.get_created_model_folder("tiny-bert")
    assert real.get_instances_folder("DailyDialog") != tiny.get_instances_folder("DailyDialog")
    assert tiny.get_tiny_instances_folder("DailyDialog").endswith("-full")


def test_where_stages_start() -> None:
    study = opened()
    base = next(s for s in study.plan.stages if s.kind == "baseline")
    fine = next(s for s in study.plan.stages if s.kind == "finetune")
    (start,), (parent,) = fine.starts, fine.parents
    assert study.get_checkpoint_source("tiny-bert") == study.get_created_model_folder("tiny-bert")
    assert study.get_start_folder(start) == f"results/{parent.path}/checkpoint"
    kept = replace(parent, selection=replace(parent.selection, keep="every"))
    assert study.get_start_folder(Start(kept, 3)) == f"results/{kept.path}/rounds/3"
    assert study.get_base_revision(base) is None
    assert study.get_node(base.digest[:12]) is base
    assert fine in study.list_dependents(parent)
    with pytest.raises(ConfigError, match="The study has no training, fit or evaluation with the"):
        study.get_node("0" * 12)


def test_hub_names_and_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        revisions, "resolve_commit", lambda *_: None
    )  # neither hub nor cache is available
    a_checkpoint(Path("models/mine"))
    hub = MODEL | {"name": "hub", "checkpoint": "org/name"}
    pinned = MODEL | {"name": "pinned", "checkpoint": "gpt2", "revision": "abc"}
    local = MODEL | {"name": "local", "checkpoint": "models/mine"}
    dotted = MODEL | {"name": "dotted", "checkpoint": "./models/mine"}
    study = opened(models=[hub, pinned, local, dotted])
    weights = {name: spec.weights for name, spec in study.revisions.models.items()}
    assert weights["hub"] == "org/name@main"
    assert weights["pinned"] == "gpt2@abc"
    assert weights["local"] == weights["dotted"]
    assert weights["local"].startswith("sha256:")
    assert (study.get_hub_revision("hub"), study.get_hub_revision("local")) == ("main", None)
    assert study.get_checkpoint_source("hub") == "org/name"


COMMITS = {"org/name": "1" * 40, "gpt2": "2" * 40}


def test_a_name_on_the_hub_is_the_commit_that_it_stood_for_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = MODEL | {"name": "hub", "checkpoint": "org/name"}
    pinned = MODEL | {"name": "pinned", "checkpoint": "gpt2", "revision": "3" * 40}
    asked: list[tuple[str, str]] = []

    def told(name: str, revision: str) -> str:
        asked.append((name, revision))
        return COMMITS[name]

    monkeypatch.setattr(revisions, "resolve_commit", told)
    study = opened(models=[hub, pinned])
    weights = {name: spec.weights for name, spec in study.revisions.models.items()}
    assert weights == {"hub": f"org/name@{'1' * 40}", "pinned": f"gpt2@{'3' * 40}"}
    assert (study.get_hub_revision("hub"), study.get_hub_revision("pinned")) == ("1" * 40, "3" * 40)
    assert asked == [("org/name", "main")]
    # The branch moves: this study stays with what it began with, another has other stages.
    monkeypatch.setitem(COMMITS, "org/name", "4" * 40)
    assert opened(models=[hub, pinned]).plan == study.plan
    elsewhere = opened(models=[hub, pinned], results="elsewhere")
    assert elsewhere.get_hub_revision("hub") == "4" * 40
    ours, theirs = (
        {s.digest for s in one.plan.stages if s.model.name == "hub"} for one in (study, elsewhere)
    )
    assert not ours & theirs


def test_the_commit_of_a_name_is_found_in_the_cache_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    home = tmp_path / "cache" / "models--org--name"
    snapshot = home / "snapshots" / ("5" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("5" * 40)
    code = "from tasktransfer.models.checkpoint_digest import resolve_commit as c"
    code += "; print(c('org/name', 'main'))"
    code += "; print(c('org/other', 'main'))"
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HF_HUB_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["5" * 40, "None"]


def test_other_weights_make_other_stages() -> None:
    local = MODEL | {"checkpoint": "./mine"}
    a_checkpoint(Path("mine"))
    before = set(opened(models=[local]).list_record_paths())
    a_checkpoint(Path("mine"), weights="others")
    assert before.isdisjoint(opened(models=[local]).list_record_paths())


def test_missing_data_is_refused_by_name() -> None:
    with pytest.raises(DataError, match="nowhere"):
        opened(data={"release": "nowhere"})


def test_missing_model_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"model tiny-bert: The folder \./gone"):
        opened(models=[MODEL | {"checkpoint": "./gone"}])


def test_a_study_without_its_data_can_be_counted_only() -> None:
    study = opened(need_inputs=False, data={"release": "nowhere"})
    assert study.revisions.data == {"DailyDialog": UNKNOWN}
    seen = summarise_study(study)
    assert seen["runs"]["total"] == 21
    assert seen["trainings"]["done"] is None
    assert "nowhere" in seen["absent"][0]


def test_revisions_outlive_the_data_for_tables_and_figures() -> None:
    a_release(Path("release"))
    a_checkpoint(Path("mine"))
    keys = {"data": {"release": "release"}, "models": [MODEL | {"checkpoint": "./mine"}]}
    before = opened(**keys)
    shutil.rmtree("release")
    shutil.rmtree("mine")
    after = opened(**keys)
    assert after.list_record_paths() == before.list_record_paths()
    assert len(after.absent) == 2
    assert not after.has_unknown_inputs


def test_changed_data_is_never_mistaken_for_what_is_remembered() -> None:
    a_release(Path("release"))
    keys = {"data": {"release": "release"}}
    before = opened(**keys).revisions.data
    a_release(Path("release"), text="[]")
    assert opened(**keys).revisions.data != before


AUTO = {"mode": "auto", "targets_per_dataset": 1, "sources_per_target": 2}
PICKED = [{"dataset": "DailyDialog", "target": TASKS[0], "sources": TASKS[1:]}]


def select(picked: Any) -> None:
    path = Path("results/tables/selection.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(picked))


def test_auto_grows_when_the_selection_is_there() -> None:
    study = opened(multi_source=AUTO)
    (choice,) = study.plan.choices
    assert study.pending_choices == (choice,)
    assert choice.announcement.startswith("further multi-source trainings follow")
    assert study.further_trainings is None
    assert study.get_choice_path(choice) == "results/tables/selection.json"
    assert len(study.plan.runs) == 21
    select(PICKED)
    grown = opened(multi_source=AUTO)
    # Token ids that are made before it picks are those that its trainings read.
    assert encoded(grown) == encoded(study)
    assert not grown.pending_choices
    assert study.with_choices().plan == grown.plan
    assert len(grown.plan.runs) == 21 + 3
    assert grown.get_choice("selection").after == study.plan.stages


@pytest.mark.parametrize(
    ("picked", "part"),
    [
        ([], "has 0 targets"),
        ([PICKED[0] | {"sources": TASKS[1:2]}], "has 1 sources"),
        (
            [PICKED[0] | {"target": "question_answering"}],
            "not have the tasks question_answering",
        ),
        ([PICKED[0] | {"chosen_by": "test"}], "chosen by test, but multi_source.choose_by is"),
        ([PICKED[0] | {"chosen_by": "luck"}], "chosen by luck, but multi_source.choose_by is"),
        ({"a": 1}, "damaged"),
    ],
)
def test_a_selection_that_does_not_fit_is_refused(picked: Any, part: str) -> None:
    select(picked)
    with pytest.raises(RecordError, match=part):
        opened(multi_source=AUTO)


def test_a_selection_does_not_matter_when_it_is_not_requested() -> None:
    select([])
    assert opened().plan.choices == ()


def test_which_checkpoints_are_written_and_kept() -> None:
    study = opened()
    assert study.keeps_checkpoints("baseline")
    assert study.makes_checkpoint("multitask")
    assert not study.keeps_checkpoints("multitask")
    assert not study.makes_checkpoint("finetune")
    alone = opened(algorithms=["multitask"])
    assert not alone.makes_checkpoint("multitask")


def test_what_stages_leave_is_known_before_the_choice() -> None:
    """The workflow's rules declare their files before it is made."""
    several = {**AUTO, "algorithms": ["pretrain_finetune", "multitask_finetune"]}
    study = opened(algorithms=["multitask"], multi_source=several)
    assert {stage.kind for stage in study.plan.stages} == {"baseline", "multitask"}
    assert study.makes_checkpoint("multitask")
    assert not study.is_tested("multitask"), "those on several sources alone are not"
    assert study.starts_from_others("finetune")


def test_the_tables_are_collected_by_the_plan() -> None:
    study = opened()
    collected = gather_records(study)
    assert collected.planned == study.plan.runs
    metadata = build_study_metadata(collected)
    assert metadata.shorts["dialogue_nli"] == "DNLI"
    assert metadata.facts["missing"].endswith(" training runs")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (AUTO, "dev"),
        (AUTO | {"choose_by": "test"}, "test"),
        (
            {
                "mode": "named",
                "named": [{"dataset": "DailyDialog", "target": TASKS[0], "sources": TASKS[1:]}],
            },
            "config",
        ),
    ],
)
def test_tables_say_what_chose_the_sources(asked: dict[str, Any], said: str) -> None:
    study = opened(multi_source=asked)
    assert build_study_metadata(gather_records(study)).facts["sources_chosen_by"] == said


def test_arguments_open_the_same_study_again() -> None:
    path = write()
    overrides = {"training": {"epochs": "3"}, "seeds": ["4", "5"], "study": "it's mine"}
    study = open_study(path, from_texts(overrides))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tasktransfer",
            "plan",
            "--json",
            *shlex.split(study.format_arguments()),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["study"] == "it's mine"
    assert json.loads(done.stdout)["trainings"]["total"] == len(study.plan.stages)


def test_opening_needs_no_heavy_package() -> None:
    """A study is opened at every start of Snakemake and of every training."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'pandas', 'pyarrow', 'numpy']));"
        "from tasktransfer.designs import open_study;"
        f"print(len(open_study({str(write())!r}).plan.runs))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "21"
