"""Read and validate a submission: everything that is wrong is found, not the first thing only.

Which row answers which instance: by the id, in any order. The release repeats a few ids; the k-th
row with such an id answers the k-th instance with it, in the order of the test split, so that an
id has to stand in a file exactly as often as in the split (see ``format``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.designs.transfer.challenge.findings import Findings, excerpt
from tasktransfer.designs.transfer.challenge.format import (
    BASELINE_FILE,
    FILES,
    INVALID,
    TRANSFER_FILE,
    column,
)
from tasktransfer.designs.transfer.challenge.golds import Golds, TaskGolds
from tasktransfer.designs.transfer.challenge.members import Members, read_members
from tasktransfer.designs.transfer.challenge.rows import Rows, is_header, read_rows
from tasktransfer.designs.transfer.challenge.values import Parsed, parser
from tasktransfer.errors import DataError

Predictions = list[tuple[str, ...] | None]
"""One entry per instance of the test split, in its order; None where there is no usable row."""


@dataclass(slots=True)
class Submission:
    """A submission as it was read. ``dataset`` is "" where no task folder tells it; ``files``:
    task → file name → predictions, for the files that could be read."""

    name: str
    dataset: str = ""
    files: dict[str, dict[str, Predictions]] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.findings.errors

    def no_answers(self, task: str, file: str) -> int:
        """How many instances of a task have -1, no valid answer, in ``file``."""
        if get_task(self.dataset, task).kind == "span":
            return 0
        return sum(INVALID in (found or ()) for found in self.files[task][file])


def read_submission(
    path: Path,
    golds_of: Callable[[str], Golds],
    *,
    dataset: str | None = None,
    shared_ids: bool = False,
) -> Submission:
    """Read the zip or folder ``path`` and note all that is wrong with it.

    Args:
        path: the archive, or a folder laid out as one.
        golds_of: dataset → its test split; asked once, when the folders have told the dataset.
        dataset: the dataset that the submission has to be of; None: whichever it is of.
        shared_ids: ids that only the file or only the release has are warnings and not errors,
            for an archive that was made with another version of the release.

    Raises:
        DataError: the release cannot be read, or ``dataset`` is unknown. Errors of the submission
            are never raised; they are in ``findings``.
    """
    if dataset is not None and dataset not in DATASETS:
        raise DataError(f"unknown dataset {dataset!r}; the datasets are {', '.join(DATASETS)}")
    submission = Submission(path.name or str(path))
    findings = submission.findings
    members = read_members(path, findings)
    if not members.names:
        if not findings.errors:
            findings.error("", None, "empty-archive", "holds no file")
        return submission
    top = _top_folder(members.names)
    if top:
        findings.error(
            top,
            None,
            "nested-folder",
            "holds the task folders; they have to stand at the top: pack from inside this folder",
        )
    submission.dataset = dataset or _dataset_of(members.names, top, findings) or ""
    if submission.dataset:
        golds = golds_of(submission.dataset)
        _check_names(members, top, golds, findings)
        for name, task in golds.tasks.items():
            submission.files[name] = _read_task(members, top + name, task, findings, shared_ids)
    return submission


# --- folders and files ---------------------------------------------------------------------------


def _top_folder(names: list[str]) -> str:
    """The folder that wraps the task folders, with its slash; "" where none does."""
    tasks = {task for each in DATASETS.values() for task in each.tasks}
    for name in names:
        parts = name.split("/")
        for depth, part in enumerate(parts[:-1]):
            if part in tasks:
                top = "/".join([*parts[:depth], ""])
                return top if all(other.startswith(top) for other in names) else ""
    return ""


def _dataset_of(names: list[str], top: str, findings: Findings) -> str | None:
    """The dataset with the most task folders among the names."""
    folders = {name.removeprefix(top).split("/")[0] for name in names if "/" in name}
    found = {dataset: len(folders & set(each.tasks)) for dataset, each in DATASETS.items()}
    best = max(found, key=lambda dataset: found[dataset])
    if not found[best]:
        findings.error(
            "",
            None,
            "no-tasks",
            "has no folder that is named after a task; a submission has one for each task, for "
            f"example {next(iter(DATASETS[best].tasks))}/{BASELINE_FILE}",
        )
        return None
    if list(found.values()).count(found[best]) > 1:
        findings.error(
            "", None, "mixed-datasets", f"has folders of {' and '.join(found)}; submit each alone"
        )
        return None
    return best


def _check_names(members: Members, top: str, golds: Golds, findings: Findings) -> None:
    """Missing and extra task folders and files."""
    inside: dict[str, list[str]] = {}
    for name in members.names:
        folder, slash, file = name.removeprefix(top).partition("/")
        if slash:
            inside.setdefault(folder, []).append(file)
        elif members.is_folder:
            findings.warn(name, None, "extra-file", "is in no task folder, and left aside")
        else:
            findings.error(name, None, "extra-file", "is in no task folder; leave it out")
    for folder in inside:
        if folder not in golds.tasks:
            findings.error(top + folder, None, "extra-task", _stranger(folder, golds))
    for task in golds.tasks:
        if task not in inside:
            findings.error(top + task, None, "missing-task", "is missing; it needs a folder")
            continue
        for file in FILES:
            if file not in inside[task]:
                findings.error(f"{top}{task}/{file}", None, "missing-file", "is missing")
        for file in inside[task]:
            if file not in FILES:
                findings.error(
                    f"{top}{task}/{file}",
                    None,
                    "extra-file",
                    f"is none of {' and '.join(FILES)}; leave it out, or name it so",
                )


def _stranger(folder: str, golds: Golds) -> str:
    for dataset, other in DATASETS.items():
        if dataset != golds.dataset and folder in other.tasks:
            return f"is a task of {dataset}; this submission is of {golds.dataset}"
    if folder in DATASETS[golds.dataset].tasks:
        return f"is a task that this release of {golds.dataset} does not annotate"
    by_case = {task.casefold(): task for task in golds.tasks}
    near = get_close_matches(folder.casefold(), by_case, n=1)
    they = ", ".join(golds.tasks)
    meant = f", did you mean {by_case[near[0]]}?" if near else f"; they are {they}"
    return f"is no task of {golds.dataset}{meant}"


# --- rows ----------------------------------------------------------------------------------------


def _read_task(
    members: Members, folder: str, task: TaskGolds, findings: Findings, shared_ids: bool
) -> dict[str, Predictions]:
    parse = parser(task.task)
    return {
        file: _read_file(
            members.contents[f"{folder}/{file}"],
            task,
            parse,
            f"{folder}/{file}",
            findings,
            shared_ids,
        )
        for file in (BASELINE_FILE, TRANSFER_FILE)
        if f"{folder}/{file}" in members.contents
    }


def _read_file(
    data: bytes,
    task: TaskGolds,
    parse: Callable[[str], Parsed],
    file: str,
    findings: Findings,
    shared_ids: bool,
) -> Predictions:
    rows = read_rows(data, column(task.task).kind, task.places, file, findings)
    if rows is None:
        return [None] * task.instances
    if rows.ids != task.row_ids:
        rows = _without_header(rows, task, parse, file, findings)
    parsed = _parse(rows, parse, file, findings)
    if rows.ids != task.row_ids:
        parsed = _in_order(rows, parsed, task, file, findings, shared_ids)
    return _by_instance(parsed, task.rows_per_instance)


def _without_header(
    rows: Rows, task: TaskGolds, parse: Callable[[str], Parsed], file: str, findings: Findings
) -> Rows:
    """The rows without a first one that names the columns, which is noted."""
    if not rows.ids or rows.ids[0] in task.places:
        return rows
    name, value = rows.ids[0], rows.values[0] or ""
    is_word = not any(c.isdigit() for c in value) and parse(value).kind == "wrong-type"
    if not (is_word or is_header(name, value)):
        return rows
    findings.error(
        file,
        rows.lines[0],
        "header",
        f"{excerpt(f'{name},{value}')} is a header; the files have none",
    )
    return Rows(rows.ids[1:], rows.values[1:], rows.lines[1:])


def _parse(
    rows: Rows, parse: Callable[[str], Parsed], file: str, findings: Findings
) -> Predictions:
    """The prediction of each row; what cannot be one is noted."""
    table = {value: parse(value) for value in set(rows.values) if value is not None}
    if all(parsed.prediction is not None and not parsed.quirk for parsed in table.values()):
        usable = {value: parsed.prediction for value, parsed in table.items()}
        return [usable.get(value) for value in rows.values]  # type: ignore[arg-type]
    quirks: dict[str, list[int]] = {}
    predictions: Predictions = []
    for name, value, line in zip(rows.ids, rows.values, rows.lines, strict=True):
        if value is None:
            predictions.append(None)
            continue
        parsed = table[value]
        predictions.append(parsed.prediction)
        if parsed.prediction is None:
            findings.error(file, line, parsed.kind, f"{excerpt(name)}: {parsed.problem}")
        elif parsed.quirk:
            quirks.setdefault(parsed.quirk, []).append(line)
    for quirk, lines in quirks.items():
        findings.warn(file, lines[0], "number-format", f"{len(lines):,} {quirk}")
    return predictions


def _in_order(
    rows: Rows,
    predictions: Predictions,
    task: TaskGolds,
    file: str,
    findings: Findings,
    shared_ids: bool,
) -> Predictions:
    """The predictions in the order of the test split; ids that do not fit are noted."""
    in_order: Predictions = [None] * len(task.row_ids)
    seen: dict[str, list[int]] = {}
    unknown: list[tuple[str, int]] = []
    for name, value, line, prediction in zip(
        rows.ids, rows.values, rows.lines, predictions, strict=True
    ):
        places = task.places.get(name)
        if places is None:
            if value is not None:  # a faulty line is noted already
                unknown.append((name, line))
            continue
        lines = seen.setdefault(name, [])
        if len(lines) < len(places):
            in_order[places[len(lines)]] = prediction
        else:
            findings.error(file, line, "duplicate-id", _too_often(name, lines, len(places)))
        lines.append(line)
    _note_unknown(unknown, task, file, findings, shared_ids)
    _note_missing(seen, task, file, findings, shared_ids)
    return in_order


def _too_often(name: str, lines: list[int], allowed: int) -> str:
    first = f"first in line {lines[0]}"
    if allowed == 1:
        return f"{excerpt(name)} is there already, {first}; one row an id"
    return f"{excerpt(name)} is there {allowed} times already, {first}; as often as in the split"


def _note_unknown(
    unknown: list[tuple[str, int]],
    task: TaskGolds,
    file: str,
    findings: Findings,
    shared_ids: bool,
) -> None:
    if shared_ids and unknown:
        name, line = unknown[0]
        findings.warn(
            file,
            line,
            "unknown-id",
            f"{len(unknown):,} rows have an id that this release's test split lacks, and are left "
            f"aside; the first is {excerpt(name)}",
        )
        return
    traits = task.task.outputs
    for name, line in unknown:
        hint = ""
        if traits and f"{name}_{traits[0]}" in task.places:
            hint = f"; there is a row for each trait, {name}_{traits[0]} and so on"
        findings.error(
            file,
            line,
            "unknown-id",
            f"{excerpt(name)} is no id of the test split of {task.task.name}{hint}",
        )


def _note_missing(
    seen: dict[str, list[int]],
    task: TaskGolds,
    file: str,
    findings: Findings,
    shared_ids: bool,
) -> None:
    missing = {
        name: (len(seen.get(name, ())), len(places))
        for name, places in task.places.items()
        if len(seen.get(name, ())) < len(places)
    }
    if shared_ids and missing:
        lacking = sum(needed - found for found, needed in missing.values())
        findings.warn(
            file,
            None,
            "missing-id",
            f"{lacking:,} of {len(task.row_ids):,} rows are missing, and their instances not "
            f"scored; the first is {excerpt(next(iter(missing)))}",
        )
        return
    for name, (found, needed) in missing.items():
        if found:
            text = f"is there {found} time(s), and the test split has {needed} instances with it"
        else:
            text = "is missing"
        findings.error(file, None, "missing-id", f"{excerpt(name)} {text}; add its row")


def _by_instance(rows: Predictions, each: int) -> Predictions:
    """Rows put together to instances; an instance without all of its rows has no prediction."""
    if each == 1:
        return rows
    together: Predictions = []
    for start in range(0, len(rows), each):
        answers = rows[start : start + each]
        whole = tuple(answer for part in answers if part is not None for answer in part)
        together.append(whole if None not in answers else None)
    return together


def id_mismatches(findings: Findings) -> Counter[str]:
    """File → how many of its ids do not fit the release: a sign of another version of it."""
    kinds = ("unknown-id", "missing-id")
    return Counter(finding.file for finding in findings.errors if finding.kind in kinds)
