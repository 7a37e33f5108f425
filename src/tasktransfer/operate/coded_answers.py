"""Answers that quote dialogues, with a code in place of each word: what may be passed on.

Scores, intervals and comparisons of runs are the same (``metrics.word_codes``). Right answers are
coded first, so that runs of one test set have the same codes in theirs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from tasktransfer.core.fidelity import Scoring
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.metrics import tally
from tasktransfer.metrics.labels import Sums
from tasktransfer.metrics.word_codes import WordCodes, quotes_dialogues
from tasktransfer.results.rows import answers, rows_of
from tasktransfer.results.schema import Record
from tasktransfer.tasks.card import Task

FIDELITIES: tuple[Scoring, ...] = ("default", "tlidb")


def shareable(file: Path, record: Record, rows: pa.Table) -> pa.Table:
    """Rows that quote no dialogue. What is no label may, and is coded or refused.

    Args:
        file: where the rows are from, for messages.

    Raises:
        RecordError: an answer is free text, which may quote a dialogue.
    """
    parts = []
    for name in dict.fromkeys(rows["task"].to_pylist()):
        task, of_task = _task(record["node"]["dataset"], name), rows_of(rows, name)
        if task is None or not quotes_dialogues(task):
            _refuse_text(file, of_task, "gold", task)
        in_codes = coded(of_task, task) if task is not None else None
        if in_codes is None:
            for column in ("gold", "prediction"):
                _refuse_text(file, of_task, column, task)
        parts.append(of_task if in_codes is None else in_codes)
    return pa.concat_tables(parts) if parts else rows


def _refuse_text(file: Path, rows: pa.Table, column: str, task: Task | None) -> None:
    for texts in rows[column].to_pylist():
        if not all(_is_label(text, task) for text in texts):
            raise RecordError(
                f"{file}: {rows['task'][0]}: the {column} {texts[0][:40]!r} is no label of the "
                "task and may quote a dialogue; where that may be passed on: --with-text"
            )


def _is_label(text: str, task: Task | None) -> bool:
    """Whether an answer is one of its task's labels, or a number where that may be a rating."""
    if task is not None and task.labels and task.kind != "rating":
        return text in task.labels
    try:
        float(text)
    except ValueError:
        return False
    return True


def _task(dataset: str, name: str) -> Task | None:
    try:
        return get_task(dataset, name)
    except ConfigError:  # rows of a control beside those of a task
        return None


def coded(rows: pa.Table, task: Task) -> pa.Table | None:
    """The rows of a task in codes: all answers where they are words of the dialogue; of a task with
    labels the predictions that are none, which a model may generate.

    Args:
        rows: columns of ``rows.COLUMNS``, of this task alone.

    Returns:
        The same table with other texts in ``prediction`` and ``gold``; None where the codes would
        not give the same scores in every fidelity, or answers are free text of another kind.
    """
    quoting, codes, changed = quotes_dialogues(task), WordCodes(task), rows
    if not quoting and not task.labels:
        return None
    for name in ("gold", "prediction") if quoting else ("prediction",):
        texts = [
            [codes.of(text) if quoting or not _is_label(text, task) else text for text in t]
            for t in rows[name].to_pylist()
        ]
        position = changed.schema.get_field_index(name)
        column = pa.array(texts, rows.schema.field(name).type)
        changed = changed.set_column(position, rows.schema.field(name), column)
    return changed if _alike(rows, changed, task) else None


def _alike(rows: pa.Table, changed: pa.Table, task: Task) -> bool:
    """Whether every instance adds the same to every measure."""
    return all(
        np.array_equal(_tally(rows, task, fidelity), _tally(changed, task, fidelity))
        for fidelity in FIDELITIES
    )


def _tally(rows: pa.Table, task: Task, fidelity: Scoring) -> Sums:
    return tally(task, answers(rows["prediction"]), answers(rows["gold"]), fidelity=fidelity)
