"""Datasets with releases in FETA's format, defined by one row per task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets.dataset import (
    Dataset,
    Reader,
    Release,
    TinyPart,
    TurnLength,
    describe_missing_splits,
)
from tasktransfer.datasets.disjoint_splits import SplitDialogue, check_disjoint_splits
from tasktransfer.datasets.feta.annotations import AnnotatedTask
from tasktransfer.datasets.feta.archive import (
    compute_release_revision,
    find_source,
    get_json_file_name,
)
from tasktransfer.datasets.feta.release import ParsedRelease, parse_release, read_instances
from tasktransfer.datasets.feta.splits import get_id_file_name, map_dialogues_to_splits
from tasktransfer.tasks.card import SPLITS

READER_VERSION = 1
FEW_SAMPLE_FRACTION = 0.1
"""Fraction of the train and dev dialogues in the few-sample setting (paper, section 3.2)."""


def build_feta_dataset(
    name: str, tasks: tuple[AnnotatedTask, ...], tiny: TinyPart, shared: float = 0.0
) -> Dataset:
    """Return a dataset whose releases have FETA's format.

    Args:
        name: name of the dataset.
        tasks: tasks, in the order of the release's metadata.
        tiny: generator of its synthetic release.
        shared: maximum fraction of a split's texts that are also in another split
            (``disjoint_splits``).
    """
    release_format = _FetaFormat(name, tasks, shared)
    return Dataset(
        name=name,
        cards=tuple(task.card for task in tasks),
        reader=Reader(
            version=READER_VERSION,
            find=release_format.find,
            revision=lambda folder, memo: compute_release_revision(folder, name, memo),
            open=release_format.open,
            missing=_describe_missing_task,
        ),
        sizes={task.card.name: task.size for task in tasks},
        sizes_from="Table 1 of the paper",
        few_sample_share=FEW_SAMPLE_FRACTION,
        tiny=tiny,
    )


@dataclass(frozen=True, slots=True)
class _FetaFormat:
    """The functions of a reader of releases in FETA's format."""

    dataset: str
    tasks: tuple[AnnotatedTask, ...]
    shared: float

    def find(self, folder: Path) -> str:
        return find_source(folder, self.dataset).get_location(get_json_file_name(self.dataset))

    def open(self, folder: Path, few_sample: bool) -> Release:
        parsed = parse_release(folder, self.dataset, self.tasks)
        full = map_dialogues_to_splits(parsed.ids)
        location = parsed.source.get_location(get_json_file_name(self.dataset))
        notes = check_disjoint_splits(
            (
                SplitDialogue(
                    dialogue.id,
                    full[dialogue.id],
                    " ".join(turn.utterance for turn in dialogue.turns),
                    location,
                )
                for dialogue in parsed.dialogues.values()
                if dialogue.id in full
            ),
            "Fetch the release again, or list the dialogue in only one of the ID files",
            allowed=self.shared,
            generated=parsed.synthetic,
        )
        return Release(
            location=str(parsed.source.path),
            revision=parsed.revision,
            tasks=tuple(parsed.tasks),
            dialogues={split: len(parsed.ids.get_ids(split, few_sample)) for split in SPLITS},
            instances=lambda task, split: read_instances(parsed, task, split, few_sample),
            turns=_measure_turn_lengths(parsed, few_sample),
            synthetic=parsed.synthetic,
            source_kind=parsed.source.kind,
            notes=notes,
        )


def _measure_turn_lengths(release: ParsedRelease, few_sample: bool) -> Iterator[TurnLength]:
    full = map_dialogues_to_splits(release.ids)
    used = {name for split in SPLITS for name in release.ids.get_ids(split, few_sample)}
    for dialogue in release.dialogues.values():
        for turn in dialogue.turns:
            yield TurnLength(
                dialogue.id,
                full.get(dialogue.id, ""),
                dialogue.id in used,
                str(turn.id),
                turn.speakers,
                len(turn.utterance.split()),
            )


def _describe_missing_task(task: str, splits: tuple[str, ...] | None, few_sample: bool) -> str:
    plain = describe_missing_splits(task, splits, few_sample)
    if splits is None:
        return f"metadata.tasks does not list {task!r}: {plain.replace(repr(task), 'it')}"
    return f"{plain} ({', '.join(get_id_file_name(split, few_sample) for split in splits)})"
