"""Datasets: one folder per dataset, with its task cards, its reader and its sizes."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from tasktransfer.core.identity import FAMILY_RECIPES, RECIPE_VERSION
from tasktransfer.core.nodes import Data
from tasktransfer.core.specs import Family
from tasktransfer.datasets.dailydialog import DAILYDIALOG
from tasktransfer.datasets.dataset import Dataset, TinyPart
from tasktransfer.datasets.friends import FRIENDS
from tasktransfer.errors import ConfigError
from tasktransfer.tasks.card import Task
from tasktransfer.tasks.checks import find_card_problems

PACKAGE_DATASETS: tuple[Dataset, ...] = (DAILYDIALOG, FRIENDS)
"""The datasets of the package."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
"""Pattern of a dataset's name, which is part of file names."""

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in PACKAGE_DATASETS}
"""Name → dataset: those of the package, those added in this process (``add_dataset``), and
those that the current study declares (``replace_declared_datasets``)."""

TINY_PARTS: dict[str, TinyPart] = {
    dataset.name: dataset.tiny for dataset in PACKAGE_DATASETS if dataset.tiny
}
"""Dataset → its part of the common generated data (``tiny_world``)."""

ALL_TASKS: tuple[Task, ...] = tuple(card for dataset in PACKAGE_DATASETS for card in dataset.cards)
"""The tasks of the package's datasets."""


def add_dataset(dataset: Dataset) -> None:
    """Add a dataset from outside the package to ``DATASETS`` in this process.

    Adding the same object again has no effect.

    Raises:
        ConfigError: its name is taken or not a valid file name, or its tasks or sizes are
            inconsistent. The message lists every problem.
    """
    if DATASETS.get(dataset.name) is dataset:
        return
    problems = list(find_dataset_problems(dataset, DATASETS.values()))
    if dataset.tiny is not None and not dataset.tiny.version:
        problems.append("tiny: Generated releases are fixed by the package. Leave it None.")
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise ConfigError(
            f"The definition of the dataset {dataset.name!r} has errors. Fix these errors:{listed}"
        )
    DATASETS[dataset.name] = dataset


def list_declared_datasets() -> tuple[Dataset, ...]:
    """Return the datasets in ``DATASETS`` that a study's config declares."""
    return tuple(dataset for dataset in DATASETS.values() if dataset.has_own_files)


def replace_declared_datasets(datasets: Iterable[Dataset]) -> None:
    """Replace the declared datasets in ``DATASETS`` by those of another study.

    Two studies may give the same name to different files. Therefore each study keeps its own
    datasets (``Study.declared``) and declares them when it is used.

    Raises:
        ConfigError: a dataset has the name of a dataset of the package or of a plugin.
    """
    wanted, here = list(datasets), list_declared_datasets()
    if len(wanted) == len(here) and all(map(operator.is_, wanted, here)):
        return
    for dataset in here:
        del DATASETS[dataset.name]
    for dataset in wanted:
        add_dataset(dataset)


def find_dataset_problems(dataset: Dataset, others: Iterable[Dataset] = ()) -> Iterator[str]:
    """Yield the problems of a dataset, each as ``<field>: <sentences>``.

    Args:
        dataset: the dataset.
        others: other datasets, whose names it must not have.
    """
    if not NAME.fullmatch(dataset.name):
        yield (
            f"name: {dataset.name!r} is not a valid name. Use letters, digits, '_' and '-', "
            "because it is part of file names."
        )
    if not dataset.cards:
        yield "cards: The dataset has no task. Add at least one."
    for field in ("name", "short"):
        yield from _find_duplicates(field, [getattr(card, field) for card in dataset.cards])
    for card in dataset.cards:
        if card.dataset != dataset.name:
            yield (
                f"{card.name}.dataset: {card.dataset!r} is not the name of the dataset. Write "
                f"{dataset.name!r}."
            )
        yield from (f"{card.name}.{problem}" for problem in find_card_problems(card))
    for task in dataset.sizes.keys() - dataset.tasks.keys():
        yield f"sizes: {task!r} is not a task of the dataset. Remove it."
    # Ignoring case, because names are folders and some file systems ignore case.
    for other in others:
        if other.name.casefold() == dataset.name.casefold():
            yield f"name: {other.name!r} is a dataset already. Choose another name."


