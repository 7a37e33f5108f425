"""Conversion of a declaration to a dataset: its task cards, its reader and its sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tasktransfer.core.digests import compute_digest
from tasktransfer.datasets.dataset import Dataset, Reader, Release, TaskSize, TurnLength
from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue
from tasktransfer.datasets.declared.draws import compute_number
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.datasets.declared.source import Source, open_source
from tasktransfer.datasets.declared.survey import (
    TOKENS_A_WORD,
    VERSION,
    Survey,
    get_survey,
    name_memo,
    read_memo,
    select_dialogues,
)
from tasktransfer.datasets.declared.task_section import TaskSection
from tasktransfer.datasets.file_digests import combine_digests
from tasktransfer.errors import DataError
from tasktransfer.files.fields import Location
from tasktransfer.tasks.card import SPLITS, Instance, MetricSpec, Prompt, Task

AVERAGES = ("micro", "macro", "weighted")
SPAN_TOKENS, REPLY_TOKENS = 64, 64
LEAST_ANSWER = 8


def build_dataset(name: str, declaration: Declaration, memory: Path | None) -> Dataset:
    """Return the dataset that a config declares.

    Args:
        name: name of the dataset in the config.
        declaration: the declaration.
        memory: folder that caches surveys (``survey``) and file digests. If the files are gone, the
            cached survey is used. None for no cache.

    Raises:
        DataError: its files are missing or damaged; names file, line or row, value and remedy.
    """
    memo = memory and name_memo(memory, name, declaration)
    digests = memory and memory / "digests.json"
    key = f"datasets.{name}"
    try:
        source = open_source(declaration, key)
        survey = get_survey(declaration, source, name, source.digest(digests), memo)
    except DataError:
        known = read_memo(memo) if memo else None
        if known is None or _is_there(declaration, key):
            raise
        survey = known
    asked = _DeclaredReader(name, declaration, survey)
    return Dataset(
        name=name,
        cards=tuple(
            _make_card(name, task, section, survey) for task, section in declaration.tasks.items()
        ),
        reader=Reader(version=VERSION, find=asked.find, revision=asked.revision, open=asked.open),
        sizes={
            task: _make_size(task, section, survey) for task, section in declaration.tasks.items()
        },
        sizes_from="the declared files",
        few_sample_share=_compute_few_share(survey),
        has_own_files=True,
        told=tuple(survey.told),
        declaration=declaration,
    )


def _is_there(declaration: Declaration, key: str) -> bool:
    try:
        open_source(declaration, key).digest(None)
    except DataError:
        return False
    return True


@dataclass(frozen=True)
class _DeclaredReader:
    """Reader of a declared dataset. It ignores the folder of releases."""

    name: str
    declaration: Declaration
    survey: Survey

    @property
    def key(self) -> str:
        return f"datasets.{self.name}"

    def find(self, folder: Path) -> str:
        return open_source(self.declaration, self.key).location

    def revision(self, folder: Path, memo: Path | None) -> str:
        """Return the digest of the content and of the way it is read.

        The fields of a task's answers are part of its card.
        """
        source = open_source(self.declaration, self.key)
        return _compute_revision(self.declaration, source, source.digest(memo), self.survey)

    def open(self, folder: Path, few_sample: bool) -> Release:
        source, survey = open_source(self.declaration, self.key), self.survey
        digest = source.digest(None)
        if digest != survey.digest:
            raise DataError(
                f"{source.location}: The file changed after this command had started. Start "
                "the command again, and do not change the file while it runs."
            )
        return Release(
            location=source.location,
            revision=_compute_revision(self.declaration, source, digest, survey),
            tasks=tuple(self.declaration.tasks),
            dialogues=survey.few_dialogues if few_sample else survey.dialogues,
            instances=lambda task, split: self._read_instances(task, split, few_sample),
            turns=self._read_turn_lengths(few_sample),
            told=tuple(survey.told),
            query={
                task: _list_query_fields(section)
                for task, section in self.declaration.tasks.items()
            },
            places=lambda task, split: (
                location.place for _, location in self._locate_instances(task, split, few_sample)
            ),
        )

    def _read_instances(self, task: str, split: str, few_sample: bool) -> Iterator[Instance]:
        for instance, _ in self._locate_instances(task, split, few_sample):
            yield instance

    def _locate_instances(
        self, task: str, split: str, few_sample: bool
    ) -> Iterator[tuple[Instance, Location]]:
        section, spellings = self.declaration.tasks[task], self.survey.spellings
        reader = TaskReader(task, section, spellings=spellings.get(task, {}))
        limit = self.survey.few.get(task, {}).get(split) if few_sample else None
        for dialogue in self._read_dialogues(split):
            if limit is None or self._get_few_number(dialogue) < limit:
                yield from reader.locate_instances(dialogue)

    def _read_turn_lengths(self, few_sample: bool) -> Iterator[TurnLength]:
        for split in SPLITS:
            limits = [of[split] for of in self.survey.few.values() if few_sample and split in of]
            for dialogue in self._read_dialogues(split):
                used = not limits or self._get_few_number(dialogue) < max(limits)
                for number, turn in enumerate(dialogue.turns):
                    speakers = (turn.speaker,) if turn.speaker else ()
                    words = len(turn.text.split())
                    yield TurnLength(dialogue.id, split, used, str(number), speakers, words)

    def _read_dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        source = open_source(self.declaration, self.key)
        return select_dialogues(source, split, self.survey.splitting)

    def _get_few_number(self, dialogue: DeclaredDialogue) -> int:
        section = self.declaration.few_sample
        return compute_number(dialogue.id, section.seed if section else 0, "few")


def _compute_revision(declaration: Declaration, source: Source, digest: str, survey: Survey) -> str:
    """Return the digest of the content and of the way it is read.

    Parts that concern duplicates, rare labels, spellings or lists in cells are left out if the
    files have none.
    """
    content = {"version": VERSION, "splits": list(source.splits), **declaration.reading}
    moved, spellings = survey.splitting.moved, survey.spellings
    content |= {"moved": dict(moved)} if moved else {}
    content |= {"spellings": spellings} if spellings else {}
    content |= {"cells": survey.cells} if survey.cells else {}
    return combine_digests({"files": digest, "reading": compute_digest(content)})


# --- cards and sizes ----------------------------------------------------------------------------


def _make_card(dataset: str, name: str, section: TaskSection, survey: Survey) -> Task:
    labels = _list_labels(name, section, survey)
    words = name.replace("_", " ")
    fields = " ".join(f"{{{field}}}" for field in _list_query_fields(section))
    query = section.query if section.query is not None else _make_query(section, fields)
    asks = "question: {question} " if section.question else ""
    options = "{options} " if section.kind == "multiple_choice" else ""
    others = "" if section.question or not fields else f"{fields} "
    trait = " {trait}" if section.kind == "multi_output" else ""
    ends = "answer" if section.kind == "span" else words
    usual = f"{asks}{others}{options}{ends}{trait}:" if section.kind != "reply" else ""
    return Task(
        name=name,
        short=section.short or name,
        dataset=dataset,
        kind=section.kind,
        labels=labels,
        metrics=tuple(_make_metric(name, section) for name in section.measures),
        query=query,
        prompt=Prompt(
            section.prompt if section.prompt is not None else usual,
            max_answer_tokens=_count_answer_tokens(name, section, labels, survey),
            joiner=" and " if not any(" and " in f" {label} " for label in labels) else " ; ",
        ),
        description=section.description
        or f"{words[:1].upper()}{words[1:]} of {dataset}, as declared.",
        citation="the user's own files",
        licence="as the user's files",
        paper_metrics=section.measures,
        outputs=tuple(section.outputs or ()),
        every_mention=section.kind == "span",
        answers_in=_digest_answer_fields(section),
        keeps=_KEEPS[section.keeps or "end"],
    )


_KEEPS: Mapping[str, Literal["beginning", "end", "both"]] = {
    "start": "beginning",
    "end": "end",
    "both": "both",
}
"""Value of ``keeps`` in a declaration → value of ``keeps`` in a card."""


def _digest_answer_fields(section: TaskSection) -> str:
    """Return the digest of the fields of a task's answers, which the card has nowhere else."""
    places = {"label", "question", "options", "outputs", "fields"}
    keys = places | {"missing", "missing_values", "unanswerable"}
    return compute_digest(section.model_dump(include=keys, exclude_defaults=True))[:16]


