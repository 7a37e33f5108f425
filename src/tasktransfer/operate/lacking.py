"""What the data of a study lacks, told before anything is trained.

Asked at every start of Snakemake: light and fast. What the prepared instances hold
stands in their manifest. A release that is not prepared yet is read for it once, and what it holds
is remembered in ``<results>/data/holdings.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tasktransfer.core.nodes import Data
from tasktransfer.datasets import DATASETS
from tasktransfer.errors import DataError
from tasktransfer.files import json_text, replacing
from tasktransfer.operate.forecast.sizes import read_manifest
from tasktransfer.results.finished import look
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import SPLITS

Held = Mapping[str, list[str]]
"""Task → the splits on which there is an instance of it."""


def lacking(study: Study, dataset: str | None = None) -> tuple[str, ...]:
    """What trainings that are not finished need of the data and do not find there: a message with
    its remedy for each task, or for the release as a whole if it is gone or cannot be read.

    What is tokenised already, and studies whose records are all there, need no data.

    Args:
        study: any study; of one whose data is not known the release is all that is missed.
        dataset: look at this one only.
    """
    names = [name for name in study.config.dataset_names if dataset in (None, name)]
    return tuple(message for name in names for message in _lacking(study, name))


def refuse_lacking(study: Study, dataset: str | None = None) -> None:
    """Raise DataError with all that ``lacking`` finds in data that is on this disk.

    A release that is elsewhere is no reason: tables and figures are drawn without it.
    """
    messages = [text for text in lacking(study, dataset) if text not in study.absent]
    if messages:
        raise DataError("\n".join(messages))


def _lacking(study: Study, dataset: str) -> Iterator[str]:
    held = _prepared(study, dataset)
    tasks = {t for stage in study.plan.stages if stage.dataset == dataset for t in stage.tasks}
    if held is not None and all(len(held.get(task, ())) == len(SPLITS) for task in tasks):
        return
    needed = _needed(study, dataset)
    if not needed:
        return
    if held is None and study.config.data.generated:
        tiny = DATASETS[dataset].tiny
        held = {task: list(SPLITS) for task in (tiny.sizes if tiny else ())}
    try:
        held = held if held is not None else _released(study, dataset)
    except DataError as error:
        yield str(error)
        return
    for task, splits in needed.items():
        absent = [split for split in SPLITS if split in splits - set(held.get(task, ()))]
        if absent:
            yield _message(study, dataset, task, absent if task in held else None)


def _needed(study: Study, dataset: str) -> dict[str, set[str]]:
    """Task → the splits that trainings read which are neither finished nor tokenised."""
    encoded = {
        (data.digest, model): Path(folder, "manifest.json").exists()
        for folder, (data, model) in study.encoded_folders.items()
        if data.name == dataset
    }
    if all(encoded.values()):
        return {}
    needed: dict[str, set[str]] = {}
    for stage in look(study).left(study):
        if stage.dataset != dataset or encoded[stage.data.digest, stage.model.name]:
            continue
        if any(isinstance(used, Data) for used in stage.data.uses):
            continue  # derived from data that it names: whose recipe says what it lacks
        tasks = {"train": stage.train_tasks, "dev": stage.select_on, "test": stage.tested}
        for split in SPLITS:
            for task in tasks[split]:
                needed.setdefault(task, set()).add(split)
    return needed


# --- what the data holds ------------------------------------------------------------------------


def _prepared(study: Study, dataset: str) -> Held | None:
    """By the manifest of the prepared instances; None where there is none that can be read."""
    try:
        return {
            task: [split for split, count in splits.items() if count["samples"]]
            for task, splits in read_manifest(study.instances(dataset))["tasks"].items()
        }
    except (KeyError, TypeError, AttributeError):
        return None


def _released(study: Study, dataset: str) -> Held:
    """By the release itself, or by what is remembered of it."""
    memo = Path(study.config.results, "data", "holdings.json")
    reader = DATASETS[dataset].reader
    reader.find(Path(study.release_of(dataset)))  # remembered or not, it has to be there
    key = f"{Path(study.instances(dataset)).name}, reader {reader.version}"
    remembered: dict[str, Held] = json_text.read_object(memo)
    if key not in remembered:
        release = reader.open(Path(study.release_of(dataset)), study.config.data.few_sample)
        # The first instance of a task on each split tells, and no further one is read.
        remembered[key] = {
            task: [split for split in SPLITS if any(True for _ in release.instances(task, split))]
            for task in release.tasks
        }
        with replacing(memo) as part:
            part.write_text(json.dumps(remembered, indent=1) + "\n")
    return remembered[key]


# --- what is said -------------------------------------------------------------------------------


def _message(study: Study, dataset: str, task: str, splits: list[str] | None) -> str:
    """``splits``: those without an instance; None: the release does not annotate the task."""
    reader = DATASETS[dataset].reader
    try:
        place = reader.find(Path(study.release_of(dataset)))
    except DataError:
        place = f"{study.instances(dataset)}/manifest.json"
    absent = None if splits is None else tuple(splits)
    what = reader.missing(task, absent, study.config.data.few_sample)
    return (
        f"{place}: {what}. {study.config_file} needs it: remove {task!r} from "
        f"datasets.{dataset}.tasks and multi_source, or give a release that has it (data.release)"
    )
