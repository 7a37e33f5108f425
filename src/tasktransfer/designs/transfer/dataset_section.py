"""Config section ``datasets``: the tasks of each dataset, and its source-target pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from tasktransfer.config import ALL
from tasktransfer.config.fields import DISTINCT, LIST, Section
from tasktransfer.core.validation import (
    Problem,
    describe_unknown,
    extend_path,
    list_problems,
    raise_problems,
)
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.declared.section import Declaration, is_declaration
from tasktransfer.designs.names import AnyTaskName, AnyTaskNames, TaskNames, get_tasks
from tasktransfer.designs.transfer.algorithms import PAPER_ALGORITHMS
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.errors import describe_wrong_value, suggest_name


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
