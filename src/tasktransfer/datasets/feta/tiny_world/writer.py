"""Writer of generated datasets in the layout of the release."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from tasktransfer.datasets.feta.tiny_world.casting import Portion, Role
from tasktransfer.datasets.feta.tiny_world.metadata import Json, build_release_metadata

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
    """Return the function that writes the release of a dataset under a folder.

    Args:
        name: name of the dataset.
        tasks: task → its part of the release's metadata.
        generate: generator of the dialogues.
    """

    def write(world: Path, seed: int, dialogues: int) -> None:
        metadata = build_release_metadata(name, tasks, seed, dialogues)
        _write_release(world / f"TLiDB_{name}", name, metadata, generate(seed, dialogues))

    return write


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
    """Write a text as UTF-8, with line feeds on all platforms."""
    path.write_bytes(text.encode("utf-8"))
