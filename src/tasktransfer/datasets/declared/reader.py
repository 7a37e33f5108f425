"""Conversion of a declaration to a dataset: its task cards, its reader and its sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tasktransfer.core.identity import compute_digest
from tasktransfer.datasets.dataset import Dataset, Reader, Release, TaskSize, TurnLength
from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue
from tasktransfer.datasets.declared.sampling import compute_sampling_number
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.datasets.declared.source import Source, open_source
from tasktransfer.datasets.declared.survey import (
    VERSION,
    Survey,
    get_survey,
    get_survey_path,
    read_cached_survey,
    select_dialogues,
)
from tasktransfer.datasets.declared.task_section import TaskSection
from tasktransfer.datasets.file_digests import combine_digests
from tasktransfer.errors import DataError
from tasktransfer.files.fields import Location
from tasktransfer.tasks.card import SPLITS, Instance, MetricSpec, Prompt, Task
from tasktransfer.tasks.compose import TOKENS_PER_WORD

AVERAGES = ("micro", "macro", "weighted")
SPAN_TOKENS, REPLY_TOKENS = 64, 64
MIN_ANSWER_TOKENS = 8


def build_dataset(name: str, declaration: Declaration, memory: Path | None) -> Dataset:
    """Return the dataset that a config declares.

    Args:
        name: name of the dataset in the config.
        declaration: the declaration.
        memory: folder that caches surveys (``survey``) and file digests. The cached survey is used
            if the files have been deleted. None for no cache.

    Raises:
        DataError: the files are missing or damaged. The message names file, line or row, and value.
    """
    memo = memory and get_survey_path(memory, name, declaration)
    digests = memory and memory / "digests.json"
    key = f"datasets.{name}"
    try:
        source = open_source(declaration, key)
        survey = get_survey(declaration, source, name, source.compute_digest(digests), memo)
    except DataError:
        known = read_cached_survey(memo) if memo else None
        if known is None or _are_files_readable(declaration, key):
            raise
        survey = known
    reader = _DeclaredReader(name, declaration, survey)
    return Dataset(
        name=name,
        cards=tuple(
            _build_card(name, task, section, survey) for task, section in declaration.tasks.items()
        ),
        reader=Reader(
            version=VERSION, find=reader.find, revision=reader.revision, open=reader.open
        ),
        sizes={
            task: _build_size(task, section, survey) for task, section in declaration.tasks.items()
        },
        sizes_from="the declared files",
        few_sample_share=_compute_few_sample_fraction(survey),
        has_own_files=True,
        notes=tuple(survey.notes),
        declaration=declaration,
    )


def _are_files_readable(declaration: Declaration, key: str) -> bool:
    try:
        open_source(declaration, key).compute_digest(None)
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
        """Return the digest of the files' content and of the settings for reading them.

        The fields of a task's answers are part of its card.
        """
        source = open_source(self.declaration, self.key)
        return _compute_revision(self.declaration, source, source.compute_digest(memo), self.survey)

    def open(self, folder: Path, few_sample: bool) -> Release:
        source, survey = open_source(self.declaration, self.key), self.survey
        digest = source.compute_digest(None)
        if digest != survey.digest:
            raise DataError(
                f"{source.location}: The file has changed since the start of this command. Start "
                "the command again, and do not change the file while it runs."
            )
        return Release(
            location=source.location,
            revision=_compute_revision(self.declaration, source, digest, survey),
            tasks=tuple(self.declaration.tasks),
            dialogues=survey.few_dialogues if few_sample else survey.dialogues,
            instances=lambda task, split: self._read_instances(task, split, few_sample),
            turns=self._read_turn_lengths(few_sample),
            notes=tuple(survey.notes),
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
            if limit is None or self._compute_few_sample_number(dialogue) < limit:
                yield from reader.locate_instances(dialogue)

    def _read_turn_lengths(self, few_sample: bool) -> Iterator[TurnLength]:
        for split in SPLITS:
            limits = [
                limit[split] for limit in self.survey.few.values() if few_sample and split in limit
            ]
            for dialogue in self._read_dialogues(split):
                used = not limits or self._compute_few_sample_number(dialogue) < max(limits)
                for number, turn in enumerate(dialogue.turns):
                    speakers = (turn.speaker,) if turn.speaker else ()
                    words = len(turn.text.split())
                    yield TurnLength(dialogue.id, split, used, str(number), speakers, words)

    def _read_dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        source = open_source(self.declaration, self.key)
        return select_dialogues(source, split, self.survey.splitting)

    def _compute_few_sample_number(self, dialogue: DeclaredDialogue) -> int:
        section = self.declaration.few_sample
        return compute_sampling_number(dialogue.id, section.seed if section else 0, "few")


def _compute_revision(declaration: Declaration, source: Source, digest: str, survey: Survey) -> str:
    """Compute the digest of the files' content and of the settings for reading them.

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


