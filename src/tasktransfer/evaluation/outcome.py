"""Predictions of an outcome's models on a split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from tasktransfer.core.nodes import Data, Evaluation, Outcome, Stage, Start
from tasktransfer.core.specs import Training
from tasktransfer.datasets import find_task, get_task
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.errors import ConfigError
from tasktransfer.files.progress import count_progress
from tasktransfer.metrics.measures import convert_answers_to_numbers
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.load import Loading, load_model
from tasktransfer.models.parts import replace_parts
from tasktransfer.training.evaluate import predict_instances
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.setup import Setup


@dataclass(frozen=True, slots=True)
class EvaluationInputs:
    """The locations of an evaluation's data and checkpoints, and the hardware.

    Attributes:
        encoded: (data, model name) → folder of token ids.
        checkpoint: function start → folder of its checkpoint.
        base: function model name → folder or hub name of the released model.
        beside: function model name → folder or hub name of its additional encoder, if any.
        revision: function model name → revision of the released model on the hub.
        hardware: hardware settings.
    """

    encoded: Mapping[tuple[Data, str], Path]
    checkpoint: Callable[[Start], str]
    base: Callable[[str], str]
    beside: Callable[[str], str | None]
    revision: Callable[[str], str | None]
    hardware: Hardware

    def get_unknown_token_id(self, encoded: Path) -> int:
        """Return the unknown token's ID in a folder of token IDs, or -1 without one."""
        tokenizer = load_tokenizer(str(encoded / "tokenizer"), None, "encoder")
        return -1 if tokenizer.unk_token_id is None else int(tokenizer.unk_token_id)


@dataclass(frozen=True, slots=True)
class SplitPredictions:
    """The predictions of an outcome on a split, in the split's order.

    Attributes:
        values: predictions as numbers; NaN for labels without a number.
        setup: setup of the computation.
    """

    predictions: list[tuple[str, ...]]
    values: list[float]
    setup: Setup


def predict_split(
    evaluation: Evaluation, outcome: Outcome, places: EvaluationInputs
) -> SplitPredictions:
    """Predict a split with an outcome's models.

    Raises:
        ConfigError: the outcome's way of combining starts does not fit the evaluation.
        DataError, ModelError: token ids or a checkpoint are missing or damaged.
        MemoryShortageError: not even one instance at a time fits into memory.
    """
    if outcome.combine == "mean":
        single = [replace(outcome, starts=(start,), combine=None) for start in outcome.starts]
        return _average_predictions(
            evaluation, [_predict_with_one_model(evaluation, one, places) for one in single]
        )
    if outcome.combine == "route":
        start = _select_domain_start(evaluation, outcome)
        outcome = replace(outcome, starts=(start,), combine=None, domains=())
    return _predict_with_one_model(evaluation, outcome, places)


def _select_domain_start(evaluation: Evaluation, outcome: Outcome) -> Start:
    """Select the outcome's start for the evaluation's domain."""
    domain = evaluation.settings.get("domain")
    if domain not in outcome.domains:
        raise ConfigError(
            f"{evaluation.label}, settings.domain: The evaluated outcome has no domain "
            f"{domain!r}. Choose one of {', '.join(outcome.domains)}."
        )
    return outcome.starts[outcome.domains.index(domain)]


def _average_predictions(
    evaluation: Evaluation, models: Sequence[SplitPredictions]
) -> SplitPredictions:
    """Average the models' numbers, and return the mean with the nearest label."""
    task = get_task(evaluation.data.name, evaluation.task)
    values = [float(value) for value in np.mean([answered.values for answered in models], axis=0)]
    setup = models[-1].setup
    if task.kind == "rating":
        return SplitPredictions([(f"{value:.12g}",) for value in values], values, setup)
    numbers = convert_answers_to_numbers(task, [(label,) for label in task.labels])
    nearest = (min(range(len(numbers)), key=lambda i: abs(numbers[i] - v)) for v in values)
    return SplitPredictions([(task.labels[index],) for index in nearest], values, setup)


