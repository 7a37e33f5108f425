"""Answers in coded form: distinct texts, and the code of each answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Task, compute_fraction

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CodedAnswers:
    """The answers of n instances, with one or several answers each.

    Args:
        texts: distinct texts.
        codes: positions in ``texts`` of all answers of all instances, shape (answers,).
        starts: positions in ``codes`` at which each instance's answers begin, shape (n + 1,).
    """

    texts: Sequence[str]
    codes: Counts
    starts: Counts

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Counts:
        """Number of answers of each instance, shape (n,)."""
        return np.diff(self.starts)

    @property
    def rows(self) -> Counts:
        """Index of each answer's instance, shape (answers,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def get_answers(self, position: int) -> tuple[str, ...]:
        """Return an instance's answers."""
        codes = self.codes[self.starts[position] : self.starts[position + 1]]
        return tuple(self.texts[code] for code in codes)


Answers = Sequence[tuple[str, ...]] | CodedAnswers
"""One entry per instance: a label, labels, an answer per trait, an option's number, or texts."""


def encode_answers(answers: Answers) -> CodedAnswers:
    """Encode answers as numbers. Encoded answers are returned unchanged."""
    if isinstance(answers, CodedAnswers):
        return answers
    code_of: dict[str, int] = {}
    codes = [code_of.setdefault(text, len(code_of)) for answer in answers for text in answer]
    starts = np.zeros(len(answers) + 1, np.int64)
    np.cumsum([len(answer) for answer in answers], out=starts[1:])
    return CodedAnswers(tuple(code_of), np.asarray(codes, np.int64), starts)


def index_labels(task: Task, answers: CodedAnswers) -> Counts:
    """Return each answer's class number, or -1 for an invalid label, shape (answers,)."""
    number_of = {label: number for number, label in enumerate(task.labels)}
    numbers = [number_of.get(text, -1) for text in answers.texts]
    return np.asarray(numbers, np.int64)[answers.codes]


def check_answers(task: Task, predictions: CodedAnswers, golds: CodedAnswers) -> None:
    """Raise DataError if answers do not have the form of the task's kind."""
    if len(predictions) != len(golds):
        raise DataError(
            f"{task.name}: There are {len(predictions)} predictions for {len(golds)} "
            "instances. Predict every instance once."
        )
    if not len(golds):
        raise DataError(
            f"{task.name}: There are no instances to score. Choose a split that has instances."
        )
    if task.kind == "open_labels":
        return
    if task.kind != "multi_label":
        expected = len(task.outputs) if task.kind == "multi_output" else 1
        _check_sizes(task, "prediction", predictions, expected)
        if task.kind in ("span", "reply"):
            _check_gold_texts(task, golds)
        else:
            _check_sizes(task, "gold answer", golds, expected)
    if task.kind == "rating":
        _check_gold_ratings(task, golds)
    elif task.labels:
        _check_gold_labels(task, golds)


def _check_sizes(task: Task, side: str, answers: CodedAnswers, expected: int) -> None:
    wrong = np.flatnonzero(answers.sizes != expected)
    if wrong.size:
        answer = answers.get_answers(position := int(wrong[0]))
        raise DataError(
            f"{task.name}: The {side} at position {position} has {len(answer)} parts {answer!r}, "
            f"but a task of kind {task.kind} needs {expected}. Fix the data or the predictions."
        )


def _check_gold_ratings(task: Task, golds: CodedAnswers) -> None:
    off = [text for text in golds.texts if math.isnan(compute_fraction(task, text))]
    if off:
        position = golds.texts.index(off[0])
        raise DataError(
            f"{task.name}: Gold answer {int(np.flatnonzero(golds.codes == position)[0])} is "
            f"{off[0]!r}, which is not on the scale from {' to '.join(task.labels)}. Fix the data "
            "or the task card."
        )


def _check_gold_texts(task: Task, golds: CodedAnswers) -> None:
    without = np.flatnonzero(golds.sizes == 0)
    if without.size:
        raise DataError(
            f"{task.name}: Instance {without[0]} has no gold answer. For an unanswerable "
            "instance, use the release's text for it, or the empty string."
        )


def _check_gold_labels(task: Task, golds: CodedAnswers) -> None:
    unknown = np.flatnonzero(index_labels(task, golds) < 0)
    if unknown.size:
        position = int(golds.rows[unknown[0]])
        raise DataError(
            f"{task.name}: Gold answer {position} is {golds.get_answers(position)!r}, which is "
            f"not one of the labels {', '.join(task.labels)}. Fix the data or the task card."
        )
