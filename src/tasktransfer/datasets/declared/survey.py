"""Survey of a declared dataset: its labels, its splits and the sizes of its tasks.

A plan needs these facts. The files are read once for them, and the survey is cached by content.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tasktransfer.core.digests import compute_digest
from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue
from tasktransfer.datasets.declared.draws import (
    Splitting,
    compute_number,
    draw_few_samples,
    draw_splits,
)
from tasktransfer.datasets.declared.duplicates import Duplicates, count_duplicates
from tasktransfer.datasets.declared.label_counts import LabelCounts, refuse_labels
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.datasets.declared.source import Source
from tasktransfer.datasets.declared.spellings import describe_spellings
from tasktransfer.datasets.declared.split_dialogues import SplitDialogues, count_few_dialogues
from tasktransfer.errors import DataError
from tasktransfer.files import json_text, replace_file
from tasktransfer.tasks.card import SPLITS, Instance

VERSION = 1
"""Version of the reader. Increase it if the same files give other instances."""
SURVEY_VERSION = 3
"""Version of surveys. Increase it if their fields or notes change."""

MOST_LABELS = 1000
WITHOUT_LABELS = ("span", "reply", "rating", "multiple_choice")
"""Kinds of task whose answers are not labels."""
TOKENS_A_WORD = 1.4
"""BERT's word pieces per word, for forecasts."""


