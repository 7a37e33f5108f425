"""What the data of a study lacks, told before anything is trained.

Asked at every start of Snakemake: light and fast. What the prepared instances hold
stands in their manifest. A release that is not prepared yet is read for it once, and what it holds
is remembered in ``<results>/data/holdings.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tasktransfer import json_text
from tasktransfer.datasets.feta.archive import SPLITS, find_source, json_file
from tasktransfer.datasets.feta.release import READER_VERSION, holdings, load_release
from tasktransfer.datasets.feta.splits import id_file
from tasktransfer.errors import DataError
from tasktransfer.files import replacing
from tasktransfer.operate.forecast.sizes import read_manifest
from tasktransfer.results.finished import look
from tasktransfer.results.study import Study

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
    names = [d.name for d in study.config.datasets if dataset in (None, d.name)]
    return tuple(message for name in names for message in _lacking(study, name))


def refuse_lacking(study: Study, dataset: str | None = None) -> None:
    """Raise DataError with all that ``lacking`` finds in data that is on this disk.

    A release that is elsewhere is no reason: tables and figures are drawn without it.
    """
    found = [message for message in lacking(study, dataset) if message not in study.absent]
    if found:
        raise DataError("\n".join(found))


def _lacking(study: Study, dataset: str) -> Iterator[str]:
    held = _prepared(study, dataset)
    if held is not None and all(len(held.get(t, ())) == len(SPLITS) for t in study.tasks(dataset)):
        return
    needed = _needed(study, dataset)
    # The tiny world has instances of every task on every split.
    if not needed or (held is None and study.release == study.tiny_world):
        return
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
        model.name: Path(study.encoded(dataset, model.name), "manifest.json").exists()
        for model in study.config.models
    }
    if all(encoded.values()):
        return {}
    needed: dict[str, set[str]] = {}
    finished = look(study).finished
    for stage in study.plan.stages:
        if stage.dataset != dataset or encoded[stage.model.name] or stage.digest in finished:
            continue
        for task in stage.train_tasks:
            needed.setdefault(task, set()).add("train")
        for task in stage.select_on:
            needed.setdefault(task, set()).update(("dev", "test"))
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
    data, memo = study.config.data, Path(study.config.results, "data", "holdings.json")
    find_source(data.release, dataset)  # remembered or not, it has to be there
    key = f"{Path(study.instances(dataset)).name}, reader {READER_VERSION}"
    known = _remembered(memo)
    if key not in known:
        known[key] = holdings(load_release(data.release, dataset), data.few_sample)
        memo.parent.mkdir(parents=True, exist_ok=True)
        with replacing(memo) as part:
            part.write_text(json.dumps(known, indent=1) + "\n")
    return known[key]


def _remembered(memo: Path) -> dict[str, Held]:
    try:
        value = json_text.loads(memo.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


# --- what is said -------------------------------------------------------------------------------


def _message(study: Study, dataset: str, task: str, splits: list[str] | None) -> str:
    """``splits``: those without an instance; None: the release does not annotate the task."""
    few = study.config.data.few_sample
    try:
        source = find_source(study.release, dataset)
        place = source.place(json_file(dataset))
    except DataError:
        place = f"{study.instances(dataset)}/manifest.json"
    if splits is None:
        what = f"metadata.tasks does not list {task!r}: this release does not annotate it"
    else:
        files = ", ".join(id_file(split, few) for split in splits)
        what = f"no instance of {task!r} in the {' and '.join(splits)} split ({files})"
    return (
        f"{place}: {what}. {study.config_file} needs it: remove {task!r} from "
        f"datasets.{dataset}.tasks and multi_source, or give a release that has it (data.release)"
    )
