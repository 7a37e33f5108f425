"""MultiWOZ 2.0: the next system turn, with probe labels from belief states and dialogue acts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from tasktransfer.datasets.dataset import Dataset, Reader, Release, TaskSize, TurnLength
from tasktransfer.datasets.file_digests import compute_files_digest
from tasktransfer.datasets.multiwoz.cards import CARDS, NAME, REPLY
from tasktransfer.datasets.multiwoz.dialogues import (
    FOLDER,
    MultiwozDialogue,
    find_files,
    read_dialogues,
)
from tasktransfer.datasets.multiwoz.labels import label_turns
from tasktransfer.datasets.one_split import Said, refuse_shared
from tasktransfer.datasets.reply_pairs import make_reply_instance, split_anew, turn_lengths
from tasktransfer.tasks.card import SPLITS, Instance

SYNTHETIC = "synthetic.json"
"""File that marks a folder of generated dialogues."""

SHARED = 0.05
"""Allowed fraction of a split's texts that are also in another split.

The validation and test sets, of 1,000 dialogues each, share two dialogues under different names.
The training set is eight times as large and was not available, so about 17 of 1,000 are expected in
it."""


def _find(folder: Path) -> str:
    find_files(folder)
    return str(folder / FOLDER)


def _compute_revision(folder: Path, memo: Path | None) -> str:
    return compute_files_digest(find_files(folder), memo)


class _Read:
    """Dialogues and instances of a release.

    The official splits are used if all three exist. Otherwise the validation and test sets are
    split again at random.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.generated = (folder / FOLDER / SYNTHETIC).is_file()
        self.told: tuple[str, ...] = ()

    @cached_property
    def dialogues(self) -> Mapping[str, list[MultiwozDialogue]]:
        """Split → its dialogues."""
        files = find_files(self.folder)
        by_file = {split: list(read_dialogues(file)) for split, file in files.items()}
        self.told = refuse_shared(
            (
                Said(dialogue.name, split, " ".join(dialogue.turns), str(files[split]))
                for split, dialogues in by_file.items()
                for dialogue in dialogues
            ),
            f"Fetch the files again{', or remove train.json' if 'train' in files else ''}",
            allowed=SHARED,
            generated=self.generated,
        )
        if "train" in by_file:
            return by_file
        every = sorted(
            (dialogue for ones in by_file.values() for dialogue in ones), key=lambda d: d.name
        )
        splits = split_anew([dialogue.name for dialogue in every], str(self.folder / FOLDER))
        return {split: [d for d in every if splits[d.name] == split] for split in SPLITS}

    def instances(self, task: str, split: str) -> Iterator[Instance]:
        """Yield one instance per system turn."""
        for dialogue in self.dialogues[split]:
            kind = ",".join(sorted({s.partition("-")[0] for s in dialogue.exchanges[-1].state}))
            labelled = label_turns(dialogue.name, dialogue.exchanges)
            for number, labels in enumerate(labelled):
                index = 2 * number + 1
                if dialogue.turns[index]:
                    yield make_reply_instance(
                        dialogue.name, index, dialogue.turns, task, labels, kind
                    )

    def turns(self) -> Iterator[TurnLength]:
        """Yield the lengths of all turns."""
        for split in SPLITS:
            for dialogue in self.dialogues[split]:
                yield from turn_lengths(dialogue.name, split, dialogue.turns, ("user", "system"))


def _open(folder: Path, few_sample: bool) -> Release:
    """Return the whole release in either setting: MultiWOZ has no few-sample setting."""
    read = _Read(folder)
    return Release(
        location=_find(folder),
        revision=_compute_revision(folder, None),
        tasks=(REPLY.name,),
        dialogues={split: len(read.dialogues[split]) for split in SPLITS},
        instances=read.instances,
        turns=list(read.turns()),
        synthetic=read.generated,
        source_kind="folder",
        told=read.told,
    )


MULTIWOZ = Dataset(
    name=NAME,
    cards=CARDS,
    reader=Reader(
        version=1, find=_find, revision=_compute_revision, open=_open, splits={REPLY.name: SPLITS}
    ),
    sizes={REPLY.name: TaskSize(10_303, 2_226, 2_208, 75)},
    sizes_from="validation and test set of MultiWOZ 2.0, split anew",
)
