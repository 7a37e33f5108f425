"""Answers that quote dialogues, with a code in place of each word: what may be passed on.

Exact match and token-F1 count which words two answers have in common, and nothing else of them. So
every word, normalised as the metrics do, becomes ``w1``, ``w2`` and so on: scores, intervals and
comparisons of runs are the same, and nobody can read the dialogue. Right answers are coded first,
so that runs of one test set have the same codes in theirs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from tasktransfer.core.fidelity import Scoring
from tasktransfer.metrics import tally
from tasktransfer.metrics.labels import Sums
from tasktransfer.metrics.texts import normalise_answer
from tasktransfer.results.rows import answers
from tasktransfer.tasks.card import Task

FIDELITIES: tuple[Scoring, ...] = ("default", "tlidb")


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
        place = changed.schema.get_field_index(name)
        column = pa.array(texts, rows.schema.field(name).type)
        changed = changed.set_column(place, rows.schema.field(name), column)
    return changed if _alike(rows, changed, task) else None


def _coded(text: str, codes: dict[str, str], phrases: Iterable[str]) -> str:
    normal = normalise_answer(text)
    for phrase in phrases:
        if f"{normal} ".startswith(f"{phrase} "):
            return phrase
    return " ".join(codes.setdefault(word, f"w{len(codes) + 1}") for word in normal.split())


def _alike(rows: pa.Table, changed: pa.Table, task: Task) -> bool:
    """Whether every instance adds the same to every measure."""
    return all(
        np.array_equal(_tally(rows, task, fidelity), _tally(changed, task, fidelity))
        for fidelity in FIDELITIES
    )


def _tally(rows: pa.Table, task: Task, fidelity: Scoring) -> Sums:
    return tally(task, answers(rows["prediction"]), answers(rows["gold"]), fidelity=fidelity)
