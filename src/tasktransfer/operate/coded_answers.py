"""Replacement of the words in answers that quote dialogues by codes, so that they can be shared.

Scores, intervals and comparisons of runs stay the same (``metrics.texts``). Gold answers are
encoded first, so that all runs on one test set have the same codes for them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from tasktransfer.core.fidelity import Scoring
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.metrics import tally_instances
from tasktransfer.metrics.labels import Sums
from tasktransfer.metrics.texts import WordCodes, quotes_dialogues
from tasktransfer.results.rows import encode_answers, select_task_rows
from tasktransfer.results.schema import Record
from tasktransfer.tasks.card import Task

FIDELITIES: tuple[Scoring, ...] = ("default", "tlidb")


def remove_quotations(file: Path, record: Record, rows: pa.Table) -> pa.Table:
    """Return rows in which codes replace all quotations from dialogues.

    Answers that are not labels may quote a dialogue. They are encoded or rejected.

    Args:
        file: source of the rows, for messages.

    Raises:
        RecordError: an answer is free text, which may quote a dialogue.
    """
    parts = []
    for name in dict.fromkeys(rows["task"].to_pylist()):
        task, of_task = _find_task(record["node"]["dataset"], name), select_task_rows(rows, name)
        if task is None or not quotes_dialogues(task):
            _reject_free_text(file, of_task, "gold", task)
        in_codes = encode_rows(of_task, task) if task is not None else None
        if in_codes is None:
            for column in ("gold", "prediction"):
                _reject_free_text(file, of_task, column, task)
        parts.append(of_task if in_codes is None else in_codes)
    return pa.concat_tables(parts) if parts else rows


def _reject_free_text(file: Path, rows: pa.Table, column: str, task: Task | None) -> None:
    """Raise RecordError if an answer in a column is not a label or number of the task."""
    for texts in rows[column].to_pylist():
        if not all(_is_label(text, task) for text in texts):
            raise RecordError(
                f"{file}: The {column} {texts[0][:40]!r} is not a label of the task "
                f"{rows['task'][0]}, so it may quote a dialogue. If you may share this text, add "
                "--with-text."
            )


def _is_label(text: str, task: Task | None) -> bool:
    """Return whether an answer is a label of its task, or a number for a task with ratings."""
    if task is not None and task.labels and task.kind != "rating":
        return text in task.labels
    try:
        float(text)
    except ValueError:
        return False
    return True


def _find_task(dataset: str, name: str) -> Task | None:
    try:
        return get_task(dataset, name)
    except ConfigError:  # rows of a control
        return None


def encode_rows(rows: pa.Table, task: Task) -> pa.Table | None:
    """Encode the answers of a task's rows.

    If the task's answers quote dialogues, all answers are encoded. If it has labels, only generated
    predictions that are not labels are encoded.

    Args:
        rows: columns of ``rows.COLUMNS``, for this task only.

    Returns:
        The table with codes in ``prediction`` and ``gold``. None if the codes would change a score
        in some fidelity, or if answers are free text of another kind.
    """
    quoting, codes, changed = quotes_dialogues(task), WordCodes(task), rows
    if not quoting and not task.labels:
        return None
    for name in ("gold", "prediction") if quoting else ("prediction",):
        texts = [
            [
                codes.encode_text(text) if quoting or not _is_label(text, task) else text
                for text in t
            ]
            for t in rows[name].to_pylist()
        ]
        position = changed.schema.get_field_index(name)
        column = pa.array(texts, rows.schema.field(name).type)
        changed = changed.set_column(position, rows.schema.field(name), column)
    return changed if _is_equivalent(rows, changed, task) else None


def _is_equivalent(rows: pa.Table, changed: pa.Table, task: Task) -> bool:
    """Return whether each instance contributes equally to every measure in both tables."""
    return all(
        np.array_equal(_tally_rows(rows, task, fidelity), _tally_rows(changed, task, fidelity))
        for fidelity in FIDELITIES
    )


def _tally_rows(rows: pa.Table, task: Task, fidelity: Scoring) -> Sums:
    return tally_instances(
        task, encode_answers(rows["prediction"]), encode_answers(rows["gold"]), fidelity=fidelity
    )