def _build_card(dataset: str, name: str, section: TaskSection, survey: Survey) -> Task:
    labels = _list_labels(name, section, survey)
    words = name.replace("_", " ")
    fields = " ".join(f"{{{field}}}" for field in _list_query_fields(section))
    query = section.query if section.query is not None else _build_query(section, fields)
    asks = "question: {question} " if section.question else ""
    options = "{options} " if section.kind == "multiple_choice" else ""
    others = "" if section.question or not fields else f"{fields} "
    trait = " {trait}" if section.kind == "multi_output" else ""
    ends = "answer" if section.kind == "span" else words
    default_prompt = f"{asks}{others}{options}{ends}{trait}:" if section.kind != "reply" else ""
    return Task(
        name=name,
        short=section.short or name,
        dataset=dataset,
        kind=section.kind,
        labels=labels,
        metrics=tuple(_build_metric(name, section) for name in section.measures),
        query=query,
        prompt=Prompt(
            section.prompt if section.prompt is not None else default_prompt,
            max_answer_tokens=_estimate_answer_tokens(name, section, labels, survey),
            joiner=" and " if not any(" and " in f" {label} " for label in labels) else " ; ",
        ),
        description=section.description
        or f"{words[:1].upper()}{words[1:]} of {dataset}, as declared.",
        citation="the user's own files",
        licence="as the user's files",
        paper_metrics=section.measures,
        outputs=tuple(section.outputs or ()),
        every_mention=section.kind == "span",
        answers_in=_compute_answer_fields_digest(section),
        keeps=_KEEPS[section.keeps or "end"],
    )


_KEEPS: Mapping[str, Literal["beginning", "end", "both"]] = {
    "start": "beginning",
    "end": "end",
    "both": "both",
}
"""Value of ``keeps`` in a declaration → value of ``keeps`` in a card."""


def _compute_answer_fields_digest(section: TaskSection) -> str:
    """Return the digest of the answer fields of a task, which its card does not contain."""
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


def _build_query(section: TaskSection, fields: str) -> str:
    joined = fields.replace("} {", "} ; {")
    return f"{fields} {{option}}".strip() if section.kind == "multiple_choice" else joined


def _build_metric(name: str, section: TaskSection) -> MetricSpec:
    average = name.partition("_")[0]
    unanswerable = (section.unanswerable,) if section.unanswerable else ()
    if average in AVERAGES:
        return MetricSpec(name.removeprefix(f"{average}_"), average, None, unanswerable)  # type: ignore[arg-type]
    return MetricSpec(name, None, None, unanswerable)  # type: ignore[arg-type]


def _estimate_answer_tokens(
    name: str, section: TaskSection, labels: tuple[str, ...], survey: Survey
) -> int:
    """Return an upper bound on the number of tokens in an answer.

    It is one per two characters plus two, and four times as much for answers with several labels.
    Spans and replies have a fixed bound.
    """
    if section.kind in ("span", "reply"):
        return SPAN_TOKENS if section.kind == "span" else REPLY_TOKENS
    several = 4 if section.kind == "multi_label" else 1
    longest = max((len(label) for label in labels), default=0)
    return max(MIN_ANSWER_TOKENS, several * (math.ceil(longest / 2) + 2))


def _build_size(name: str, section: TaskSection, survey: Survey) -> TaskSize:
    counts = survey.few_instances.get(name) or survey.instances[name]
    sequences = survey.options.get(name, 1)
    tokens = max(4, round((survey.words[name] + 2) * TOKENS_PER_WORD)) * sequences
    return TaskSize(counts["train"], counts["dev"], counts["test"], tokens, sequences)


def _compute_few_sample_fraction(survey: Survey) -> float:
    """Return the few-sample fraction of the first task's training instances.

    Forecasts for the full data divide by it.
    """
    for task, counts in survey.few_instances.items():
        return counts["train"] / survey.instances[task]["train"]
    return 1.0
