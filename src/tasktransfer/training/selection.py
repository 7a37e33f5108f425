"""Selection of the best round by the mean of one measure over the selecting tasks' dev splits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Selection
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import ConfigError, TrainingError
from tasktransfer.metrics.measures import (
    MEASURES,
    Measure,
    convert_answers_to_numbers,
    list_row_measures,
)
from tasktransfer.models.family import FamilyModel
from tasktransfer.tasks.card import Task
from tasktransfer.training.evaluate import evaluate_split
from tasktransfer.training.in_batch import compute_in_batch_dev_loss, uses_in_batch_loss
from tasktransfer.training.progress import Progress
from tasktransfer.training.setup import Setup

LOSS_MEASURES = ("loss", "perplexity")
"""Measures of the loss, which need no predictions."""

DevMeasures = dict[str, dict[str, float]]
"""Task → measure → value."""


def get_selecting_measure(stage: Stage, tasks: Mapping[str, Task]) -> Measure:
    """Return the measure by which a stage's best round is selected.

    Raises:
        ConfigError: the measure is unknown, or not available for a selecting task or the model's
            family; the message lists the available measures.
    """
    name, family = stage.selection.measure, stage.model.family
    for task in stage.measured_on:
        offered = ["score", *(spec.key for spec in tasks[task].metrics), "loss"]
        offered += list_row_measures() if tasks[task].labels else []
        offered += [] if family in ("encoder", "dual_encoder") else ["perplexity"]
        if name not in offered:
            raise ConfigError(
                f"selection.measure: The measure {name!r} is not available for {family} models on "
                f"{task}. Choose one of {', '.join(offered)}."
            )
    return MEASURES[name]


def compute_dev_measures(
    model: FamilyModel,
    stage: Stage,
    tasks: Mapping[str, Task],
    splits: Mapping[str, EncodedSplit],
    setup: Setup,
    progress: Progress,
) -> tuple[DevMeasures, dict[str, list[float]]]:
    """Compute the dev measures of every selecting task.

    Returns:
        All measures by task, and the values for the selection by task. A task has one value, or one
        per metric if the stage selects by ``score`` with the release's metrics, as in the toolkit.

    Raises:
        TrainingError: a loss is not a finite number.
        MemoryShortageError: not even one instance at a time fits into memory.
    """
    name = stage.selection.measure
    measured: DevMeasures = {}
    values: dict[str, list[float]] = {}
    for task, split in splits.items():
        if name in LOSS_MEASURES:
            measured[task] = _compute_loss_measures(
                name, compute_dev_loss(model, split, setup, stage.training.batch_size), task
            )
            progress.count_instances(len(split))
            values[task] = [measured[task][name]]
        else:
            evaluation = evaluate_split(
                model,
                tasks[task],
                split,
                setup,
                stage.training.fidelity.scoring,
                progress.count_instances,
            )
            measured[task] = dict(evaluation.metrics)
            if of_rows := MEASURES[name].of_rows:
                answers = (evaluation.predictions, split.targets)
                numbers = (
                    np.array(convert_answers_to_numbers(tasks[task], each)) for each in answers
                )
                measured[task][name] = of_rows(*numbers)
            if name != "score":
                values[task] = [measured[task][name]]
            elif stage.training.fidelity.selection_metrics == "release":
                values[task] = list(evaluation.metrics.values())
            else:
                values[task] = [evaluation.score]
    return measured, values


def compute_selection_score(values: Mapping[str, Sequence[float]], selection: Selection) -> float:
    """Return the mean over selecting tasks of the value by which rounds are selected.

    Args:
        values: selection values from ``compute_dev_measures``.
    """
    return float(np.mean([value for task in selection.tasks for value in values[task]]))


def _compute_loss_measures(name: str, loss: float, task: str) -> dict[str, float]:
    """Return the loss, and for perplexity also its exponential."""
    values = {"loss": loss}
    if name == "perplexity":
        values[name] = math.exp(loss) if loss < math.log(1e300) else math.inf
    for measure, value in values.items():
        if not math.isfinite(value):
            raise TrainingError(
                f"The dev {measure} of {task} became {value}, and nothing was written. Reduce "
                "training.learning_rate or set training.precision to float32."
            )
    return values


def compute_dev_loss(
    model: FamilyModel, split: EncodedSplit, setup: Setup, batch_size: int | None = None
) -> float:
    """Compute the mean loss on a dev split, with dropout switched off.

    The mean is over examples for encoders, and over counted tokens for text-to-text models
    (``FamilyModel.compute_loss_divisor``).

    Args:
        batch_size: batch size of in-batch losses; None if the split is one batch.
    """
    model.module.eval()
    examples = range(len(split))
    if uses_in_batch_loss(model, split):
        dual, size = model, batch_size or len(split)
        return setup.eval_budget.run_within_memory(
            lambda tokens: compute_in_batch_dev_loss(dual, split, setup, size, tokens),
            undo=lambda: None,
        )

    def sum_losses(tokens: int) -> float:
        total = 0.0
        with torch.inference_mode(), setup.autocast():
            for some in model.split_for_training(split, examples, tokens):
                total += float(model.compute_loss(split, some))
        return total

    total = setup.eval_budget.run_within_memory(sum_losses, undo=lambda: None)
    return total / model.compute_loss_divisor(split, examples)
