"""Survey of a declared dataset: its labels, its splits and the sizes of its tasks.

A plan needs these facts. The files are read once for them, and the survey is cached by content.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tasktransfer.core.identity import compute_digest
from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue
from tasktransfer.datasets.declared.duplicates import Duplicates, count_duplicates
from tasktransfer.datasets.declared.label_counts import LabelCounts, check_labels
from tasktransfer.datasets.declared.sampling import (
    SplitAssignment,
    SplitDialogues,
    compute_few_sample_limits,
    compute_sampling_number,
    count_few_dialogues,
    sample_splits,
)
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.datasets.declared.skipped import describe_skipped_items
from tasktransfer.datasets.declared.source import Source
from tasktransfer.datasets.declared.spellings import describe_merged_spellings
from tasktransfer.errors import DataError, escape_line, format_quantity
from tasktransfer.files import json_text, replace_file
from tasktransfer.files.fields import Location
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.compose import TOKENS_PER_WORD, estimate_tokens

VERSION = 1
"""Version of the reader. Increase it if the same files give other instances."""
SURVEY_VERSION = 6
"""Version of surveys. Increase it if their fields or notes change."""

MAX_LABELS = 1000
KINDS_WITHOUT_LABELS = ("span", "reply", "rating", "multiple_choice")
"""Kinds of task whose answers are not labels."""


@dataclass(frozen=True)
class Survey:
    """Facts about all files of a dataset.

    Args:
        digest: digest of the files' content.
        labels: task → labels of train, sorted.
        options: task → number of options of its questions.
        longest: task → characters of its longest answer.
        instances: task → split → number of instances.
        few_instances: as ``instances``, in the few-sample setting.
        dialogues: split → number of dialogues.
        few_dialogues: as ``dialogues``, for all tasks together in the few-sample setting.
        words: task → mean number of words per instance.
        splitting: assignment of the training files' dialogues to splits.
        few: task → split → few-sample limit (``sampling``).
        spellings: task → spelling of a label → label that replaces it (``spellings``).
        cells: tasks whose labels are lists in the texts of cells.
        notes: notes for the user, one per line.
    """

    digest: str
    labels: dict[str, list[str]]
    options: dict[str, int]
    longest: dict[str, int]
    instances: dict[str, dict[str, int]]
    few_instances: dict[str, dict[str, int]]
    dialogues: dict[str, int]
    few_dialogues: dict[str, int]
    words: dict[str, float]
    splitting: SplitAssignment
    few: dict[str, dict[str, int]] = field(default_factory=dict)
    spellings: dict[str, dict[str, str]] = field(default_factory=dict)
    cells: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def get_survey(
    declaration: Declaration, source: Source, name: str, digest: str, memo: Path | None
) -> Survey:
    """Return the survey of a dataset, from the cache file ``memo`` or after reading all rows.

    Raises:
        DataError: a row cannot be read, a dialogue is in two splits, or a label of dev or test is
            not in train. The message names file, line and value.
    """
    if memo is not None and (known := read_cached_survey(memo)) and known.digest == digest:
        return known
    survey = _Surveyor(declaration, source, name).build_survey(digest)
    if memo is not None:
        memo.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(memo) as part:
            part.write_text(
                json.dumps({"version": SURVEY_VERSION, **asdict(survey)}, indent=1) + "\n"
            )
    return survey


def get_survey_path(folder: Path, name: str, declaration: Declaration) -> Path:
    """Return the path of a declaration's cached survey in a folder."""
    digest = compute_digest({"version": SURVEY_VERSION, **declaration.model_dump()})[:12]
    return folder / f"{name}-{digest}.json"


def read_cached_survey(memo: Path) -> Survey | None:
    """Read the survey from a cache file, or return None if its version is outdated."""
    content = json_text.read_object(memo)
    if content.pop("version", None) != SURVEY_VERSION:
        return None
    try:
        return Survey(**{**content, "splitting": SplitAssignment(**content["splitting"])})
    except (KeyError, TypeError):
        return None


@dataclass(slots=True)
class _TaskCounts:
    """Counts of one task.

    Args:
        reader: reader of the task's instances.
        labels: labels by dialogue.
        options: number of options → place of the first instance with that number.
        per_dialogue: split → number of instances per dialogue.
        words: number of words in all instances.
        longest: characters of the longest answer.
    """

    reader: TaskReader
    labels: LabelCounts = field(default_factory=LabelCounts)
    options: dict[int, str] = field(default_factory=dict)
    per_dialogue: dict[str, array[int]] = field(default_factory=dict)
    words: float = 0.0
    longest: int = 0


