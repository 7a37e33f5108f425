"""A dataset's release, read and checked once, and the instances in it.

``load_release`` parses the files; ``read_instances`` yields a task's instances on a split, in the
order of the release's dialogues. Nothing here is cached: see ``cache.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.feta import archive, splits
from tasktransfer.datasets.feta.archive import SPLITS, Source
from tasktransfer.datasets.feta.dialogues import Dialogue, load_json, parse_dialogues
from tasktransfer.datasets.feta.extract import LAYOUTS
from tasktransfer.datasets.feta.fields import (
    Place,
    Table,
    as_table,
    get_table,
    get_text,
    get_texts,
    nearest,
)
from tasktransfer.datasets.feta.revision import revision_of
from tasktransfer.datasets.feta.splits import SplitIds
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance, Task

READER_VERSION = 1
"""Raised when the same release gives other instances than before; part of what is remembered of a
release."""


@dataclass(frozen=True, slots=True)
class Release:
    """A parsed release. ``tasks`` are the cards of the tasks that it annotates; ``synthetic`` is
    true if its metadata says that the dialogues are generated (the tiny world's does)."""

    source: Source
    revision: str
    synthetic: bool
    tasks: dict[str, Task]
    dialogues: dict[str, Dialogue]
    ids: SplitIds

    @property
    def dataset(self) -> str:
        """The dataset's name."""
        return self.source.dataset


def load_release(path: Path | str, dataset: str) -> Release:
    """Read and check the release of ``dataset`` under ``path`` (see ``archive.find_source``).

    Checked here: files, JSON, dataset name, labels against the cards, dialogues, turns and
    splits. Annotations are checked when ``read_instances`` reads them. Raises DataError.
    """
    if dataset not in DATASETS:
        raise DataError(f"unknown dataset {dataset!r}; nearest is {nearest(dataset, DATASETS)}")
    source = archive.find_source(path, dataset)
    files = archive.read_files(source)
    revision = revision_of({name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
    ids = splits.parse_splits(source, files)
    name = archive.json_file(dataset)
    table = load_json(files[name], source.place(name))
    metadata = get_table(table, "metadata", Place(source.place(name)))
    place = Place(source.place(name), path="metadata")
    _check_name(metadata, dataset, place)
    return Release(
        source=source,
        revision=revision,
        synthetic=_is_synthetic(metadata, place),
        tasks=_annotated_tasks(metadata, DATASETS[dataset], place),
        dialogues=parse_dialogues(table, source.place(name)),
        ids=ids,
    )


def check_split(release: Release, split: str, few_sample: bool) -> None:
    """Raise DataError if dialogues of ``split`` are not in the release."""
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; the splits are {', '.join(SPLITS)}")
    splits.check_present(release.source, release.ids, split, few_sample, release.dialogues)


def read_instances(release: Release, task: str, split: str, few_sample: bool) -> list[Instance]:
    """Every instance of ``task`` on ``split``, in the order of the release's dialogues.

    A dialogue counts if its ``dialogue_metadata`` names the task. Raises DataError for a task that
    the release does not annotate, a split whose dialogues are not all there, and any annotation
    that does not hold what the reader relies on.
    """
    check_split(release, split, few_sample)
    if task not in release.tasks:
        raise DataError(
            f"{release.source.path}: this release of {release.dataset} does not annotate {task!r}; "
            f"it has {', '.join(release.tasks)}"
        )
    return list(_each_instance(release, task, split, few_sample))


def holdings(release: Release, few_sample: bool) -> dict[str, list[str]]:
    """Task → the splits on which the release holds an instance of it, for the tasks that it
    annotates.

    Raises DataError for a split whose dialogues are not all there, and a damaged annotation among
    those that are looked at: a task's first ones on each split.
    """
    for split in SPLITS:
        check_split(release, split, few_sample)
    return {
        task: [s for s in SPLITS if any(True for _ in _each_instance(release, task, s, few_sample))]
        for task in release.tasks
    }


def _each_instance(release: Release, task: str, split: str, few_sample: bool) -> Iterator[Instance]:
    layout, card = LAYOUTS[task], release.tasks[task]
    for dialogue in split_dialogues(release, release.ids.of(split, few_sample)):
        if task in dialogue.metadata:
            yield from layout(dialogue, card)


def split_dialogues(release: Release, wanted: Collection[str]) -> list[Dialogue]:
    """The dialogues with the wanted ids, in the release's order."""
    ids = set(wanted)
    return [dialogue for name, dialogue in release.dialogues.items() if name in ids]


def _check_name(metadata: Table, dataset: str, place: Place) -> None:
    name = get_text(metadata, "dataset_name", place)
    if name != dataset:
        raise place.at("dataset_name").error(
            f"is {name!r} and not {dataset!r}; the file is of another dataset"
        )


def _is_synthetic(metadata: Table, place: Place) -> bool:
    """The official release has no such key. Whatever else stands there is not guessed at: a
    generated world must not pass for real dialogues."""
    said = metadata.get("synthetic", False)
    if isinstance(said, bool):
        return said
    raise place.at("synthetic").error(
        f"is {said!r:.60} and neither true nor false; write true if the dialogues are generated, "
        "and leave the key out if they are real"
    )


def _annotated_tasks(metadata: Table, cards: Mapping[str, Task], place: Place) -> dict[str, Task]:
    """The cards of the tasks that the metadata lists; a task without a card is left out."""
    listed = get_texts(metadata, "tasks", place)
    details = get_table(metadata, "task_metadata", place)
    tasks = {name: card for name, card in cards.items() if name in listed}
    if not tasks:
        raise place.at("tasks").error(f"lists none of {', '.join(cards)}")
    for name, card in tasks.items():
        if name not in LAYOUTS:
            raise DataError(f"task {name!r} has a card and no layout: add it to data/extract.py")
        here = place.at("task_metadata").at(name)
        _check_labels(as_table(details.get(name, {}), here), card, here)
    return tasks


def _check_labels(details: Table, card: Task, place: Place) -> None:
    """The order counts too: metrics name classes by their index."""
    if not card.labels or "labels" not in details:
        return
    labels = get_texts(details, "labels", place)
    if labels == card.labels:
        return
    missing = [label for label in card.labels if label not in labels]
    extra = [label for label in labels if label not in card.labels]
    how = f"lacks {missing} and adds {extra}" if missing or extra else "has them in another order"
    raise place.at("labels").error(
        f"the release's labels of {card.name} differ from the card's: it {how}; "
        f"use the official release, or change the card"
    )
