"""Every reason to refuse a config file: place, value and remedy."""

from __future__ import annotations

from typing import Any

import pytest
from small_study import GONE, changed, refusal

from hostile_configs import format_place
from tasktransfer.datasets.dataset import MINIMUM_DIALOGUES

TASKS, SOURCES, PAIRS = (f"datasets.DailyDialog.{key}" for key in ("tasks", "sources", "pairs"))
EMOTIONS, NLI, FRIENDS = "emotion_recognition", "dialogue_nli", "question_answering"
RESPONSES = "adversarial_response_selection"
AUTO = {"mode": "auto", "sources_per_target": 1}
EMPTY = "The value is [], but it must be a list of 1 or more items"
NO_MODEL = "models: The study lists no model"


def name(**changes: Any) -> dict[str, Any]:
    """Return a section that names sources, with one of its entry's keys changed."""
    entry = {"dataset": "DailyDialog", "target": NLI, "sources": [EMOTIONS]}
    return {"mode": "named", "named": [entry | changes]}


def pair(source: str) -> list[dict[str, str]]:
    return [{"source": source, "target": NLI}]


REFUSED: list[tuple[str, Any, tuple[str, ...]]] = [
    ("modles", 1, ("modles: The key 'modles' is unknown", "Did you mean 'models'")),
    ("training.learning_rte", 1e-3, ("Did you mean 'learning_rate'",)),
    ("models.0.famly", "encoder", ("Did you mean 'family'",)),
    ("datasets.DailyDialog.source", "all", ("Did you mean 'sources'",)),
    (
        "datasets.Own",
        {"files": "a.jsonl", "tasks": {"mood": {"kind": "dialogue_classification", "keep": "end"}}},
        ("datasets.Own.tasks.mood.keep: The key 'keep' is unknown", "Did you mean 'keeps'"),
    ),
    ("datasets", GONE, ("datasets: The key is missing",)),
    ("models", GONE, (NO_MODEL,)),
    ("study", GONE, ("study: The key is missing",)),
    ("models.0.family", GONE, ("models[0].family: The key is missing",)),
    (
        "datasets.friends",
        {"tasks": "all"},
        ("datasets.friends: The dataset 'friends' is unknown", "Did you mean 'Friends'"),
    ),
    (f"{TASKS}.1", "dialog_nli", ("'dialog_nli'", "Did you mean 'dialogue_nli'")),
    (f"{TASKS}.1", "DNLI", ("Write 'dialogue_nli'",)),
    (f"{TASKS}.1", FRIENDS, ("It is a task of Friends", "Choose one of")),
    (SOURCES, ["relation_extraction"], (f"{SOURCES}[0]", "It is a task of Friends")),
    (PAIRS, pair(FRIENDS), (f"{PAIRS}[0].source", "It is a task of Friends")),
    (PAIRS, pair(NLI), (f"{PAIRS}[0]", "same task, 'dialogue_nli'")),
    (PAIRS, pair(RESPONSES), ("pairs[0].source", f"is not in {TASKS}", "Add it there")),
    (
        "datasets.DailyDialog",
        {"tasks": [EMOTIONS, NLI], "sources": [EMOTIONS], "pairs": pair(EMOTIONS)},
        (SOURCES, "cannot be combined with pairs"),
    ),
    (SOURCES, [RESPONSES], (f"{SOURCES}[0]", f"is not in {TASKS}")),
    ("datasets.DailyDialog", {"tasks": [NLI]}, ("has no pair", "algorithms: [baseline]")),
    ("datasets", {}, ("datasets: The section is empty",)),
    (TASKS, [], (f"{TASKS}: {EMPTY}",)),
    ("models", [], (NO_MODEL,)),
    ("seeds", [], (f"seeds: {EMPTY}",)),
    (f"{TASKS}.1", EMOTIONS, (f"duplicates {TASKS}[0]",)),
    ("seeds", [0, 1, 0], ("seeds[2]", "duplicates seeds[0]")),
    (
        "models.1",
        {"name": "TINY-bert", "family": "decoder", "checkpoint": "tiny"},
        ("models[1].name", "models[0] has the name 'TINY-bert'"),
    ),
    (TASKS, NLI, ("Write [dialogue_nli]",)),
    ("models.0.family", "encoder-decoder", ("'encoder-decoder'", "mean 'encoder_decoder'")),
    (
        "algorithms",
        ["baseline", "multi_task"],
        ("algorithms[1]", "The algorithm 'multi_task' is unknown", "Did you mean 'multitask'"),
    ),
    ("models.0.name", "../bert", ("'../bert'", "part of paths")),
    ("models.0.name", "google/bert", ("letters, digits",)),
    ("models.0.revision", "main", ("only models on the hub have revisions",)),
    ("models.0.revision", 1.0, ("1.0",)),  # YAML reads it as a number
    ("models.0.max_length", 0, ("at least 16",)),
    ("training.epochs", 0, ("at least 1",)),
    ("training.epochs", True, ("training.epochs: The value is true",)),
    ("training.epochs", 2.5, ("training.epochs: The value is 2.5",)),
    ("training.epochs", {"DailyDialog": 3}, ("has no value for Friends",)),
    (
        "training.epochs",
        {"DailyDialog": 3, "Freinds": 2},
        ("training.epochs.Freinds", "Did you mean 'Friends'"),
    ),
    ("training.epochs", {1: 2}, ("training.epochs.1: The key 1 is unknown", "DailyDialog")),
    ("training.learning_rate", 0, ("learning_rate: The value is 0", "greater than 0")),
    ("training.learning_rate", -1e-3, ()),
    ("training.learning_rate", 3, ("learning_rate: The value is 3", "at most 1")),
    ("training.learning_rate", float("nan"), ("learning_rate: The value is nan",)),
    ("training.learning_rate", "small", ("The value is 'small'", "must be a number")),
    ("training.max_grad_norm", float("inf"), ("max_grad_norm: The value is inf",)),
    ("training.batch_size", 0, ("training.batch_size: The value is 0",)),
    ("training.batch_size", "60", ("batch_size: The value is '60'", "a whole number")),
    ("training.precision", "bf16", ("The value is 'bf16'", "Did you mean 'bfloat16'")),
    ("training.dropout", 1, ("training.dropout: The value is 1",)),
    ("training.dropout", -0.1, ("training.dropout: The value is -0.1",)),
    ("training.limit_train", 0, ("training.limit_train: The value is 0",)),
    ("seeds", 0, ("seeds: The value is 0",)),
    ("seeds", [-1], ("seeds[0]: The value is -1",)),
    ("seeds", [True], ("seeds[0]: The value is true",)),
    ("data.few_sample", "yes please", ("The value is 'yes please'", "true or false")),
    ("data.tiny_world.dialogues", 5, ("The value is 5", str(MINIMUM_DIALOGUES))),
    ("training", [1], ("training: The value is [1]", "a mapping")),
    ("training", None, ("training: The value is null", "a mapping")),
    ("results", "out/{x}", ("results: The value 'out/{x}'",)),
    ("checkpoints.keep", ["multitask"], ("'baseline'", "Add 'baseline'")),
    ("checkpoints.keep", ["baseline", "finetuned"], ("keep[1]", "Did you mean 'finetune'")),
    ("multi_source.mode", "automatic", ("The value is 'automatic'", "Did you mean 'auto'")),
    ("multi_source", {"mode": "named"}, ("multi_source.named: The list is empty",)),
    ("multi_source", name(sources=[NLI]), ("named[0].sources[0]", "is the target")),
    (
        "multi_source",
        name(sources=[FRIENDS]),
        ("multi_source.named[0].sources[0]", "'question_answering' is a task of Friends"),
    ),
    (
        "multi_source",
        name(dataset="Friends"),
        ("multi_source.named[0].target", "'dialogue_nli' is a task of DailyDialog"),
    ),
    ("multi_source", name(sources=[]), (f"named[0].sources: {EMPTY[:-6]}",)),
    ("multi_source", AUTO | {"sources_per_target": 0}, ("sources_per_target: The value is 0",)),
    (
        "multi_source",
        AUTO | {"sources_per_target": 3},
        ("sources_per_target: The value is 3", "a target of DailyDialog has at most 2 sources"),
    ),
    (
        "multi_source",
        AUTO | {"targets_per_dataset": 3},
        ("targets_per_dataset: The value is 3", "Friends has 2 targets"),
    ),
    (
        "multi_source.algorithms",
        ["baseline"],
        ("algorithms[0]: The transfer algorithm 'baseline' is unknown",),
    ),
]


@pytest.mark.parametrize(("key", "value", "parts"), REFUSED)
def test_refuses_with_place_value_and_remedy(key: str, value: Any, parts: tuple[str, ...]) -> None:
    path = [int(part) if part.isdigit() else part for part in key.split(".")]
    message = refusal(changed(*path, to=value))
    for part in ("study.yaml", format_place(key), *parts):
        assert part in message


def test_a_study_without_transfers_has_no_automatic_choice_of_sources() -> None:
    message = refusal(changed("multi_source", to=AUTO) | {"algorithms": ["baseline"]})
    assert "multi_source.mode" in message and "has no transfer algorithm" in message


def test_a_config_is_a_mapping() -> None:
    assert "a mapping" in refusal([1, 2])
