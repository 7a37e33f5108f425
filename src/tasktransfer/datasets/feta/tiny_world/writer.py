"""Writes the tiny world to a folder in the release's layout, all or nothing."""

from __future__ import annotations

import json
from pathlib import Path

from tasktransfer.datasets.dailydialog.tiny_world import daily_dialogues
from tasktransfer.datasets.feta.tiny_world.casting import Portion, Role
from tasktransfer.datasets.feta.tiny_world.metadata import (
    DAILY_TASKS,
    FRIENDS_TASKS,
    Json,
    release_metadata,
)
from tasktransfer.datasets.feta.tiny_world.revision import (
    DEFAULT_DIALOGUES,
    check_parameters,
    revision,
)
from tasktransfer.datasets.friends.tiny_world import friends_dialogues
from tasktransfer.files import Maker, replacing_folder

MAKER = Maker("tiny world", "tiny_world.json", "revision")

ID_FILES: dict[str, tuple[Portion, ...]] = {
    "TTiDB_train_ids.txt": ("few_train", "rest_train"),
    "TTiDB_dev_ids.txt": ("few_dev", "rest_dev"),
    "TTiDB_test_ids.txt": ("test",),
    "TTiDB_0.1_percent_few_shot_train_ids.txt": ("few_train",),
    "TTiDB_0.1_percent_few_shot_dev_ids.txt": ("few_dev",),
}
"""The release's file names. They say 0.1 whatever the share is; ``FEW_SHARE`` has the truth."""


def generate(folder: Path, *, seed: int = 0, dialogues: int = DEFAULT_DIALOGUES) -> None:
    """Write both datasets under ``folder``, replacing only a tiny world written before.

    ``dialogues`` counts per dataset. The folder is there complete or not at all: it is written
    beside its place and renamed. Raises ConfigError for parameters that make no world, DataError
    where ``folder`` holds anything else.
    """
    check_parameters(seed, dialogues)
    with replacing_folder(folder, MAKER) as fresh:
        _write_world(fresh, seed, dialogues)


def _write_world(folder: Path, seed: int, dialogues: int) -> None:
    daily, friends = daily_dialogues(seed, dialogues), friends_dialogues(seed, dialogues)
    for name, tasks, cast in (
        ("DailyDialog", DAILY_TASKS, daily),
        ("Friends", FRIENDS_TASKS, friends),
    ):
        metadata = release_metadata(name, tasks, seed, dialogues)
        _write_dataset(folder / f"TLiDB_{name}", name, metadata, cast)
    _write_json(
        folder / MAKER.file,
        {
            "synthetic": True,
            "revision": revision(seed, dialogues),
            "seed": seed,
            "dialogues": dialogues,
        },
    )


def _write_dataset(folder: Path, name: str, metadata: Json, cast: list[tuple[Role, Json]]) -> None:
    folder.mkdir()
    data = [dialogue for _, dialogue in cast]
    _write_json(folder / f"TLiDB_{name}.json", {"metadata": metadata, "data": data})
    for file_name, portions in ID_FILES.items():
        ids = [role.dialogue_id for role, _ in cast if role.portion in portions]
        _write_text(folder / file_name, "".join(f"{dialogue_id}\n" for dialogue_id in ids))


def _write_json(path: Path, value: Json) -> None:
    _write_text(path, json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def _write_text(path: Path, text: str) -> None:
    """Write UTF-8 with bare line feeds, whatever the platform's habits."""
    path.write_bytes(text.encode("utf-8"))
