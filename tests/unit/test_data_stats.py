"""Table 1's counts and Figure 6's lengths from a prepared tiny release."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from releases import tiny_release
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.data.stats import (
    compute_length_distributions,
    count_instances_by_split,
    count_training_overlap,
    tabulate_tasks,
)
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.tables.data_report import write_data_tables
from tasktransfer.errors import DataError


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    parent = tmp_path_factory.mktemp("data")
    for dataset in DATASETS:
        cache_dataset(dataset, tiny_release(dataset).write(parent), True, parent / dataset)
    return [parent / dataset for dataset in DATASETS]


def test_counts_per_task_and_split(folders: list[Path]) -> None:
    rows = count_instances_by_split(folders)
    assert len(rows) == 17 * 3
    assert rows[2] == {
        "dataset": "DailyDialog",
        "task": "emotion_recognition",
        "short": "ER",
        "kind": "utterance_classification",
        "split": "test",
        "samples": 4,
        "dialogues": 2,
    }


def test_one_row_per_task(folders: list[Path]) -> None:
    rows = tabulate_tasks(count_instances_by_split(folders))
    assert len(rows) == 17
    assert rows[0]["task"] == "emotion_recognition"
    assert [rows[0][split] for split in ("train", "dev", "test")] == [2, 2, 4]


def test_lengths(folders: list[Path]) -> None:
    rows = compute_length_distributions(folders)
    friends = {
        (row["unit"], row["length"]): row["count"] for row in rows if row["dataset"] == "Friends"
    }
    assert friends == {
        ("utterance_words", 2): 5,
        ("utterance_words", 6): 5,
        ("utterance_words", 9): 5,
        ("dialogue_turns", 3): 5,
        ("dialogue_words", 17): 5,
    }


def test_training_dialogues_that_tasks_share(folders: list[Path]) -> None:
    rows = count_training_overlap(folders)
    assert len(rows) == 10 * 9 + 7 * 6
    assert all(row["few_sample"] is True for row in rows)
    for row in rows:
        folder = folders[list(DATASETS).index(str(row["dataset"]))]
        source, target = (
            {instance.dialogue_id for instance in read_instances(folder, str(task), "train")}
            for task in (row["source"], row["target"])
        )
        assert (row["shared"], row["of"]) == (len(source & target), len(target))
    assert {row["shared"] for row in rows} >= {1}


def test_written_beside_the_other_tables(folders: list[Path], tmp_path: Path) -> None:
    write_data_tables(folders, tmp_path)
    found = pd.read_parquet(tmp_path / "overlap_data.parquet")
    assert list(found.columns) == [
        *("dataset", "source", "target", "shared", "of", "few_sample", "synthetic")
    ]
    assert len(pd.read_csv(tmp_path / "overlap_data.csv")) == len(found) == 132


def test_a_folder_that_is_no_cache(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not prepared"):
        count_instances_by_split([tmp_path])
