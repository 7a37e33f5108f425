"""Adding a dataset, finding a task, and datasets without optional parts."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outside_dataset import ERRANDS, PURCHASE, SHOP
from outside_dataset.release import write_release
from tasktransfer import datasets
from tasktransfer.data.cache import cache_dataset
from tasktransfer.datasets import DATASETS, TINY_PARTS, get_task, tiny_world
from tasktransfer.datasets.dailydialog import DAILYDIALOG
from tasktransfer.datasets.dataset import ASSUMED_SIZE, Dataset
from tasktransfer.designs import open_study
from tasktransfer.errors import ConfigError, DataError
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.results import revisions
from tasktransfer.tasks.card import Instance, MetricSpec, Prompt, Task

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT / "workflow" / "presets" / "paper.yaml"
SOURCE = ROOT / "src" / "tasktransfer"


pytestmark = pytest.mark.usefixtures("datasets_of_one_test")


# --- adding -------------------------------------------------------------------------------------


def test_a_dataset_is_added_once() -> None:
    datasets.add_dataset(ERRANDS)
    datasets.add_dataset(ERRANDS)
    assert list(DATASETS) == ["DailyDialog", "Friends", "Errands"]
    assert list(TINY_PARTS) == list(tiny_world.GENERATORS) == ["DailyDialog", "Friends"]
    assert get_task("Errands", "purchase_extraction") is PURCHASE


def with_card(**fields: Any) -> dict[str, Any]:
    return {"cards": (replace(SHOP, **fields), PURCHASE)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "friends"}, "name: 'Friends' is a dataset already"),
        ({"name": "../up"}, "name: '../up' is not a valid name. Use letters"),
        ({"cards": ()}, "cards: The dataset has no task. Add at least one"),
        ({"cards": (SHOP, SHOP)}, "cards: The name 'shop_classification' is repeated"),
        (with_card(short="buy"), "cards: The short 'BUY' is repeated"),
        (with_card(dataset="Shops"), "shop_classification.dataset: 'Shops' is not the name"),
        (with_card(name="a/b"), "a/b.name: 'a/b' is not a valid name"),
        (with_card(kind="guess"), "shop_classification.kind: 'guess' is not a kind. Use one"),
        (with_card(labels=()), "shop_classification.labels: A task of kind dialogue_class"),
        (with_card(labels=("a", "a")), "shop_classification.labels: A label is repeated"),
        (with_card(kind="multi_output"), "outputs: A task of kind multi_output needs"),
        (with_card(kind="multiple_choice"), "labels: The labels of multiple choice are"),
        (with_card(metrics=()), "shop_classification.metrics: The card has no metric"),
        (with_card(metrics=(MetricSpec("blue"),)), "metrics: 'blue' is not a metric."),  # type: ignore[arg-type]
        (with_card(metrics=(MetricSpec("bleu"),)), "because it is for replies. Use bleu"),
        (with_card(paper_metrics=("f1",)), "paper_metrics: 'f1' is not in metrics. Use accuracy"),
        (
            with_card(metrics=(MetricSpec("f1", "micro", label_indices=(3,)),)),
            "Use numbers from -1 to 2",
        ),
        (
            with_card(prompt=Prompt("shop:", 8, label_words={"bank": "bank"})),
            "prompt.label_words: 'bank' is not a label",
        ),
        (
            with_card(prompt=Prompt("shop:", 8, label_words={"bakery": "Market"})),
            "prompt.label_words: Two labels have the same words",
        ),
        (
            {"sizes": {"gone": ASSUMED_SIZE}},
            "sizes: 'gone' is not a task of the dataset. Remove it",
        ),
        ({"tiny": DAILYDIALOG.tiny}, "tiny: Generated releases are fixed by the package"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        datasets.add_dataset(replace(ERRANDS, **change))
    assert str(caught.value).startswith("The definition of the dataset '")
    assert list(DATASETS) == ["DailyDialog", "Friends"]


def test_two_datasets_may_have_tasks_of_one_name() -> None:
    dataset = replace(ERRANDS, **with_card(name="question_answering"), sizes={})
    assert list(datasets.find_dataset_problems(dataset, DATASETS.values())) == []


# --- instances that do not fit ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        (SHOP, {"target": ("bank",)}, "target 'bank' is not a label of shop_classification"),
        (SHOP, {"target": ()}, "target () has 0 entries"),
        (SHOP, {"focus": -1}, "focus -1 is outside the context"),
        (SHOP, {"task": "other"}, "task is 'other', but 'shop_classification'"),
        (PURCHASE, {"starts": ()}, "1 answers but 0 starts"),
        (PURCHASE, {"starts": (0,)}, "is not at character 0 of its context, which has 'cl"),
    ],
)
def test_an_instance_that_does_not_fit_is_named(
    task: Task, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    def spoilt(folder: Path, few_sample: bool) -> Any:
        release = ERRANDS.reader.open(folder, few_sample)

        def instances(name: str, split: str) -> list[Instance]:
            rows = list(release.instances(name, split))
            spoil = name == task.name and split == "dev"
            return [replace(rows[0], **change), *rows[1:]] if spoil else rows

        return replace(release, instances=instances)

    datasets.add_dataset(replace(ERRANDS, reader=replace(ERRANDS.reader, open=spoilt)))
    write_release(tmp_path)
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        cache_dataset("Errands", tmp_path, True, tmp_path / "out")
    assert f"{tmp_path / 'Errands'}, {task.name}, dev, instance 'dev-0-" in str(caught.value)
    assert "Fix the release, or the reader or task card of the dataset Errands" in str(caught.value)


# --- a dataset that says less -------------------------------------------------------------------


def test_a_task_without_a_size_is_forecast_as_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the requests to a batch system, where a KeyError would stop every job."""
    sizes = {name: size for name, size in DAILYDIALOG.sizes.items() if name != "dialogue_nli"}
    monkeypatch.setitem(DATASETS, "DailyDialog", replace(DAILYDIALOG, sizes=sizes))
    estimates = Estimates(open_study(PAPER, need_inputs=False), "cuda")
    stages = {s.label: s for s in estimates.study.plan.stages if s.kind == "baseline"}
    assert (
        estimates.sizes.measure_split(stages["DNLI"], "dialogue_nli", "train").instances
        == ASSUMED_SIZE.train
    )
    assert (
        estimates.sizes.measure_split(
            stages["DRSE"], stages["DRSE"].train_tasks[0], "train"
        ).instances
        == 123
    )
    assert estimates.compute_runtime_minutes(stages["DNLI"]) >= 20
    assert estimates.compute_memory_mb(stages["DNLI"]) >= 6000
    assert "assumption for dialogue_nli" in estimates.sizes.describe_source(
        "DailyDialog", "bert-base"
    )


