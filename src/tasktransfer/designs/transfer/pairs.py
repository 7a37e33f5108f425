"""Pairs of a source and a target of any datasets: how a config names them.

A task is ``Dataset/task``; the name alone will do where no other studied dataset has it, and
``Dataset/*`` is all of a dataset. In a run, and in tables, a source is named as its target's
dataset sees it: by its name alone where it is a task of the same, else as ``Dataset/task``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import Field

from tasktransfer.config.fields import DISTINCT, LIST, Section, Text
from tasktransfer.core.validation import Problem, at, nearest, show
from tasktransfer.datasets import as_seen_from, task_of
from tasktransfer.designs.transfer.algorithms import BANDITS
from tasktransfer.designs.transfer.dataset_section import DatasetConfig

JOINT = ("multitask", "multitask_finetune", "temperature", "random_weights", *BANDITS)
"""Algorithms whose training reads source and target together."""

Pattern = Annotated[str, Text(r"[\w*-]+(/[\w*]+)?", "write Dataset/task, Dataset/* or a task")]
Patterns = Annotated[tuple[Pattern, ...], LIST, Field(min_length=1), DISTINCT]

Task = tuple[str, str]
"""Dataset and name."""

Leak = Annotated[str, Text(r"[\w-]+ ?> ?[\w-]+", "write the two datasets as 'Source > Target'")]
"""Names two datasets, of which the first may train on dialogues that the second tests."""


class AnyPair(Section):
    """A source and its target, of any datasets."""

    source: Pattern = Field(description="the task that is learned first, as Dataset/task")
    target: Pattern = Field(description="the task that is scored, as Dataset/task")


Pairs = Literal["all"] | Annotated[tuple[AnyPair, ...], LIST, Field(min_length=1), DISTINCT] | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a config says of pairs across datasets."""

    pairs: Any = None
    sources: Sequence[str] | None = None
    targets: Sequence[str] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it says nothing, and pairs are those of each dataset by itself."""
        return self.pairs is None and self.sources is None and self.targets is None


def across(
    asked: Asked, datasets: tuple[DatasetConfig, ...]
) -> tuple[tuple[DatasetConfig, ...], list[Problem]]:
    """The datasets with the pairs that are asked for, and what is wrong with these."""
    if asked.is_open:
        return datasets, []
    studied = [(dataset.name, task) for dataset in datasets for task in dataset.tasks]
    problems: list[Problem] = []
    pairs: list[tuple[Task, Task]] = []
    if isinstance(asked.pairs, tuple):
        for index, pair in enumerate(asked.pairs):
            path = at("pairs", index)
            sources = _matching(pair.source, studied, at(path, "source"), problems)
            targets = _matching(pair.target, studied, at(path, "target"), problems)
            pairs += product(sources, targets)
    else:
        sources = _named(asked.sources, studied, "sources", problems)
        targets = _named(asked.targets, studied, "targets", problems)
        pairs += product(sources, targets)
    by_target: dict[str, list[tuple[str, str]]] = {}
    for source, (home, target) in dict.fromkeys(pairs):
        if source != (home, target):
            by_target.setdefault(home, []).append((as_seen_from(home, source), target))
    found = tuple(
        replace(section, pairs=tuple(by_target.get(section.name, ()))) for section in datasets
    )
    if not by_target and not problems:
        problems.append(Problem("targets", "leave no source beside a target: name another task"))
    return found, problems


def homes(dataset: str, sources: Sequence[str]) -> tuple[Task, ...]:
    """The sources of a run with their datasets."""
    return tuple(task_of(dataset, source) for source in sources)


def is_foreign(source: str) -> bool:
    """Whether a source is of another dataset than its target."""
    return "/" in source


def refused_together(
    asked: Asked,
    datasets: Sequence[DatasetConfig],
    algorithms: Sequence[str],
    mode: str,
) -> Iterator[Problem]:
    """What cannot be done with sources of other datasets."""
    if asked.is_open or not any(is_foreign(s) for dataset in datasets for s, _ in dataset.pairs):
        return
    if joint := [name for name in algorithms if name in JOINT]:
        yield Problem(
            "algorithms",
            f"{', '.join(joint)} trains source and target together, and some of the pairs are of "
            "two datasets: use [baseline, pretrain_finetune], or sources of the target's dataset",
        )
    if mode != "off":
        yield Problem(
            "multi_source.mode",
            f"found {show(mode)}, and some of the pairs are of two datasets: use off",
        )


def _named(
    patterns: Sequence[str] | None, studied: list[Task], key: str, problems: list[Problem]
) -> list[Task]:
    found: list[Task] = []
    for index, pattern in enumerate(patterns or ("*",)):
        found += _matching(pattern, studied, at(key, index), problems)
    return list(dict.fromkeys(found))


def _matching(pattern: str, studied: list[Task], path: str, problems: list[Problem]) -> list[Task]:
    """The studied tasks that a pattern names. Case is of no account: both ``emory`` and ``MELD``
    are spelled as their releases have them."""
    home, _, name = pattern.rpartition("/")
    found = [
        (dataset, task)
        for dataset, task in studied
        if home.casefold() in ("", "*", dataset.casefold())
        and name.casefold() in ("*", task.casefold())
    ]
    if not found:
        names = [f"{dataset}/{task}" for dataset, task in studied]
        hint = nearest(pattern, names) or f"; studied are {', '.join(names[:6])}"
        problems.append(
            Problem(path, f"{pattern!r} is no task that is studied{hint}: add it to datasets")
        )
    elif not home and name != "*" and len(found) > 1:
        both = ", ".join(f"{dataset}/{task}" for dataset, task in found)
        problems.append(Problem(path, f"{pattern!r} is a task of several datasets: write {both}"))
    return found


def shorts_of(datasets: Sequence[DatasetConfig]) -> Mapping[str, str]:
    """Task → short name; one that several datasets have, and a source of another dataset, with the
    dataset's name."""
    shorts: dict[str, str] = {}
    for dataset in datasets:
        for task, short in dataset.shorts:
            shorts[task] = short if shorts.get(task, short) == short else task
            shorts[f"{dataset.name}/{task}"] = f"{dataset.name}/{short}"
    return shorts
