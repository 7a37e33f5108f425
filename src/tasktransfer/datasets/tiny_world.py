"""A tiny synthetic world in the FETA release format, for training within seconds.

Its short dialogues come from grammars with a planted structure that determines which source helps
which target. It has the package's datasets that have a tiny part, and no others. Datasets from
outside change neither the world nor the tiny models that are pre-trained on it.
docs/tiny-world.md describes it. Importing this module is cheap: only ``generate`` generates data.
"""

from __future__ import annotations

from pathlib import Path

from tasktransfer.datasets import PACKAGE
from tasktransfer.datasets.dataset import Claim, Dataset, TinyPart
from tasktransfer.datasets.feta.tiny_world.revision import (
    DEFAULT_DIALOGUES,
    GENERATOR_VERSION,
    MINIMUM_DIALOGUES,
    check_parameters,
    name_revision,
)
from tasktransfer.datasets.feta.tiny_world.writer import write_json
from tasktransfer.files import Maker, replace_folder

__all__ = [
    "DEFAULT_DIALOGUES",
    "GENERATOR_VERSION",
    "MINIMUM_DIALOGUES",
    "generate",
    "generate_part",
    "name_revision",
]

MAKER = Maker("tiny world", "tiny_world.json", "revision")

PARTS: dict[str, TinyPart] = {dataset.name: dataset.tiny for dataset in PACKAGE if dataset.tiny}
"""Name of a dataset → its part of the world."""

HELPFUL: tuple[Claim, ...] = tuple(claim for part in PARTS.values() for claim in part.helpful)
"""Transfers planted to help: the score delta is positive."""

UNRELATED: tuple[Claim, ...] = tuple(claim for part in PARTS.values() for claim in part.unrelated)
"""Transfers planted not to help: the score delta is not positive."""


def generate_part(dataset: Dataset, folder: Path, *, seed: int, dialogues: int) -> None:
    """Write a dataset with a part outside the common world under ``folder``, like ``generate``."""
    assert dataset.tiny is not None, f"{dataset.name} has no tiny part"
    check_parameters(seed, dialogues)
    with replace_folder(folder, MAKER) as fresh:
        dataset.tiny.write(fresh, seed, dialogues)
        identity = {
            "revision": name_revision(seed, dialogues),
            "seed": seed,
            "dialogues": dialogues,
        }
        write_json(fresh / MAKER.file, {"synthetic": True, "dataset": dataset.name, **identity})


def generate(folder: Path, *, seed: int = 0, dialogues: int = DEFAULT_DIALOGUES) -> None:
    """Write all datasets of the world under ``folder``, replacing only an older tiny world.

    The folder appears only when it is complete: it is written under another name and renamed.

    Args:
        folder: output folder.
        seed: seed of the generator.
        dialogues: number of dialogues per dataset.

    Raises:
        ConfigError: the parameters are not valid.
        DataError: the folder holds anything other than a tiny world.
    """
    check_parameters(seed, dialogues)
    with replace_folder(folder, MAKER) as fresh:
        for part in PARTS.values():
            part.write(fresh, seed, dialogues)
        identity = {
            "revision": name_revision(seed, dialogues),
            "seed": seed,
            "dialogues": dialogues,
        }
        write_json(fresh / MAKER.file, {"synthetic": True, **identity})
