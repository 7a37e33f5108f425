"""What a dataset is: its tasks, how a release of it is read, how large its tasks are.

A dataset is a folder that defines one ``Dataset``; CONTRIBUTING.md shows a whole one. A *release*
is a copy of its files on this disk, in whatever format its reader reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tasktransfer.tasks.card import Instance, Task, card_digest


class TurnLength(NamedTuple):
    """One turn of a dialogue, for the statistics of lengths.

    ``split`` is the full split of its dialogue ("": in none); ``used`` says whether the dialogue
    is in a split of the setting that was read; ``words`` of the utterance, without the speaker.
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
        location: the file or folder, as messages name it.
        revision: as the reader's ``revision`` gives it, of the bytes that were read.
        tasks: names of the tasks that this release annotates, in the cards' order.
        dialogues: split → number of its dialogues, annotated or not.
        instances: (task, split) → the instances, always in the same order. Raises DataError for
            data that cannot be read.
        turns: every turn of every dialogue; empty where a release has no dialogues to speak of,
            and then no lengths are counted.
        synthetic: whether the dialogues are generated, as the release itself says.
        source_kind: folder or zip.
        told: what a user should know of it, a line each, such as dialogues that are in two splits;
            complete once all instances are read.
        query: task → the fields of its queries, the same of all its instances: these are then
            written while they are read. None: all instances of a split are read before.
    """

    location: str
    revision: str
    tasks: tuple[str, ...]
    dialogues: Mapping[str, int]
    instances: Callable[[str, str], Iterable[Instance]]
    turns: Iterable[TurnLength] = ()
    synthetic: bool = False
    source_kind: str = "folder"
    told: Sequence[str] = ()
    query: Mapping[str, Sequence[str]] | None = None


def missing_in_release(task: str, splits: tuple[str, ...] | None, few_sample: bool) -> str:
    """Says what a release has nothing of: ``splits`` of a task, or (None) the task as a whole."""
    if splits is None:
        return f"this release does not annotate {task!r}"
    return f"no instance of {task!r} in the {' and '.join(splits)} split"


@dataclass(frozen=True, slots=True)
class Reader:
    """How releases of a dataset are read: standard library only, since every start asks for
    ``find`` and ``revision``. ``folder`` is the config's ``data.release``, which may hold releases
    of several datasets.

    Args:
        version: raise it when the same release gives other instances than before.
        find: folder → the place of this dataset's release. Raises DataError if there is none,
            saying where was looked.
        revision: (folder, memo) → a digest of all that the instances depend on, and of nothing
            else (``file_digests.digest_of_files`` makes one; ``memo`` is a file to remember digests
            in, or None). Raises DataError for a release that is incomplete.
        open: (folder, few_sample) → the release. A dataset without a few-sample setting is read
            whole either way. Raises DataError for a release that is absent or damaged.
        missing: words for messages, see ``missing_in_release``.
        splits: task → the splits on which its releases have it; a task that is not named is made
            by a recipe alone. None: each task is on all splits.
    """

    version: int
    find: Callable[[Path], str]
    revision: Callable[[Path, Path | None], str]
    open: Callable[[Path, bool], Release]
    missing: Callable[[str, tuple[str, ...] | None, bool], str] = missing_in_release
    splits: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class TaskSize:
    """How large a task is, for forecasts before the data is prepared.

    ``train``, ``dev``, ``test``: instances, of the few-sample setting if the dataset has one.
    ``tokens``: of an instance as an encoder reads it, all its options together. ``sequences``: how
    many an encoder reads of an instance.
    """

    train: int
    dev: int
    test: int
    tokens: int
    sequences: int = 1

    def instances(self, split: str) -> int:
        """Instances of a split."""
        return {"train": self.train, "dev": self.dev, "test": self.test}[split]


ASSUMED = TaskSize(train=10_000, dev=1_000, test=2_000, tokens=256)
"""The size of a task that its dataset gives none for: on the large side, since a batch system ends
a job that takes longer than was asked for."""


class TinySize(NamedTuple):
    """A task in the tiny world, counted there: instances a dialogue, tokens an instance."""

    instances: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A planted truth about one transfer within one dataset, and the reason why it holds."""

    dataset: str
    source: str
    target: str
    why: str


@dataclass(frozen=True, slots=True)
class TinyPart:
    """A dataset's part of the generated tiny world (``datasets.tiny_world``).

    ``write`` makes its release under the folder of the world, from (folder, seed, dialogues).
    ``shares``: few-sample or not → split → share of the dialogues. ``helpful`` transfers have a
    positive score delta, ``unrelated`` ones none above zero. ``version``: of a part that lies
    in a folder of its own, so that the common world and what is made of it stay as they are; empty:
    it is a part of the common world.
    """

    write: Callable[[Path, int, int], None]
    sizes: Mapping[str, TinySize]
    shares: Mapping[bool, Mapping[str, float]]
    helpful: tuple[Claim, ...] = ()
    unrelated: tuple[Claim, ...] = ()
    version: str = ""


@dataclass(frozen=True)
class Dataset:
    """One dataset.

    Args:
        name: as configs and paths spell it.
        cards: its tasks, in the order of tables.
        reader: how its releases are read.
        sizes: task → its size; a task without one is forecast as ``ASSUMED``.
        sizes_from: where the sizes are from, as ``plan`` says it.
        few_sample_share: share of the train and dev instances in the few-sample setting; 1: it has
            no such setting.
        tiny: its part of the tiny world, if it has one.
        has_own_files: whether its reader knows where its files are (``declared``): the config's
            ``data.release``, the tiny world too, is about other datasets.
        told: what a user should know of it before anything is run, a line each.
    """

    name: str
    cards: tuple[Task, ...]
    reader: Reader
    sizes: Mapping[str, TaskSize] = field(default_factory=dict)
    sizes_from: str = "the dataset's own sizes"
    few_sample_share: float = 1.0
    tiny: TinyPart | None = None
    has_own_files: bool = False
    told: tuple[str, ...] = ()

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """Name → card, in the cards' order."""
        return {card.name: card for card in self.cards}

    @cached_property
    def card_digests(self) -> dict[str, str]:
        """Name → digest of the card, as nodes that read the task have it in their identity."""
        return {card.name: card_digest(card) for card in self.cards}

    def size(self, task: str) -> TaskSize:
        """How large a task is; ``ASSUMED`` where the dataset does not say."""
        return self.sizes.get(task, ASSUMED)

    def instances(self, task: str, split: str, *, few_sample: bool) -> int:
        """Instances of a split, by ``sizes``."""
        count = self.size(task).instances(split)
        if few_sample or split == "test" or task not in self.sizes:
            return count
        return round(count / self.few_sample_share)

    def tiny_instances(self, task: str, split: str, dialogues: int, *, few_sample: bool) -> int:
        """Instances of a split in a tiny world of so many dialogues; 0 where it has no part."""
        if self.tiny is None or task not in self.tiny.sizes:
            return 0
        share = self.tiny.shares[few_sample][split]
        return round(dialogues * share * self.tiny.sizes[task].instances)
