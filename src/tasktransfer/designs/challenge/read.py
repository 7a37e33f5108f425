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
    is_dotted_integer,
    parse_prediction,
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
    def is_valid(self) -> bool:
        """True if the submission has no errors."""
        return not self.findings.errors

    def count_no_answers(self, task: str, file: str) -> int:
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
            f"The dataset {dataset!r} is not part of the challenge. Choose one of "
            f"{', '.join(DATASETS)}."
        )
    submission = Submission(path.name or str(path))
    findings = submission.findings
    files = read_files(path, findings)
    if not files.names:
        if not findings.errors:
            text = "The submission contains no files. Pack a folder for each task."
            findings.add_error("", None, "empty-archive", text)
        return submission
    top = _find_top_folder(files.names)
    if top:
        text = (
            "The task folders are in this folder and not at the top. Pack the task folders from "
            "inside this folder."
        )
        findings.add_error(top, None, "nested-folder", text)
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
    """Return the folder around the task folders, with its slash, or "" if there is none."""
    tasks = {task for dataset in DATASETS.values() for task in dataset.tasks}
    for name in names:
        folders = name.split("/")[:-1]
        depth = next((depth for depth, folder in enumerate(folders) if folder in tasks), None)
        if depth is not None:
            top = "/".join([*folders[:depth], ""])
            return top if all(other.startswith(top) for other in names) else ""
    return ""


def _find_dataset(names: list[str], top: str, findings: Findings) -> str:
    """Return the dataset with the most task folders, or "" if there are none, or if two tie."""
    folders = {name.removeprefix(top).split("/")[0] for name in names if "/" in name}
    counts = {name: len(folders & set(each.tasks)) for name, each in DATASETS.items()}
    best, *others = sorted(counts, key=lambda dataset: -counts[dataset])
    if not counts[best]:
        findings.add_error(
            "",
            None,
            "no-tasks",
            "The submission has no folder that is named after a task. Add a folder for each task, "
            f"for example with {next(iter(DATASETS[best].tasks))}/{BASELINE_FILE}.",
        )
        return ""
    if any(counts[other] == counts[best] for other in others):
        text = (
            f"The submission has task folders of {' and '.join(counts)}. Submit each dataset "
            "separately."
        )
        findings.add_error("", None, "mixed-datasets", text)
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
            note = findings.add_warning if files.from_folder else findings.add_error
            note(name, None, "extra-file", "The file is outside the task folders. Remove the file.")
    for folder in inside:
        if folder not in golds.tasks:
            findings.add_error(
                top + folder, None, "extra-task", _describe_extra_task(folder, golds)
            )
    for task in golds.tasks:
        if task not in inside:
            text = "The folder of this task is missing. Add the folder."
            findings.add_error(top + task, None, "missing-task", text)
            continue
        for file in FILES:
            if file not in inside[task]:
                text = "The file is missing. Add the file."
                findings.add_error(f"{top}{task}/{file}", None, "missing-file", text)
        for file in inside[task]:
            if file not in FILES:
                text = f"The file is neither {' nor '.join(FILES)}. Remove or rename the file."
                findings.add_error(f"{top}{task}/{file}", None, "extra-file", text)


