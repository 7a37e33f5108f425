"""Config section ``datasets``: the tasks of each dataset, and its source-target pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from tasktransfer.config import ALL
from tasktransfer.config.fields import DISTINCT, LIST, Section, Text
from tasktransfer.core.validation import (
    Problem,
    describe_unknown,
    extend_path,
    list_problems,
    raise_problems,
)
from tasktransfer.datasets import DATASETS, resolve_task, shorten_task_name
from tasktransfer.datasets.declared.section import Declaration, is_declaration
from tasktransfer.designs.names import AnyTaskName, AnyTaskNames, TaskNames, get_tasks
from tasktransfer.designs.transfer.algorithms import BANDITS, PAPER_ALGORITHMS
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.errors import describe_wrong_value, format_value, suggest_name


class Pair(Section):
    """A source and its target."""

    source: AnyTaskName = Field(
        description="task that is trained first, or together with the target"
    )
    target: AnyTaskName = Field(description="task that is evaluated")


class PairsSection(Section):
    """Sources, targets or pairs of a dataset."""

    sources: Literal["all"] | AnyTaskNames = Field(
        default=ALL, description="source tasks to train on; all to use every task in the key tasks"
    )
    targets: Literal["all"] | AnyTaskNames = Field(
        default=ALL,
        description="target tasks to evaluate on; all to use every task in the key tasks",
    )
    pairs: Annotated[tuple[Pair, ...], LIST, DISTINCT] | None = Field(
        default=None,
        description="pairs of source and target, instead of all combinations; [] for none",
    )


class DatasetSection(PairsSection):
    """Tasks of one dataset, as written in the file."""

    tasks: Literal["all"] | TaskNames = Field(
        default=ALL, description="tasks of the dataset in this study, or all"
    )


class DeclaredSection(Declaration, PairsSection):
    """A dataset of your own: its files, its tasks, and its sources and targets."""


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """Tasks of one dataset and its single-source pairs, in the order of the config."""

    name: str
    tasks: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    shorts: tuple[tuple[str, str], ...]
    """(name, short name) of all tasks of the dataset, including tasks outside the study."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Target tasks of the dataset's pairs."""
        return tuple(dict.fromkeys(target for _, target in self.pairs))


def validate_datasets(sections: Any) -> tuple[DatasetConfig, ...]:
    """Return a config's datasets, after validating their sections with each dataset's tasks.

    Pydantic calls the function, so it raises one error with the problems of all sections.
    """
    if not isinstance(sections, dict):
        raise_problems([("", describe_wrong_value(sections, "a mapping (key: value)"))])
    problems: list[tuple[str, str]] = []
    configs = []
    if not sections:
        problems.append(("", f"The section is empty. Add at least one of {', '.join(DATASETS)}."))
    for name, value in sections.items():
        path = f"datasets.{name}"
        if name not in DATASETS:
            problems += _list_dataset_problems(name, value)
            continue
        kind = DeclaredSection if is_declaration(value) else DatasetSection
        try:
            section = kind.model_validate(value, context={"dataset": name})
        except ValidationError as error:
            inner = list_problems(error, value, kind.model_json_schema, path)
        else:
            configs.append(_build_dataset_config(name, section))
            inner = _find_pairing_problems(path, section, configs[-1].tasks)
        problems += [(p.path.removeprefix("datasets"), p.message) for p in inner]
    raise_problems(problems)
    return tuple(configs)


def _list_dataset_problems(name: str, value: Any) -> list[tuple[str, str]]:
    """Return the problems of a section whose dataset is unknown.

    It is either a declaration that cannot be read, or not a declaration.
    """
    if not is_declaration(value):
        hint = "" if suggest_name(name, DATASETS) else "Give the files of a dataset of your own."
        return [(f".{name}", describe_unknown("dataset", name, tuple(DATASETS), hint))]
    declared = {key: of for key, of in value.items() if key not in PairsSection.model_fields}
    try:
        Declaration.model_validate(declared)
    except ValidationError as error:
        path = f"datasets.{name}"
        inner = list_problems(error, declared, Declaration.model_json_schema, path)
        return [(problem.path.removeprefix("datasets"), problem.message) for problem in inner]
    return []  # already reported when the declaration was read


def _build_dataset_config(name: str, section: DatasetSection | DeclaredSection) -> DatasetConfig:
    cards = get_tasks(name)
    named = ALL if isinstance(section, DeclaredSection) else section.tasks
    tasks = tuple(cards) if named == ALL else named
    if section.pairs is None:
        roles = (tasks if names == ALL else names for names in (section.sources, section.targets))
        pairs = tuple((source, target) for source, target in product(*roles) if source != target)
    else:
        pairs = tuple((pair.source, pair.target) for pair in section.pairs)
    shorts = tuple((card.name, card.short) for card in cards.values())
    return DatasetConfig(name, tasks, pairs, shorts)


def _find_pairing_problems(
    dataset_path: str, section: PairsSection, tasks: tuple[str, ...]
) -> Iterator[Problem]:
    """Yield problems with the sources, targets and pairs of a dataset.

    These are tasks outside the study, pairs combined with sources or targets, and pairs of a task
    with itself.
    """

    def find_unstudied_task(path: str, name: str) -> Iterator[Problem]:
        if name not in tasks:
            yield Problem(path, f"{name!r} is not in {dataset_path}.tasks. Add it there.")

    for role, names in (("sources", section.sources), ("targets", section.targets)):
        if names != ALL and section.pairs is not None:
            yield Problem(
                extend_path(dataset_path, role),
                "The key cannot be combined with pairs, which replace it. Remove one of the two.",
            )
        elif names != ALL:
            for index, name in enumerate(names):
                yield from find_unstudied_task(
                    extend_path(extend_path(dataset_path, role), index), name
                )
    for index, pair in enumerate(section.pairs or ()):
        path = extend_path(extend_path(dataset_path, "pairs"), index)
        yield from find_unstudied_task(extend_path(path, "source"), pair.source)
        yield from find_unstudied_task(extend_path(path, "target"), pair.target)
        if pair.source == pair.target:
            yield Problem(
                path,
                f"The source and the target are the same task, {pair.target!r}. Choose another "
                "source.",
            )


def choose_algorithms(
    names: tuple[str, ...] | None, datasets: tuple[DatasetConfig, ...]
) -> tuple[str, ...]:
    """Return the configured algorithms (``names``), or the default algorithms if there are none.

    The default is all algorithms of the paper, or the baseline alone if no task has a source.
    """
    if names is not None:
        return names
    return PAPER_ALGORITHMS if any(dataset.pairs for dataset in datasets) else (BASELINE,)


# --- pairs of sources and targets across datasets ---


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
