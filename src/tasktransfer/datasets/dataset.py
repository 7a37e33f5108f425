"""Datasets: their tasks, the reader of their releases, and the sizes of their tasks.

A dataset is a folder that defines one ``Dataset``; CONTRIBUTING.md shows a complete example. A
*release* is a copy of its files on disk, in the format that its reader reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tasktransfer.errors import ConfigError
from tasktransfer.tasks.card import Instance, Task, compute_card_digest

if TYPE_CHECKING:
    from tasktransfer.datasets.declared.section import Declaration


class TurnLength(NamedTuple):
    """One turn of a dialogue, for statistics of lengths.

    Attributes:
        dialogue_id: name of the dialogue.
        split: full split of the dialogue. Empty if it is in no split.
        used: whether the dialogue is in a split of the setting that was read.
        turn_id: name of the turn.
        speakers: names of its speakers.
        words: number of words in the utterance, without the speaker.
    """

    dialogue_id: str
    split: str
    used: bool
    turn_id: str
    speakers: tuple[str, ...]
    words: int


@dataclass(frozen=True, slots=True)
class Release:
    """A release that a reader has opened in the few-sample or the full-data setting.

    Args:
        location: file or folder, for messages.
        revision: the reader's ``revision`` of the bytes that were read.
        tasks: names of the tasks that this release annotates, in the cards' order.
        dialogues: split → number of dialogues, annotated or not.
        instances: function from (task, split) to the instances, always in the same order. Raises
            DataError for data that cannot be read.
        turns: all turns of all dialogues. Empty if the release has no dialogues, so that no lengths
            are counted.
        synthetic: whether the dialogues are generated, according to the release itself.
        source_kind: folder or zip.
        notes: notes for the user, one per line, such as dialogues in two splits. Complete after all
            instances are read.
        query: task → fields of its queries, which are identical for all its instances. The
            instances are then written while they are read. None if all instances of a split are
            read first.
        places: function from (task, split) to the file and line of each instance, in the order of
            ``instances``. None if the reader does not know them.
    """

    location: str
    revision: str
    tasks: tuple[str, ...]
    dialogues: Mapping[str, int]
    instances: Callable[[str, str], Iterable[Instance]]
    turns: Iterable[TurnLength] = ()
    synthetic: bool = False
    source_kind: str = "folder"
    notes: Sequence[str] = ()
    query: Mapping[str, Sequence[str]] | None = None
    places: Callable[[str, str], Iterable[str]] | None = None


def describe_missing_splits(task: str, splits: tuple[str, ...] | None, few_sample: bool) -> str:
    """Describe the splits in which a task has no instances, where None stands for all splits."""
    if splits is None:
        return f"the release does not annotate {task!r}"
    return f"the release has no instances of {task!r} in the {' and '.join(splits)} split"


@dataclass(frozen=True, slots=True)
class Reader:
    """Reader of a dataset's releases.

    It uses the standard library only, since ``find`` and ``revision`` are called at each start.
    ``folder`` is the config's ``data.release``, which may hold releases of several datasets.

    Args:
        version: version of the reader. Increase it if the same release gives other instances.
        find: function from the folder to the path of this dataset's release. Raises DataError with
            the searched paths if there is none.
        revision: function from (folder, memo) to a digest of all data on which the instances
            depend, and of nothing else. ``memo`` is a cache file for digests or None, as in
            ``file_digests.compute_files_digest``. Raises DataError for an incomplete release.
        open: function from (folder, few_sample) to the release. A dataset without a few-sample
            setting ignores ``few_sample``. Raises DataError for an absent or damaged release.
        missing: function for messages, see ``describe_missing_splits``.
        splits: task → splits on which its releases have it. Tasks that are not listed are created
            by recipes. None if all tasks are on all splits.
    """

    version: int
    find: Callable[[Path], str]
    revision: Callable[[Path, Path | None], str]
    open: Callable[[Path, bool], Release]
    missing: Callable[[str, tuple[str, ...] | None, bool], str] = describe_missing_splits
    splits: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class TaskSize:
    """Size of a task, for forecasts before the data is prepared.

    Args:
        train: number of training instances, in the few-sample setting if the dataset has one.
        dev: number of dev instances, likewise.
        test: number of test instances, likewise.
        tokens: number of tokens that an encoder reads per instance, for all options together.
        sequences: number of sequences that an encoder reads per instance.
    """

    train: int
    dev: int
    test: int
    tokens: int
    sequences: int = 1

    def get_count(self, split: str) -> int:
        """Return the number of instances in a split."""
        return {"train": self.train, "dev": self.dev, "test": self.test}[split]


ASSUMED_SIZE = TaskSize(train=10_000, dev=1_000, test=2_000, tokens=256)
"""Size of a task without a known size. It is rather large, because a batch system ends jobs that
exceed their requested time."""


class TinySize(NamedTuple):
    """Size of a task in generated data: instances per dialogue and tokens per instance."""

    instances: float
    tokens: int


@dataclass(frozen=True, slots=True)
class TinyPart:
    """A small synthetic release of a dataset (``datasets.tiny_world``).

    Args:
        sizes: task → its size.
        shares: whether few-sample → split → fraction of the dialogues.
        write: function from (folder, seed, dialogues) that writes the release under the folder.
            None for a part of the common generated data (``tiny_world.GENERATORS``).
        version: version of a generator that has its own folder and leaves the common generated
            data unchanged. Empty for the common data.
    """

    sizes: Mapping[str, TinySize]
    shares: Mapping[bool, Mapping[str, float]]
    write: Callable[[Path, int, int], None] | None = None
    version: str = ""


GENERATOR_VERSION = 1
"""Version of the generator. Increase it if any byte of the output changes for a seed and size. A
test checks the digest of the default data."""

DEFAULT_DIALOGUES = 240
"""Default number of dialogues per dataset, the smallest with which all effects were measured."""

MINIMUM_DIALOGUES = 120
"""Minimum number of dialogues per dataset. Fewer give too few scenes of each kind for scores."""


def format_revision(seed: int, dialogues: int) -> str:
    """Return the revision of the data that ``generate`` writes with these parameters.

    Raises:
        ConfigError: the seed or size is not valid.
    """
    check_parameters(seed, dialogues)
    parameters = {"dialogues": dialogues, "seed": seed, "version": GENERATOR_VERSION}
    text = json.dumps(parameters, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"tiny-world {text}".encode()).hexdigest()
    return f"tiny-world-v{GENERATOR_VERSION}-{digest[:12]}"


def check_parameters(seed: int, dialogues: int) -> None:
    """Raise ConfigError if a parameter is not valid."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError(
            f"tiny world: The seed must be a non-negative integer, but is {seed!r}. Choose another "
            "seed."
        )
    if isinstance(dialogues, bool) or not isinstance(dialogues, int):
        raise ConfigError(
            f"tiny world: The number of dialogues must be an integer, but is {dialogues!r}. Choose "
            "another number."
        )
    if dialogues < MINIMUM_DIALOGUES:
        raise ConfigError(
            f"tiny world: The {dialogues} dialogues are too few to evaluate every task. Use at "
            f"least {MINIMUM_DIALOGUES} dialogues."
        )


