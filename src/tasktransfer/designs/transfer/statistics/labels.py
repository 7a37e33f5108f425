"""Scores and confusions of single labels: the frames ``labels`` and ``confusions``.

They cover baselines and references of tasks with one label per input, from their test predictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tasktransfer.core.nodes import Fit, Stage
from tasktransfer.core.runs import Run
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.runs import BASELINE, is_reference
from tasktransfer.results.frames import Frames
from tasktransfer.results.rows import select_task_rows
from tasktransfer.stats.answers import (
    MEASURES,
    LabelAnswers,
    compute_label_scores,
    count_confusions,
    read_label_answers,
)
from tasktransfer.stats.cells import NO_SEED
from tasktransfer.tasks.card import SINGLE_LABEL

Key = tuple[str, str, str, str]
"""Dataset, model, target and method."""


def make_labels(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``labels``."""
    for key, runs in frames.share(_read_answers).items():
        labels = get_task(key[0], key[2]).labels
        for scores in compute_label_scores(runs):
            numbers = (value for name in MEASURES for value in scores.measures[name])
            counts = (len(runs), scores.support, scores.predicted)
            yield *key, labels[scores.label], *counts, *numbers


def make_confusions(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``confusions``, in the order of the labels."""
    for key, runs in frames.share(_read_answers).items():
        labels = get_task(key[0], key[2]).labels
        for (gold, predicted), count in sorted(count_confusions(runs).items()):
            name = labels[predicted] if predicted >= 0 else ""
            yield *key, labels[gold], name, count, len(runs)


def _read_answers(frames: Frames) -> dict[Key, list[LabelAnswers]]:
    """Return the answers of all seeds, by dataset, model, target and method."""
    collected = frames.collected
    found: dict[Key, dict[int, LabelAnswers]] = {}
    for run in collected.runs:
        for node, method, seed, tasks in _list_nodes(run):
            rows = collected.rows(node)
            for task in tasks:
                card = get_task(run.about["dataset"], task)
                of_task = select_task_rows(rows, task)
                if card.kind in SINGLE_LABEL and len(of_task):
                    key = (run.about["dataset"], run.model, task, method)
                    answers = read_label_answers(of_task, card, seed)
                    found.setdefault(key, {}).setdefault(seed, answers)
    return {key: [runs[seed] for seed in sorted(runs)] for key, runs in found.items()}


def _list_nodes(run: Run) -> Iterator[tuple[Fit | Stage, str, int, tuple[str, ...]]]:
    """Yield a run's node with predictions, method, seed and predicted tasks, if it is included."""
    if is_reference(run):
        assert isinstance(run.outcome, Fit)
        yield run.outcome, run.about["reference"], NO_SEED, run.outcome.tasks
    elif run.method == BASELINE:
        yield run.stages[-1], BASELINE, run.seed, (run.about["target"],)
