"""The cards are consistent in themselves, and a wrong name gets a helpful answer."""

from __future__ import annotations

import re

import pytest

from tasktransfer.datasets import ALL_TASKS, DATASETS, get_task
from tasktransfer.errors import ConfigError
from tasktransfer.tasks.card import Task

each_task = pytest.mark.parametrize("task", ALL_TASKS, ids=lambda task: task.name)

QUERY_FIELDS = {
    "question",
    "hypothesis",
    "head",
    "tail",
    "query",
    "entities",
    "mention",
    "phrase",
    "speaker",
}


def test_all_seventeen_tasks_are_there_once() -> None:
    assert [len(tasks) for tasks in DATASETS.values()] == [10, 7]
    assert len({task.name for task in ALL_TASKS}) == 17
    assert len({task.short for task in ALL_TASKS}) == 17
    for dataset, tasks in DATASETS.items():
        assert all(task.dataset == dataset and task.name == name for name, task in tasks.items())


@each_task
def test_score_is_made_of_metrics_on_the_card(task: Task) -> None:
    keys = [spec.key for spec in task.metrics]
    assert task.paper_metrics
    assert len(set(keys)) == len(keys)
    assert set(task.paper_metrics) <= set(keys)


@each_task
def test_label_indices_point_at_labels(task: Task) -> None:
    for spec in task.metrics:
        if spec.label_indices is not None:
            assert all(-1 <= index < task.classes for index in spec.label_indices)


@each_task
def test_kind_fits_labels_and_outputs(task: Task) -> None:
    assert (task.kind == "span") == (task.classes == 0)
    assert (task.kind == "multi_output") == bool(task.outputs)
    assert len(set(task.labels)) == task.classes
    if task.kind == "multiple_choice":
        assert task.labels == tuple(str(number) for number in range(task.classes))


@each_task
def test_templates_name_known_fields_only(task: Task) -> None:
    assert set(re.findall(r"\{(.*?)\}", task.query)) <= QUERY_FIELDS | {"option"}
    known = QUERY_FIELDS | {"options", "labels", "trait"}
    assert set(re.findall(r"\{(.*?)\}", task.prompt.template)) <= known
    assert task.prompt.template == task.prompt.template.strip()


@each_task
def test_label_words_can_be_told_apart_and_read_back(task: Task) -> None:
    words = [task.prompt.label_words.get(label, label) for label in task.labels]
    assert set(task.prompt.label_words) <= set(task.labels)
    assert len({word.casefold() for word in words}) == task.classes
    if task.kind == "multi_label":
        assert not any(task.prompt.joiner.strip() in word.split() for word in words)


@each_task
def test_the_longest_label_fits_the_answer(task: Task) -> None:
    """Two sub-words per word and the end token: a tighter limit would cut right answers."""
    longest = max((len(task.prompt.label_words.get(x, x).split()) for x in task.labels), default=1)
    assert task.prompt.max_answer_tokens >= 2 * longest + 1


@each_task
def test_provenance_is_given(task: Task) -> None:
    assert re.search(r"\b(19|20)\d\d\b", task.citation)
    assert task.licence and task.description.endswith(".")


def test_get_task_returns_the_card() -> None:
    assert get_task("Friends", "question_answering").short == "QA"


@pytest.mark.parametrize(
    ("dataset", "name", "hint"),
    [
        ("Friend", "question_answering", "did you mean 'Friends'"),
        ("friends", "question_answering", "did you mean 'Friends'"),
        ("Movies", "question_answering", "the datasets are DailyDialog, Friends"),
        ("Friends", "question_answer", "did you mean 'question_answering'"),
        ("Friends", "meld_emotion_recognition", "did you mean 'MELD_emotion_recognition'"),
        ("Friends", "QA", "QA is short for 'question_answering'"),
        ("DailyDialog", "drse", "DRSE is short for 'dialogue_reasoning_span_extraction'"),
        ("DailyDialog", "question_answering", "it is a task of Friends"),
        ("DailyDialog", "zzz", "the tasks of DailyDialog are emotion_recognition, "),
    ],
)
def test_wrong_names_are_refused_with_the_right_one(dataset: str, name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(hint)):
        get_task(dataset, name)


def test_nothing_like_a_task_gets_no_guess() -> None:
    with pytest.raises(ConfigError) as caught:
        get_task("DailyDialog", "zzz")
    assert "did you mean" not in str(caught.value)