def test_sizes_follow_the_setting() -> None:
    assert DAILYDIALOG.count_instances("dialogue_nli", "train", few_sample=True) == 569
    assert DAILYDIALOG.count_instances("dialogue_nli", "train", few_sample=False) == 5690
    assert DAILYDIALOG.count_instances("dialogue_nli", "test", few_sample=False) == 1302
    assert ERRANDS.count_instances(SHOP.name, "train", few_sample=False) == 48
    assert ERRANDS.count_tiny_instances(SHOP.name, "train", 240, few_sample=True) == 0


def test_a_release_without_turns_has_no_lengths(tmp_path: Path) -> None:
    from tasktransfer.data.stats import compute_length_distributions  # noqa: PLC0415
    from tasktransfer.designs.transfer.tables import data_report  # noqa: PLC0415

    def quiet(folder: Path, few_sample: bool) -> Any:
        return dataclasses.replace(ERRANDS.reader.open(folder, few_sample), turns=())

    silent: Dataset = replace(ERRANDS, reader=replace(ERRANDS.reader, open=quiet))
    datasets.add_dataset(silent)
    write_release(tmp_path)
    cache_dataset("Errands", tmp_path, True, tmp_path / "out")
    assert compute_length_distributions([tmp_path / "out"]) == []
    assert "shop_classification" in data_report.as_text([tmp_path / "out"])
    assert (tmp_path / "tables" / "lengths.csv") in data_report.write_data_tables(
        [tmp_path / "out"], tmp_path / "tables"
    )


def test_a_dataset_without_a_part_in_the_tiny_world_is_not_looked_for_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revisions, "TINY_PARTS", {"Friends": TINY_PARTS["Friends"]})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ConfigError, match=r"data\.release: The tiny world does not contain the dataset DailyDialog"
    ):
        open_study(PAPER, {"data": {"release": "tiny_world"}})


# --- code that names a dataset


@pytest.mark.parametrize("room", ["tasks", "data", "metrics", "models", "training", "results"])
def test_no_dataset_is_named_outside_its_folder(room: str) -> None:
    rooms = [SOURCE / room, SOURCE / "datasets" / "feta"]
    for file in (file for folder in rooms for file in folder.rglob("*.py")):
        stray = re.findall("DailyDialog|Friends|dailydialog|friends", file.read_text())
        assert not stray, f"{file} names {stray[0]}"


# --- finding a task -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "name", "hint"),
    [
        ("Friend", "question_answering", "Did you mean 'Friends'"),
        ("friends", "question_answering", "Did you mean 'Friends'"),
        ("Movies", "question_answering", "Choose one of DailyDialog, Friends"),
        ("Friends", "question_answer", "Did you mean 'question_answering'"),
        ("Friends", "meld_emotion_recognition", "Did you mean 'MELD_emotion_recognition'"),
        ("Friends", "QA", "Write 'question_answering' instead of its short name"),
        ("DailyDialog", "drse", "Write 'dialogue_reasoning_span_extraction' instead"),
        ("DailyDialog", "question_answering", "It is a task of Friends"),
        ("DailyDialog", "zzz", "Choose one of emotion_recognition, "),
    ],
)
def test_wrong_names_are_refused_with_the_right_one(dataset: str, name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(hint)):
        get_task(dataset, name)


def test_nothing_like_a_task_gets_no_guess() -> None:
    with pytest.raises(ConfigError) as caught:
        get_task("DailyDialog", "zzz")
    assert "Did you mean" not in str(caught.value)