def _predict_with_one_model(
    evaluation: Evaluation, outcome: Outcome, places: EvaluationInputs
) -> SplitPredictions:
    """Predict with one model, which may be merged from several."""
    device = places.hardware.prepare_device()
    model = load_evaluated_model(evaluation, outcome, places, device)
    spec = outcome.model or outcome.stages[0].model
    split = read_split(
        places.encoded[evaluation.data, spec.name], evaluation.task, evaluation.split
    ).limit_instances(evaluation.settings.get("limit"))
    setup = places.hardware.choose_setup(model, spec.family, device)
    predictions = predict_answers(model, split, setup)
    task = get_task(evaluation.data.name, evaluation.task)
    values = (
        convert_answers_to_numbers(task, predictions)
        if task.labels
        else [float("nan")] * len(predictions)
    )
    return SplitPredictions(predictions, values, setup)


def predict_answers(model: FamilyModel, split: EncodedSplit, setup: Setup) -> list[tuple[str, ...]]:
    """Predict a split with a model, in the split's order."""

    # This is repeated with fewer tokens after out-of-memory errors.
    def predict_within(tokens: int) -> list[tuple[str, ...]]:
        with count_progress(len(split), f"answering {split.task}") as answered_more:
            return predict_instances(model, split, tokens, setup, answered_more)

    return setup.eval_budget.run_within_memory(predict_within, undo=lambda: None)


def load_evaluated_model(
    evaluation: Evaluation, outcome: Outcome, places: EvaluationInputs, device: torch.device
) -> FamilyModel:
    """Load the model of an outcome that consists of a single model.

    It is the model of a stage, a model merged from several stages, or a released model. A released
    model's missing weights are initialised from ``settings.seed``.
    """
    if outcome.model is None:
        return _load_merged_model(evaluation, outcome.starts, places, device)
    model = outcome.model
    loading = Loading(
        model,
        Training(cosine_scale=evaluation.settings.get("cosine_scale")),
        places.encoded[evaluation.data, model.name],
        evaluation.settings.get("seed", 0),
        device,
        beside=places.beside(model.name),
    )
    tasks = {evaluation.task: get_task(evaluation.data.name, evaluation.task)}
    return load_model(loading, places.base(model.name), places.revision(model.name), tasks)


def _load_merged_model(
    evaluation: Evaluation, starts: Sequence[Start], places: EvaluationInputs, device: torch.device
) -> FamilyModel:
    """Load the first start's model, and merge the parts of all starts into it."""
    stages = [start.stage for start in starts if start.stage is not None]
    if len(stages) < len(starts):
        raise ConfigError(
            f"{evaluation.label}: A base model has no head for the task. Evaluate a stage instead."
        )
    if any(start.merged == "ties" for start in starts):
        raise ConfigError(
            f"{evaluation.label}: The method ties can merge models only at the start of a training "
            "run, because it needs the base model. Train a stage from the merged model, and "
            "evaluate that stage."
        )
    folder = places.encoded[evaluation.data, stages[0].model.name]

    def load_start(start: Start, stage: Stage) -> FamilyModel:
        names = sorted({*stage.tasks, evaluation.task})
        datasets = (stage.data.name, evaluation.data.name)
        cards = {name: next(c for d in datasets if (c := find_task(d, name))) for name in names}
        beside = places.beside(stage.model.name)
        loading = Loading(
            stage.model,
            stage.training,
            folder,
            stage.seed,
            device,
            beside=beside,
            base=places.base(stage.model.name),
            base_revision=places.revision(stage.model.name),
        )
        return load_model(loading, places.checkpoint(start), None, cards)

    model = load_start(starts[0], stages[0])
    if len(starts) > 1 or starts[0].parts:
        others = [
            (start, load_start(start, stage)) for start, stage in zip(starts, stages, strict=True)
        ]
        replace_parts(model, others)
    return model