def get_card_digests(dataset: str) -> Mapping[str, str]:
    """Return the digests of a dataset's task cards. Raises ConfigError for an unknown dataset."""
    return _resolve_dataset(dataset).card_digests


def build_data_node(dataset: str, revision: str, settings: Mapping[str, Any] | None = None) -> Data:
    """Return the data node with a dataset's original instances."""
    return Data(dataset, revision, settings or {}, cards=get_card_digests(dataset))


def get_recipe_version(dataset: str, tasks: Iterable[str], family: Family) -> int:
    """Return the recipe version of a training run, which depends on family and tasks."""
    cards = [DATASETS[dataset].tasks[task] for task in tasks]
    task_versions = [card.recipes[family] for card in cards if family in card.recipes]
    return max([FAMILY_RECIPES.get(family, RECIPE_VERSION), *task_versions])


def resolve_task(dataset: str, name: str) -> tuple[str, str]:
    """Return the dataset and the name of a task that is named relative to a dataset.

    ``task`` is a task of the dataset itself, and ``Dataset/task`` is a task of another dataset.
    """
    other, _, task = name.rpartition("/")
    return other or dataset, task


def shorten_task_name(dataset: str, task: tuple[str, str]) -> str:
    """Return a task's name relative to a dataset (the inverse of ``resolve_task``)."""
    owner, name = task
    return name if owner == dataset else f"{owner}/{name}"


def get_task(dataset: str, name: str) -> Task:
    """Return the card of a task.

    Args:
        dataset: full name of the dataset.
        name: full name of the task, or ``Dataset/task`` for another dataset (``resolve_task``).

    Raises:
        ConfigError: the dataset or task is unknown. The message suggests a name: the full name for
            a short one, the nearest for a misspelling, or the dataset that has the task.
    """
    dataset, name = resolve_task(dataset, name)
    tasks = _resolve_dataset(dataset).tasks
    if name not in tasks:
        raise ConfigError(
            f"The dataset {dataset} has no task {name!r}.{_format_task_hint(dataset, name)} "
            f"Choose one of {', '.join(tasks)}."
        )
    return tasks[name]


def find_task(dataset: str, name: str) -> Task | None:
    """Return the card of a task, or None if the dataset or the task is unknown."""
    dataset, name = resolve_task(dataset, name)
    return DATASETS[dataset].tasks.get(name) if dataset in DATASETS else None


def _resolve_dataset(name: str) -> Dataset:
    if name not in DATASETS:
        raise ConfigError(
            f"There is no dataset {name!r}.{_propose_name(name, DATASETS)} Choose one of "
            f"{', '.join(DATASETS)}."
        )
    return DATASETS[name]


def _find_duplicates(field: str, names: list[str]) -> Iterator[str]:
    folded = [name.casefold() for name in names]
    for name in sorted({name for name in names if folded.count(name.casefold()) > 1}):
        yield f"cards: The {field} {name!r} is repeated. Give each task its own {field}."


def _format_task_hint(dataset: str, name: str) -> str:
    tasks = DATASETS[dataset].tasks
    for card in tasks.values():
        if card.short.casefold() == name.casefold():
            return f" Write {card.name!r} instead of its short name."
    for other in DATASETS.values():
        if name in other.tasks:
            return f" It is a task of {other.name}."
    return _propose_name(name, tasks)


def _propose_name(name: str, names: Iterable[str]) -> str:
    # Case is ignored, because "friends" and "meld_emotion_recognition" are likely mistakes.
    by_casefold = {valid.casefold(): valid for valid in names}
    near = get_close_matches(name.casefold(), by_casefold, n=1)
    return f" Did you mean {by_casefold[near[0]]!r}?" if near else ""
