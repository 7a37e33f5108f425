"""What a user should know of files before a study of them: a declaration to paste, and all that is
wrong, with lines. Nothing is dropped in silence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tasktransfer.config.yaml_text import comment, write_yaml
from tasktransfer.core.digests import digest_of
from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue, dialogues_of
from tasktransfer.datasets.declared.files import SPLIT_WORDS, DataFile, data_file
from tasktransfer.datasets.declared.rows import MAX_BROKEN_LINES, read_rows
from tasktransfer.datasets.declared.scopes import guess_scope, read_texts
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.datasets.declared.source import source_of
from tasktransfer.datasets.declared.source_row import SourceRow
from tasktransfer.datasets.declared.spellings import (
    describe_missing,
    describe_spellings,
    merge_spellings,
)
from tasktransfer.datasets.declared.survey import (
    TOKENS_A_WORD,
    WITHOUT_LABELS,
    describe_skipped,
    survey_of,
)
from tasktransfer.datasets.guess.declaration import Guess, guess
from tasktransfer.datasets.one_split import LEAST_WORDS, count_words, normalise_text
from tasktransfer.errors import DataError

GUESSED_FROM = 2000
"""Rows."""
SHOWN = 20
"""Problems of one file and lines of one problem that are listed."""
UNEVEN = 10
"""How many times the largest label is the smallest, from which on it is said."""

MOST_CUT = 0.1
"""The fraction of dialogues that may be cut before both of their ends are kept."""
OF_DIALOGUES = ("dialogue_classification", "multi_label", "multi_output")
"""Kinds whose labels are about a whole dialogue."""

Count = Callable[[str], int]
"""A text → its tokens."""
Target = tuple[str, ...]
Answers = dict[str, list[Target]]
"""Task → the answers of a dialogue's instances."""


@dataclass
class Checked:
    """``text``: the declaration as YAML, with comments. ``problems``: what a study would be refused
    for; ``notes``: what one should know; each with file and line. ``dialogue``: the lines of a
    dialogue as it is read."""

    text: str
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    dialogue: list[str] = field(default_factory=list)


def check_files(
    paths: Sequence[Path], name: str, limit: int = 512, tokens: Count | None = None
) -> Checked:
    """Check the files of a dataset that is to be.

    Args:
        paths: files; which split each is, its name tells, and the first is train.
        name: of the dataset.
        limit: longest input of a model, in tokens.
        tokens: counts those of a text; None: words, times what BERT makes of a word.

    Raises:
        DataError: a file is missing or of no format that is read, or nothing of it can be read.
    """
    return _Check(paths, name, limit, tokens).checked()


