"""Data and models that a study needs but that are missing, reported before anything runs.

This runs at every start of Snakemake, so it is fast. The content of prepared instances is read from
their manifest. A release that is not prepared yet is read once, as far as the study needs it, and
its content is cached in ``<results>/data/holdings.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tasktransfer.config.places import expand_path
from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Stage
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.dataset import Release
from tasktransfer.errors import DataError, ModelError
from tasktransfer.files import json_text, replace_file
from tasktransfer.jobs.needs import list_released_models
from tasktransfer.operate.forecast.sizes import read_manifest
from tasktransfer.operate.shortages import find_shortages
from tasktransfer.results.node_folders import inspect_nodes
from tasktransfer.results.revisions import find_missing_checkpoint, is_generated
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import SPLITS

Held = Mapping[str, list[str] | None]
"""Task → splits with at least one instance; None if the task is not annotated."""

Needed = Mapping[str, set[str]]
"""Task → splits that are needed."""


def list_missing_inputs(study: Study, dataset: str | None = None) -> tuple[str, ...]:
    """List the missing data that unfinished nodes need, as messages with remedies.

    There is one message per missing task, or one per release that is missing or unreadable. Missing
    files that the config names are reported too. For prepared data, so are splits that are too
    small (``shortages``). Tokenized data, and studies with all of their records, need no release.

    Args:
        study: any study; if its data is unknown, only the release is reported.
        dataset: check only this dataset.
    """
    names = [name for name in study.config.dataset_names if dataset in (None, name)]
    absent = [] if dataset else _find_absent_files(study.config.analysis_files)
    # Several tasks may need the same missing file.
    messages = [*(m for name in names for m in _collect_missing_data(study, name)), *absent]
    return tuple(dict.fromkeys([*messages, *find_shortages(study, dataset)]))


def require_available_data(study: Study, dataset: str | None = None) -> None:
    """Raise DataError if data that unfinished nodes need are missing on this disk.

    A release that is not on this disk is not an error: tables and figures do not need it.
    """
    messages = [text for text in list_missing_inputs(study, dataset) if text not in study.absent]
    if messages:
        raise DataError("\n".join(messages))


def require_available_inputs(study: Study) -> None:
    """Raise an error if data or models that unfinished nodes need are missing on this disk.

    Raises:
        DataError: data are missing, and possibly models.
        ModelError: only models are missing.
    """
    data = [text for text in list_missing_inputs(study) if text in study.absent]
    models = [str(error) for error in _find_absent_models(study)]
    if not (data or models):
        return
    remedy = "To check the config alone, without data and models, add --config-only."
    raise (DataError if data else ModelError)("\n".join([*data, *models, remedy]))


def _find_absent_models(study: Study) -> Iterator[ModelError]:
    finished = inspect_nodes(study).finished
    left = [node for node in study.plan.nodes if node.digest not in finished]
    stages = {node.model.name for node in left if isinstance(node, Stage)}
    asked = {n for node in left if isinstance(node, Evaluation) for n in node.model_names}
    read = {
        spec.name
        for node in left
        if isinstance(node, Fit)
        for spec in list_released_models(study, node)
    }
    needed = stages | asked | read
    beside = {model.second for model in study.config.models if model.name in needed}
    for model in study.config.models:
        if model.name in needed | beside and (error := find_missing_checkpoint(model)) is not None:
            yield error


def _find_absent_files(named: Mapping[str, str]) -> Iterator[str]:
    for key, path in named.items():
        file = Path(expand_path(path))
        if not file.exists():
            yield f"{path}: The file of {key} does not exist. Put it there, or change {key}."
        elif file.is_file() and not file.stat().st_size:
            yield (
                f"{path}: The file of {key} is empty. Put the complete file there, or change {key}."
            )


def _collect_missing_data(study: Study, dataset: str) -> Iterator[str]:
    prepared = _read_prepared(study, dataset)
    if prepared is not None and not _find_absent_splits(
        _collect_needed_tasks(study, dataset, study.plan.nodes), prepared
    ):
        return
    finished = inspect_nodes(study).finished
    left = (node for node in study.plan.nodes if node.digest not in finished)
    needed, held = _collect_needed_tasks(study, dataset, left), prepared
    if not needed:
        return
    if held is None and is_generated(study.config, dataset):
        tiny = DATASETS[dataset].tiny
        held = {task: list(SPLITS) for task in (tiny.sizes if tiny else ())}
    if held is None:
        try:
            held, damaged = _read_release(study, dataset, needed)
        except DataError as error:
            held, damaged = {task: list(SPLITS) for task in needed}, [str(error)]
        yield from damaged
    for task, splits in _find_absent_splits(needed, held).items():
        yield _describe_missing_task(study, dataset, task, splits or None)


def _find_absent_splits(needed: Needed, held: Held) -> dict[str, list[str]]:
    """Return the missing splits of each task that is incomplete.

    The list is empty for a task that is not annotated at all.
    """
    absent: dict[str, list[str]] = {}
    for task, splits in needed.items():
        there = held.get(task)
        if there is None:
            absent[task] = []
        elif lacks := [split for split in SPLITS if split in splits and split not in there]:
            absent[task] = lacks
    return absent


# --- required data ------------------------------------------------------------------------------


def _collect_needed_tasks(study: Study, dataset: str, nodes: Iterable[Node]) -> Needed:
    """Return the tasks and splits that nodes still have to read from a dataset."""
    needed: dict[str, set[str]] = {}
    for node in nodes:
        for data, task, split in _list_node_reads(study, node):
            if data.name == dataset and not data.recipe:
                needed.setdefault(task, set()).add(split)
    return needed


def _list_node_reads(study: Study, node: Node) -> Iterator[tuple[Data, str, str]]:
    """Yield the data, task and split of each input that a node reads."""
    match node:
        case Stage():
            if not _is_tokenised(study, node.data, (node.model.name,)):
                tasks = {"train": node.train_tasks, "dev": node.measured_on, "test": node.tested}
                yield from ((node.data, task, s) for s in SPLITS for task in tasks[s])
        case Evaluation():
            asked = [(node.data, node.task, str(node.split))]
            if node.asked is not None and node.asked["shots"]:
                asked.append((node.data, node.task, "train"))
            for data, task, split in (*asked, *((p.data, p.task, "train") for p in node.pools)):
                if not node.model_names or not _is_tokenised(study, data, node.model_names):
                    yield data, task, split
        case Data():
            yield from _list_derived_reads(study, node)
        case _:
            for task in node.tasks:
                yield from ((node.data, task, split) for split in ("train", "test"))


def _list_derived_reads(study: Study, node: Data) -> Iterator[tuple[Data, str, str]]:
    """Yield the data, task and split of each input of derived data in a release.

    These are the tasks in their settings and the tasks that other nodes read from them, or else all
    tasks. Nothing is yielded if the dataset does not list the content of its releases, or if the
    derived data read other derived data.
    """
    has = DATASETS[node.name].reader.splits
    if not node.recipe or has is None:
        return
    read = [used for used in node.uses if isinstance(used, Data)]
    if any(used.recipe for used in read):
        return
    named = {*_collect_texts(node.settings), *study.list_tasks(node)} & has.keys()
    for task in sorted(named or has):
        yield from ((Data(node.name, node.revision), task, split) for split in has[task])


def _collect_texts(value: Any) -> Iterator[str]:
    """Yield all strings in nested plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for item in value.values() for text in _collect_texts(item))
    elif isinstance(value, list | tuple):
        yield from (text for item in value for text in _collect_texts(item))


