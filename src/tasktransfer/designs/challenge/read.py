"""Reader and validator of submissions, which reports all problems and not only the first.

Rows are matched to instances by id, in any order. The release repeats a few ids: the k-th row with
such an id answers the k-th instance with it, in the order of the test split. So a file must contain
an id exactly as often as the split (see ``format``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.designs.challenge.files import Files, read_files
from tasktransfer.designs.challenge.findings import Findings, quote_excerpt
from tasktransfer.designs.challenge.format import BASELINE_FILE, FILES, get_value_kind
from tasktransfer.designs.challenge.golds import Golds, TaskGolds
from tasktransfer.designs.challenge.parse import (
    INVALID,
    Fault,
    Prediction,
    has_decimal_point,
    parse,
)
from tasktransfer.designs.challenge.rows import Rows, read_rows
from tasktransfer.errors import DataError

Predictions = list[Prediction | None]
"""One entry per instance of the test split, in its order; None without a usable row."""

Parsed = dict[str, Prediction | Fault]
"""Parsed result of each text in a file's second column."""

ID_MISMATCHES = ("unknown-id", "missing-id")
"""Kinds of findings that indicate another version of the release."""

_HEADER_WORD = re.compile(
    "(instance)?(id|ids|index)|instances?|pred(icted|ictions?|s)?|labels?|answers?|outputs?|values?"
)


@dataclass(slots=True)
class Submission:
    """A submission as read from its files.

    ``dataset`` is "" if no task folder determines it. ``files`` has predictions by task and file
    name, for the readable files.
    """

    name: str
    dataset: str = ""
    files: dict[str, dict[str, Predictions]] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    @property
    def valid(self) -> bool:
        """True if the file has no errors."""
        return not self.findings.errors

    def no_answers(self, task: str, file: str) -> int:
        """Return the number of a task's instances with -1 (no valid answer) in ``file``."""
        if get_task(self.dataset, task).kind == "span":
            return 0
        return sum(INVALID in (prediction or ()) for prediction in self.files[task][file])


def read_submission(
    path: Path,
    load_golds: Callable[[str], Golds],
    *,
    dataset: str | None = None,
    shared_ids: bool = False,
) -> Submission:
    """Read the zip or folder ``path`` and report all its problems.

    Args:
        path: the archive, or a folder with the layout of one.
        load_golds: function from a dataset to its test split; called once, when the folders have
            determined the dataset.
        dataset: the required dataset; None to accept any.
        shared_ids: whether ids that only the file or only the release has are warnings instead of
            errors, for an archive that was made with another version of the release.

    Raises:
        DataError: the release cannot be read, or ``dataset`` is unknown. Errors of the submission
            are never raised; they are in ``findings``.
    """
    if dataset is not None and dataset not in DATASETS:
        raise DataError(
            f"{dataset!r} is not a dataset of the challenge. Choose one of {', '.join(DATASETS)}."
        )
    submission = Submission(path.name or str(path))
    findings = submission.findings
    files = read_files(path, findings)
    if not files.names:
        if not findings.errors:
            findings.error("", None, "empty-archive", "contains no files")
        return submission
    top = _find_top_folder(files.names)
    if top:
        text = "contains the task folders, which belong at the top; pack from inside this folder"
        findings.error(top, None, "nested-folder", text)
    submission.dataset = dataset or _find_dataset(files.names, top, findings)
    if submission.dataset:
        golds = load_golds(submission.dataset)
        _check_names(files, top, golds, findings)
        for name, task in golds.tasks.items():
            paths = {file: f"{top}{name}/{file}" for file in FILES}
            submission.files[name] = {
                file: _FileReader(task, at, findings, shared_ids).read(files.contents[at])
                for file, at in paths.items()
                if at in files.contents
            }
    return submission


# --- folders and files ---------------------------------------------------------------------------


def _find_top_folder(names: list[str]) -> str:
    """Return the folder around the task folders, with its slash; "" if there is none."""
    tasks = {task for dataset in DATASETS.values() for task in dataset.tasks}
    for name in names:
        folders = name.split("/")[:-1]
        depth = next((depth for depth, folder in enumerate(folders) if folder in tasks), None)
        if depth is not None:
            top = "/".join([*folders[:depth], ""])
            return top if all(other.startswith(top) for other in names) else ""
    return ""


