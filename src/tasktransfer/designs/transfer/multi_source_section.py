"""Config section ``multi_source``: runs with several sources (paper, section 6.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tasktransfer.config import ALL
from tasktransfer.config.fields import DISTINCT, LIST, Count, Section
from tasktransfer.core.specs import Family
from tasktransfer.core.validation import Problem, extend_path
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.names import DatasetName, OneOf, TaskName, TaskNames, get_tasks
from tasktransfer.designs.transfer.algorithms import BANDITS, TRANSFER_ALGORITHMS
from tasktransfer.designs.transfer.dataset_section import DatasetConfig
from tasktransfer.errors import format_value
from tasktransfer.selection.methods import SELECTORS

TransferName = Annotated[str, OneOf("transfer algorithm", lambda dataset: TRANSFER_ALGORITHMS)]
SPLITS_THAT_CHOOSE = ("dev", "test")
"""Splits whose single-source scores can choose the sources; a selector can choose instead."""
Chooser = Annotated[str, OneOf("choice", lambda dataset: (*SPLITS_THAT_CHOOSE, *SELECTORS))]


class NamedMultiSource(Section):
    """A multi-source target and its sources, written out in the config."""

    dataset: DatasetName = Field(description="dataset of the target and its sources")
    target: TaskName = Field(description="task that is evaluated")
    sources: TaskNames = Field(description="source tasks that are trained together")


def _restore_off(mode: Any) -> Any:
    """Return ``off`` for False, because YAML parses ``off`` as False."""
    return "off" if mode is False else mode


class MultiSourceConfig(Section):
    """Runs with several sources (paper, section 6.2)."""

    mode: Annotated[
        Literal["off", "named", "auto"],
        BeforeValidator(
            _restore_off, json_schema_input_type=Literal["off", "named", "auto", False]
        ),
    ] = Field(
        default="off",
        description=(
            "`off` to train on at most one source, `named` to use the targets and sources "
            "listed under the key `named`, or `auto` to select targets and sources from the "
            "single-source results"
        ),
    )
    named: Annotated[tuple[NamedMultiSource, ...], LIST, DISTINCT] = Field(
        default=(), description="targets with their sources; used only if mode is named"
    )
    targets_per_dataset: Count = Field(
        default=2,
        description=(
            "number of targets per dataset to select in mode auto (the targets that gain most "
            "from transfer)"
        ),
    )
    sources_per_target: Count = Field(
        default=3,
        description=(
            "number of sources per target to select in mode auto (the sources with the highest "
            "gain)"
        ),
    )
    choose_by: Chooser = Field(
        default="dev",
        description=(
            "split whose scores select the sources in mode auto, or a selector that ranks the "
            "sources. The value `test` follows the paper, but the same scores then select and "
            "evaluate the runs"
        ),
    )
    algorithms: (
        Literal["all"] | Annotated[tuple[TransferName, ...], LIST, Field(min_length=1), DISTINCT]
    ) = Field(
        default=ALL,
        description=(
            "transfer algorithms that are run with several sources; all to use every algorithm of "
            "the study"
        ),
    )

    def drop_unused_keys(self, algorithms: tuple[str, ...]) -> MultiSourceConfig:
        """Return the section without keys that have no effect in its mode.

        ``algorithms`` are those of the study, from which the section selects its own.
        """
        return self.model_copy(
            update={
                "named": self.named if self.mode == "named" else (),
                "algorithms": self.select_algorithms(algorithms) if self.mode != "off" else (),
            }
        )

    @property
    def uses_bandit(self) -> bool:
        """True if any algorithm is a bandit, which mixes several sources in a run."""
        return not {*BANDITS}.isdisjoint(self.algorithms)

    def select_algorithms(self, algorithms: tuple[str, ...]) -> tuple[str, ...]:
        """Return the transfer algorithms of multi-source runs, selected from ``algorithms``."""
        selected = algorithms if self.algorithms == ALL else self.algorithms
        return tuple(name for name in TRANSFER_ALGORITHMS if name in selected)


def find_multi_source_problems(
    section: MultiSourceConfig,
    datasets: tuple[DatasetConfig, ...],
    algorithms: tuple[str, ...],
) -> Iterator[Problem]:
    """Yield problems of the section ``multi_source``, including conflicts with other sections."""
    for index, item in enumerate(section.named):
        yield from _check_named_target(item, datasets, extend_path("multi_source.named", index))
    if section.mode == "named" and not section.named:
        yield Problem(
            "multi_source.named",
            "The list is empty, but mode is named. Add a target, or set mode to off.",
        )
    if section.mode != "off" and algorithms and not section.select_algorithms(algorithms):
        yield Problem(
            "multi_source.algorithms",
            f"The value is {format_value(section.algorithms)}, which leaves no transfer algorithm. "
            f"Choose one of {', '.join(TRANSFER_ALGORITHMS)}.",
        )
    if section.mode == "auto":
        if algorithms == ("baseline",):
            yield Problem(
                "multi_source.mode",
                "The value is auto, which chooses from results of transfer, but the study has no "
                "transfer algorithm. Add one to algorithms.",
            )
        for dataset in datasets:
            yield from _check_requested_counts(section, dataset)


def find_chooser_problems(
    section: MultiSourceConfig, selectors: tuple[str, ...], families: frozenset[Family]
) -> Iterator[Problem]:
    """Yield problems of ``choose_by``, the selector that chooses sources.

    Args:
        section: the section ``multi_source``.
        selectors: selectors of the study.
        families: families of the models that the study trains.
    """
    name = section.choose_by
    if section.mode != "auto" or name in SPLITS_THAT_CHOOSE:
        return
    problem = None
    if name == "random":
        problem = "which does not rank sources. Choose another selector"
    elif name not in selectors:
        problem = "which is not in selectors. Add it to selectors"
    elif families.isdisjoint(SELECTORS[name].families):
        problem = (
            f"which is defined for the families {', '.join(SELECTORS[name].families)}, but the "
            "study trains no model of these. Choose another selector"
        )
    if problem:
        yield Problem(
            "multi_source.choose_by", f"The value is {format_value(name)}, {problem}, or write dev."
        )


def _check_named_target(
    item: NamedMultiSource, datasets: tuple[DatasetConfig, ...], path: str
) -> Iterator[Problem]:
    if datasets and item.dataset not in {dataset.name for dataset in datasets}:
        yield Problem(
            extend_path(path, "dataset"),
            f"{item.dataset!r} is not a dataset of the study. Add it to datasets, or remove this "
            "target.",
        )
    places = [(extend_path(path, "target"), item.target)]
    places += [
        (extend_path(extend_path(path, "sources"), i), name) for i, name in enumerate(item.sources)
    ]
    for key_path, task in places:
        if task not in get_tasks(item.dataset):
            owner = next(name for name in DATASETS if task in get_tasks(name))
            yield Problem(
                key_path,
                f"{task!r} is a task of {owner}, not of {item.dataset}, but the sources and the "
                "target of a run belong to one dataset. Choose tasks of one dataset.",
            )
        elif key_path != places[0][0] and task == item.target:
            message = f"{task!r} is the target, which cannot be its own source. Remove it."
            yield Problem(key_path, message)


def _check_requested_counts(
    section: MultiSourceConfig, dataset: DatasetConfig
) -> Iterator[Problem]:
    targets = Counter(target for _, target in dataset.pairs)
    most = max(targets.values(), default=0)
    if len(targets) < section.targets_per_dataset:
        yield Problem(
            "multi_source.targets_per_dataset",
            f"The value is {section.targets_per_dataset}, but {dataset.name} has {len(targets)} "
            "targets. Write a smaller number.",
        )
    if section.sources_per_target > most:
        yield Problem(
            "multi_source.sources_per_target",
            f"The value is {section.sources_per_target}, but a target of {dataset.name} has at "
            f"most {most} sources. Write a smaller number.",
        )
