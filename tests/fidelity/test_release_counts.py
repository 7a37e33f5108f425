"""The real release: samples per task and split, spans, offsets, and the full data in the zips.

SAMPLES and TOTALS are the counts in the data's own description. If it calls a task exact, they are
also those of the paper's Table 1.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from releases import PAPER_TASKS, load_release, read_instances
from tasktransfer.data.cache import cache_dataset
from tasktransfer.data.stats import count_instances_by_split
from tasktransfer.datasets import DATASETS, TINY_PARTS, get_task
from tasktransfer.datasets.feta.annotations import format_utterance
from tasktransfer.datasets.feta.archive import check_dialogues_present, compute_release_revision
from tasktransfer.datasets.feta.release import ParsedRelease
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance, Task

SPLITS = ("train", "dev", "test")

SAMPLES = {
    "emotion_recognition": (7167, 1410, 16057),
    "dialogue_act_classification": (7167, 1410, 16057),
    "topic_classification": (958, 161, 1919),
    "causal_emotion_span_extraction": (2490, 462, 9765),
    "causal_emotion_entailment": (2490, 462, 9765),
    "dialogue_nli": (621, 54, 806),
    "dialogue_reasoning_span_extraction": (121, 15, 192),
    "dialogue_reasoning_multiple_choice_span_selection": (233, 30, 382),
    "dialogue_reasoning_commonsense_relation_prediction": (392, 39, 524),
    "adversarial_response_selection": (585, 195, 2385),
    "emory_emotion_recognition": (844, 207, 1912),
    "reading_comprehension": (867, 180, 2233),
    "character_identification": (3046, 572, 6845),
    "question_answering": (819, 191, 1937),
    "personality_detection": (54, 15, 110),
    "relation_extraction": (484, 117, 1131),
    "MELD_emotion_recognition": (616, 148, 1247),
}
"""Numbers of samples in few-sample train and dev, and in test."""

TOTALS = {
    "emotion_recognition": 102978,
    "dialogue_act_classification": 102978,
    "topic_classification": 13118,
    "causal_emotion_span_extraction": 36324,
    "causal_emotion_entailment": 36324,
    "dialogue_nli": 5796,
    "dialogue_reasoning_span_extraction": 1172,
    "dialogue_reasoning_multiple_choice_span_selection": 2274,
    "dialogue_reasoning_commonsense_relation_prediction": 4009,
    "adversarial_response_selection": 10850,
    "emory_emotion_recognition": 12606,
    "reading_comprehension": 13446,
    "character_identification": 42937,
    "question_answering": 12257,
    "personality_detection": 711,
    "relation_extraction": 7312,
    "MELD_emotion_recognition": 9140,
}
"""Numbers of all samples in the full data."""

EXACT = (
    "emory_emotion_recognition",
    "question_answering",
    "personality_detection",
    "MELD_emotion_recognition",
)

Load = Callable[[str], ParsedRelease]
Read = Callable[[Task, str], list[Instance]]


@pytest.fixture(scope="module")
def reduced(shared: Path) -> Iterator[Load]:
    """Return a cached parser of the folders, which contain only the few-sample dialogues."""
    load = cache(lambda dataset: load_release(shared / "feta", dataset))
    yield load
    load.cache_clear()


@pytest.fixture(scope="module")
def full(shared: Path) -> Iterator[Load]:
    """Return a cached parser of the zips, which contain all dialogues."""
    load = cache(lambda dataset: load_release(shared / "feta" / "full", dataset))
    yield load
    load.cache_clear()


@pytest.fixture(scope="module")
def few_sample(reduced: Load) -> Iterator[Read]:
    """Return a cached reader of few-sample instances from the folders, by task and split."""

    @cache
    def read(dataset: str, task: str, split: str) -> list[Instance]:
        return read_instances(reduced(dataset), task, split, few_sample=True)

    # Cards contain dictionaries, so they cannot be keys.
    yield lambda task, split: read(task.dataset, task.name, split)
    read.cache_clear()


def every(few_sample: Read, task: Task) -> Iterator[Instance]:
    for split in SPLITS:
        yield from few_sample(task, split)


def by_name(task: Task) -> str:
    return task.name


@pytest.mark.parametrize("task", PAPER_TASKS, ids=by_name)
def test_few_sample_counts(few_sample: Read, task: Task) -> None:
    assert tuple(len(few_sample(task, split)) for split in SPLITS) == SAMPLES[task.name]


@pytest.mark.parametrize("task", EXACT)
def test_exact_tasks_agree_with_table_1(shared: Path, few_sample: Read, task: str) -> None:
    with (shared / "paper" / "table1_tasks.csv").open() as file:
        rows = {row["task"]: row for row in csv.DictReader(file)}
    published = [int(rows[task][key]) for key in ("fewshot_train", "fewshot_dev", "test")]
    card = get_task("Friends", task)
    assert [len(few_sample(card, split)) for split in SPLITS] == published
    assert TOTALS[task] == int(rows[task]["original_samples"])


@pytest.mark.parametrize(
    ("dataset", "sizes"), [("DailyDialog", (958, 161, 1919)), ("Friends", (217, 46, 466))]
)
def test_splits_are_complete(reduced: Load, dataset: str, sizes: tuple[int, ...]) -> None:
    release = reduced(dataset)
    for split, size in zip(SPLITS, sizes, strict=True):
        check_dialogues_present(release.source, release.ids, split, True, release.dialogues)
        assert len(release.ids.get_ids(split, few_sample=True)) == size
    assert len(release.dialogues) == sum(sizes)


@pytest.mark.parametrize("dataset", DATASETS)
def test_real_data_is_not_called_synthetic(reduced: Load, dataset: str) -> None:
    assert not reduced(dataset).synthetic
    assert list(reduced(dataset).tasks) == list(TINY_PARTS[dataset].sizes)


@pytest.mark.parametrize("task", [task for task in PAPER_TASKS if task.kind == "span"], ids=by_name)
def test_spans_equal_their_text(few_sample: Read, task: Task) -> None:
    # Entities are lower-cased in the release, but not in the dialogue.
    ignore_case = task.name == "reading_comprehension"
    for instance in every(few_sample, task):
        assert len(instance.target) == len(instance.starts) > 0
        answers = list(zip(instance.target, instance.starts, strict=True))
        assert len(set(answers)) == len(answers)
        for text, start in answers:
            found = instance.context[start : start + len(text)]
            assert start == -1 or found == text or (ignore_case and found.lower() == text)


def test_which_spans_are_unanswerable(few_sample: Read) -> None:
    def absent(dataset: str, name: str) -> list[Instance]:
        task = get_task(dataset, name)
        return [instance for instance in every(few_sample, task) if -1 in instance.starts]

    causal = absent("DailyDialog", "causal_emotion_span_extraction")
    assert {instance.target for instance in causal} == {("Impossible answer",)}
    assert len(causal) / sum(SAMPLES["causal_emotion_span_extraction"]) == pytest.approx(0.74, 0.01)
    assert absent("DailyDialog", "dialogue_reasoning_span_extraction") == []
    assert absent("Friends", "question_answering") == []
    # The names of four answers do not occur in their scenes.
    assert len(absent("Friends", "reading_comprehension")) == 4


FOCUSED = [task for task in PAPER_TASKS if task.kind == "utterance_classification"]


@pytest.mark.parametrize("task", FOCUSED, ids=by_name)
def test_focus_is_the_target_turn(reduced: Load, few_sample: Read, task: Task) -> None:
    for instance in every(few_sample, task):
        turns = reduced(task.dataset).dialogues[instance.dialogue_id].turns
        # The instance id names the turn: <dialogue>_t<turn id>, and a mention's number after it.
        name = instance.id.removeprefix(f"{instance.dialogue_id}_t").split("_")[0]
        position = [str(turn.id) for turn in turns].index(name)
        parts = [format_utterance(turn.speakers, turn.utterance) for turn in turns[: position + 1]]
        assert instance.context == " ".join(parts)
        assert instance.context[instance.focus :] == parts[-1]


@pytest.mark.parametrize("task", PAPER_TASKS, ids=by_name)
def test_targets_and_options_are_valid(few_sample: Read, task: Task) -> None:
    for instance in every(few_sample, task):
        if task.kind not in ("utterance_classification",):
            assert instance.focus == len(instance.context)
        if task.kind != "span":
            assert instance.starts == ()
            assert set(instance.target) <= set(task.labels)
        if task.kind == "multiple_choice":
            assert len(instance.options) == task.classes
        if task.kind == "multi_output":
            assert len(instance.target) == len(task.outputs)
        if task.kind not in ("multi_output", "multi_label", "span"):
            assert len(instance.target) == 1


def test_reading_comprehension_asks_for_one_of_its_entities(few_sample: Read) -> None:
    for instance in every(few_sample, get_task("Friends", "reading_comprehension")):
        assert instance.target[0] in instance.options
        assert instance.query["entities"] == " or ".join(instance.options)
        assert "[PLACEHOLDER]" in instance.query["query"]


@pytest.mark.parametrize("dataset", DATASETS)
def test_zips_give_the_same_few_sample_instances(
    reduced: Load, few_sample: Read, full: Load, dataset: str
) -> None:
    small, whole = reduced(dataset), full(dataset)
    assert (small.source.kind, whole.source.kind) == ("folder", "zip")
    assert small.revision != whole.revision
    for task in [task for task in PAPER_TASKS if task.dataset == dataset]:
        for split in SPLITS:
            assert read_instances(whole, task.name, split, True) == few_sample(task, split)


@pytest.mark.parametrize("task", PAPER_TASKS, ids=by_name)
def test_full_data_counts(full: Load, task: Task) -> None:
    release = full(task.dataset)
    count = sum(len(read_instances(release, task.name, split, False)) for split in SPLITS)
    assert count == TOTALS[task.name]


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ("DailyDialog", "8,625 of the 9,583 dialogues of the train split, such as "),
        ("Friends", "1,958 of the 2,175 dialogues of the train split, such as "),
    ],
)
def test_full_data_on_the_reduced_folder_is_refused(
    shared: Path, tmp_path: Path, dataset: str, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        cache_dataset(dataset, shared / "feta", False, tmp_path / "out")
    assert "Use the full release" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_prepared_folder_counts_the_same(shared: Path, tmp_path: Path) -> None:
    manifest = cache_dataset("Friends", shared / "feta", True, tmp_path / "out")
    assert manifest.revision == compute_release_revision(shared / "feta", "Friends")
    for row in count_instances_by_split([tmp_path / "out"]):
        assert row["samples"] == SAMPLES[str(row["task"])][SPLITS.index(str(row["split"]))]
