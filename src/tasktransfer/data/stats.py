"""Sizes of the prepared data as plain rows: Table 1, Figure 6 and dialogues that tasks share."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tasktransfer.data.cache import (
    DIALOGUES,
    Manifest,
    get_instance_file_name,
    read_checked_table,
    read_manifest,
)
from tasktransfer.datasets import get_task
from tasktransfer.tasks.card import SPLITS

StatsRow = dict[str, str | int]

LENGTH_COLUMNS = ("dataset", "unit", "length", "count")
OVERLAP_COLUMNS = ("dataset", "source", "target", "shared", "of", "few_sample")
"""Columns of tables that may be empty: for a dataset without turns, or with a single task."""


def count_instances_by_split(folders: Iterable[Path | str]) -> list[StatsRow]:
    """Count instances for Table 1, with one row per dataset, task and split.

    Keys: dataset, task, short, kind, split, samples (instances), dialogues (with at least one
    instance).

    Raises:
        DataError: a folder is not a cache.
    """
    return [row for folder in folders for row in _make_task_rows(read_manifest(folder))]


def tabulate_tasks(rows: Iterable[StatsRow]) -> list[StatsRow]:
    """Arrange Table 1 with one row per task and one column per split.

    Args:
        rows: rows from ``count_instances_by_split``.
    """
    table: dict[tuple[str, str], StatsRow] = {}
    for row in rows:
        key = (str(row["dataset"]), str(row["task"]))
        line = table.setdefault(
            key, {name: row[name] for name in ("dataset", "task", "short", "kind")}
        )
        line[str(row["split"])] = row["samples"]
    return list(table.values())


def compute_length_distributions(folders: Iterable[Path | str]) -> list[StatsRow]:
    """Return histograms of utterance and dialogue lengths, as in Figure 6.

    Keys: dataset, unit, length, count. Units: utterance_words (words per utterance), dialogue_turns
    and dialogue_words (per dialogue). Words are separated by white space, without speakers' names.
    All dialogues of the release count, also those that no split of the study uses.

    Raises:
        DataError: a folder is not a cache.
    """
    return [row for folder in folders for row in _make_length_rows(Path(folder))]


def count_training_overlap(folders: Iterable[Path | str]) -> list[StatsRow]:
    """Count the training dialogues that each pair of tasks in a dataset shares.

    There is one row per ordered pair of tasks in the cache folders. Keys: dataset, source, target,
    shared (distinct dialogues with training instances of both), of (distinct dialogues with
    training instances of the target), few_sample.

    Raises:
        DataError: a folder is not a cache.
    """
    return [row for folder in folders for row in _make_overlap_rows(Path(folder))]


def _make_task_rows(manifest: Manifest) -> list[StatsRow]:
    rows: list[StatsRow] = []
    for name, by_split in manifest.tasks.items():
        card = get_task(manifest.dataset, name)
        for split in SPLITS:
            counts = by_split[split]
            row: StatsRow = {
                "dataset": manifest.dataset,
                "task": name,
                "short": card.short,
                "kind": card.kind,
                "split": split,
                "samples": counts.samples,
                "dialogues": counts.dialogues,
            }
            rows.append(row)
    return rows


def _make_overlap_rows(folder: Path) -> list[StatsRow]:
    manifest = read_manifest(folder)
    dialogues = {
        task: set(
            read_checked_table(folder, manifest, get_instance_file_name(task, "train"))[
                "dialogue_id"
            ].to_pylist()
        )
        for task in manifest.tasks
    }
    return [
        {
            "dataset": manifest.dataset,
            "source": source,
            "target": target,
            "shared": len(dialogues[source] & dialogues[target]),
            "of": len(dialogues[target]),
            "few_sample": manifest.few_sample,
        }
        for source, target in itertools.permutations(manifest.tasks, 2)
    ]


def _make_length_rows(folder: Path) -> list[StatsRow]:
    manifest = read_manifest(folder)
    dataset, table = manifest.dataset, read_checked_table(folder, manifest, DIALOGUES)
    names: list[str] = table["dialogue_id"].to_pylist()
    words: list[int] = table["words"].to_pylist()
    totals: Counter[str] = Counter()
    for name, count in zip(names, words, strict=True):
        totals[name] += count
    histograms: Mapping[str, Counter[int]] = {
        "utterance_words": Counter(words),
        "dialogue_turns": Counter(Counter(names).values()),
        "dialogue_words": Counter(totals.values()),
    }
    return [
        {"dataset": dataset, "unit": unit, "length": length, "count": count}
        for unit, histogram in histograms.items()
        for length, count in sorted(histogram.items())
    ]