def _list_labels(name: str, section: TaskSection, survey: Survey) -> tuple[str, ...]:
    match section.kind:
        case "span" | "reply":
            return ()
        case "rating":
            assert section.scale is not None
            return tuple(f"{end:g}" for end in section.scale)
        case "multiple_choice":
            return tuple(map(str, range(survey.options[name])))
    return section.labels or tuple(survey.labels[name])


def _list_query_fields(section: TaskSection) -> tuple[str, ...]:
    return (*(["question"] if section.question else []), *section.fields)


def _make_query(section: TaskSection, fields: str) -> str:
    parted = fields.replace("} {", "} ; {")
    return f"{fields} {{option}}".strip() if section.kind == "multiple_choice" else parted


def _make_metric(name: str, section: TaskSection) -> MetricSpec:
    average = name.partition("_")[0]
    unanswerable = (section.unanswerable,) if section.unanswerable else ()
    if average in AVERAGES:
        return MetricSpec(name.removeprefix(f"{average}_"), average, None, unanswerable)  # type: ignore[arg-type]
    return MetricSpec(name, None, None, unanswerable)  # type: ignore[arg-type]


def _count_answer_tokens(
    name: str, section: TaskSection, labels: tuple[str, ...], survey: Survey
) -> int:
    """Return an upper bound on the tokens of an answer: one per two characters, and two more.

    Answers with several labels get four times as many. Spans and replies have a fixed bound.
    """
    if section.kind in ("span", "reply"):
        return SPAN_TOKENS if section.kind == "span" else REPLY_TOKENS
    several = 4 if section.kind == "multi_label" else 1
    longest = max((len(label) for label in labels), default=0)
    return max(LEAST_ANSWER, several * (math.ceil(longest / 2) + 2))


def _make_size(name: str, section: TaskSection, survey: Survey) -> TaskSize:
    counts = survey.few_instances.get(name) or survey.instances[name]
    sequences = survey.options.get(name, 1)
    tokens = max(4, round((survey.words[name] + 2) * TOKENS_A_WORD)) * sequences
    return TaskSize(counts["train"], counts["dev"], counts["test"], tokens, sequences)


def _compute_few_share(survey: Survey) -> float:
    """Return the few-sample fraction of the first task's training instances.

    Forecasts for the full data divide by it.
    """
    for task, counts in survey.few_instances.items():
        return counts["train"] / survey.instances[task]["train"]
    return 1.0
