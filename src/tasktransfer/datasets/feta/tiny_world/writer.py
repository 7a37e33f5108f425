"""Writer of generated datasets in the layout of the release: turns, spans, metadata and files.

The metadata, which has the labels and metric settings of the tasks, is computed from the cards. A
test compares it with the official release if available.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tasktransfer.datasets.feta.tiny_world.casting import Portion, Role
from tasktransfer.datasets.feta.tiny_world.revision import GENERATOR_VERSION
from tasktransfer.tasks.card import MetricSpec, Task

Json: TypeAlias = dict[str, Any]


def build_task_metadata(card: Task) -> Json:
    """Return a task's labels and metrics in the release's usual format.

    A metric that is computed once has one object of settings. Otherwise it has a list of objects.
    """
    settings: dict[str, list[Json]] = {}
    for spec in card.metrics:
        settings.setdefault(spec.name, []).append(_build_settings(spec))
    kwargs = {
        name: items if len(items) > 1 else items[0]
        for name, items in settings.items()
        if any(items)
    }
    return {
        **({"labels": list(card.labels)} if card.labels else {}),
        "metrics": list(settings),
        **({"metric_kwargs": kwargs} if kwargs else {}),
    }


def _build_settings(spec: MetricSpec) -> Json:
    settings: Json = {}
    if spec.unanswerable_phrases:
        settings["unanswerable_phrases"] = list(spec.unanswerable_phrases)
    if spec.ignore_unanswerable:
        settings["ignore_unanswerable"] = True
    if spec.average:
        settings["average"] = spec.average
    if spec.label_indices is not None:
        settings["labels"] = list(spec.label_indices)
    return settings


def build_release_metadata(
    dataset: str, tasks: Mapping[str, Json], seed: int, dialogues: int
) -> Json:
    """Return the ``metadata`` object of a dataset's JSON, marked as synthetic."""
    return {
        "dataset_name": dataset,
        "tasks": list(tasks),
        "task_metadata": dict(tasks),
        "synthetic": True,
        "generator": {
            "name": "tiny-world",
            "version": GENERATOR_VERSION,
            "seed": seed,
            "dialogues": dialogues,
        },
    }


def format_line(turn: Json) -> str:
    """Format a turn as ``speaker: utterance``, or a note without speakers as its text."""
    speakers = " ".join(turn["speakers"])
    return f"{speakers}: {turn['utterance']}" if speakers else str(turn["utterance"])


def join_lines(turns: Sequence[Json]) -> str:
    """Join turns by spaces, as in contexts of the release's span tasks."""
    return " ".join(format_line(turn) for turn in turns)


def find_span(context: str, text: str) -> Json:
    """Annotate the first occurrence of ``text`` in ``context`` as a span."""
    return {"text": text, "answer_start": context.index(text)}


ID_FILES: dict[str, tuple[Portion, ...]] = {
    "TTiDB_train_ids.txt": ("few_train", "rest_train"),
    "TTiDB_dev_ids.txt": ("few_dev", "rest_dev"),
    "TTiDB_test_ids.txt": ("test",),
    "TTiDB_0.1_percent_few_shot_train_ids.txt": ("few_train",),
    "TTiDB_0.1_percent_few_shot_dev_ids.txt": ("few_dev",),
}
"""File names of the release. They always contain 0.1, but the fraction is ``FEW_SHARE``."""

Generate: TypeAlias = Callable[[int, int], list[tuple[Role, Json]]]
"""(seed, number of dialogues) → dialogues with their roles, in the order of the file."""


def build_release_writer(
    name: str, tasks: Mapping[str, Json], generate: Generate
) -> Callable[[Path, int, int], None]:
    """Return a function that writes a dataset's release under a folder.

    Args:
        name: name of the dataset.
        tasks: task → its part of the release's metadata.
        generate: generator of the dialogues.
    """

    def write_release(world: Path, seed: int, dialogues: int) -> None:
        metadata = build_release_metadata(name, tasks, seed, dialogues)
        _write_release(world / f"TLiDB_{name}", name, metadata, generate(seed, dialogues))

    return write_release


def _write_release(
    folder: Path, name: str, metadata: Json, generated: list[tuple[Role, Json]]
) -> None:
    folder.mkdir()
    data = [dialogue for _, dialogue in generated]
    write_json(folder / f"TLiDB_{name}.json", {"metadata": metadata, "data": data})
    for file_name, portions in ID_FILES.items():
        ids = [role.dialogue_id for role, _ in generated if role.portion in portions]
        _write_text(folder / file_name, "".join(f"{dialogue_id}\n" for dialogue_id in ids))


def write_json(path: Path, value: Json) -> None:
    """Write a value as compact JSON."""
    _write_text(path, json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def _write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8 with line feeds on all platforms."""
    path.write_bytes(text.encode("utf-8"))
