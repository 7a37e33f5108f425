"""Answers that quote dialogues, with a code in place of each word: what may be passed on.

Exact match and token-F1 count which words two answers have in common, and nothing else of them. So
every word, normalised as the metrics do, becomes ``w1``, ``w2`` and so on: scores, intervals and
comparisons of runs are the same, and nobody can read the dialogue. Right answers are coded first,
so that runs of one test set have the same codes in theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from tasktransfer.core.fidelity import Scoring
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.metrics import tally
from tasktransfer.metrics.labels import Sums
from tasktransfer.metrics.texts import normalise_answer
from tasktransfer.results.rows import answers, rows_of
from tasktransfer.results.schema import Record
from tasktransfer.tasks.card import Task

FIDELITIES: tuple[Scoring, ...] = ("default", "tlidb")


def shareable(file: Path, record: Record, rows: pa.Table) -> pa.Table:
    """Rows that quote no dialogue. Answers of a task with labels are labels; those of others are
    taken from the dialogues, and are coded or refused.

    Args:
        file: where the rows are from, for messages.

    Raises:
        RecordError: an answer is free text, which may quote a dialogue.
    """
    parts = []
    for name in dict.fromkeys(rows["task"].to_pylist()):
        task, of_task = _task(record["node"]["dataset"], name), rows_of(rows, name)
        in_codes = coded(of_task, task) if task is not None else None
        if in_codes is None:
            _refuse_text(file, name, of_task, task.labels if task is not None else ())
        parts.append(of_task if in_codes is None else in_codes)
    return pa.concat_tables(parts) if parts else rows


def _refuse_text(file: Path, name: str, rows: pa.Table, labels: Sequence[str]) -> None:
    for column in ("prediction", "gold"):
        for texts in rows[column].to_pylist():
            if not {*labels}.issuperset(text for text in texts if not _is_number(text)):
                raise RecordError(
                    f"{file}: {name}: the {column} {texts[0][:40]!r} is no label of the task "
                    "and may quote a dialogue; where that may be passed on: --with-text"
                )


def _is_number(text: str) -> bool:
    """Whether an answer is a rating."""
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
    """The rows of a task that is answered with words of the dialogue, in codes.

    Args:
        rows: columns of ``rows.COLUMNS``, of this task alone.

    Returns:
        The same table with other texts in ``prediction`` and ``gold``; None where the codes would
        not give the same scores in every fidelity, or the task is answered otherwise.
    """
    if task.kind != "span":
        return None
    phrases = {
        normalise_answer(phrase) for spec in task.metrics for phrase in spec.unanswerable_phrases
    }
    codes: dict[str, str] = {}
    changed = rows
    for name in ("gold", "prediction"):
        texts = [
            [_coded(text, codes, phrases) for text in several] for several in rows[name].to_pylist()
        ]
        position = changed.schema.get_field_index(name)
        column = pa.array(texts, rows.schema.field(name).type)
        changed = changed.set_column(position, rows.schema.field(name), column)
    return changed if _alike(rows, changed, task) else None


def _coded(text: str, codes: dict[str, str], phrases: Collection[str]) -> str:
    normal = normalise_answer(text)
    for phrase in phrases:
        if f"{normal} ".startswith(f"{phrase} "):
            return phrase
    # One scoring looks for such a phrase anywhere in an answer; its words are no dialogue's.
    named = {word for phrase in phrases for word in phrase.split()}
    return " ".join(
        word if word in named else codes.setdefault(word, f"w{len(codes) + 1}")
        for word in normal.split()
    )


def _alike(rows: pa.Table, changed: pa.Table, task: Task) -> bool:
    """Whether every instance adds the same to every measure."""
    return all(
        np.array_equal(_tally(rows, task, fidelity), _tally(changed, task, fidelity))
        for fidelity in FIDELITIES
    )


def _tally(rows: pa.Table, task: Task, fidelity: Scoring) -> Sums:
    return tally(task, answers(rows["prediction"]), answers(rows["gold"]), fidelity=fidelity)
