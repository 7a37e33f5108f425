"""What a round is chosen by: one measure, the mean of it over the selecting tasks' dev splits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Selection
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import ConfigError, TrainingError
from tasktransfer.metrics.measures import MEASURES, Measure, of_rows_names, values_of
from tasktransfer.models.family import FamilyModel
from tasktransfer.tasks.card import Task
from tasktransfer.training.evaluate import evaluate
from tasktransfer.training.in_batch import dev_loss as in_batch_dev_loss
from tasktransfer.training.in_batch import is_in_batch
from tasktransfer.training.progress import Progress
from tasktransfer.training.setup import Setup

OF_LOSS = ("loss", "perplexity")
"""Measures of the loss, for which nothing has to be predicted."""

DevMeasures = dict[str, dict[str, float]]
"""Task → measure → value."""


def selecting_measure(stage: Stage, tasks: Mapping[str, Task]) -> Measure:
    """The measure that a stage is selected by.

    Raises:
        ConfigError: there is none of this name, or a selecting task or the model's family has it
            not; the message names those that can be.
    """
    name, family = stage.selection.measure, stage.model.family
    for task in stage.measured_on:
        offered = ["score", *(spec.key for spec in tasks[task].metrics), "loss"]
        offered += of_rows_names() if tasks[task].labels else []
        offered += [] if family in ("encoder", "dual_encoder") else ["perplexity"]
        if name not in offered:
            raise ConfigError(
                f"selection.measure: found {name!r}; {family} models on {task} can be selected by "
                f"{', '.join(offered)}"
            )
    return MEASURES[name]


def dev_measures(
    model: FamilyModel,
    stage: Stage,
    tasks: Mapping[str, Task],
    splits: Mapping[str, EncodedSplit],
    setup: Setup,
    progress: Progress,
) -> tuple[DevMeasures, dict[str, list[float]]]:
    """The measures of every selecting task, and of each task what is selected by: a value, or of
    ``score`` by the release's metrics one a metric, as the toolkit has it.

    Raises:
        TrainingError: a loss is not a finite number.
        MemoryShortageError: not even one instance at a time fits into memory.
    """
    name = stage.selection.measure
    measured: DevMeasures = {}
    values: dict[str, list[float]] = {}
    for task, split in splits.items():
        if name in OF_LOSS:
            measured[task] = _of_loss(
                name, dev_loss(model, split, setup, stage.training.batch_size), task
            )
            progress.advance(len(split))
            values[task] = [measured[task][name]]
        else:
            evaluation = evaluate(
                model, tasks[task], split, setup, stage.training.fidelity.scoring, progress.advance
            )
            measured[task] = dict(evaluation.metrics)
            if of_rows := MEASURES[name].of_rows:
                answers = (evaluation.predictions, split.targets)
                numbers = (np.array(values_of(tasks[task], each)) for each in answers)
                measured[task][name] = of_rows(*numbers)
            if name != "score":
                values[task] = [measured[task][name]]
            elif stage.training.fidelity.selection_metrics == "release":
                values[task] = list(evaluation.metrics.values())
            else:
                values[task] = [evaluation.score]
    return measured, values


def selection_score(values: Mapping[str, Sequence[float]], selection: Selection) -> float:
    """The mean of what a round is chosen by, over the selecting tasks (``dev_measures``)."""
    return float(np.mean([value for task in selection.tasks for value in values[task]]))


def _of_loss(name: str, loss: float, task: str) -> dict[str, float]:
    """The loss, and its exponential where that is asked for."""
    values = {"loss": loss}
    if name == "perplexity":
        values[name] = math.exp(loss) if loss < math.log(1e300) else math.inf
    for measure, value in values.items():
        if not math.isfinite(value):
            raise TrainingError(
                f"the dev {measure} of {task} became {value}: lower training.learning_rate or set "
                "training.precision to float32; nothing was written"
            )
    return values


def dev_loss(
    model: FamilyModel, split: EncodedSplit, setup: Setup, batch_size: int | None = None
) -> float:
    """The mean loss over a split, without dropout: per example for encoders, per counted token for
    text-to-text models (``FamilyModel.weight``). ``batch_size``: where the loss is of a batch as a
    whole (``in_batch``); None: the split is one batch."""
    model.module.eval()
    examples = range(len(split))
    if is_in_batch(model, split):
        dual, size = model, batch_size or len(split)
        return setup.eval_budget.fitting(
            lambda tokens: in_batch_dev_loss(dual, split, setup, size, tokens), undo=lambda: None
        )

    def summed(tokens: int) -> float:
        total = 0.0
        with torch.inference_mode(), setup.autocast():
            for some in model.training_micro_batches(split, examples, tokens):
                total += float(model.loss(split, some))
        return total

    total = setup.eval_budget.fitting(summed, undo=lambda: None)
    return total / model.weight(split, examples)
