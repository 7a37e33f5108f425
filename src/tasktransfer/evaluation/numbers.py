"""From predictions to an evaluation's measures: those of the task's card, and correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.errors import ConfigError
from tasktransfer.metrics.measures import MEASURES, Answers, of_rows_names, values_of
from tasktransfer.tasks.card import Task


def expected_values(task: Task, probabilities: np.ndarray) -> list[float]:
    """The mean number that a probability over labels stands for, one an instance."""
    numbers = np.array(values_of(task, [(label,) for label in task.labels]))
    return [float(value) for value in probabilities @ numbers]


def measured(
    task: Task,
    wanted: Sequence[str],
    predictions: Answers,
    golds: Answers,
    predicted_values: Sequence[float],
    fidelity: Scoring = "default",
) -> dict[str, float]:
    """The wanted measures by name.

    Raises:
        ConfigError: one of them is not of this task; the message names those that are.
    """
    of_card: Mapping[str, float] = metrics.evaluate(task, predictions, golds, fidelity=fidelity)
    of_card = {**of_card, "score": metrics.score(task, of_card)}
    numbers: dict[str, float] = {}
    for name in wanted:
        measure = MEASURES.get(name)
        if measure is not None and measure.of_rows is not None:
            gold_values = np.array(values_of(task, golds))
            numbers[name] = measure.of_rows(np.array(predicted_values), gold_values)
        elif name in of_card:
            numbers[name] = float(of_card[name])
        else:
            raise ConfigError(
                f"{task.name} has no measure {name!r}; it has "
                f"{', '.join([*of_card, *of_rows_names()])}"
            )
    return numbers