def _is_tokenised(study: Study, data: Data, models: Iterable[str]) -> bool:
    folders = (study.get_encoded_folder(data, model) for model in models)
    return all(Path(folder, "manifest.json").exists() for folder in folders)


# --- available data -----------------------------------------------------------------------------


def _read_prepared(study: Study, dataset: str) -> Held | None:
    """Read the counts of prepared instances, or return None if they are unreadable."""
    try:
        return {
            task: [split for split, count in splits.items() if count["samples"]]
            for task, splits in read_manifest(study.get_instances_folder(dataset))["tasks"].items()
        }
    except (KeyError, TypeError, AttributeError):
        return None


def _read_release(study: Study, dataset: str, tasks: Iterable[str]) -> tuple[Held, list[str]]:
    """Read the content of a release (from the cache if possible), and collect its errors."""
    memo = Path(study.config.results, "data", "holdings.json")
    reader = DATASETS[dataset].reader
    reader.find(Path(study.get_release(dataset)))  # must exist even if its content is cached
    key = f"{Path(study.get_instances_folder(dataset)).name}, reader {reader.version}"
    remembered: dict[str, Held] = json_text.read_object(memo)
    held, damaged = dict(remembered.get(key, {})), list[str]()
    if unread := [task for task in tasks if task not in held]:
        release = reader.open(Path(study.get_release(dataset)), study.config.data.few_sample)
        for task in unread:
            try:
                held[task] = _find_available_splits(release, task)
            except DataError as error:
                damaged.append(str(error))
        with replace_file(memo) as part:
            part.write_text(json.dumps({**remembered, key: held}, indent=1) + "\n")
    # Unreadable tasks are reported as errors, not as missing.
    return {task: held.get(task, list(SPLITS)) for task in tasks}, damaged


def _find_available_splits(release: Release, task: str) -> list[str] | None:
    """Return the splits in which a task has instances, reading only one instance of each."""
    if task not in release.tasks:
        return None
    return [split for split in SPLITS if any(True for _ in release.instances(task, split))]


# --- messages -----------------------------------------------------------------------------------


def _describe_missing_task(study: Study, dataset: str, task: str, splits: list[str] | None) -> str:
    """Describe a task that a release does not have, with a remedy.

    Args:
        splits: splits without an instance; None if the release does not annotate the task.
    """
    reader = DATASETS[dataset].reader
    try:
        where = reader.find(Path(study.get_release(dataset)))
    except DataError:
        where = f"{study.get_instances_folder(dataset)}/manifest.json"
    absent = None if splits is None else tuple(splits)
    what = reader.missing(task, absent, study.config.data.few_sample)
    remedy = study.config.describe_exclusion(dataset, task)
    return (
        f"{where}: {what}. {study.config_file} needs it: {remedy}, or set data.release to a "
        "release that has it."
    )
