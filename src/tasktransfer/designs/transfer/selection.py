"""What ``multi_source.mode: auto`` picked: targets with their sources, written down once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text

SELECTION = "tables/selection.json"
"""Relative to the results folder."""


@dataclass(frozen=True, slots=True)
class MultiSource:
    """A target with all the sources that one run trains on (paper, section 6.2)."""

    dataset: str
    target: str
    sources: tuple[str, ...]


def read_selection(config: TransferConfig) -> tuple[MultiSource, ...] | None:
    """What ``auto`` picked; None if it has not picked yet.

    Raises:
        RecordError: the file is damaged, or answers another question than the config asks.
    """
    path = Path(config.results, SELECTION)
    if not path.exists():
        return None
    try:
        picked = tuple(
            MultiSource(item["dataset"], item["target"], tuple(item["sources"]))
            for item in json_text.read(path)
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path}: damaged ({error!r}); delete it, it is made again") from error
    contradiction = _contradiction(config, picked)
    if contradiction:
        raise RecordError(
            f"{path}: {contradiction}; delete it to pick again, or set multi_source back"
        )
    return picked


def _contradiction(config: TransferConfig, picked: Sequence[MultiSource]) -> str | None:
    asked = config.multi_source
    for dataset in config.datasets:
        targets = [item for item in picked if item.dataset == dataset.name]
        if len(targets) != asked.targets_per_dataset:
            return (
                f"holds {len(targets)} targets of {dataset.name}, "
                f"multi_source.targets_per_dataset is {asked.targets_per_dataset}"
            )
        for item in targets:
            if len(item.sources) != asked.sources_per_target:
                return (
                    f"{item.target} has {len(item.sources)} sources, "
                    f"multi_source.sources_per_target is {asked.sources_per_target}"
                )
            others = {item.target, *item.sources} - set(DATASETS[dataset.name].tasks)
            if others:
                return f"{', '.join(sorted(others))} is no task of {dataset.name}"
    return None
