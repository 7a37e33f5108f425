"""Data that are too few for a study are reported once prepared, before any training."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from finished_stages import MODEL, finish_all, opened
from tasktransfer import cli
from tasktransfer.core.nodes import Stage
from tasktransfer.datasets import DATASETS
from tasktransfer.designs import get_design, open_study
from tasktransfer.designs.panel import inputs as panel
from tasktransfer.designs.probes.facts import RECIPE
from tasktransfer.designs.probes.labels import derive_dialogue_labels
from tasktransfer.errors import DataError
from tasktransfer.jobs.needs import list_first_data
from tasktransfer.operate.missing_inputs import list_missing_inputs, require_available_data
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import SPLITS, Instance

BUILT = {
    "layers": 1,
    "hidden": 8,
    "heads": 2,
    "feed_forward": 8,
    "positions": 51,
    "vocabulary_size": 100,
}
EMPATHETIC: dict[str, Any] = {
    "study": "e",
    "design": "empathetic",
    "data": {"release": "tiny_world", "few_sample": False},
    "models": [
        {"name": "r", "family": "dual_encoder", "checkpoint": "built", "max_length": 50}
        | {"architecture": BUILT}
    ],
    "retrieval": {"model": "r", "methods": ["base"]},
    "pretraining": {"retrieval": False},
    "evaluation": {"block": 100, "pools": ["ED"]},
}
PANEL: dict[str, Any] = {
    "study": "p",
    "design": "panel",
    "data": {"release": "tiny_world", "few_sample": False, "tiny_world": {"dialogues": 120}},
    "models": [{**MODEL, "max_unknown_words": 1.0}],
    "domains": ["Harbour", "Orchard"],
    "rated_sets": ["Harbour_Tiny"],
    "pairs": {"labels": "made", "train": 32, "dev": 16},
    "few_shot": {"sets": ["Market_Tiny"], "percentages": [1, 20], "draws": 3},
    "selection": {"domain": "Harbour", "candidates": 700, "personas": ["none", "original"]},
}


pytestmark = pytest.mark.usefixtures("here", "datasets_of_one_test")


def study_of(config: dict[str, Any]) -> Study:
    Path("study.yaml").write_text(yaml.safe_dump(config))
    return open_study("study.yaml")


def say_prepared(study: Study, dataset: str, **rows: int) -> None:
    """Write a manifest of prepared data with the given number of rows per split of every task."""
    splits = {split: {"samples": rows.get(split, 500)} for split in SPLITS}
    tasks = dict.fromkeys(DATASETS[dataset].tasks, splits)
    folder = Path(study.get_instances_folder(dataset))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"tasks": tasks}))


@pytest.mark.parametrize(("rows", "found"), [(99, True), (100, False), (5000, False)])
def test_a_block_of_replies_needs_as_many_test_rows(rows: int, found: bool) -> None:
    study = study_of(EMPATHETIC)
    assert not list_missing_inputs(study), "nothing is known before data are prepared"
    say_prepared(study, "EmpatheticDialogues", test=rows)
    messages = list_missing_inputs(study)
    assert bool(messages) is found
    if found:
        (text,) = messages
        assert "listener_reply has 99 test rows, but P@1,100 chooses among 100" in text
        assert "lower evaluation.block" in text
        assert cli.main(["validate", "--config", "study.yaml"]) == DataError.exit_code


def test_the_block_that_the_released_code_leaves_out_counts_as_absent() -> None:
    study = study_of(EMPATHETIC | {"release_compat": True})
    say_prepared(study, "EmpatheticDialogues", test=100)
    (text,) = list_missing_inputs(study)
    assert "release_compat leaves the last 100 out" in text


def test_prompts_need_as_many_training_instances_as_shots() -> None:
    asked = {"model": "d", "shots": [0, 8]}
    decoder = {"name": "d", "family": "decoder", "checkpoint": "tiny", "max_length": 512}
    study = opened(models=[MODEL, decoder], prompted=[asked])
    say_prepared(study, "DailyDialog", train=7)
    messages = list_missing_inputs(study)
    assert len(messages) == 2, "one for each task"
    assert (
        "emotion_recognition has 7 training instances, but prompts need 8 examples" in messages[0]
    )
    say_prepared(study, "DailyDialog", train=8)
    assert not list_missing_inputs(study)


def test_an_update_of_several_batches_needs_them() -> None:
    training = {"epochs": 1, "batch_size": 30, "fidelity": "tlidb"}
    study = opened(training=training)
    stage = study.plan.stages[0]
    assert stage.training.fidelity.leftover_batches == "next_epoch"
    say_prepared(study, "DailyDialog", train=20)
    messages = list_missing_inputs(study)
    assert any("has 2 batches, but an update takes 3" in text for text in messages)
    with pytest.raises(DataError, match="leftover_batches to own_update"):
        require_available_data(study)
    finish_all(study)
    assert not list_missing_inputs(study), "finished trainings need nothing"


# --- panel --------------------------------------------------------------------------------------


@pytest.fixture
def prepared() -> Study:
    study = study_of(PANEL)
    assert get_design(study.config).shortages(study) == []
    words = ["data", "prepare", "--config", "study.yaml", "--dataset", "PanelTiny"]
    assert cli.main([*words, "--out", study.get_instances_folder("PanelTiny")]) == 0
    return study


def test_a_panel_tells_what_is_too_few_before_it_trains(
    prepared: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = get_design(prepared.config).shortages(prepared)
    few, responses = sorted(messages, key=lambda text: "different responses" in text)
    assert "1 % of" in few and "(few_shot.percentages)" in few
    assert "different responses, but 700 candidates are needed" in responses
    assert "lower selection.candidates" in responses
    assert cli.main(["validate", "--config", "study.yaml"]) == DataError.exit_code
    said = capsys.readouterr().err
    assert few in said and responses in said
    assert cli.main(["plan", "--config", "study.yaml"]) == 0
    assert f"CANNOT BE RUN: {responses}" in capsys.readouterr().out


def test_a_panel_with_enough_is_not_refused(prepared: Study) -> None:
    enough = {
        "selection": {**PANEL["selection"], "candidates": 4, "personas": ["none"]},
        "few_shot": {**PANEL["few_shot"], "percentages": [20]},
    }
    study = study_of(PANEL | enough)
    assert get_design(study.config).shortages(study) == []


# --- data that recipes refuse -------------------------------------------------------------------


def test_data_whose_recipe_may_refuse_come_before_the_first_training() -> None:
    study = study_of(PANEL | {"controls": ["leaky"]})
    recipes = get_design(study.config).recipes_first
    records = list_first_data(study, recipes)
    named = Counter(
        data.recipe for data in study.plan.derived if study.get_record_path(data) in records
    )
    assert set(named) == {panel.LEAKS, panel.CHOICES, panel.TOGETHER}
    assert not list_first_data(study, ())
    labelled = PANEL | {
        "pairs": {**PANEL["pairs"], "labels": "labeller"},
        "labeller": {"model": MODEL["name"]},
    }
    study = study_of(labelled)
    (pairs,) = (data for data in study.plan.derived if data.recipe == panel.PAIRS)
    assert any(isinstance(used, Stage) for used in pairs.uses)
    assert not list_first_data(study, (panel.PAIRS,)), "a labeller comes before them"


def test_every_design_names_its_own_recipes() -> None:
    for name in ("panel", "probes"):
        from tasktransfer.designs import DESIGNS  # noqa: PLC0415

        assert set(DESIGNS[name].recipes_first) <= set(DESIGNS[name].recipes)
    assert RECIPE in DESIGNS["probes"].recipes_first


def test_a_probe_with_one_label_is_refused_where_labels_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tasktransfer.data.recipes import Ingredients  # noqa: PLC0415
    from tasktransfer.designs.probes import labels  # noqa: PLC0415

    def read(cache: Path, task: str, split: str) -> list[Instance]:
        query = {"labels": json.dumps({"RecentTopic": ["hotel"]}), "type": "x"}
        return [Instance(f"{split}{n}", "d", task, "a b", 0, query, (), ("c",)) for n in range(3)]

    monkeypatch.setattr(labels, "read_instances", read)
    asked = Ingredients((Path(),), (), (), ("MultiWOZ_RecentTopic",), {})
    with pytest.raises(
        DataError,
        match="All 3 training turns have the label hotel, but the training data of a probe",
    ):
        derive_dialogue_labels(asked)
