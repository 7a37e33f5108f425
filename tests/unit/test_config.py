"""Valid content of a config file, and the messages about invalid content."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from small_study import GONE, SMALL, changed, parse, refusal

from tasktransfer.config import from_texts
from tasktransfer.config.fields import Section
from tasktransfer.core.specs import Training
from tasktransfer.datasets.dataset import MINIMUM_DIALOGUES
from tasktransfer.designs import load_config
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
PRESETS = [
    path
    for path in sorted((ROOT / "workflow" / "presets").glob("*.yaml"))
    if "design:" not in path.read_text()
]
"""Those of the default design."""
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.json"

DD = ("datasets", "DailyDialog")
MODEL = ("models", 0)
NAMED = {"dataset": "DailyDialog", "target": "dialogue_nli", "sources": ["emotion_recognition"]}


def test_the_small_study_is_right() -> None:
    assert parse(SMALL).study == "small"


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
        load_config(path)
    message = str(caught.value)
    assert "3 problems" in message
    assert f"{path}:4: datasets.DailyDialog.tasks[1]" in message
    assert f"{path}:6: models[0].name" in message
    assert f"{path}:8: training.epochs" in message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("study: a\nstudy: b\n", "study: The key is on the lines 1 and 2"),
        ("study: [a\n", "not valid YAML"),
        ("study: a\n\tseeds: 1\n", ":2: This is not valid YAML"),
        ("a: &a [*a]\n", "contains itself"),
        ("study: 2020-99-99\n", "cannot be read"),
        ("", "must be a mapping"),
    ],
)
def test_yaml_itself(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(path) in str(caught.value)
    assert part in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"The path is a folder\. .* example .*/config\.yaml\.$"):
        load_config(tmp_path)
    with pytest.raises(ConfigError, match=r"no\.yaml: The file does not exist"):
        load_config(tmp_path / "no.yaml")


def test_repeated_keys_inside_merged_anchors_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "anchors.yaml"
    path.write_text(
        "study: s\n"
        "datasets: {DailyDialog: {tasks: [emotion_recognition, dialogue_nli]}}\n"
        "models:\n"
        "  - &base {name: a, family: encoder, checkpoint: tiny}\n"
        "  - {<<: *base, name: b, family: decoder}\n"
    )
    assert [m.name for m in load_config(path).models] == ["a", "b"]


def test_a_number_without_a_dot_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(SMALL) + "training: {learning_rate: 3e-5}\n")
    assert load_config(path).get_training_hyperparameters("Friends").learning_rate == 3e-5


def test_dropout_may_be_nought_or_left_to_the_checkpoint() -> None:
    for value, meant in ((0, 0.0), (None, None)):
        study = parse(changed("training", "dropout", to=value))
        assert study.get_training_hyperparameters("Friends").dropout == meant


def test_yaml_reads_off_as_false_and_so_do_we() -> None:
    study = parse(SMALL | {"multi_source": {"mode": False}})
    assert study.multi_source.mode == "off"


def test_defaults_are_those_of_the_recipe() -> None:
    study = parse(SMALL)
    assert study.get_training_hyperparameters("DailyDialog") == Training(epochs=30)
    assert study.get_training_hyperparameters("Friends") == Training(epochs=20)
    assert study.planned_algorithms == (
        "baseline",
        "pretrain_finetune",
        "multitask",
        "multitask_finetune",
    )
    assert study.seeds == (0,)
    assert study.checkpoints.keep == ("baseline",)


def test_baseline_is_always_run_and_order_is_fixed() -> None:
    study = parse(SMALL | {"algorithms": ["multitask", "pretrain_finetune"]})
    assert study.planned_algorithms == ("baseline", "pretrain_finetune", "multitask")


ONE_TASK = {**SMALL, "datasets": {"DailyDialog": {"tasks": ["topic_classification"]}}}
NO_PAIR = {"DailyDialog": {"tasks": ["emotion_recognition", "dialogue_nli"], "pairs": []}}


@pytest.mark.parametrize(
    "study",
    [
        ONE_TASK,
        {**ONE_TASK, "algorithms": []},
        {**ONE_TASK, "algorithms": None},
        {**SMALL, "pairs": []},
        {**SMALL, "sources": []},
        {**SMALL, "datasets": NO_PAIR},
        {**SMALL, "algorithms": []},
    ],
)
def test_a_study_of_baselines_alone_is_a_study(study: Any) -> None:
    config = parse(study)
    assert config.planned_algorithms == ("baseline",)
    assert config.build_digest_content()["algorithms"] == ("baseline",)
    jsonschema.validate(study, json.loads(SCHEMA.read_text()))
    assert "racing: The study trains baselines only" in refusal(
        {**study, "seeds": 4, "racing": {"seeds": [2, 4], "keep": [0.5]}}
    )


@pytest.mark.parametrize(
    ("study", "told"),
    [
        ({**ONE_TASK, "algorithms": "all"}, "datasets.DailyDialog: The dataset has no pair"),
        (
            {**SMALL, "pairs": [], "algorithms": ["multitask"]},
            "pairs: The list is empty, but transfer",
        ),
        ({**SMALL, "sources": [], "algorithms": "all"}, "sources: The list is empty, but transfer"),
        ({**SMALL, "targets": []}, "targets: No target has a source"),
        (
            {**SMALL, "datasets": {**SMALL["datasets"], **NO_PAIR}},
            "datasets.DailyDialog: The dataset has no",
        ),
        (changed("models", to=[]), "models: The study lists no model"),
        (changed("models", to=GONE), "models: The study lists no model"),
    ],
)
def test_algorithms_without_a_source_and_studies_without_a_model_are_refused(
    study: Any, told: str
) -> None:
    assert refusal(study).count("\n") == 0
    assert f"study.yaml: {told}" in refusal(study)


def test_named_targets_count_in_mode_named_only() -> None:
    off = parse(SMALL | {"multi_source": {"named": [NAMED]}})
    on = parse(SMALL | {"multi_source": {"mode": "named", "named": [NAMED]}})
    assert off.multi_source.named == ()
    assert on.multi_source.named[0].target == "dialogue_nli"


def test_overrides_replace_values_and_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    # Snakemake hands over the inside of key={...} as text.
    study = load_config(path, from_texts({"seeds": ["3", "4"], "training": {"epochs": "2"}}))
    assert study.seeds == (3, 4)
    assert study.get_training_hyperparameters("Friends").epochs == 2
    with pytest.raises(ConfigError, match=r"training\.epochs: The value is 0"):
        load_config(path, {"training": {"epochs": 0}})


def test_the_digest_is_of_the_study_not_of_its_spelling() -> None:
    spelled_out = changed("seeds", to=[0]) | {"results": "results/"}
    assert parse(spelled_out).digest == parse(SMALL).digest
    assert parse(changed("seeds", to=[1])).digest != parse(SMALL).digest


DIGESTS = {
    "config.yaml": "37e27cba002d5eaff37ea1ca4a08b314423e5dd8e97c5008b0511f8050bfbd6a",
    "adapters.yaml": "8a30776acc4345bcbbea1d91f3a6ab1e5bb05736f81b635fcfb343faedc10993",
    "all-tasks.yaml": "b7670dec327dba52b6cd2a03941ef27a0e432c66a83aee04c8417b1c93c787f4",
    "base-models.yaml": "f9467e83d9f2e80039f6351cc372e7ef0595281450be5fda5e42b9228da13a20",
    "challenge-demo.yaml": "0a7bf6da47944ac347ab6b5d406ef75278b04c3f6395abd48704d80632cd3aaf",
    "demo.yaml": "2916d30bc73af2793f3e0e6c8f797b5e400535f55c07b03fa967514aab997f60",
    "friends-recipe.yaml": "2c28bd645bb885eab399ab45714292ba85788dfee4e899661925c520e8b2f2b6",
    "minilm-controls.yaml": "6df62c21fa415724d340bb7061288dc37e639e16ae9c5fd1a893cbe999c8de71",
    "minilm-emotions.yaml": "f316b1445a23288d8e5d6d31779b62ed4888c1ccfd32185605102d8b98b34118",
    "dailydialog-to-meld.yaml": "a758e1eb1392ae30632ed36f125516955bdb180f1f76dbae1bd01a778a5c52c0",
    "minilm-matrix.yaml": "305244ebdd248c4d551130e1a5dee5afdd31d082c0b67a1a36152672c03f23ba",
    "minilm-heads.yaml": "7369c605189a02f017d3d2fa5cab1a8bb85c97d10898c8a979078be0eeb03e8e",
    "minilm-recipe.yaml": "00229921028b8c9f6b56351ce1c71c29d1b22b87779d8e264d742ff1580667ec",
    "minilm-study.yaml": "1faea42d76778c6cb23ef84eea1363da9e107ef6ec1306a5a7390a5e5f29ec4b",
    "modern.yaml": "be113d6aafade69b9cfdf8a9e3938da277b702ca4131640d87fdd2773b389ac2",
    "paper.yaml": "9f2a4db584dfd0d7f40a635e30776307512fb64af1ea13e326b43079fe37e87d",
    "prompted.yaml": "8451683093819a006eb4ff2d1e351a3e78d1dfab0490f76d5506bbf25fd9f138",
    "planted.yaml": "74a5e8c19a9b4c8bdd7d05b5cfd759094c50d58bc23e76d795ef5b5773bc2c2c",
}


@pytest.mark.parametrize("path", [ROOT / "config.yaml", *PRESETS], ids=lambda path: path.name)
def test_a_config_keeps_its_digest(path: Path) -> None:
    """Records contain it, so it stays equal, whatever keys are added."""
    assert load_config(path).digest == DIGESTS[path.name]


def test_keys_that_came_later_change_a_digest_only_if_they_are_used(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text("DATASETS = []\n")
    spelled_out = SMALL | {"design": "transfer", "plugins": []}
    assert parse(spelled_out).digest == parse(SMALL).digest
    with_plugin = SMALL | {"plugins": [str(tmp_path / "plugin.py")]}
    assert parse(with_plugin).digest != parse(SMALL).digest


def test_problems_of_all_kinds_are_told_at_once() -> None:
    study = changed(*DD, "tasks", 1, to="dialog_nli") | {
        "modles": 1,
        "models": [SMALL["models"][0], SMALL["models"][0] | {"max_length": "long"}],
        "algorithms": ["baseline"],
        "multi_source": {"mode": "auto"},
        "training": {"epochs": {"Freinds": 2}, "dropout": 2},
        "seeds": [0, 0],
    }
    told = refusal(study)
    assert "study.yaml has 8 problems" in told
    for key in (
        "modles", "datasets.DailyDialog.tasks[1]", "models[1].max_length", "multi_source.mode",
        "training.epochs.Freinds", "training.dropout", "seeds[1]",
    ):  # fmt: skip
        assert f"study.yaml: {key}: " in told


@pytest.mark.parametrize("path", [ROOT / "config.yaml", *PRESETS], ids=lambda path: path.name)
def test_presets_are_right_by_code_and_by_schema(path: Path) -> None:
    load_config(path)
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
        [sys.executable, "-m", "tasktransfer.designs"], capture_output=True, text=True, check=True
    )
    assert SCHEMA.read_text() == made.stdout, (
        "stale: python -m tasktransfer.designs > workflow/schemas/config.schema.json"
    )


def test_every_key_stands_in_the_documented_config() -> None:
    """config.yaml is the reference, so it explains every key of the code."""
    written = yaml.safe_load((ROOT / "config.yaml").read_text())
    keys = TransferConfig.model_fields
    assert keys.keys() == written.keys()
    for name in ("data", "multi_source", "training", "checkpoints"):
        section = keys[name].annotation
        assert isinstance(section, type) and issubclass(section, Section)
        assert section.model_fields.keys() == written[name].keys()


def test_the_smallest_world_is_the_generators() -> None:
    ok = changed("data", "tiny_world", to={"dialogues": MINIMUM_DIALOGUES})
    assert parse(ok).data.tiny_world.dialogues == MINIMUM_DIALOGUES
    refusal(changed("data", "tiny_world", to={"dialogues": MINIMUM_DIALOGUES - 1}))
