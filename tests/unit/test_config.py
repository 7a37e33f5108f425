"""What a config file may say, and how it is told that it may not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from small_study import SMALL, changed, refusal

from tasktransfer import config
from tasktransfer.config.keys import STUDY
from tasktransfer.config.overrides import from_texts
from tasktransfer.core.specs import Training
from tasktransfer.datasets.feta.tiny_world.revision import MINIMUM_DIALOGUES
from tasktransfer.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
PRESETS = sorted((ROOT / "workflow" / "presets").glob("*.yaml"))
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.json"

DD = ("datasets", "DailyDialog")
MODEL = ("models", 0)
NAMED = {"dataset": "DailyDialog", "target": "dialogue_nli", "sources": ["emotion_recognition"]}


def test_the_small_study_is_right() -> None:
    assert config.parse(SMALL, "study.yaml").study == "small"


def test_one_slip_gives_one_message() -> None:
    assert refusal(changed(*DD, "tasks", 1, to="dialog_nli")).count("\n") == 0


def test_all_problems_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "study: s\n"
        "datasets:\n"
        "  DailyDialog:\n"
        "    tasks: [emotion_recognition, dialog_nli]\n"
        "models:\n"
        "  - {name: a b, family: encoder, checkpoint: tiny}\n"
        "training:\n"
        "  epochs: 0\n"
    )
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    message = str(caught.value)
    assert "3 problems" in message
    assert f"{path}:4: datasets.DailyDialog.tasks[1]" in message
    assert f"{path}:6: models[0].name" in message
    assert f"{path}:8: training.epochs" in message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("study: a\nstudy: b\n", "study: stands twice, on lines 1 and 2"),
        ("study: [a\n", "not valid YAML"),
        ("study: a\n\tseeds: 1\n", ":2: not valid YAML"),
        ("a: &a [*a]\n", "not valid YAML"),
        ("study: 2020-99-99\n", "cannot be read"),
        ("", "expected a mapping"),
    ],
)
def test_yaml_itself(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    assert str(path) in str(caught.value)
    assert part in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.yaml: no such file"):
        config.load(tmp_path / "no.yaml")


def test_repeated_keys_inside_merged_anchors_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "anchors.yaml"
    path.write_text(
        "study: s\n"
        "datasets: {DailyDialog: {tasks: [emotion_recognition, dialogue_nli]}}\n"
        "models:\n"
        "  - &base {name: a, family: encoder, checkpoint: tiny}\n"
        "  - {<<: *base, name: b, family: decoder}\n"
    )
    assert [m.name for m in config.load(path).models] == ["a", "b"]


def test_a_number_without_a_dot_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(SMALL) + "training: {learning_rate: 3e-5}\n")
    assert config.load(path).training_for("Friends").learning_rate == 3e-5


def test_dropout_may_be_nought_or_left_to_the_checkpoint() -> None:
    for value, meant in ((0, 0.0), (None, None)):
        study = config.parse(changed("training", "dropout", to=value), "study.yaml")
        assert study.training_for("Friends").dropout == meant


def test_yaml_reads_off_as_false_and_so_do_we() -> None:
    study = config.parse(SMALL | {"multi_source": {"mode": False}}, "study.yaml")
    assert study.multi_source.mode == "off"


def test_defaults_are_those_of_the_recipe() -> None:
    study = config.parse(SMALL, "study.yaml")
    assert study.training_for("DailyDialog") == Training(epochs=30)
    assert study.training_for("Friends") == Training(epochs=20)
    assert study.algorithms == ("baseline", "pretrain_finetune", "multitask", "multitask_finetune")
    assert study.seeds == (0,)
    assert study.checkpoints.keep == ("baseline", "pretrain")


def test_baseline_is_always_run_and_order_is_fixed() -> None:
    study = config.parse(SMALL | {"algorithms": ["multitask", "pretrain_finetune"]}, "study.yaml")
    assert study.algorithms == ("baseline", "pretrain_finetune", "multitask")


def test_named_targets_count_in_mode_named_only() -> None:
    off = config.parse(SMALL | {"multi_source": {"named": [NAMED]}}, "study.yaml")
    on = config.parse(SMALL | {"multi_source": {"mode": "named", "named": [NAMED]}}, "study.yaml")
    assert off.multi_source.named == ()
    assert on.multi_source.named[0].target == "dialogue_nli"


def test_overrides_replace_values_and_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    # Snakemake hands over the inside of key={...} as text.
    study = config.load(path, from_texts({"seeds": ["3", "4"], "training": {"epochs": "2"}}))
    assert study.seeds == (3, 4)
    assert study.training_for("Friends").epochs == 2
    with pytest.raises(ConfigError, match=r"training\.epochs: found 0"):
        config.load(path, {"training": {"epochs": 0}})


def test_the_digest_is_of_the_study_not_of_its_spelling() -> None:
    spelled_out = changed("seeds", to=[0]) | {"results": "results/"}
    assert config.parse(spelled_out, "a").digest == config.parse(SMALL, "b").digest
    assert config.parse(changed("seeds", to=[1]), "a").digest != config.parse(SMALL, "b").digest


@pytest.mark.parametrize("path", [ROOT / "config.yaml", *PRESETS], ids=lambda path: path.name)
def test_presets_are_right_by_code_and_by_schema(path: Path) -> None:
    config.load(path)
    jsonschema.validate(yaml.safe_load(path.read_text()), json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize(
    "study",
    [
        changed("modles", to=1),
        changed("models", to=[]),
        changed(*DD, "tasks", 1, to="dialog_nli"),
        changed("training", "epochs", to=0),
        changed("training", "learning_rate", to=3),
        changed(*MODEL, "name", to="../bert"),
    ],
)
def test_the_schema_refuses_too(study: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(study, json.loads(SCHEMA.read_text()))


def test_the_schema_on_disk_is_fresh() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tasktransfer.config"], capture_output=True, text=True, check=True
    )
    assert SCHEMA.read_text() == made.stdout, (
        "stale: python -m tasktransfer.config > workflow/schemas/config.schema.json"
    )


def test_every_key_stands_in_the_documented_config() -> None:
    """config.yaml is the reference: a key that is added to the code is explained there."""
    written = yaml.safe_load((ROOT / "config.yaml").read_text())
    for key in STUDY.keys:
        assert key.name in written
    for section in ("data", "multi_source", "training", "checkpoints"):
        declared = next(key for key in STUDY.keys if key.name == section)
        assert [key.name for key in declared.value.keys] == list(written[section])  # type: ignore[union-attr]


def test_the_smallest_world_is_the_generators() -> None:
    ok = changed("data", "tiny_world", to={"dialogues": MINIMUM_DIALOGUES})
    assert config.parse(ok, "study.yaml").data.tiny_world.dialogues == MINIMUM_DIALOGUES
    refusal(changed("data", "tiny_world", to={"dialogues": MINIMUM_DIALOGUES - 1}))