class _Check:
    def __init__(self, paths: Sequence[Path], name: str, limit: int, tokens: Count | None) -> None:
        self.files = {path: data_file(path, "the command line") for path in paths}
        self.splits = _splits(paths)
        self.name, self.limit = name, limit
        self.tokens = tokens or (lambda text: round(len(text.split()) * TOKENS_A_WORD))
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.seen: dict[str, tuple[str, str]] = {}
        self.dialogues: Counter[str] = Counter()
        self.turns = self.empty = self.rows = self.short = 0
        self.labels: dict[str, dict[str, Counter[str]]] = {}
        self.first: dict[tuple[str, str], str] = {}
        self.long: list[str] = []
        self.in_two: list[str] = []
        self.twice: list[str] = []
        self.differing: list[str] = []
        self.answers: dict[str, tuple[str, Answers]] = {}
        self.skipped: Counter[str] = Counter()

    def checked(self) -> Checked:
        rows = {path: self._look_through(path, file) for path, file in self.files.items()}
        train = next(path for path, split in self.splits.items() if split == "train")
        try:
            guessed = guess(rows[train], str(train))
        except DataError as error:
            raise DataError("\n".join([*self.problems, str(error)])) from None
        section = self._declaration(guessed)
        self._note_guess(guessed, train)
        try:
            declaration = Declaration.model_validate(section)
        except ValidationError as error:
            declaration = None
            problem = error.errors()[0]["msg"]
            if not guessed.tasks:
                problem = (
                    "no field looks like a label; declare a task by hand, with its kind and its "
                    f"label (fields: {', '.join(rows[train][0].values)})"
                )
            self.problems.append(f"{train}: {problem}")
        if declaration is not None:
            declaration = self._with_scope(section, declaration)
            for path in self.files:
                self._read(path, declaration)
            self.problems += _some(self.in_two, "such dialogues")
            self.notes += _some(self.twice, "such dialogues")
            self.notes += _some(self.differing, "such dialogues")
            self.notes += [describe_skipped(*item) for item in self.skipped.items() if item[1]]
            self._compare(declaration)
            self._keep_both_ends(section["tasks"])
            if not self.problems:
                self._read_as_a_study(declaration)
            self._note_turns(declaration)
        problems = list(dict.fromkeys(self.problems))
        text = self._printed(section, guessed)
        return Checked(text, problems, self.notes, list(guessed.example))

    def _note_guess(self, guessed: Guess, train: Path) -> None:
        self.notes += guessed.notes
        others = [name for name in guessed.unused if name not in guessed.texts]
        if guessed.texts:
            self.notes.append(f"{train}: texts that no model reads: {_listing(guessed.texts)}")
        if others:
            self.notes.append(f"{train}: fields that nothing here reads: {_listing(others)}")

    def _note_turns(self, declaration: Declaration) -> None:
        total = sum(self.dialogues.values())
        if 2 * self.short > total:
            remedy = "the list of a row's turns (dialogue.turns)"
            if declaration.dialogue.turns is None:
                remedy += ", or the field that names the dialogue of a row (dialogue.id)"
            self.notes.append(
                f"{self.short:,} of {total:,} dialogues have one turn; if that is not so, name "
                f"{remedy}"
            )

    def _declaration(self, guessed: Guess) -> dict[str, Any]:
        files: dict[str, object] = {}
        for path, split in self.splits.items():
            before = files.get(split)
            files[split] = str(path) if before is None else [*_listed(before), str(path)]
        shares = {} if "test" in files else {"shares": {"test": 0.2}}
        return {"files": files, **shares, "dialogue": guessed.dialogue, "tasks": guessed.tasks}

    def _with_scope(self, section: dict[str, Any], declaration: Declaration) -> Declaration:
        """Return the declaration, in which names of dialogues are those of a split or a file if
        they start anew there."""
        dialogue = declaration.dialogue
        if dialogue.id is None or len(self.files) < 2:
            return declaration
        scope = guess_scope(
            [(split, read_texts(self._readable(p), dialogue)) for p, split in self.splits.items()]
        )
        if scope is None:
            return declaration
        per, names = scope
        name = {"field": dialogue.id_field, "per": per}
        section["dialogue"] = {**section["dialogue"], "id": name}
        self.notes.append(
            f"{dialogue.id_field}: names of dialogues start anew in each {per} ({names:,} are in "
            f"two with other texts); read as such (dialogue.id.per: {per})"
        )
        return Declaration.model_validate(section)

    # --- lines that cannot be read ---

    def _look_through(self, path: Path, file: DataFile) -> list[SourceRow]:
        """Note what is wrong with the lines of a file; return the first rows that can be read."""
        first, broken = list[SourceRow](), list[str]()
        try:
            for row in read_rows(file, self.notes, broken):
                self.rows += 1
                if len(first) < GUESSED_FROM:
                    first.append(row)
        except DataError as error:
            broken.append(str(error))
        self.problems += _some(broken)
        if not first:
            raise DataError("\n".join(dict.fromkeys(self.problems)))
        return first

    def _readable(self, path: Path) -> Iterator[SourceRow]:
        """The rows of a file up to one that cannot be read, which is noted already."""
        with suppress(DataError):
            yield from read_rows(self.files[path], problems=[])

    # --- dialogues and answers ---

    def _read(self, path: Path, declaration: Declaration) -> None:
        split, problems = self.splits[path], list[str]()
        readers = [TaskReader(task, section) for task, section in declaration.tasks.items()]
        rows = self._readable(path)
        groups: Iterable[Iterable[SourceRow]] = ([row] for row in rows)
        if declaration.dialogue.by_turn:
            groups = [rows]
        for group in groups:
            if len(problems) >= MAX_BROKEN_LINES:
                break
            try:
                name = f"{split}-{path.name}"
                for dialogue in dialogues_of(group, declaration.dialogue, name, split):
                    self.empty += len(dialogue.empty)
                    if not dialogue.turns:
                        continue
                    self._note(dialogue, split)
                    self.short += len(dialogue.turns) == 1
                    problems += self._answers(dialogue, readers, split)
            except DataError as error:
                problems.append(str(error))
        self.problems += _some(problems)
        for reader in readers:
            self.skipped[reader.name] += reader.skipped

    def _answers(
        self, dialogue: DeclaredDialogue, readers: Sequence[TaskReader], split: str
    ) -> Iterator[str]:
        answers: Answers = {}
        for reader in readers:
            try:
                for instance in reader.instances(dialogue):
                    answers.setdefault(reader.name, []).append(instance.target)
                    counts = self.labels.setdefault(reader.name, {}).setdefault(split, Counter())
                    counts.update(instance.target)
                    where = dialogue.location.place
                    if split != "train":
                        for label in instance.target:
                            self.first.setdefault((reader.name, label), where)
            except DataError as error:
                yield str(error)
        self._compare_answers(dialogue, answers)

    def _compare_answers(self, dialogue: DeclaredDialogue, answers: Answers) -> None:
        """Note answers that differ from those of an earlier dialogue that says the same."""
        where, text = dialogue.location.place, digest_of(normalise_text(dialogue.words))
        before, earlier = self.answers.setdefault(text, (where, answers))
        for task, answer in answers.items():
            if earlier.get(task, answer) != answer:
                self.differing.append(
                    f"{where}: says the same as {before}, and {task} is "
                    f"{_first_difference(answer, earlier[task])}"
                )

    def _note(self, dialogue: DeclaredDialogue, split: str) -> None:
        self.dialogues[split] += 1
        self.turns += len(dialogue.turns)
        where = dialogue.location.place
        if (length := self.tokens(dialogue.context)) > self.limit:
            self.long.append(f"{where}: {length:,} tokens")
        plain = normalise_text(dialogue.words)
        for key, what in ((f"name {dialogue.id}", "name"), (f"text {digest_of(plain)}", "text")):
            before = self.seen.setdefault(key, (split, where))
            if before[1] == where:
                continue
            short = what == "text" and count_words(dialogue.words) < LEAST_WORDS
            if before[0] == split and what == "name":
                self.in_two.append(
                    f"{where}: dialogue {dialogue.id!r} is there already ({before[1]}); give each "
                    "its own name"
                )
            elif before[0] == split:
                self.twice.append(f"{where}: says the same as {before[1]}, a duplicate in {split}")
            elif short:
                self.twice.append(
                    f"{where}: says the same as {before[1]} of {before[0]}, in fewer than "
                    f"{LEAST_WORDS} words, which people may well say twice"
                )
            else:
                self.in_two.append(
                    f"{where}: the dialogue is in {split} and, by its {what}, in {before[0]} "
                    f"({before[1]}); keep it in one of them"
                )
            return

    def _merge_spellings(self, task: str) -> None:
        """Count spellings of one label together."""
        by_split = self.labels[task]
        spellings = merge_spellings(label for counts in by_split.values() for label in counts)
        if not spellings:
            return
        self.notes += describe_spellings(task, spellings)
        for split, counts in by_split.items():
            merged = Counter[str]()
            for label, count in counts.items():
                merged[spellings.get(label, label)] += count
            by_split[split] = merged
        for spelling, label in spellings.items():
            if where := self.first.get((task, spelling)):
                self.first.setdefault((task, label), where)

    def _compare(self, declaration: Declaration) -> None:
        for task, by_split in self.labels.items():
            section = declaration.tasks[task]
            if section.kind in WITHOUT_LABELS:
                continue
            self._merge_spellings(task)
            self.notes += describe_missing(task, sum(by_split.values(), Counter[str]()))
            train = by_split.get("train", Counter())
            for split, counts in by_split.items():
                for label in counts.keys() - train.keys():
                    self.problems.append(
                        f"{self.first[task, label]}: {label!r} of {task} is in {split}, and train "
                        "never has it; mend it, or list all labels under labels"
                    )
        if self.long:
            share = 100 * len(self.long) / max(sum(self.dialogues.values()), 1)
            self.notes.append(
                f"{len(self.long):,} dialogues ({share:.0f} %) are longer than {self.limit:,} "
                "tokens and are cut there: " + "; ".join(self.long[:3])
            )

    def _keep_both_ends(self, tasks: dict[str, dict[str, Any]]) -> None:
        """Declare that both ends of a dialogue are read, for labels of whole dialogues, if many
        dialogues are cut: their label may be about either end."""
        if len(self.long) <= MOST_CUT * sum(self.dialogues.values()):
            return
        chosen = [name for name, task in tasks.items() if task["kind"] in OF_DIALOGUES]
        for name in chosen:
            tasks[name] = {**tasks[name], "keeps": "both"}
        if chosen:
            self.notes.append(
                f"{', '.join(chosen)}: dialogues that are too long keep both ends (keeps: both); "
                "set start or end if the label is about that part"
            )

    def _read_as_a_study(self, declaration: Declaration) -> None:
        """Whatever else a study would be refused for, such as labels that differ in case alone."""
        try:
            source = source_of(declaration, f"datasets.{self.name}")
            survey = survey_of(declaration, source, self.name, "", None)
        except DataError as error:
            self.problems.append(str(error))
        else:
            self.notes += [note for note in survey.told if note not in self.notes]

    # --- what is printed ---

    def _printed(self, section: Mapping[str, Any], guessed: Guess) -> str:
        sizes = ", ".join(f"{count:,} {split}" for split, count in self.dialogues.items())
        head = f"# {sizes} dialogues, {self.turns:,} turns\n"
        if not sizes:
            head = f"# {self.rows:,} rows, no task found\n"
        body = write_yaml({"datasets": {self.name: section}})
        body, heading, tasks = body.partition("\n    tasks:")
        for task in guessed.tasks:
            counts = sum(self.labels.get(task, {}).values(), Counter[str]())
            note = _of_labels(counts or guessed.counts[task], guessed.tasks[task]["kind"])
            if task in guessed.numbers and guessed.tasks[task]["kind"] != "multiple_choice":
                what = guessed.numbers[task]
                note += f"; {what} in the file, taken as labels (or a rating: kind: rating, scale)"
            key = write_yaml({task: {}}).removesuffix(" {}\n")
            tasks = tasks.replace(f"\n      {key}\n", f"\n      {key}  {comment(note)}\n", 1)
        return head + body + heading + tasks


