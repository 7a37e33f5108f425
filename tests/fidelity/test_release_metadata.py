"""The cards agree with the release's metadata and the paper's Table 1."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from releases import PAPER_TASKS
from tasktransfer.datasets import DATASETS
from tasktransfer.tasks.card import MetricSpec, Task

each_task = pytest.mark.parametrize("task", PAPER_TASKS, ids=lambda task: task.name)


@pytest.fixture(scope="module")
def metadata(shared: Path) -> dict[str, Any]:
    """Return dataset → the release's metadata."""
    found = {}
    for dataset in DATASETS:
        path = shared / "feta" / f"TLiDB_{dataset}" / f"TLiDB_{dataset}.json"
        found[dataset] = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    return found


@pytest.fixture(scope="module")
def table1(shared: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (shared / "paper" / "table1_tasks.csv").open(encoding="utf-8", newline="") as lines:
        return {(row["dataset"], row["task"]): row for row in csv.DictReader(lines)}


def test_tasks_and_their_order(metadata: dict[str, Any]) -> None:
    for dataset in DATASETS:
        tasks = [task for task in DATASETS[dataset].tasks if task in metadata[dataset]["tasks"]]
        assert tasks == metadata[dataset]["tasks"]


@each_task
def test_labels(task: Task, metadata: dict[str, Any]) -> None:
    released = metadata[task.dataset]["task_metadata"][task.name].get("labels")
    if task.short == "ARS":
        assert released is None, "the release names no options here; the card numbers its three"
        assert task.labels == ("0", "1", "2")
    else:
        assert list(task.labels) == (released or [])


@each_task
def test_metrics(task: Task, metadata: dict[str, Any]) -> None:
    released = metadata[task.dataset]["task_metadata"][task.name]
    assert list(task.metrics) == list(specs(released))


def specs(released: dict[str, Any]) -> list[MetricSpec]:
    """Return the metrics of one task's metadata, one per set of keyword arguments."""
    found = []
    for name in released["metrics"]:
        settings = released.get("metric_kwargs", {}).get(name, {})
        for setting in settings if isinstance(settings, list) else [settings]:
            known = {"average", "labels", "unanswerable_phrases", "ignore_unanswerable"}
            assert set(setting) <= known, f"unknown metric settings: {setting}"
            # The toolkit's multi-label F1 is micro by default.
            default = "micro" if name == "multilabel_f1" else None
            found.append(
                MetricSpec(
                    name,
                    setting.get("average", default),
                    label_indices=tuple(setting["labels"]) if "labels" in setting else None,
                    unanswerable_phrases=tuple(setting.get("unanswerable_phrases", ())),
                    ignore_unanswerable=setting.get("ignore_unanswerable", False),
                )
            )
    return found


SCORED_AS = {
    "macro-F1": "macro_f1",
    "micro-F1": "micro_f1",
    "weighted-F1": "weighted_f1",
    "accuracy": "accuracy",
    "exact match": "exact_match",
    "token-F1": "macro_token_f1",
}
EXCEPTIONS = {
    ("CEE", "accuracy"): "micro_f1",  # the same number over all labels
    ("DNLI", "accuracy"): "micro_f1",
    ("RC", "accuracy"): "exact_match",
    ("RE", "micro-F1"): "micro_multilabel_f1",
}


@each_task
def test_score_is_the_mean_of_table_1(
    task: Task, table1: dict[tuple[str, str], dict[str, str]]
) -> None:
    row = table1[task.dataset, task.name]
    named = row["metrics"].split(";")
    expected = [EXCEPTIONS.get((task.short, name), SCORED_AS[name]) for name in named]
    assert sorted(task.paper_metrics) == sorted(expected)
    assert task.short == row["short"]


def test_neutral_is_left_out_of_dailydialog_emotion() -> None:
    task = DATASETS["DailyDialog"].tasks["emotion_recognition"]
    indices = task.metrics[0].label_indices
    assert indices is not None
    assert task.labels.index("neutral") not in indices
    assert -1 in indices


def test_personality_traits_are_the_release_s(shared: Path) -> None:
    path = shared / "feta" / "TLiDB_Friends" / "TLiDB_Friends.json"
    task = DATASETS["Friends"].tasks["personality_detection"]
    seen = {
        tuple(sample["personality_characteristics"])
        for dialogue in json.loads(path.read_text(encoding="utf-8"))["data"]
        for sample in dialogue.get("personality_detection", [])
    }
    assert seen == {task.outputs}