class _Surveyor:
    """Counts over all dialogues of a dataset, from which its survey is computed."""

    def __init__(self, declaration: Declaration, source: Source, name: str) -> None:
        self.declaration, self.source, self.name = declaration, source, name
        self.tasks = {
            task: _TaskCounts(TaskReader(task, section))
            for task, section in declaration.tasks.items()
        }
        self.numbers: dict[str, array[int]] = {}
        self.names: dict[str, array[int]] = {}
        name_field = declaration.dialogue.id
        self.duplicates = Duplicates(
            name_field if isinstance(name_field, str) else None, by_split=len(source.splits) > 1
        )
        self.groups: Sequence[int] = ()
        self.empty_turns = self.empty_dialogues = 0

    def build_survey(self, digest: str) -> Survey:
        for split in self.source.splits:
            for dialogue in self.source.read_dialogues(split):
                self._count_dialogue(split, dialogue)
            if split not in self.numbers:
                raise DataError(
                    f"{self.source.location}: No dialogue of the split {split} has a turn with "
                    "text. Check the key dialogue.text."
                )
        declared = self.declaration
        needed = tuple(split for split in SPLITS if split not in self.source.splits)
        for task, counts in self.tasks.items():
            self._check_labels(task, counts)
        if needed:
            self.groups = self.duplicates.number_groups(self.numbers["train"])
        assignment = self._sample_missing_splits(needed)
        by_split = self._group_by_split(assignment, needed)
        limits_by_task = self._compute_few_sample_limits(by_split) if declared.few_sample else {}
        instances = {
            task: {s: sum(by_split[s].counts[task]) for s in SPLITS} for task in self.tasks
        }
        for task, counts_by_split in instances.items():
            for split in SPLITS:
                if not counts_by_split[split]:
                    same = count_duplicates(self.groups)
                    reason = (
                        f" ({same:,} training dialogues have the same text as another)"
                        if same
                        else ""
                    )
                    raise DataError(
                        f"{self.source.location}: The task {self.name}/{task} has no instances in "
                        f"the split {split}{reason}. Add dialogues with an answer, or remove the "
                        "task."
                    )
        return Survey(
            digest=digest,
            labels={
                task: counts.labels.list_sorted_labels() for task, counts in self.tasks.items()
            },
            options={
                task: next(iter(counts.options))
                for task, counts in self.tasks.items()
                if counts.options
            },
            longest={task: counts.longest for task, counts in self.tasks.items()},
            instances=instances,
            few_instances={
                task: instances[task]
                | {s: by_split[s].count_instances_below(task, limits[s]) for s in limits}
                for task, limits in limits_by_task.items()
            },
            dialogues={split: len(by_split[split].few) for split in SPLITS},
            few_dialogues={
                split: count_few_dialogues(by_split[split], split, limits_by_task)
                for split in SPLITS
            },
            words={
                task: counts.words / max(sum(instances[task].values()), 1)
                for task, counts in self.tasks.items()
            },
            splitting=assignment,
            few=limits_by_task,
            spellings={t: c.labels.spellings for t, c in self.tasks.items() if c.labels.spellings},
            cells=[task for task, counts in self.tasks.items() if counts.reader.are_cells],
            notes=self._list_notes(by_split, needed, assignment, limits_by_task),
        )

    # --- one dialogue ---

    def _count_dialogue(self, split: str, dialogue: DeclaredDialogue) -> None:
        self.empty_turns += len(dialogue.empty)
        if not dialogue.turns:
            self.empty_dialogues += 1
            return
        self.duplicates.add(split, dialogue)
        shares, few_sample = self.declaration.shares, self.declaration.few_sample
        numbers = self.numbers.setdefault(split, array("q"))
        numbers.append(compute_sampling_number(dialogue.id, shares.seed, "split"))
        seed = few_sample.seed if few_sample else 0
        self.names.setdefault(split, array("q")).append(
            compute_sampling_number(dialogue.id, seed, "few")
        )
        words = _count_words_by_turn(dialogue)
        for counts in self.tasks.values():
            number = 0
            labels: dict[str, str] = {}
            for instance, location in counts.reader.locate_instances(dialogue):
                number += 1
                counts.words += words[len(instance.context)]
                self._count_instance(counts, instance, location, labels)
            counts.labels.add(split, labels)
            if len(counts.labels.first[split]) > MAX_LABELS:
                raise DataError(
                    f"{self.source.location}: The task {self.name}/{counts.reader.name} has more "
                    f"than {MAX_LABELS:,} labels. Set kind: free_text if the answers are free "
                    "text, or set label to another field."
                )
            counts.per_dialogue.setdefault(split, array("l")).append(number)

    def _count_instance(
        self, counts: _TaskCounts, instance: Instance, location: Location, labels: dict[str, str]
    ) -> None:
        """Count an instance, and add its labels to those of its dialogue."""
        section = counts.reader.section
        counts.longest = max(counts.longest, *map(len, instance.target))
        if section.kind == "multiple_choice":
            counts.options.setdefault(len(instance.options), _format_place(location))
        elif section.kind not in KINDS_WITHOUT_LABELS:
            for label in instance.target:
                if label not in labels:
                    labels[label] = _format_place(location)

    # --- all dialogues ---

    def _sample_missing_splits(self, needed: tuple[str, ...]) -> SplitAssignment:
        """Assign training dialogues to the splits without files."""
        numbers, shares = self.numbers["train"], self.declaration.shares
        if not needed:
            return sample_splits(numbers, shares, needed)
        groups = self.groups or numbers
        kept = set[int]()
        for counts in self.tasks.values():
            kept |= counts.labels.find_last_groups(groups)
        return sample_splits(numbers, shares, needed, groups, kept)

    def _group_by_split(
        self, assignment: SplitAssignment, needed: tuple[str, ...]
    ) -> dict[str, SplitDialogues]:
        found = {split: SplitDialogues(tuple(self.tasks)) for split in SPLITS}
        for own in self.source.splits:
            counts = [self.tasks[task].per_dialogue[own] for task in self.tasks]
            for number, few_number, *each in zip(
                self.numbers[own], self.names[own], *counts, strict=True
            ):
                split = assignment.get_split_by_number(number) if own == "train" and needed else own
                found[split].add(few_number, each)
        return found

    def _compute_few_sample_limits(
        self, by_split: Mapping[str, SplitDialogues]
    ) -> dict[str, dict[str, int]]:
        section = self.declaration.few_sample
        assert section is not None
        numbers = {split: by_split[split].few for split in ("train", "dev")}
        return {
            task: compute_few_sample_limits(numbers, by_split["train"].counts[task], section)
            for task in self.tasks
        }

    def _check_labels(self, task: str, counts: _TaskCounts) -> None:
        section, place = self.declaration.tasks[task], self.source.location
        if len(counts.options) > 1:
            (first, one), (second, other), *_ = counts.options.items()
            raise DataError(
                f"{place}: The questions of the task {self.name}/{task} have different numbers of "
                f"options: {one} has {first}, but {other} has {second}. Give every question the "
                "same number of options."
            )
        if section.kind not in KINDS_WITHOUT_LABELS:
            counts.labels.merge_label_spellings(section.labels or ())
            check_labels(counts.labels, section.labels, self.name, task, place)

    def _list_notes(
        self,
        by_split: Mapping[str, SplitDialogues],
        needed: tuple[str, ...],
        assignment: SplitAssignment,
        limits_by_task: Mapping[str, Mapping[str, int]],
    ) -> list[str]:
        notes = []
        shares = self.declaration.shares
        for split in needed:
            size, whole = len(by_split[split].few), len(self.numbers["train"])
            notes.append(
                f"no {split} split: {size:,} of the {whole:,} training dialogues "
                f"{'is' if size == 1 else 'are'} {split}, sampled with seed {shares.seed}"
            )
        empty = (("turn", self.empty_turns), ("dialogue", self.empty_dialogues))
        if parts := [f"{format_quantity(n, thing)} without text" for thing, n in empty if n]:
            verb = "is" if self.empty_turns + self.empty_dialogues == 1 else "are"
            notes.append(f"{' and '.join(parts)} {verb} skipped (dialogue.skip: empty)")
        if same := count_duplicates(self.groups):
            notes.append(
                f"{same:,} of the {len(self.groups):,} training dialogues have the same text as "
                "another, and duplicates are sampled into the same split"
            )
        splits = [
            assignment.get_split_by_number(n) if needed else "train" for n in self.numbers["train"]
        ]
        for task, counts in self.tasks.items():
            notes += describe_skipped_items(counts.reader)
            if self.groups and (differing := counts.labels.count_conflicts(self.groups)):
                texts = "1 text" if differing == 1 else f"{differing:,} texts"
                notes.append(
                    f"{task}: training dialogues with the same text have different answers "
                    f"({texts}, listed by `tasktransfer data check`)"
                )
            if self.declaration.tasks[task].kind not in KINDS_WITHOUT_LABELS:
                notes += counts.reader.forms.list_notes(task)
            notes += describe_merged_spellings(task, counts.labels.spellings)
            limit = limits_by_task[task]["train"] if task in limits_by_task else 2**63
            few = [number < limit for number in self.names["train"]]
            several = self.declaration.tasks[task].kind == "multi_label"
            notes += counts.labels.list_notes(task, splits, few, all_in_macro=several)
        return notes


def _format_place(location: Location) -> str:
    """Format a location with its key path, but without the folders, as reports show it."""
    place = replace(location, file=Path(location.file).name).place
    return f"{place}, {escape_line(location.path)}" if location.path else place


def _count_words_by_turn(dialogue: DeclaredDialogue) -> dict[int, float]:
    """Map the end offset of each turn to the number of words up to it.

    The context of an instance ends with a turn.
    """
    words, total = {}, 0.0
    for turn in dialogue.turns:
        total += estimate_tokens(dialogue.context[turn.start : turn.end]) / TOKENS_PER_WORD
        words[turn.end] = total
    return words


def select_dialogues(
    source: Source, split: str, assignment: SplitAssignment
) -> Iterator[DeclaredDialogue]:
    """Yield the dialogues of a split from its own files, or sampled from train."""
    own: str = split if split in source.splits else "train"
    for dialogue in source.read_dialogues(own):
        if not dialogue.turns:  # No turn has text (dialogue.skip: empty).
            continue
        if own != "train" or assignment.get_split(dialogue.id) == split:
            yield dialogue