@dataclass(frozen=True)
class Survey:
    """Facts about all files of a dataset.

    Args:
        digest: digest of the files' content.
        labels: task → labels of train, sorted.
        options: task → number of options of its questions.
        longest: task → characters of its longest answer.
        instances: task → split → number of instances.
        few_instances: the same in the few-sample setting.
        dialogues: split → number of dialogues.
        few_dialogues: the same for all tasks together in the few-sample setting.
        words: task → mean number of words per instance.
        splitting: assignment of the training files' dialogues to splits.
        few: task → split → limit of its few-sample draw (``draws``).
        spellings: task → spelling of a label → label that it is read as (``spellings``).
        cells: tasks whose labels are lists in the texts of cells.
        told: notes for the user, one per line.
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
    splitting: Splitting
    few: dict[str, dict[str, int]] = field(default_factory=dict)
    spellings: dict[str, dict[str, str]] = field(default_factory=dict)
    cells: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def get_survey(
    declaration: Declaration, source: Source, name: str, digest: str, memo: Path | None
) -> Survey:
    """Return the survey of a dataset, from the cache file ``memo`` or from its rows.

    Raises:
        DataError: a row cannot be read, a dialogue is in two splits, or a label of dev or test is
            not in train; names file, line, value and remedy.
    """
    if memo is not None and (known := read_memo(memo)) and known.digest == digest:
        return known
    made = _Surveyor(declaration, source, name).survey(digest)
    if memo is not None:
        memo.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(memo) as part:
            part.write_text(
                json.dumps({"version": SURVEY_VERSION, **asdict(made)}, indent=1) + "\n"
            )
    return made


def name_memo(folder: Path, name: str, declaration: Declaration) -> Path:
    """Return the path of a declaration's cached survey in a folder of the study's results."""
    digest = compute_digest({"version": SURVEY_VERSION, **declaration.model_dump()})[:12]
    return folder / f"{name}-{digest}.json"


def read_memo(memo: Path) -> Survey | None:
    """Return the survey in a cache file. None if it has no survey of this version."""
    content = json_text.read_object(memo)
    if content.pop("version", None) != SURVEY_VERSION:
        return None
    try:
        return Survey(**{**content, "splitting": Splitting(**content["splitting"])})
    except (KeyError, TypeError):
        return None


@dataclass(slots=True)
class _Counts:
    """Counts of one task.

    Args:
        reader: reader of the task's instances.
        labels: labels by dialogue.
        options: number of options → first instance with that number.
        per_dialogue: split → number of instances per dialogue.
        words: number of words in all instances.
        longest: characters of the longest answer.
    """

    reader: TaskReader
    labels: LabelCounts = field(default_factory=LabelCounts)
    options: dict[int, str] = field(default_factory=dict)
    per_dialogue: dict[str, array[int]] = field(default_factory=dict)
    words: int = 0
    longest: int = 0


class _Surveyor:
    def __init__(self, declaration: Declaration, source: Source, name: str) -> None:
        self.declaration, self.source, self.name = declaration, source, name
        self.tasks = {
            task: _Counts(TaskReader(task, section)) for task, section in declaration.tasks.items()
        }
        self.numbers: dict[str, array[int]] = {}
        self.names: dict[str, array[int]] = {}
        name_field = declaration.dialogue.id
        self.duplicates = Duplicates(
            name_field if isinstance(name_field, str) else None, by_split=len(source.splits) > 1
        )
        self.groups: Sequence[int] = ()
        self.empty_turns = self.empty_dialogues = 0

    def survey(self, digest: str) -> Survey:
        for split in self.source.splits:
            for dialogue in self.source.dialogues(split):
                self._count(split, dialogue)
            if split not in self.numbers:
                raise DataError(
                    f"{self.source.location}: No dialogue of {split} has a turn with text. "
                    "Check dialogue.text."
                )
        declared = self.declaration
        needed = tuple(split for split in SPLITS if split not in self.source.splits)
        for task, counts in self.tasks.items():
            self._check_labels(task, counts)
        if needed:
            self.groups = self.duplicates.group(self.numbers["train"])
        drawn = self._split(needed)
        by_split = self._group_by_split(drawn, needed)
        draws = self._draw_few(by_split) if declared.few_sample else {}
        instances = {
            task: {s: sum(by_split[s].counts[task]) for s in SPLITS} for task in self.tasks
        }
        for task, of in instances.items():
            for split in SPLITS:
                if not of[split]:
                    same = count_duplicates(self.groups)
                    told = f" ({same:,} training dialogues say the same as another)" if same else ""
                    raise DataError(
                        f"{self.source.location}: {self.name}/{task} has no instance in "
                        f"{split}{told}. Add dialogues with an answer, or remove the task."
                    )
        return Survey(
            digest=digest,
            labels={task: counts.labels.sorted() for task, counts in self.tasks.items()},
            options={
                task: next(iter(counts.options))
                for task, counts in self.tasks.items()
                if counts.options
            },
            longest={task: counts.longest for task, counts in self.tasks.items()},
            instances=instances,
            few_instances={
                task: instances[task] | {s: by_split[s].below(task, limits[s]) for s in limits}
                for task, limits in draws.items()
            },
            dialogues={split: len(by_split[split].few) for split in SPLITS},
            few_dialogues={
                split: count_few_dialogues(by_split[split], split, draws) for split in SPLITS
            },
            words={
                task: counts.words / max(sum(instances[task].values()), 1)
                for task, counts in self.tasks.items()
            },
            splitting=drawn,
            few=draws,
            spellings={t: c.labels.spellings for t, c in self.tasks.items() if c.labels.spellings},
            cells=[task for task, counts in self.tasks.items() if counts.reader.are_cells],
            told=self._make_notes(by_split, needed, drawn, draws),
        )

    # --- one dialogue ---

    def _count(self, split: str, dialogue: DeclaredDialogue) -> None:
        self.empty_turns += len(dialogue.empty)
        if not dialogue.turns:
            self.empty_dialogues += 1
            return
        self.duplicates.add(split, dialogue)
        shares, few_sample = self.declaration.shares, self.declaration.few_sample
        numbers = self.numbers.setdefault(split, array("q"))
        numbers.append(compute_number(dialogue.id, shares.seed, "split"))
        seed = few_sample.seed if few_sample else 0
        self.names.setdefault(split, array("q")).append(compute_number(dialogue.id, seed, "few"))
        words = _count_words_before(dialogue)
        for counts in self.tasks.values():
            number = 0
            labels: dict[str, str] = {}
            for instance in counts.reader.instances(dialogue):
                number += 1
                counts.words += words[len(instance.context)]
                self._count_instance(counts, instance, labels)
            counts.labels.add(split, labels)
            if len(counts.labels.first[split]) > MOST_LABELS:
                raise DataError(
                    f"{self.source.location}: {self.name}/{counts.reader.name} has more than "
                    f"{MOST_LABELS:,} labels. If the answers are free text, set kind: "
                    "free_text; otherwise name another field in label."
                )
            counts.per_dialogue.setdefault(split, array("l")).append(number)

    def _count_instance(self, counts: _Counts, instance: Instance, labels: dict[str, str]) -> None:
        """Count an instance, and add its labels to those of its dialogue."""
        section = counts.reader.section
        counts.longest = max(counts.longest, *map(len, instance.target))
        if section.kind == "multiple_choice":
            counts.options.setdefault(len(instance.options), instance.id)
        elif section.kind not in WITHOUT_LABELS:
            for label in instance.target:
                labels.setdefault(label, instance.id)

    # --- all dialogues ---

    def _split(self, needed: tuple[str, ...]) -> Splitting:
        """Draw the splits without files."""
        numbers, shares = self.numbers["train"], self.declaration.shares
        if not needed:
            return draw_splits(numbers, shares, needed)
        groups = self.groups or numbers
        kept = set[int]()
        for counts in self.tasks.values():
            kept |= counts.labels.find_last_groups(groups)
        return draw_splits(numbers, shares, needed, groups, kept)

    def _group_by_split(
        self, drawn: Splitting, needed: tuple[str, ...]
    ) -> dict[str, SplitDialogues]:
        found = {split: SplitDialogues(tuple(self.tasks)) for split in SPLITS}
        for own in self.source.splits:
            counts = [self.tasks[task].per_dialogue[own] for task in self.tasks]
            for number, few_number, *each in zip(
                self.numbers[own], self.names[own], *counts, strict=True
            ):
                split = drawn.split_of_number(number) if own == "train" and needed else own
                found[split].add(few_number, each)
        return found

    def _draw_few(self, by_split: Mapping[str, SplitDialogues]) -> dict[str, dict[str, int]]:
        section = self.declaration.few_sample
        assert section is not None
        numbers = {split: by_split[split].few for split in ("train", "dev")}
        return {
            task: draw_few_samples(numbers, by_split["train"].counts[task], section)
            for task in self.tasks
        }

    def _check_labels(self, task: str, counts: _Counts) -> None:
        section, place = self.declaration.tasks[task], self.source.location
        if len(counts.options) > 1:
            (first, one), (second, other), *_ = counts.options.items()
            raise DataError(
                f"{place}: The questions of {self.name}/{task} have different numbers of "
                f"options: {one} has {first}, {other} has {second}. Give every question the "
                "same number."
            )
        if section.kind not in WITHOUT_LABELS:
            counts.labels.merge(section.labels or ())
            refuse_labels(counts.labels, section.labels, self.name, task, place)

    def _make_notes(
        self,
        by_split: Mapping[str, SplitDialogues],
        needed: tuple[str, ...],
        drawn: Splitting,
        draws: Mapping[str, Mapping[str, int]],
    ) -> list[str]:
        told = []
        shares = self.declaration.shares
        for split in needed:
            size, whole = len(by_split[split].few), len(self.numbers["train"])
            told.append(
                f"no {split} split: {size:,} of the {whole:,} training dialogues are {split}, "
                f"sampled with seed {shares.seed}"
            )
        if self.empty_turns:
            told.append(
                f"{self.empty_turns:,} turns without text are skipped (dialogue.skip: empty), and "
                f"so are {self.empty_dialogues:,} dialogues without any other turn"
            )
        if same := count_duplicates(self.groups):
            told.append(
                f"{same:,} of the {len(self.groups):,} training dialogues say the same as another "
                "one; duplicates are drawn into the same split"
            )
        splits = [drawn.split_of_number(n) if needed else "train" for n in self.numbers["train"]]
        for task, counts in self.tasks.items():
            if counts.reader.skipped:
                told.append(describe_skipped(task, counts.reader.skipped))
            if self.groups and (differing := counts.labels.count_conflicts(self.groups)):
                texts = "1 text" if differing == 1 else f"{differing:,} texts"
                told.append(
                    f"{task}: training dialogues that say the same have different answers "
                    f"({texts}; `tasktransfer data check` lists them)"
                )
            if self.declaration.tasks[task].kind not in WITHOUT_LABELS:
                told += counts.reader.forms.notes(task)
            told += describe_spellings(task, counts.labels.spellings)
            limit = draws[task]["train"] if task in draws else 2**63
            few = [number < limit for number in self.names["train"]]
            told += counts.labels.notes(task, splits, few)
        return told


def describe_skipped(task: str, count: int) -> str:
    """Return the note about skipped items without an answer."""
    return f"{task}: {count:,} items without an answer are skipped (missing: skip)"


def _count_words_before(dialogue: DeclaredDialogue) -> dict[int, int]:
    """Return end offset of a turn → number of words in the context up to there.

    The context of an instance ends with a turn.
    """
    words, total = {}, 0
    for turn in dialogue.turns:
        total += len(dialogue.context[turn.start : turn.end].split())
        words[turn.end] = total
    return words


def select_dialogues(source: Source, split: str, drawn: Splitting) -> Iterator[DeclaredDialogue]:
    """Yield the dialogues of a split, which has its own files or is drawn from train."""
    own: str = split if split in source.splits else "train"
    for dialogue in source.dialogues(own):
        if not dialogue.turns:  # no turn has text (dialogue.skip: empty)
            continue
        if own != "train" or drawn.get_split(dialogue.id) == split:
            yield dialogue
