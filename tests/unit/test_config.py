"""What a config file may say, and how it is told that it may not."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tasktransfer import config
from tasktransfer.config.keys import STUDY
from tasktransfer.data.tiny_world.revision import MINIMUM_DIALOGUES
from tasktransfer.errors import ConfigError
from tasktransfer.stage import Training

ROOT = Path(__file__).resolve().parents[2]
PRESETS = sorted((ROOT / "workflow" / "presets").glob("*.yaml"))
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.json"

SMALL: dict[str, Any] = {
    "study": "small",
    "datasets": {
        "DailyDialog": {
            "tasks": ["emotion_recognition", "dialogue_nli", "topic_classification"],
        },
        "Friends": {"tasks": ["question_answering", "relation_extraction"]},
    },
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
}

GONE = object()


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """SMALL with the value at a path replaced (or removed)."""
    result = copy.deepcopy(SMALL)
    place: Any = result
    for key in path[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
    if to is GONE:
        del place[path[-1]]
    elif isinstance(place, list) and path[-1] == len(place):
        place.append(to)
    else:
        place[path[-1]] = to
    return result


def refusal(study: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        config.parse(study, "study.yaml")
    return str(caught.value)


DD = ("datasets", "DailyDialog")
MODEL = ("models", 0)
NAMED = {"dataset": "DailyDialog", "target": "dialogue_nli", "sources": ["emotion_recognition"]}

REFUSED: list[tuple[str, dict[str, Any], list[str]]] = [
    ("unknown key", changed("modles", to=1), ["modles: unknown key", "did you mean 'models'"]),
    (
        "unknown key inside a section",
        changed("training", "learning_rte", to=1e-3),
        ["training.learning_rte", "did you mean 'learning_rate'"],
    ),
    (
        "unknown key of a model",
        changed(*MODEL, "famly", to="encoder"),
        ["models[0].famly", "did you mean 'family'"],
    ),
    (
        "unknown key of a dataset",
        changed(*DD, "source", to="all"),
        ["datasets.DailyDialog.source", "did you mean 'sources'"],
    ),
    ("missing datasets", changed("datasets", to=GONE), ["datasets: is missing"]),
    ("missing models", changed("models", to=GONE), ["models: is missing"]),
    ("missing study", changed("study", to=GONE), ["study: is missing"]),
    ("missing family", changed(*MODEL, "family", to=GONE), ["models[0].family: is missing"]),
    (
        "unknown dataset",
        changed("datasets", "friends", to={"tasks": "all"}),
        ["datasets.friends: unknown dataset 'friends'", "did you mean 'Friends'"],
    ),
    (
        "unknown task",
        changed(*DD, "tasks", 1, to="dialog_nli"),
        ["datasets.DailyDialog.tasks[1]", "'dialog_nli'", "did you mean 'dialogue_nli'"],
    ),
    (
        "short name of a task",
        changed(*DD, "tasks", 1, to="DNLI"),
        ["datasets.DailyDialog.tasks[1]", "write 'dialogue_nli'"],
    ),
    (
        "task of the other dataset",
        changed(*DD, "tasks", 1, to="question_answering"),
        ["datasets.DailyDialog.tasks[1]", "it is a task of Friends", "never mixes datasets"],
    ),
    (
        "cross-dataset source",
        changed(*DD, "sources", to=["relation_extraction"]),
        ["datasets.DailyDialog.sources[0]", "it is a task of Friends"],
    ),
    (
        "cross-dataset pair",
        changed(*DD, "pairs", to=[{"source": "question_answering", "target": "dialogue_nli"}]),
        ["datasets.DailyDialog.pairs[0].source", "it is a task of Friends"],
    ),
    (
        "source = target",
        changed(*DD, "pairs", to=[{"source": "dialogue_nli", "target": "dialogue_nli"}]),
        ["datasets.DailyDialog.pairs[0]", "same task, 'dialogue_nli'"],
    ),
    (
        "pair of a task that is not studied",
        changed(
            *DD,
            "pairs",
            to=[{"source": "adversarial_response_selection", "target": "dialogue_nli"}],
        ),
        ["pairs[0].source", "is not studied", "add it to datasets.DailyDialog.tasks"],
    ),
    (
        "pairs beside sources",
        copy.deepcopy(SMALL)
        | {
            "datasets": {
                "DailyDialog": {
                    "tasks": ["emotion_recognition", "dialogue_nli"],
                    "sources": ["emotion_recognition"],
                    "pairs": [{"source": "emotion_recognition", "target": "dialogue_nli"}],
                }
            }
        },
        ["datasets.DailyDialog.sources", "pairs, which replace it"],
    ),
    (
        "source that is not studied",
        changed(*DD, "sources", to=["adversarial_response_selection"]),
        ["datasets.DailyDialog.sources[0]", "is not studied"],
    ),
    (
        "one task cannot transfer",
        changed(*DD, "tasks", to=["dialogue_nli"]),
        ["datasets.DailyDialog: has no pair", "algorithms: [baseline]"],
    ),
    ("no datasets", changed("datasets", to={}), ["datasets: is empty"]),
    ("no tasks", changed(*DD, "tasks", to=[]), ["datasets.DailyDialog.tasks: has 0 items"]),
    ("no models", changed("models", to=[]), ["models: has 0 items"]),
    ("no seeds", changed("seeds", to=[]), ["seeds: has 0 items"]),
    (
        "task twice",
        changed(*DD, "tasks", 1, to="emotion_recognition"),
        ["datasets.DailyDialog.tasks[1]", "stands already at datasets.DailyDialog.tasks[0]"],
    ),
    ("seed twice", changed("seeds", to=[0, 1, 0]), ["seeds[2]", "stands already at seeds[0]"]),
    (
        "model name twice",
        changed("models", 1, to={"name": "TINY-bert", "family": "decoder", "checkpoint": "tiny"}),
        ["models[1].name", "'TINY-bert' names models[0] already"],
    ),
    (
        "task without brackets",
        changed(*DD, "tasks", to="dialogue_nli"),
        ["datasets.DailyDialog.tasks", "write [dialogue_nli]"],
    ),
    (
        "unknown family",
        changed(*MODEL, "family", to="encoder-decoder"),
        ["models[0].family", "unknown family", "did you mean 'encoder_decoder'"],
    ),
    (
        "unknown algorithm",
        changed("algorithms", to=["baseline", "multi_task"]),
        ["algorithms[1]", "unknown algorithm 'multi_task'", "did you mean 'multitask'"],
    ),
    (
        "name unfit for a path",
        changed(*MODEL, "name", to="../bert"),
        ["models[0].name", "'../bert'", "part of paths"],
    ),
    (
        "name with a slash",
        changed(*MODEL, "name", to="google/bert"),
        ["models[0].name", "use letters, digits"],
    ),
    (
        "revision of a tiny model",
        changed(*MODEL, "revision", to="main"),
        ["models[0].revision", "only hub names have revisions"],
    ),
    (
        "revision that YAML reads as a number",
        changed(*MODEL, "revision", to=1.0),
        ["models[0].revision", "found 1.0"],
    ),
    ("max_length", changed(*MODEL, "max_length", to=0), ["models[0].max_length", "16 or more"]),
    ("epochs 0", changed("training", "epochs", to=0), ["training.epochs", "1 or more"]),
    ("epochs true", changed("training", "epochs", to=True), ["training.epochs: found true"]),
    ("epochs 2.5", changed("training", "epochs", to=2.5), ["training.epochs: found 2.5"]),
    (
        "epochs of one dataset missing",
        changed("training", "epochs", to={"DailyDialog": 3}),
        ["training.epochs", "says nothing of Friends"],
    ),
    (
        "epochs of an unknown dataset",
        changed("training", "epochs", to={"DailyDialog": 3, "Freinds": 2}),
        ["training.epochs.Freinds", "did you mean 'Friends'"],
    ),
    (
        "learning rate 0",
        changed("training", "learning_rate", to=0),
        ["training.learning_rate: found 0", "above 0"],
    ),
    (
        "learning rate -1e-3",
        changed("training", "learning_rate", to=-1e-3),
        ["training.learning_rate"],
    ),
    (
        "learning rate above 1",
        changed("training", "learning_rate", to=3),
        ["training.learning_rate: found 3", "1 at most"],
    ),
    (
        "learning rate nan",
        changed("training", "learning_rate", to=float("nan")),
        ["training.learning_rate: found nan"],
    ),
    (
        "learning rate as words",
        changed("training", "learning_rate", to="small"),
        ["training.learning_rate: found 'small'", "a number"],
    ),
    (
        "gradient norm infinite",
        changed("training", "max_grad_norm", to=float("inf")),
        ["training.max_grad_norm: found inf"],
    ),
    ("batch size 0", changed("training", "batch_size", to=0), ["training.batch_size: found 0"]),
    (
        "batch size as text",
        changed("training", "batch_size", to="60"),
        ["training.batch_size: found '60'", "a whole number"],
    ),
    (
        "precision",
        changed("training", "precision", to="bf16"),
        ["training.precision: unknown precision 'bf16'", "did you mean 'bfloat16'"],
    ),
    ("dropout 1", changed("training", "dropout", to=1), ["training.dropout: found 1"]),
    ("dropout -0.1", changed("training", "dropout", to=-0.1), ["training.dropout: found -0.1"]),
    ("limit 0", changed("training", "limit_train", to=0), ["training.limit_train: found 0"]),
    ("seeds 0", changed("seeds", to=0), ["seeds: found 0"]),
    ("seed -1", changed("seeds", to=[-1]), ["seeds[0]: found -1"]),
    ("seed true", changed("seeds", to=[True]), ["seeds[0]: found true"]),
    (
        "few_sample as text",
        changed("data", "few_sample", to="yes please"),
        ["data.few_sample: found 'yes please'", "true or false"],
    ),
    (
        "too small a world",
        changed("data", "tiny_world", to={"dialogues": 5}),
        ["data.tiny_world.dialogues: found 5", str(MINIMUM_DIALOGUES)],
    ),
    ("section as a list", changed("training", to=[1]), ["training: found [1]", "a mapping"]),
    ("section left empty", changed("training", to=None), ["training: found null", "a mapping"]),
    ("results with a wildcard", changed("results", to="out/{x}"), ["results: 'out/{x}'"]),
    (
        "baseline not kept",
        changed("checkpoints", to={"keep": ["pretrain"]}),
        ["checkpoints.keep", "without 'baseline'", "add it"],
    ),
    (
        "unknown kind kept",
        changed("checkpoints", to={"keep": ["baseline", "finetuned"]}),
        ["checkpoints.keep[1]", "did you mean 'finetune'"],
    ),
    (
        "multi-source mode",
        changed("multi_source", to={"mode": "automatic"}),
        ["multi_source.mode: unknown mode 'automatic'", "did you mean 'auto'"],
    ),
    (
        "named without names",
        changed("multi_source", to={"mode": "named"}),
        ["multi_source.named: is empty"],
    ),
    (
        "named target among its sources",
        changed(
            "multi_source",
            to={"mode": "named", "named": [NAMED | {"sources": ["dialogue_nli"]}]},
        ),
        ["multi_source.named[0].sources[0]", "is the target itself"],
    ),
    (
        "named across datasets",
        changed(
            "multi_source",
            to={"mode": "named", "named": [NAMED | {"sources": ["question_answering"]}]},
        ),
        ["multi_source.named[0].sources[0]", "'question_answering' is a task of Friends"],
    ),
    (
        "named target of another dataset",
        changed("multi_source", to={"mode": "named", "named": [NAMED | {"dataset": "Friends"}]}),
        ["multi_source.named[0].target", "'dialogue_nli' is a task of DailyDialog"],
    ),
    (
        "named without sources",
        changed("multi_source", to={"mode": "named", "named": [NAMED | {"sources": []}]}),
        ["multi_source.named[0].sources: has 0 items"],
    ),
    (
        "sources_per_target 0",
        changed("multi_source", to={"mode": "auto", "sources_per_target": 0}),
        ["multi_source.sources_per_target: found 0"],
    ),
    (
        "sources_per_target above n - 1",
        changed("multi_source", to={"mode": "auto", "sources_per_target": 3}),
        ["multi_source.sources_per_target: found 3", "a target of DailyDialog has 2 sources"],
    ),
    (
        "targets_per_dataset above n",
        changed(
            "multi_source",
            to={"mode": "auto", "sources_per_target": 1, "targets_per_dataset": 3},
        ),
        ["multi_source.targets_per_dataset: found 3", "Friends has 2 targets"],
    ),
    (
        "baseline with several sources",
        changed("multi_source", to={"algorithms": ["baseline"]}),
        ["multi_source.algorithms[0]: unknown transfer algorithm 'baseline'"],
    ),
    (
        "auto without transfers",
        changed("multi_source", to={"mode": "auto", "sources_per_target": 1})
        | {"algorithms": ["baseline"]},
        ["multi_source.mode", "algorithms has none"],
    ),
    ("not a mapping", [1, 2], ["a mapping"]),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("study", "parts"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_refuses_with_place_value_and_remedy(study: Any, parts: list[str]) -> None:
    message = refusal(study)
    for part in ["study.yaml", *parts]:
        assert part in message


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
    study = config.load(path, {"seeds": ["3", "4"], "training": {"epochs": "2"}})
    assert study.seeds == (3, 4)
    assert study.training_for("Friends").epochs == 2
    with pytest.raises(ConfigError, match=r"training\.epochs: found 0"):
        config.load(path, {"training": {"epochs": "0"}})


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
