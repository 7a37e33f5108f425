"""A tiny synthetic world in the FETA release format: small enough for seconds of training.

Short dialogues made by grammar, with planted structure that says which source helps which target.
Its datasets are those of the package that have a part in it, and no others: what is added from
outside leaves the world, and the tiny models that are pre-trained on it, as they are.
docs/tiny-world.md describes it. Importing this module is cheap: nothing is generated before
``generate`` is called.
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
    revision,
)
from tasktransfer.datasets.feta.tiny_world.writer import write_json
from tasktransfer.files import Maker, replacing_folder

__all__ = [
    "DEFAULT_DIALOGUES",
    "GENERATOR_VERSION",
    "MINIMUM_DIALOGUES",
    "generate",
    "generate_part",
    "revision",
]

MAKER = Maker("tiny world", "tiny_world.json", "revision")

PARTS: dict[str, TinyPart] = {dataset.name: dataset.tiny for dataset in PACKAGE if dataset.tiny}
"""Dataset → its part of the world."""

HELPFUL: tuple[Claim, ...] = tuple(claim for part in PARTS.values() for claim in part.helpful)
"""Transfers planted to help: the score delta is positive."""

UNRELATED: tuple[Claim, ...] = tuple(claim for part in PARTS.values() for claim in part.unrelated)
"""Transfers planted to teach nothing: the score delta is not above zero."""


def generate_part(dataset: Dataset, folder: Path, *, seed: int, dialogues: int) -> None:
    """Write one dataset under ``folder``, for a part that is none of the common world; else as
    ``generate``."""
    assert dataset.tiny is not None, f"{dataset.name} has no tiny part"
    check_parameters(seed, dialogues)
    with replacing_folder(folder, MAKER) as fresh:
        dataset.tiny.write(fresh, seed, dialogues)
        identity = {"revision": revision(seed, dialogues), "seed": seed, "dialogues": dialogues}
        write_json(fresh / MAKER.file, {"synthetic": True, "dataset": dataset.name, **identity})


def generate(folder: Path, *, seed: int = 0, dialogues: int = DEFAULT_DIALOGUES) -> None:
    """Write every dataset under ``folder``, replacing only a tiny world written before.

    ``dialogues`` counts per dataset. The folder is there complete or not at all: it is written
    beside its place and renamed. Raises ConfigError for parameters that make no world, DataError
    where ``folder`` holds anything else.
    """
    check_parameters(seed, dialogues)
    with replacing_folder(folder, MAKER) as fresh:
        for part in PARTS.values():
            part.write(fresh, seed, dialogues)
        identity = {"revision": revision(seed, dialogues), "seed": seed, "dialogues": dialogues}
        write_json(fresh / MAKER.file, {"synthetic": True, **identity})
