"""Reader of the selection of ``multi_source.mode: auto``: targets with their sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.core.plan import get_relative_choice_path
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.errors import RecordError
from tasktransfer.results.planned_study import read_choice
from tasktransfer.selection.selector import ChooseBy

SELECTION = "selection"
"""Name of the selection (``core.plan.Choice``)."""


@dataclass(frozen=True, slots=True)
class MultiSource:
    """A target with all sources on which one run trains (paper, section 6.2).

    ``chosen_by`` is the split whose scores chose it, or a selector. It is None if the config lists
    the target, or if an earlier version, which only supported the test split, chose it.
    """

    dataset: str
    target: str
    sources: tuple[str, ...]
    chosen_by: ChooseBy | None = None


def read_selection(config: TransferConfig) -> tuple[MultiSource, ...] | None:
    """Read the sources that the mode ``auto`` selected, or return None before the selection.

    Raises:
        RecordError: the file is damaged, or does not match the config.
    """
    written = read_choice(config.results, SELECTION)
    if written is None:
        return None
    path = Path(config.results, get_relative_choice_path(SELECTION))
    try:
        picked = tuple(
            MultiSource(
                item["dataset"],
                item["target"],
                tuple(item["sources"]),
                _parse_chooser(item.get("chosen_by")),
            )
            for item in written
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(
            f"{path}: The file is damaged ({error!r}). Delete the file to create it again."
        ) from error
    contradiction = _find_contradiction(config, picked)
    if contradiction:
        raise RecordError(
            f"{path}: {contradiction}. Delete the file to repeat the selection, or restore "
            "multi_source in the config."
        )
    return picked


def _parse_chooser(value: object) -> ChooseBy | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"the value of chosen_by is {value!r}, but it must be dev, test or a selector")


def _find_contradiction(config: TransferConfig, picked: Sequence[MultiSource]) -> str | None:
    """Describe a contradiction between the selection and the config, or return None."""
    section = config.multi_source
    for dataset in config.datasets:
        targets = [item for item in picked if item.dataset == dataset.name]
        if len(targets) != section.targets_per_dataset:
            return (
                f"The file has {len(targets)} targets of {dataset.name}, but "
                f"multi_source.targets_per_dataset is {section.targets_per_dataset}"
            )
        for item in targets:
            if item.chosen_by not in (None, section.choose_by):
                return (
                    f"The target {item.target} was chosen by {item.chosen_by}, but "
                    f"multi_source.choose_by is {section.choose_by}"
                )
            if len(item.sources) != section.sources_per_target:
                return (
                    f"The target {item.target} has {len(item.sources)} sources, but "
                    f"multi_source.sources_per_target is {section.sources_per_target}"
                )
            others = {item.target, *item.sources} - set(DATASETS[dataset.name].tasks)
            if others:
                return f"{dataset.name} does not have the tasks {', '.join(sorted(others))}"
    return None
