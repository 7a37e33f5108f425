"""The tiny world: synthetic releases in FETA's format, for training within seconds.

Their short dialogues come from grammars with a planted structure that determines which source helps
which target. There is one release for each dataset of the package with a generator. Other datasets
change neither these releases nor the tiny models that are pre-trained on them. docs/tiny-world.md
describes them. Importing this module is cheap, because only ``generate_releases`` generates data.
"""

from __future__ import annotations

from pathlib import Path

from tasktransfer.datasets import PACKAGE_DATASETS
from tasktransfer.datasets.dataset import Claim, Dataset, TinyPart
from tasktransfer.datasets.feta.tiny_world import (
    DEFAULT_DIALOGUES,
    GENERATOR_VERSION,
    MINIMUM_DIALOGUES,
    check_parameters,
    format_revision,
    write_json,
)
from tasktransfer.files import Maker, replace_folder

__all__ = [
    "DEFAULT_DIALOGUES",
    "GENERATOR_VERSION",
    "MINIMUM_DIALOGUES",
    "format_revision",
    "generate_release",
    "generate_releases",
]

MAKER = Maker("tiny world", "tiny_world.json", "revision")

PARTS: dict[str, TinyPart] = {
    dataset.name: dataset.tiny for dataset in PACKAGE_DATASETS if dataset.tiny
}
"""Name of a dataset → its generator."""

HELPFUL: tuple[Claim, ...] = tuple(claim for part in PARTS.values() for claim in part.helpful)
"""Transfers with a planted positive score delta."""

UNRELATED: tuple[Claim, ...] = tuple(claim for part in PARTS.values() for claim in part.unrelated)
"""Transfers whose planted score delta is not positive."""


def generate_release(dataset: Dataset, folder: Path, *, seed: int, dialogues: int) -> None:
    """Write the generated release of a dataset that is not part of the common data.

    Raises:
        ConfigError: the parameters are not valid.
        DataError: the folder contains other files than a generated release.
    """
    assert dataset.tiny is not None, f"{dataset.name} has no generator"
    check_parameters(seed, dialogues)
    with replace_folder(folder, MAKER) as fresh:
        dataset.tiny.write(fresh, seed, dialogues)
        identity = {
            "revision": format_revision(seed, dialogues),
            "seed": seed,
            "dialogues": dialogues,
        }
        write_json(fresh / MAKER.file, {"synthetic": True, "dataset": dataset.name, **identity})


def generate_releases(folder: Path, *, seed: int = 0, dialogues: int = DEFAULT_DIALOGUES) -> None:
    """Write the generated releases of all datasets under ``folder``.

    The folder appears only when it is complete. Older generated releases are replaced.

    Args:
        folder: output folder.
        seed: seed of the generator.
        dialogues: number of dialogues per dataset.

    Raises:
        ConfigError: the parameters are not valid.
        DataError: the folder contains other files than generated releases.
    """
    check_parameters(seed, dialogues)
    with replace_folder(folder, MAKER) as fresh:
        for part in PARTS.values():
            part.write(fresh, seed, dialogues)
        identity = {
            "revision": format_revision(seed, dialogues),
            "seed": seed,
            "dialogues": dialogues,
        }
        write_json(fresh / MAKER.file, {"synthetic": True, **identity})
