"""MultiWOZ 2.0: the next system turn, with probe labels from belief states and dialogue acts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from tasktransfer.datasets.dataset import Dataset, Reader, Release, TaskSize, TurnLength
from tasktransfer.datasets.disjoint_splits import SplitDialogue, check_disjoint_splits
from tasktransfer.datasets.file_digests import compute_files_digest
from tasktransfer.datasets.multiwoz.dialogues import (
    FOLDER,
    MultiwozDialogue,
    build_turn_labels,
    find_files,
    read_dialogues,
)
from tasktransfer.datasets.reply_pairs import (
    assign_random_splits,
    build_probe_task,
    build_reply_instance,
    build_reply_task,
    measure_turn_lengths,
)
from tasktransfer.tasks.card import SPLITS, Instance

NAME = "MultiWOZ"
_CITATION = "Budzianowski et al. 2018, MultiWOZ (EMNLP); probes: Parthasarathi et al. 2021, Table 1"
_LICENCE = "CC BY 4.0"

REPLY = build_reply_task("MultiWOZ_reply", NAME, _CITATION, _LICENCE)

PROBES = {
    "UtteranceLoc": "Which fifth of the dialogue the turn is in.",
    "RecentTopic": "The current domain.",
    "AllTopics": "The domains with a known slot.",
    "NumAllTopics": "How many domains have a known slot.",
    "IsMultiTopic": "Whether more than one domain has a known slot.",
    "RecentSlots": "The slots that the user's last turn has changed.",
    "RecentValues": "The values of these slots.",
    "NumRecentInfo": "How many slots the user's last turn has changed.",
    "AllSlots": "The slots that are known.",
    "AllValues": "The values of the slots that are known.",
    "NumAllInfo": "How many slots are known.",
    "RepeatInfo": "The names of changed slots that were given before, in any domain.",
    "NumRepeatInfo": "How many of these names there are.",
    "ActionSelect": "The acts of the system's turn.",
    "EntitySlots": "The slots of these acts.",
    "EntityValues": "The values of these acts.",
    "Coin": "A control: a random label per dialogue that no turn contains.",
}
"""Probe → description, in the order of Table 1 with the control last. IsMultiTopic is called
IsMultiTask in Tables 5 and 9."""

CARDS = (
    REPLY,
    *(build_probe_task(name, NAME, asks, _CITATION, _LICENCE) for name, asks in PROBES.items()),
)


SYNTHETIC = "synthetic.json"
"""File that marks a folder of generated dialogues."""

ALLOWED_SHARED = 0.05
"""Allowed fraction of a split's texts that are also in another split.

The validation and test sets, of 1,000 dialogues each, share two dialogues under different names.
The training set is eight times as large and was not available, so it is expected to contain about
17 of 1,000."""


def _find_release(folder: Path) -> str:
    find_files(folder)
    return str(folder / FOLDER)


def _compute_revision(folder: Path, memo: Path | None) -> str:
    return compute_files_digest(find_files(folder), memo)


class _ReleaseReader:
    """Dialogues and instances of a release.

    The official splits are used if all three exist. Otherwise the validation and test sets are
    split again at random.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.generated = (folder / FOLDER / SYNTHETIC).is_file()
        self.notes: tuple[str, ...] = ()

    @cached_property
    def dialogues(self) -> Mapping[str, list[MultiwozDialogue]]:
        """Dialogues of the release, by split."""
        files = find_files(self.folder)
        by_file = {split: list(read_dialogues(file)) for split, file in files.items()}
        self.notes = check_disjoint_splits(
            (
                SplitDialogue(dialogue.name, split, " ".join(dialogue.turns), str(files[split]))
                for split, dialogues in by_file.items()
                for dialogue in dialogues
            ),
            f"Fetch the files again{', or remove train.json' if 'train' in files else ''}",
            allowed=ALLOWED_SHARED,
            generated=self.generated,
        )
        if "train" in by_file:
            return by_file
        pooled = sorted(
            (dialogue for dialogues in by_file.values() for dialogue in dialogues),
            key=lambda d: d.name,
        )
        splits = assign_random_splits(
            [dialogue.name for dialogue in pooled], str(self.folder / FOLDER)
        )
        return {split: [d for d in pooled if splits[d.name] == split] for split in SPLITS}

    def iterate_instances(self, task: str, split: str) -> Iterator[Instance]:
        """Yield the instances in a split, one per system turn."""
        for dialogue in self.dialogues[split]:
            kind = ",".join(sorted({s.partition("-")[0] for s in dialogue.exchanges[-1].state}))
            labelled = build_turn_labels(dialogue.name, dialogue.exchanges)
            for number, labels in enumerate(labelled):
                index = 2 * number + 1
                if dialogue.turns[index]:
                    yield build_reply_instance(
                        dialogue.name, index, dialogue.turns, task, labels, kind
                    )

    def iterate_turn_lengths(self) -> Iterator[TurnLength]:
        """Yield the lengths of all turns in words."""
        for split in SPLITS:
            for dialogue in self.dialogues[split]:
                yield from measure_turn_lengths(
                    dialogue.name, split, dialogue.turns, ("user", "system")
                )


def _open_release(folder: Path, few_sample: bool) -> Release:
    """Open the whole release, because MultiWOZ has no few-sample setting."""
    reader = _ReleaseReader(folder)
    return Release(
        location=_find_release(folder),
        revision=_compute_revision(folder, None),
        tasks=(REPLY.name,),
        dialogues={split: len(reader.dialogues[split]) for split in SPLITS},
        instances=reader.iterate_instances,
        turns=list(reader.iterate_turn_lengths()),
        synthetic=reader.generated,
        source_kind="folder",
        notes=reader.notes,
    )


MULTIWOZ = Dataset(
    name=NAME,
    cards=CARDS,
    reader=Reader(
        version=1,
        find=_find_release,
        revision=_compute_revision,
        open=_open_release,
        splits={REPLY.name: SPLITS},
    ),
    sizes={REPLY.name: TaskSize(10_303, 2_226, 2_208, 75)},
    sizes_from="validation and test sets of MultiWOZ 2.0, split at random into train, dev and test",
)