def _find_dataset(names: list[str], top: str, findings: Findings) -> str:
    """Return the dataset with the most task folders; "" if neither or both have the most."""
    folders = {name.removeprefix(top).split("/")[0] for name in names if "/" in name}
    counts = {name: len(folders & set(each.tasks)) for name, each in DATASETS.items()}
    best, *others = sorted(counts, key=lambda dataset: -counts[dataset])
    if not counts[best]:
        findings.error(
            "",
            None,
            "no-tasks",
            "has no folder named after a task; a submission needs one for each task, for example "
            f"with {next(iter(DATASETS[best].tasks))}/{BASELINE_FILE}",
        )
        return ""
    if any(counts[other] == counts[best] for other in others):
        text = f"has folders of {' and '.join(counts)}; submit each dataset separately"
        findings.error("", None, "mixed-datasets", text)
        return ""
    return best


def _check_names(files: Files, top: str, golds: Golds, findings: Findings) -> None:
    """Report missing and extra task folders and files."""
    inside: dict[str, list[str]] = {}
    for name in files.names:
        folder, slash, file = name.removeprefix(top).partition("/")
        if slash:
            inside.setdefault(folder, []).append(file)
        else:
            note = findings.warn if files.from_folder else findings.error
            note(name, None, "extra-file", "is outside the task folders; remove it")
    for folder in inside:
        if folder not in golds.tasks:
            findings.error(top + folder, None, "extra-task", _describe_extra_task(folder, golds))
    for task in golds.tasks:
        if task not in inside:
            findings.error(top + task, None, "missing-task", "is missing; add its folder")
            continue
        for file in FILES:
            if file not in inside[task]:
                findings.error(f"{top}{task}/{file}", None, "missing-file", "is missing; add it")
        for file in inside[task]:
            if file not in FILES:
                text = f"is neither {' nor '.join(FILES)}; remove it, or rename it"
                findings.error(f"{top}{task}/{file}", None, "extra-file", text)


