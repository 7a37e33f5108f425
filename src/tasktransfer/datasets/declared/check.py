"""Check of a user's files before a study: a declaration to copy, and all problems with their lines.

No row is dropped silently.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tasktransfer.core.identity import compute_digest
from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue, read_dialogues
from tasktransfer.datasets.declared.duplicates import guess_scope, read_text_digests
from tasktransfer.datasets.declared.files import DataFile, assign_splits, check_file
from tasktransfer.datasets.declared.input_lengths import (
    SPECIAL_TOKENS,
    TextsCounter,
    count_tokens_by_turn,
)
from tasktransfer.datasets.declared.lengths import DialogueLengths, set_truncation_by_task
from tasktransfer.datasets.declared.row_fields import SourceRow
from tasktransfer.datasets.declared.rows import MAX_BROKEN_LINES, read_rows
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.datasets.declared.skipped import describe_skipped_items
from tasktransfer.datasets.declared.source import open_source
from tasktransfer.datasets.declared.spellings import (
    describe_merged_spellings,
    describe_missing_words,
    merge_spellings,
)
from tasktransfer.datasets.declared.survey import KINDS_WITHOUT_LABELS, get_survey
from tasktransfer.datasets.disjoint_splits import MIN_WORDS, count_words, normalise_text
from tasktransfer.datasets.guess.check_text import (
    DeclarationCounts,
    Target,
    describe_difference,
    explain_missing_label,
    format_declaration,
    format_first_names,
    shorten_problems,
)
from tasktransfer.datasets.guess.declaration import Guess, guess_declaration
from tasktransfer.errors import DataError
from tasktransfer.tasks.compose import estimate_tokens

MAX_GUESS_ROWS = 2000
"""Maximum number of rows from which a declaration is guessed."""
Answers = dict[str, list[Target]]
"""Task → the gold answers of a dialogue's instances."""


@dataclass
class CheckResult:
    """Result of a check.

    Args:
        text: declaration as YAML, with comments.
        problems: errors that a study would raise, each with file and line.
        notes: facts about the files that a user should know, each with file and line.
        dialogue: lines that show a dialogue as it is read.
    """

    text: str
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    dialogue: list[str] = field(default_factory=list)


def check_files(
    paths: Sequence[Path],
    name: str,
    limit: int | None = 512,
    tokens: TextsCounter | None = None,
    *,
    skip_missing: bool = False,
    skip_empty: bool = False,
    task: str | None = None,
) -> CheckResult:
    """Check the files of a new dataset, and return a declaration with problems and notes.

    Args:
        paths: files or folders (``assign_splits``).
        name: name of the dataset.
        limit: maximum sequence length of a model, in tokens. None if it is not known yet, so that
            truncation is not reported.
        tokens: function that counts the tokens of texts. None for an estimate: the number of
            words times BERT's word pieces per word.
        skip_missing: whether dialogues without a label are skipped. Otherwise they are a problem.
            Turns without a label are always skipped.
        skip_empty: whether turns without text are skipped. Otherwise they are a problem, unless
            they seem to be intended.
        task: the only task to declare and check. None for every field that looks like a label.

    Raises:
        DataError: a file is missing, its format is not supported, or no row of it can be read.
    """
    return _FileCheck(paths, name, limit, tokens, skip_missing, skip_empty, task).run()