def _first_difference(answer: Sequence[Target], earlier: Sequence[Target]) -> str:
    """Return the first answers of two dialogues that differ: "'a' here and 'b' there"."""
    pairs = zip_longest(answer, earlier, fillvalue=())
    here, there = next((pair for pair in pairs if pair[0] != pair[1]), ((), ()))
    return f"{', '.join(here)!r:.60} here and {', '.join(there)!r:.60} there"


def _of_labels(counts: Counter[str], kind: str) -> str:
    if kind in ("question_answering", "span", "multiple_choice"):
        return f"{sum(counts.values()):,} answers"
    most = ", ".join(f"{label:.40} ({count:,})" for label, count in counts.most_common(5))
    text = f"{len(counts)} labels: {most}{', ...' if len(counts) > 5 else ''}"
    if counts and max(counts.values()) > UNEVEN * min(counts.values()):
        text += (
            f"; the largest is {max(counts.values()) / min(counts.values()):.0f} times the smallest"
        )
    return text


def _splits(paths: Sequence[Path]) -> dict[Path, str]:
    """File → its split, by its name or that of its folder; the first is train if none is."""
    splits = {}
    for path in paths:
        words = re.split(r"[^a-z]+", path.name.lower())
        splits[path] = next((SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS), "train")
    if "train" not in splits.values():
        splits[paths[0]] = "train"
    return splits


def _listing(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join([*names[:SHOWN], *([f"and {more:,} more"] if more > 0 else [])])


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _some(problems: list[str], what: str = "of the same file") -> list[str]:
    """The first problems of a kind, and how many more there are."""
    more = len(problems) - SHOWN
    return [*problems[:SHOWN], *([f"and {more:,} more {what}"] if more > 0 else [])]