def _describe_extra_task(folder: str, golds: Golds) -> str:
    for dataset, other in DATASETS.items():
        if folder in other.tasks and dataset != golds.dataset:
            return f"is a task of {dataset}; this submission is of {golds.dataset}"
    if folder in DATASETS[golds.dataset].tasks:
        return f"is a task that this release of {golds.dataset} does not annotate"
    by_case = {task.casefold(): task for task in golds.tasks}
    near = get_close_matches(folder.casefold(), by_case, n=1)
    meant = (
        f", did you mean {by_case[near[0]]}?" if near else f"; they are {', '.join(golds.tasks)}"
    )
    return f"is no task of {golds.dataset}{meant}"


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FileReader:
    """Reader of one prediction file of a task; ``file`` is its path in messages."""

    task: TaskGolds
    file: str
    findings: Findings
    shared_ids: bool

    def read(self, data: bytes) -> Predictions:
        card = self.task.task
        rows = read_rows(data, get_value_kind(card), self.task.places, self.file, self.findings)
        if rows is None:
            return [None] * len(self.task.answers)
        parsed = {text: parse(card, text) for text in set(rows.values) if text is not None}
        rows = self._drop_header(rows)
        predictions = self._predictions(rows, parsed)
        if rows.ids != self.task.row_ids:
            predictions = self._in_order(rows, predictions)
        return _group_by_instance(predictions, self.task.rows_per_instance)

    def _drop_header(self, rows: Rows) -> Rows:
        """Return the rows without a header row, which is reported."""
        if not rows.ids or rows.ids[0] in self.task.places:
            return rows
        name, value = rows.ids[0], rows.values[0] or ""
        words = [re.sub(r"[\W_]", "", text.lower()) for text in (name, value)]
        is_header = any(map(_HEADER_WORD.fullmatch, words))
        fault = parse(self.task.task, value)
        if isinstance(fault, Fault) and fault.kind == "wrong-type":
            is_header |= not any(character.isdigit() for character in value)
        if not is_header:
            return rows
        text = f"{quote_excerpt(f'{name},{value}')} is a header; remove this line"
        self.findings.error(self.file, rows.lines[0], "header", text)
        return Rows(rows.ids[1:], rows.values[1:], rows.lines[1:])

    def _predictions(self, rows: Rows, parsed: Parsed) -> Predictions:
        """Parse the prediction of each row; invalid ones are reported."""
        faults = {text: it for text, it in parsed.items() if isinstance(it, Fault)}
        valid = {text: it for text, it in parsed.items() if not isinstance(it, Fault)}
        dotted = {text for text in valid if has_decimal_point(self.task.task, text)}
        dotted_lines: list[int] = []
        if faults or dotted:
            for name, text, line in zip(rows.ids, rows.values, rows.lines, strict=True):
                if text in dotted:
                    dotted_lines.append(line)
                elif text in faults:
                    fault = faults[text]
                    message = f"{quote_excerpt(name)}: {fault.text}"
                    self.findings.error(self.file, line, fault.kind, message)
        message = "whole numbers are written with a decimal point; write integers"
        self.findings.warn_of_lines(self.file, "number-format", message, dotted_lines)
        return [None if text is None else valid.get(text) for text in rows.values]

    def _in_order(self, rows: Rows, predictions: Predictions) -> Predictions:
        """Return the predictions in the order of the test split; wrong ids are reported."""
        in_order: Predictions = [None] * len(self.task.row_ids)
        lines_of: dict[str, list[int]] = {}
        unknown: list[tuple[str, int]] = []
        for name, text, line, prediction in zip(
            rows.ids, rows.values, rows.lines, predictions, strict=True
        ):
            places = self.task.places.get(name)
            if places is None:
                if text is not None:  # a faulty line is already reported
                    unknown.append((name, line))
                continue
            lines = lines_of.setdefault(name, [])
            if len(lines) < len(places):
                in_order[places[len(lines)]] = prediction
            else:
                message = _describe_duplicate(name, lines[0], len(places))
                self.findings.error(self.file, line, "duplicate-id", message)
            lines.append(line)
        self._note_unknown(unknown)
        self._note_missing(lines_of)
        return in_order

    def _note_unknown(self, unknown: list[tuple[str, int]]) -> None:
        if self.shared_ids and unknown:
            name, line = unknown[0]
            self.findings.warn(
                self.file,
                line,
                "unknown-id",
                f"{len(unknown):,} rows are ignored because their ids are not in this release's "
                f"test split; the first is {quote_excerpt(name)}",
            )
            return
        card = self.task.task
        for name, line in unknown:
            text = f"{quote_excerpt(name)} is not an id of the test split of {card.name}"
            if card.outputs and f"{name}_{card.outputs[0]}" in self.task.places:
                text += f"; write one row per trait, {name}_{card.outputs[0]} and so on"
            self.findings.error(self.file, line, "unknown-id", text)

    def _note_missing(self, lines_of: dict[str, list[int]]) -> None:
        missing = {
            name: len(places) - len(lines_of.get(name, ()))
            for name, places in self.task.places.items()
            if len(lines_of.get(name, ())) < len(places)
        }
        if self.shared_ids and missing:
            self.findings.warn(
                self.file,
                None,
                "missing-id",
                f"{sum(missing.values()):,} of {len(self.task.row_ids):,} rows are missing, so "
                "their instances are not scored; the first is "
                f"{quote_excerpt(next(iter(missing)))}",
            )
            return
        for name, count in missing.items():
            needed, text = len(self.task.places[name]), "is missing"
            if count < needed:
                text = f"has {needed - count} of {needed} rows, one for each instance with this id"
            self.findings.error(
                self.file, None, "missing-id", f"{quote_excerpt(name)} {text}; add it"
            )


def _describe_duplicate(name: str, first: int, allowed: int) -> str:
    text = f"{quote_excerpt(name)} is a duplicate id, first in line {first}; "
    if allowed == 1:
        return f"{text}keep one row"
    return f"{text}the test split has {allowed} instances with this id; keep {allowed} rows"


def _group_by_instance(rows: Sequence[Prediction | None], each: int) -> Predictions:
    """Group rows by instance; an instance with missing rows has no prediction."""
    if each == 1:
        return list(rows)
    together: Predictions = []
    for start in range(0, len(rows), each):
        traits = [row for row in rows[start : start + each] if row is not None]
        together.append(sum(traits, ()) if len(traits) == each else None)
    return together
