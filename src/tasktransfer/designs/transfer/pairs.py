"""Config keys for pairs of sources and targets across datasets.

A task is written ``Dataset/task``, or ``task`` if no other dataset of the study has a task with
this name. ``Dataset/*`` means all tasks of a dataset. In runs and tables, a source is ``task`` if
it is in the target's dataset, otherwise ``Dataset/task``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import Field

from tasktransfer.config.fields import DISTINCT, LIST, Section, Text
from tasktransfer.core.validation import Problem, extend_path
from tasktransfer.datasets import resolve_task, shorten_task_name
from tasktransfer.designs.transfer.algorithms import BANDITS
from tasktransfer.designs.transfer.dataset_section import DatasetConfig
from tasktransfer.errors import format_value, suggest_name

JOINT = ("multitask", "multitask_finetune", "temperature", "random_weights", *BANDITS)
"""Algorithms that train source and target jointly."""

Pattern = Annotated[str, Text(r"[\w*-]+(/[\w*]+)?", "write Dataset/task, Dataset/* or a task")]
Patterns = Annotated[tuple[Pattern, ...], LIST, DISTINCT]

Task = tuple[str, str]
"""Dataset and name of a task."""

Leak = Annotated[str, Text(r"[\w-]+ ?> ?[\w-]+", "write the two datasets as 'Source > Target'")]
"""Two datasets; the first may train on test dialogues of the second."""


class AnyPair(Section):
    """A source and its target, from any datasets."""

    source: Pattern = Field(description="task that is trained first, as Dataset/task")
    target: Pattern = Field(description="task that is evaluated, as Dataset/task")


Pairs = Literal["all"] | Annotated[tuple[AnyPair, ...], LIST, DISTINCT] | None


@dataclass(frozen=True, slots=True)
class RequestedPairs:
    """The config's keys ``pairs``, ``sources`` and ``targets``."""

    pairs: Any = None
    sources: Sequence[str] | None = None
    targets: Sequence[str] | None = None

    @property
    def is_empty(self) -> bool:
        """True if no key is set, so that all pairs are within a dataset."""
        return self.pairs is None and self.sources is None and self.targets is None


def add_requested_pairs(
    requested: RequestedPairs, datasets: tuple[DatasetConfig, ...]
) -> tuple[tuple[DatasetConfig, ...], list[Problem]]:
    """Return the datasets with the requested pairs, and the problems of the request.

    With an empty list of pairs or sources, datasets have no pairs, and only baselines run.
    """
    if requested.is_empty:
        return datasets, []
    studied = [(dataset.name, task) for dataset in datasets for task in dataset.tasks]
    problems: list[Problem] = []
    pairs: list[tuple[Task, Task]] = []
    if isinstance(requested.pairs, tuple):
        for index, pair in enumerate(requested.pairs):
            path = extend_path("pairs", index)
            sources = _match_pattern(pair.source, studied, extend_path(path, "source"), problems)
            targets = _match_pattern(pair.target, studied, extend_path(path, "target"), problems)
            pairs += product(sources, targets)
    else:
        sources = _select_tasks(requested.sources, studied, "sources", problems)
        targets = _select_tasks(requested.targets, studied, "targets", problems)
        pairs += product(sources, targets)
    by_target: dict[str, list[tuple[str, str]]] = {}
    for source, (owner, target) in dict.fromkeys(pairs):
        if source != (owner, target):
            by_target.setdefault(owner, []).append((shorten_task_name(owner, source), target))
    paired = tuple(
        replace(section, pairs=tuple(by_target.get(section.name, ()))) for section in datasets
    )
    if not by_target and not problems and () not in (requested.pairs, requested.sources):
        problems.append(
            Problem(
                "targets",
                "No target has a source other than itself. Add another task, or set sources: [] "
                "to train baselines only.",
            )
        )
    return paired, problems


def resolve_sources(dataset: str, sources: Sequence[str]) -> tuple[Task, ...]:
    """Return the dataset and the task of each source of a run on a target in ``dataset``."""
    return tuple(resolve_task(dataset, source) for source in sources)


def is_foreign(source: str) -> bool:
    """Return whether a source is from a dataset other than the target's."""
    return "/" in source


def find_cross_dataset_problems(
    requested: RequestedPairs,
    datasets: Sequence[DatasetConfig],
    algorithms: Sequence[str],
    mode: str,
) -> Iterator[Problem]:
    """Yield problems of settings that do not support sources from other datasets."""
    if requested.is_empty or not any(
        is_foreign(s) for dataset in datasets for s, _ in dataset.pairs
    ):
        return
    if joint := [name for name in algorithms if name in JOINT]:
        yield Problem(
            "algorithms",
            f"{', '.join(joint)} trains source and target together, but some pairs combine two "
            "datasets. Use [baseline, pretrain_finetune], or sources of the target's dataset.",
        )
    if mode != "off":
        yield Problem(
            "multi_source.mode",
            f"The value is {format_value(mode)}, but some pairs combine two datasets. Set it to "
            "off.",
        )


def _select_tasks(
    patterns: Sequence[str] | None, studied: list[Task], key: str, problems: list[Problem]
) -> list[Task]:
    matches: list[Task] = []
    for index, pattern in enumerate(("*",) if patterns is None else patterns):
        matches += _match_pattern(pattern, studied, extend_path(key, index), problems)
    return list(dict.fromkeys(matches))


def _match_pattern(
    pattern: str, studied: list[Task], path: str, problems: list[Problem]
) -> list[Task]:
    """Return the study's tasks whose names match a pattern, ignoring case.

    Case is ignored because releases differ in it (``emory``, ``MELD``).
    """
    owner, _, name = pattern.rpartition("/")
    matches = [
        (dataset, task)
        for dataset, task in studied
        if owner.casefold() in ("", "*", dataset.casefold())
        and name.casefold() in ("*", task.casefold())
    ]
    if not matches:
        names = [f"{dataset}/{task}" for dataset, task in studied]
        hint = suggest_name(pattern, names) or f" Its tasks are {', '.join(names[:6])}."
        message = f"{pattern!r} is not a task of the study.{hint} Add it to datasets."
        problems.append(Problem(path, message))
    elif not owner and name != "*" and len(matches) > 1:
        both = " or ".join(f"{dataset}/{task}" for dataset, task in matches)
        problems.append(Problem(path, f"{pattern!r} is a task of several datasets. Write {both}."))
    return matches


def build_short_names(datasets: Sequence[DatasetConfig]) -> Mapping[str, str]:
    """Map each task to its short name for tables and figures.

    The dataset's name is added for tasks that several datasets have, and for sources from other
    datasets.
    """
    shorts: dict[str, str] = {}
    for dataset in datasets:
        for task, short in dataset.shorts:
            shorts[task] = short if shorts.get(task, short) == short else task
            shorts[f"{dataset.name}/{task}"] = f"{dataset.name}/{short}"
    return shorts
