"""Every reason to refuse a config file: place, value and remedy."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from small_study import GONE, SMALL, changed, refusal

from tasktransfer.datasets.feta.tiny_world.revision import MINIMUM_DIALOGUES

DD = ("datasets", "DailyDialog")
MODEL = ("models", 0)
NAMED = {"dataset": "DailyDialog", "target": "dialogue_nli", "sources": ["emotion_recognition"]}

REFUSED: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "unknown key",
        changed("modles", to=1),
        ["modles: The key 'modles' is unknown", "Did you mean 'models'"],
    ),
    (
        "unknown key inside a section",
        changed("training", "learning_rte", to=1e-3),
        ["training.learning_rte", "Did you mean 'learning_rate'"],
    ),
    (
        "unknown key of a model",
        changed(*MODEL, "famly", to="encoder"),
        ["models[0].famly", "Did you mean 'family'"],
    ),
    (
        "unknown key of a dataset",
        changed(*DD, "source", to="all"),
        ["datasets.DailyDialog.source", "Did you mean 'sources'"],
    ),
    ("missing datasets", changed("datasets", to=GONE), ["datasets: The key is missing"]),
    (
        "missing models",
        changed("models", to=GONE),
        ["models: The study lists no model"],
    ),
    ("missing study", changed("study", to=GONE), ["study: The key is missing"]),
    (
        "missing family",
        changed(*MODEL, "family", to=GONE),
        ["models[0].family: The key is missing"],
    ),
    (
        "unknown dataset",
        changed("datasets", "friends", to={"tasks": "all"}),
        ["datasets.friends: The dataset 'friends' is unknown", "Did you mean 'Friends'"],
    ),
    (
        "unknown task",
        changed(*DD, "tasks", 1, to="dialog_nli"),
        ["datasets.DailyDialog.tasks[1]", "'dialog_nli'", "Did you mean 'dialogue_nli'"],
    ),
    (
        "short name of a task",
        changed(*DD, "tasks", 1, to="DNLI"),
        ["datasets.DailyDialog.tasks[1]", "Write 'dialogue_nli'"],
    ),
    (
        "task of the other dataset",
        changed(*DD, "tasks", 1, to="question_answering"),
        ["datasets.DailyDialog.tasks[1]", "It is a task of Friends", "Choose one of"],
    ),
    (
        "cross-dataset source",
        changed(*DD, "sources", to=["relation_extraction"]),
        ["datasets.DailyDialog.sources[0]", "It is a task of Friends"],
    ),
    (
        "cross-dataset pair",
        changed(*DD, "pairs", to=[{"source": "question_answering", "target": "dialogue_nli"}]),
        ["datasets.DailyDialog.pairs[0].source", "It is a task of Friends"],
    ),
    (
        "source = target",
        changed(*DD, "pairs", to=[{"source": "dialogue_nli", "target": "dialogue_nli"}]),
        ["datasets.DailyDialog.pairs[0]", "same task, 'dialogue_nli'"],
    ),
    (
        "pair of a task that is not in datasets.DailyDialog.tasks",
        changed(
            *DD,
            "pairs",
            to=[{"source": "adversarial_response_selection", "target": "dialogue_nli"}],
        ),
        [
            "pairs[0].source",
            "is not in datasets.DailyDialog.tasks",
            "Add it there",
        ],
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
        ["datasets.DailyDialog.sources", "cannot be combined with pairs"],
    ),
    (
        "source that is not in datasets.DailyDialog.tasks",
        changed(*DD, "sources", to=["adversarial_response_selection"]),
        ["datasets.DailyDialog.sources[0]", "is not in datasets.DailyDialog.tasks"],
    ),
    (
        "one task cannot transfer",
        changed(*DD, "tasks", to=["dialogue_nli"]),
        ["datasets.DailyDialog: The dataset has no pair", "algorithms: [baseline]"],
    ),
    ("no datasets", changed("datasets", to={}), ["datasets: The section is empty"]),
    (
        "no tasks",
        changed(*DD, "tasks", to=[]),
        ["datasets.DailyDialog.tasks: The value is [], but it must be a list of 1 or more items"],
    ),
    ("no models", changed("models", to=[]), ["models: The study lists no model"]),
    (
        "no seeds",
        changed("seeds", to=[]),
        ["seeds: The value is [], but it must be a list of 1 or more items"],
    ),
    (
        "task twice",
        changed(*DD, "tasks", 1, to="emotion_recognition"),
        ["datasets.DailyDialog.tasks[1]", "duplicates datasets.DailyDialog.tasks[0]"],
    ),
    ("seed twice", changed("seeds", to=[0, 1, 0]), ["seeds[2]", "duplicates seeds[0]"]),
    (
        "model name twice",
        changed("models", 1, to={"name": "TINY-bert", "family": "decoder", "checkpoint": "tiny"}),
        ["models[1].name", "models[0] has the name 'TINY-bert'"],
    ),
    (
        "task without brackets",
        changed(*DD, "tasks", to="dialogue_nli"),
        ["datasets.DailyDialog.tasks", "Write [dialogue_nli]"],
    ),
    (
        "unknown family",
        changed(*MODEL, "family", to="encoder-decoder"),
        ["models[0].family", "'encoder-decoder'", "Did you mean 'encoder_decoder'"],
    ),
    (
        "unknown algorithm",
        changed("algorithms", to=["baseline", "multi_task"]),
        ["algorithms[1]", "The algorithm 'multi_task' is unknown", "Did you mean 'multitask'"],
    ),
    (
        "name unfit for a path",
        changed(*MODEL, "name", to="../bert"),
        ["models[0].name", "'../bert'", "part of paths"],
    ),
    (
        "name with a slash",
        changed(*MODEL, "name", to="google/bert"),
        ["models[0].name", "letters, digits"],
    ),
    (
        "revision of a tiny model",
        changed(*MODEL, "revision", to="main"),
        ["models[0].revision", "only models on the hub have revisions"],
    ),
    (
        "revision that YAML reads as a number",
        changed(*MODEL, "revision", to=1.0),
        ["models[0].revision", "1.0"],
    ),
    ("max_length", changed(*MODEL, "max_length", to=0), ["models[0].max_length", "at least 16"]),
    ("epochs 0", changed("training", "epochs", to=0), ["training.epochs", "at least 1"]),
    ("epochs true", changed("training", "epochs", to=True), ["training.epochs: The value is true"]),
    ("epochs 2.5", changed("training", "epochs", to=2.5), ["training.epochs: The value is 2.5"]),
    (
        "epochs of one dataset missing",
        changed("training", "epochs", to={"DailyDialog": 3}),
        ["training.epochs", "has no value for Friends"],
    ),
    (
        "epochs of an unknown dataset",
        changed("training", "epochs", to={"DailyDialog": 3, "Freinds": 2}),
        ["training.epochs.Freinds", "Did you mean 'Friends'"],
    ),
    (
        "epochs of a number",
        changed("training", "epochs", to={1: 2}),
        ["training.epochs.1: The key 1 is unknown", "DailyDialog"],
    ),
    (
        "learning rate 0",
        changed("training", "learning_rate", to=0),
        ["training.learning_rate: The value is 0", "greater than 0"],
    ),
    (
        "learning rate -1e-3",
        changed("training", "learning_rate", to=-1e-3),
        ["training.learning_rate"],
    ),
    (
        "learning rate above 1",
        changed("training", "learning_rate", to=3),
        ["training.learning_rate: The value is 3", "at most 1"],
    ),
    (
        "learning rate nan",
        changed("training", "learning_rate", to=float("nan")),
        ["training.learning_rate: The value is nan"],
    ),
    (
        "learning rate as words",
        changed("training", "learning_rate", to="small"),
        ["training.learning_rate: The value is 'small'", "must be a number"],
    ),
    (
        "gradient norm infinite",
        changed("training", "max_grad_norm", to=float("inf")),
        ["training.max_grad_norm: The value is inf"],
    ),
    (
        "batch size 0",
        changed("training", "batch_size", to=0),
        ["training.batch_size: The value is 0"],
    ),
    (
        "batch size as text",
        changed("training", "batch_size", to="60"),
        ["training.batch_size: The value is '60'", "a whole number"],
    ),
    (
        "precision",
        changed("training", "precision", to="bf16"),
        ["training.precision: The value is 'bf16'", "Did you mean 'bfloat16'"],
    ),
    ("dropout 1", changed("training", "dropout", to=1), ["training.dropout: The value is 1"]),
    (
        "dropout -0.1",
        changed("training", "dropout", to=-0.1),
        ["training.dropout: The value is -0.1"],
    ),
    ("limit 0", changed("training", "limit_train", to=0), ["training.limit_train: The value is 0"]),
    ("seeds 0", changed("seeds", to=0), ["seeds: The value is 0"]),
    ("seed -1", changed("seeds", to=[-1]), ["seeds[0]: The value is -1"]),
    ("seed true", changed("seeds", to=[True]), ["seeds[0]: The value is true"]),
    (
        "few_sample as text",
        changed("data", "few_sample", to="yes please"),
        ["data.few_sample: The value is 'yes please'", "true or false"],
    ),
    (
        "too small a world",
        changed("data", "tiny_world", to={"dialogues": 5}),
        ["data.tiny_world.dialogues: The value is 5", str(MINIMUM_DIALOGUES)],
    ),
    ("section as a list", changed("training", to=[1]), ["training: The value is [1]", "a mapping"]),
    (
        "section left empty",
        changed("training", to=None),
        ["training: The value is null", "a mapping"],
    ),
    ("results with a wildcard", changed("results", to="out/{x}"), ["results: The value 'out/{x}'"]),
    (
        "baseline not kept",
        changed("checkpoints", to={"keep": ["multitask"]}),
        ["checkpoints.keep", "'baseline'", "Add 'baseline'"],
    ),
    (
        "unknown kind kept",
        changed("checkpoints", to={"keep": ["baseline", "finetuned"]}),
        ["checkpoints.keep[1]", "Did you mean 'finetune'"],
    ),
    (
        "multi-source mode",
        changed("multi_source", to={"mode": "automatic"}),
        ["multi_source.mode: The value is 'automatic'", "Did you mean 'auto'"],
    ),
    (
        "named without names",
        changed("multi_source", to={"mode": "named"}),
        ["multi_source.named: The list is empty"],
    ),
    (
        "named target among its sources",
        changed(
            "multi_source",
            to={"mode": "named", "named": [NAMED | {"sources": ["dialogue_nli"]}]},
        ),
        ["multi_source.named[0].sources[0]", "is the target"],
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
        ["multi_source.named[0].sources: The value is [], but it must be a list of 1 or"],
    ),
    (
        "sources_per_target 0",
        changed("multi_source", to={"mode": "auto", "sources_per_target": 0}),
        ["multi_source.sources_per_target: The value is 0"],
    ),
    (
        "sources_per_target above n - 1",
        changed("multi_source", to={"mode": "auto", "sources_per_target": 3}),
        [
            "multi_source.sources_per_target: The value is 3",
            "a target of DailyDialog has at most 2 sources",
        ],
    ),
    (
        "targets_per_dataset above n",
        changed(
            "multi_source",
            to={"mode": "auto", "sources_per_target": 1, "targets_per_dataset": 3},
        ),
        ["multi_source.targets_per_dataset: The value is 3", "Friends has 2 targets"],
    ),
    (
        "baseline with several sources",
        changed("multi_source", to={"algorithms": ["baseline"]}),
        ["multi_source.algorithms[0]: The transfer algorithm 'baseline' is unknown"],
    ),
    (
        "auto without transfers",
        changed("multi_source", to={"mode": "auto", "sources_per_target": 1})
        | {"algorithms": ["baseline"]},
        ["multi_source.mode", "has no transfer algorithm"],
    ),
    ("not a mapping", [1, 2], ["a mapping"]),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("study", "parts"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_refuses_with_place_value_and_remedy(study: Any, parts: list[str]) -> None:
    message = refusal(study)
    for part in ["study.yaml", *parts]:
        assert part in message