@dataclass(frozen=True)
class Dataset:
    """One dataset.

    Args:
        name: name in configs and paths.
        cards: task cards, in the order of tables.
        reader: reader of its releases.
        sizes: task → its size. Other tasks are forecast with ``ASSUMED_SIZE``.
        sizes_from: origin of the sizes, as ``plan`` prints it.
        few_sample_share: fraction of the train and dev instances in the few-sample setting. 1 if it
            has no such setting.
        tiny: its small synthetic release. None if there is none.
        has_own_files: whether its reader knows the paths of its files (``declared``), independent
            of the config's ``data.release`` and of generated data.
        notes: notes for the user before anything is run, one per line.
        declaration: declaration that it was built from. None for a dataset of the package.
    """

    name: str
    cards: tuple[Task, ...]
    reader: Reader
    sizes: Mapping[str, TaskSize] = field(default_factory=dict)
    sizes_from: str = "the dataset's own sizes"
    few_sample_share: float = 1.0
    tiny: TinyPart | None = None
    has_own_files: bool = False
    notes: tuple[str, ...] = ()
    declaration: Declaration | None = None

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """Cards of the dataset's tasks, by task name."""
        return {card.name: card for card in self.cards}

    @cached_property
    def card_digests(self) -> dict[str, str]:
        """Digests of the task cards by task name, as in the identities of nodes."""
        return {card.name: compute_card_digest(card) for card in self.cards}

    def get_size(self, task: str) -> TaskSize:
        """Return the size of a task, or ``ASSUMED_SIZE`` if it is unknown."""
        return self.sizes.get(task, ASSUMED_SIZE)

    def count_instances(self, task: str, split: str, *, few_sample: bool) -> int:
        """Return the number of instances in a split, according to ``sizes``."""
        count = self.get_size(task).get_count(split)
        if few_sample or split == "test" or task not in self.sizes:
            return count
        return round(count / self.few_sample_share)

    def count_tiny_instances(
        self, task: str, split: str, dialogues: int, *, few_sample: bool
    ) -> int:
        """Return the number of a task's instances in a split of generated data."""
        if self.tiny is None or task not in self.tiny.sizes:
            return 0
        share = self.tiny.shares[few_sample][split]
        return round(dialogues * share * self.tiny.sizes[task].instances)
