"""Measures of an evaluation from its predictions: metrics of the task's card, and correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.errors import ConfigError
from tasktransfer.metrics.measures import (
    MEASURES,
    Answers,
    convert_answers_to_numbers,
    list_row_measures,
)
from tasktransfer.tasks.card import Task


def compute_expected_values(task: Task, probabilities: np.ndarray) -> list[float]:
    """Compute each instance's expected number under its label probabilities."""
    numbers = np.array(convert_answers_to_numbers(task, [(label,) for label in task.labels]))
    return [float(value) for value in probabilities @ numbers]


def compute_measures(
    task: Task,
    wanted: Sequence[str],
    predictions: Answers,
    golds: Answers,
    predicted_values: Sequence[float],
    fidelity: Scoring = "default",
) -> dict[str, float]:
    """Compute the requested measures, by name.

    Raises:
        ConfigError: a measure is not available for this task. The message lists the available
            measures.
    """
    card_metrics: Mapping[str, float] = metrics.evaluate_predictions(
        task, predictions, golds, fidelity=fidelity
    )
    card_metrics = {**card_metrics, "score": metrics.compute_task_score(task, card_metrics)}
    numbers: dict[str, float] = {}
    for name in wanted:
        measure = MEASURES.get(name)
        if measure is not None and measure.of_rows is not None:
            gold_values = np.array(convert_answers_to_numbers(task, golds))
            numbers[name] = measure.of_rows(np.array(predicted_values), gold_values)
        elif name in card_metrics:
            numbers[name] = float(card_metrics[name])
        else:
            raise ConfigError(
                f"{task.name}: The task has no measure {name!r}. Choose one of "
                f"{', '.join([*card_metrics, *list_row_measures()])}."
            )
    return numbers
