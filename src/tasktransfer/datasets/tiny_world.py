"""The tiny world: synthetic releases in FETA's format, for training within seconds.

Their short dialogues come from grammars with a planted structure that determines which source helps
which target. There is one release for each dataset of the package with a generator. Other datasets
change neither these releases nor the tiny models that are pre-trained on them. docs/tiny-world.md
describes them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tasktransfer.datasets.dailydialog import tiny_world as dailydialog
from tasktransfer.datasets.dataset import (
    DEFAULT_DIALOGUES,
    GENERATOR_VERSION,
    MINIMUM_DIALOGUES,
    Dataset,
    check_parameters,
    format_revision,
)
from tasktransfer.datasets.feta.tiny_world import Claim, write_json
from tasktransfer.datasets.friends import tiny_world as friends
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

GENERATORS: dict[str, Callable[[Path, int, int], None]] = {
    "DailyDialog": dailydialog.write_release,
    "Friends": friends.write_release,
}
"""Dataset → function from (folder, seed, dialogues) that writes its release under the folder."""

HELPFUL: tuple[Claim, ...] = (*dailydialog.HELPFUL, *friends.HELPFUL)
"""Transfers with a planted positive score delta."""

UNRELATED: tuple[Claim, ...] = (*dailydialog.UNRELATED, *friends.UNRELATED)
"""Transfers whose planted score delta is not positive."""


def generate_release(dataset: Dataset, folder: Path, *, seed: int, dialogues: int) -> None:
    """Write the generated release of a dataset that is not part of the common data.

    Raises:
        ConfigError: the parameters are not valid.
        DataError: the folder contains other files than a generated release.
    """
    assert dataset.tiny and dataset.tiny.write, f"{dataset.name} has no generator of its own"
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
        for write in GENERATORS.values():
            write(fresh, seed, dialogues)
        identity = {
            "revision": format_revision(seed, dialogues),
            "seed": seed,
            "dialogues": dialogues,
        }
        write_json(fresh / MAKER.file, {"synthetic": True, **identity})