class _FileCheck:
    """Check of the files of a dataset, with the problems and notes found so far."""

    def __init__(
        self,
        paths: Sequence[Path],
        name: str,
        limit: int | None,
        tokens: TextsCounter | None,
        skip_missing: bool,
        skip_empty: bool,
        task: str | None,
    ) -> None:
        self.splits = assign_splits(paths)
        self.files = {path: check_file(path, "the command line") for path in self.splits}
        self.name, self.limit, self.task = name, limit, task
        self.skip_missing, self.skip_empty = skip_missing, skip_empty
        self.count_tokens = tokens or (lambda texts: [round(estimate_tokens(t)) for t in texts])
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.seen: dict[str, tuple[str, str]] = {}
        self.counts = DeclarationCounts()
        self.empty = self.short = 0
        self.first: dict[tuple[str, str], str] = {}
        self.inputs = defaultdict[str, DialogueLengths](DialogueLengths)
        self.in_two_splits: list[str] = []
        self.repeated: dict[str, str] = {}
        self.differing: list[str] = []
        self.answers: dict[str, tuple[str, Answers]] = {}

    def run(self) -> CheckResult:
        rows = {path: self._read_first_rows(path, file) for path, file in self.files.items()}
        train = next(path for path, split in self.splits.items() if split == "train")
        try:
            guess_result = guess_declaration(rows[train], str(train))
        except DataError as error:
            raise DataError("\n".join([*self.problems, str(error)])) from None
        if self.task is not None:
            tasks = {self.task: guess_result.tasks[self.task]}
            guess_result = replace(guess_result, tasks=tasks)
        section = self._build_declaration(guess_result)
        self._report_guess(guess_result, train)
        try:
            declaration = Declaration.model_validate(section)
        except ValidationError as error:
            declaration = None
            problem = error.errors()[0]["msg"]
            if not guess_result.tasks:
                problem = explain_missing_label([row.values for row in rows[train]])
            self.problems.append(f"{train}: {problem}")
        if declaration is not None:
            declaration = self._add_name_scope(section, declaration)
            readers = [TaskReader(task, model) for task, model in declaration.tasks.items()]
            for path in self.files:
                self._read_dialogues(path, declaration, readers)
            self.problems += shorten_problems(self.in_two_splits, "such dialogues")
            self.notes += shorten_problems([*self.repeated.values()], "such dialogues")
            self.notes += shorten_problems(self.differing, "such dialogues")
            self.notes += [note for reader in readers for note in describe_skipped_items(reader)]
            self._check_labels(declaration)
            if self.limit is not None:
                turns = declaration.dialogue.turns
                told = set_truncation_by_task(section["tasks"], self.inputs, self.limit, turns)
                self.notes += dict.fromkeys(chain.from_iterable(told.values()))
            if not self.problems:
                self._check_as_study(declaration)
            self._report_single_turns(declaration)
        problems = list(dict.fromkeys(self.problems))
        text = format_declaration(self.name, section, guess_result, self.counts)
        return CheckResult(text, problems, self.notes, list(guess_result.example))

    def _report_guess(self, guess_result: Guess, train: Path) -> None:
        self.notes += guess_result.notes
        others = [name for name in guess_result.unused if name not in guess_result.texts]
        if guess_result.texts:
            self.notes.append(
                f"{train}: unused text fields: {format_first_names(guess_result.texts)}"
            )
        if others:
            self.notes.append(f"{train}: unused fields: {format_first_names(others)}")

    def _report_single_turns(self, declaration: Declaration) -> None:
        total = self.counts.dialogues.total()
        if 2 * self.short > total:
            remedy = "Set dialogue.turns to the list of turns in a row"
            if declaration.dialogue.turns is None:
                remedy += ", or dialogue.id to the field that names a row's dialogue"
            self.notes.append(
                f"{self.short:,} of {total:,} dialogues "
                f"{'has' if self.short == 1 else 'have'} one turn. {remedy}, if they have more."
            )

    def _build_declaration(self, guess_result: Guess) -> dict[str, Any]:
        files: dict[str, object] = {}
        for path, split in self.splits.items():
            before = files.get(split)
            files[split] = str(path) if before is None else [*_as_list(before), str(path)]
        shares = {} if "test" in files else {"shares": {"test": 0.2}}
        tasks = guess_result.tasks
        if self.skip_missing:
            tasks = {name: {**task, "missing": "skip"} for name, task in tasks.items()}
        dialogue = guess_result.dialogue | ({"skip": "empty"} if self.skip_empty else {})
        return {"files": files, **shares, "dialogue": dialogue, "tasks": tasks}

    def _add_name_scope(self, section: dict[str, Any], declaration: Declaration) -> Declaration:
        """Return the declaration, with the scope of dialogue names if they restart.

        Names that restart in each split or file are unique only within it.
        """
        dialogue = declaration.dialogue
        if dialogue.id is None or len(self.files) < 2:
            return declaration
        scope = guess_scope(
            [
                (split, read_text_digests(self._read_valid_rows(p), dialogue))
                for p, split in self.splits.items()
            ]
        )
        if scope is None:
            return declaration
        per, names = scope
        name = {"field": dialogue.id_field, "per": per}
        section["dialogue"] = {**section["dialogue"], "id": name}
        self.notes.append(
            f"{dialogue.id_field}: Dialogue names restart in each {per}, because {names:,} names "
            f"occur in two {per}s with different texts. The declaration has dialogue.id.per: {per}."
        )
        return Declaration.model_validate(section)

    # --- lines that cannot be read ---

    def _read_first_rows(self, path: Path, file: DataFile) -> list[SourceRow]:
        """Return the first readable rows of a file, and record the problems of its lines."""
        first, broken = list[SourceRow](), list[str]()
        try:
            for row in read_rows(file, self.notes, broken):
                self.counts.rows += 1
                if len(first) < MAX_GUESS_ROWS:
                    first.append(row)
        except DataError as error:
            broken.append(str(error))
        self.problems += shorten_problems(broken)
        if not first:
            raise DataError("\n".join(dict.fromkeys(self.problems)))
        return first

    def _read_valid_rows(self, path: Path) -> Iterator[SourceRow]:
        """Yield a file's rows up to the first unreadable row, whose problem is already reported."""
        with suppress(DataError):
            yield from read_rows(self.files[path], problems=[])

    # --- dialogues and answers ---

    def _read_dialogues(
        self, path: Path, declaration: Declaration, readers: Sequence[TaskReader]
    ) -> None:
        split, problems = self.splits[path], list[DataError | str]()
        rows = takewhile(lambda _: len(problems) < MAX_BROKEN_LINES, self._read_valid_rows(path))
        for dialogue in read_dialogues(
            *(rows, declaration.dialogue, f"{split}-{path.name}", split),
            report=problems.append,
        ):
            self.empty += len(dialogue.empty)
            if not dialogue.turns:
                continue
            self._record_dialogue(dialogue, split)
            self.short += len(dialogue.turns) == 1
            problems += self._read_answers(dialogue, readers, split)
        self.problems += shorten_problems([*map(str, problems)])

    def _read_answers(
        self, dialogue: DeclaredDialogue, readers: Sequence[TaskReader], split: str
    ) -> Iterator[str]:
        answers: Answers = {}
        tokens = {} if self.limit is None else count_tokens_by_turn(dialogue, self.count_tokens)
        for reader in readers:
            try:
                for instance in reader.read_instances(dialogue):
                    end = len(instance.context)
                    self.inputs[reader.name].add(
                        tokens.get(end, 0) + SPECIAL_TOKENS,
                        dialogue.location.place,
                        is_whole=end == len(dialogue.context),
                    )
                    answers.setdefault(reader.name, []).append(instance.target)
                    by_split = self.counts.labels.setdefault(reader.name, {})
                    by_split.setdefault(split, Counter()).update(instance.target)
                    where = dialogue.location.place
                    if split != "train":
                        for label in instance.target:
                            self.first.setdefault((reader.name, label), where)
            except DataError as error:
                yield str(error)
        self._compare_answers(dialogue, answers)

    def _compare_answers(self, dialogue: DeclaredDialogue, answers: Answers) -> None:
        """Record contradictory answers to dialogues that have the same text."""
        where, text = dialogue.location.place, compute_digest(normalise_text(dialogue.words))
        before, earlier = self.answers.setdefault(text, (where, answers))
        for task, answer in answers.items():
            if earlier.get(task, answer) != answer:
                self.repeated.pop(where, None)
                self.differing.append(
                    f"{where}: The dialogue has the same text as {before}, but {task} is "
                    f"{describe_difference(answer, earlier[task])}."
                )

    def _record_dialogue(self, dialogue: DeclaredDialogue, split: str) -> None:
        self.counts.dialogues[split] += 1
        self.counts.turns += len(dialogue.turns)
        where = dialogue.location.place
        plain = normalise_text(dialogue.words)
        for key, what in (
            (f"name {dialogue.id}", "name"),
            (f"text {compute_digest(plain)}", "text"),
        ):
            before = self.seen.setdefault(key, (split, where))
            if before[1] == where:
                continue
            short = what == "text" and count_words(dialogue.words) < MIN_WORDS
            if before[0] == split and what == "name":
                self.in_two_splits.append(
                    f"{where}: Dialogue {dialogue.id!r} is already at {before[1]}. Give each "
                    "dialogue its own name, or remove dialogue.id from the declaration."
                )
            elif before[0] == split:
                self.repeated[where] = f"{where}: The dialogue has the same text as {before[1]}."
            elif short:
                self.repeated[where] = (
                    f"{where}: The dialogue has the same text as {before[1]} of {before[0]}, but "
                    f"fewer than {MIN_WORDS} words, so it may be a coincidence."
                )
            else:
                self.in_two_splits.append(
                    f"{where}: The dialogue of {split} has the same {what} as one of {before[0]} "
                    f"({before[1]}). Keep it in one of them."
                )
            return

    def _merge_spellings(self, task: str) -> None:
        """Merge the counts of different spellings of one label."""
        by_split = self.counts.labels[task]
        spellings = merge_spellings(label for counts in by_split.values() for label in counts)
        if not spellings:
            return
        self.notes += describe_merged_spellings(task, spellings)
        for split, counts in by_split.items():
            merged = Counter[str]()
            for label, count in counts.items():
                merged[spellings.get(label, label)] += count
            by_split[split] = merged
        for spelling, label in spellings.items():
            if where := self.first.get((task, spelling)):
                self.first.setdefault((task, label), where)

    def _check_labels(self, declaration: Declaration) -> None:
        for task, by_split in self.counts.labels.items():
            section = declaration.tasks[task]
            if section.kind in KINDS_WITHOUT_LABELS:
                continue
            self._merge_spellings(task)
            self.notes += describe_missing_words(task, sum(by_split.values(), Counter[str]()))
            train = by_split.get("train", Counter())
            for split, counts in by_split.items():
                for label in counts.keys() - train.keys():
                    number = "once" if counts[label] == 1 else f"{counts[label]:,} times"
                    self.problems.append(
                        f"{self.first[task, label]}: The label {label!r} of {task} occurs {number} "
                        f"in {split} but never in train, so no model can learn it. Correct the "
                        "label, add training dialogues with it, or list all labels under "
                        f"datasets.{self.name}.tasks.{task}.labels."
                    )

    def _check_as_study(self, declaration: Declaration) -> None:
        """Record further problems for a study, such as labels that differ only in case."""
        try:
            source = open_source(declaration, f"datasets.{self.name}")
            survey = get_survey(declaration, source, self.name, "", None)
        except DataError as error:
            self.problems.append(str(error))
        else:
            self.notes += [note for note in survey.notes if note not in self.notes]


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]