def _describe_extra_task(folder: str, golds: Golds) -> str:
    for dataset, other in DATASETS.items():
        if folder in other.tasks and dataset != golds.dataset:
            return (
                f"This is a task of {dataset}, but the submission is for {golds.dataset}. Remove "
                "the folder."
            )
    if folder in DATASETS[golds.dataset].tasks:
        return (
            f"This release of {golds.dataset} does not annotate the task. Remove the folder, or "
            "use the complete release."
        )
    by_case = {task.casefold(): task for task in golds.tasks}
    near = get_close_matches(folder.casefold(), by_case, n=1)
    remedy = (
        f"Did you mean {by_case[near[0]]}?"
        if near
        else f"Rename the folder to one of {', '.join(golds.tasks)}."
    )
    return f"The folder is not named after a task of {golds.dataset}. {remedy}"


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FileReader:
    """Reader of one prediction file of a task; ``file`` is its path in messages."""

    task: TaskGolds
    file: str
    findings: Findings
    shared_ids: bool

    def read(self, data: bytes) -> Predictions:
        """Return one prediction per test instance of a task, and add problems to ``findings``."""
        card = self.task.task
        rows = read_rows(data, get_value_kind(card), self.task.places, self.file, self.findings)
        if rows is None:
            return [None] * len(self.task.answers)
        texts = {text for text in rows.values if text is not None}
        parsed = {text: parse_prediction(card, text) for text in texts}
        rows = self._drop_header(rows)
        predictions = self._collect_predictions(rows, parsed)
        if rows.ids != self.task.row_ids:
            predictions = self._order_predictions(rows, predictions)
        return _group_by_instance(predictions, self.task.rows_per_instance)

    def _drop_header(self, rows: Rows) -> Rows:
        """Return the rows without a header row, and report the header as a problem."""
        if not rows.ids or rows.ids[0] in self.task.places:
            return rows
        name, value = rows.ids[0], rows.values[0] or ""
        words = [re.sub(r"[\W_]", "", text.lower()) for text in (name, value)]
        is_header = any(map(_HEADER_WORD.fullmatch, words))
        fault = parse_prediction(self.task.task, value)
        if isinstance(fault, Fault) and fault.kind == "wrong-type":
            is_header |= not any(character.isdigit() for character in value)
        if not is_header:
            return rows
        text = f"{quote_excerpt(f'{name},{value}')} is a header. Remove this line."
        self.findings.add_error(self.file, rows.lines[0], "header", text)
        return Rows(rows.ids[1:], rows.values[1:], rows.lines[1:])

    def _collect_predictions(self, rows: Rows, parsed: Parsed) -> Predictions:
        """Return the prediction of each row, or None for invalid rows, which are reported."""
        faults = {text: it for text, it in parsed.items() if isinstance(it, Fault)}
        valid = {text: it for text, it in parsed.items() if not isinstance(it, Fault)}
        dotted = {text for text in valid if is_dotted_integer(self.task.task, text)}
        dotted_lines: list[int] = []
        if faults or dotted:
            for name, text, line in zip(rows.ids, rows.values, rows.lines, strict=True):
                if text in dotted:
                    dotted_lines.append(line)
                elif text in faults:
                    fault = faults[text]
                    message = f"{quote_excerpt(name)}: {fault.text}"
                    self.findings.add_error(self.file, line, fault.kind, message)
        message = "The integer is written with a decimal point. Remove the decimal point."
        self.findings.add_line_warning(self.file, "number-format", message, dotted_lines)
        return [None if text is None else valid.get(text) for text in rows.values]

    def _order_predictions(self, rows: Rows, predictions: Predictions) -> Predictions:
        """Return the predictions in the order of the test split, and report unexpected IDs."""
        ordered: Predictions = [None] * len(self.task.row_ids)
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
                ordered[places[len(lines)]] = prediction
            else:
                message = _describe_duplicate(name, lines[0], len(places))
                self.findings.add_error(self.file, line, "duplicate-id", message)
            lines.append(line)
        self._report_unknown_ids(unknown)
        self._report_missing_ids(lines_of)
        return ordered

    def _report_unknown_ids(self, unknown: list[tuple[str, int]]) -> None:
        if self.shared_ids and unknown:
            name, line = unknown[0]
            self.findings.add_warning(
                self.file,
                line,
                "unknown-id",
                f"Rows are ignored ({len(unknown):,}) if their ids are not in this release's test "
                f"split. The first of these ids is {quote_excerpt(name)}.",
            )
            return
        card = self.task.task
        for name, line in unknown:
            remedy = "Remove the row."
            if card.outputs and f"{name}_{card.outputs[0]}" in self.task.places:
                remedy = f"Write one row per trait, {name}_{card.outputs[0]} and so on."
            text = f"{quote_excerpt(name)} is not an id of the test split of {card.name}. {remedy}"
            self.findings.add_error(self.file, line, "unknown-id", text)

    def _report_missing_ids(self, lines_of: dict[str, list[int]]) -> None:
        missing = {
            name: len(places) - len(lines_of.get(name, ()))
            for name, places in self.task.places.items()
            if len(lines_of.get(name, ())) < len(places)
        }
        if self.shared_ids and missing:
            self.findings.add_warning(
                self.file,
                None,
                "missing-id",
                f"The file lacks {sum(missing.values()):,} of {len(self.task.row_ids):,} rows, and "
                "instances without a row are not scored. The first missing id is "
                f"{quote_excerpt(next(iter(missing)))}.",
            )
            return
        for name, count in missing.items():
            needed, text = len(self.task.places[name]), "is missing. Add a row for it."
            if count < needed:
                text = (
                    f"has {needed - count} of {needed} rows. Add the others, so that every "
                    "instance with this id has a row."
                )
            self.findings.add_error(self.file, None, "missing-id", f"{quote_excerpt(name)} {text}")


def _describe_duplicate(name: str, first: int, allowed: int) -> str:
    text = f"{quote_excerpt(name)} is a duplicate id, which is first in line {first}."
    if allowed == 1:
        return f"{text} Keep one row."
    return (
        f"{text} The test split has {allowed} instances with this id. Keep {allowed} rows with it."
    )


def _group_by_instance(rows: Sequence[Prediction | None], size: int) -> Predictions:
    """Join every ``size`` rows into the prediction of one instance, or None if a row is missing."""
    if size == 1:
        return list(rows)
    grouped: Predictions = []
    for start in range(0, len(rows), size):
        traits = [row for row in rows[start : start + size] if row is not None]
        grouped.append(sum(traits, ()) if len(traits) == size else None)
    return grouped
