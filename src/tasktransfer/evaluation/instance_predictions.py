"""Answers of a trained model to instances in memory instead of a prepared split."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from tasktransfer.core.nodes import Evaluation, Outcome, Stage
from tasktransfer.core.specs import ModelSpec
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encode import encode_instances
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.evaluation.outcome import EvaluationInputs, load_evaluated_model, predict_answers
from tasktransfer.metrics.measures import convert_answers_to_numbers
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.load import Loading, load_model
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.setup import Setup


def predict_stage_numbers(
    stage: Stage,
    checkpoint: Path,
    encoded: Path,
    task: str,
    instances: Sequence[Instance],
    hardware: Hardware,
) -> tuple[list[float], Setup]:
    """Predict a number for each instance with the model of a stage's best epoch.

    Args:
        checkpoint: folder of the checkpoint.
        encoded: folder of token ids that the stage was trained on, for its tokenizer.
        task: one of the stage's tasks.

    Returns:
        The numbers, and the setup of their computation.

    Raises:
        DataError, ModelError: token ids or checkpoint are missing or damaged.
        MemoryShortageError: not even one instance at a time fits into memory.
    """
    card, device = get_task(stage.dataset, task), hardware.prepare_device()
    model = load_stage_model(stage, checkpoint, encoded, {card.name: card}, device)
    setup = hardware.choose_setup(model, stage.model.family, device)
    split = encode_instances_for_model(stage.model, encoded, card, instances)
    return convert_answers_to_numbers(card, predict_answers(model, split, setup)), setup


def predict_outcome_numbers(
    evaluation: Evaluation,
    outcome: Outcome,
    places: EvaluationInputs,
    instances: Sequence[Instance],
) -> list[float]:
    """Predict a number for each instance with an outcome's only model.

    The predictions equal those of an evaluation on a split.

    Raises:
        DataError: token ids are missing or damaged.
        ModelError, RecordError: a checkpoint is missing or damaged, or its predictions are NaN or
            infinite.
    """
    device = places.hardware.prepare_device()
    card = get_task(evaluation.data.name, evaluation.task)
    spec = outcome.model or outcome.stages[0].model
    model = load_evaluated_model(evaluation, outcome, places, device)
    setup = places.hardware.choose_setup(model, spec.family, device)
    encoded = places.encoded[evaluation.data, spec.name]
    renamed = [replace(instance, task=card.name) for instance in instances]
    values = convert_answers_to_numbers(
        card,
        predict_answers(model, encode_instances_for_model(spec, encoded, card, renamed), setup),
    )
    if not np.isfinite(values).all():
        folders = ", ".join(places.checkpoint(start) for start in outcome.starts) or spec.name
        raise ModelError(
            f"{folders}: The model's predictions are NaN or infinite, because its weights are "
            "damaged or its training diverged. Train the model again."
        )
    return values


def load_stage_model(
    stage: Stage, checkpoint: Path, encoded: Path, tasks: dict[str, Task], device: torch.device
) -> FamilyModel:
    """Load the model of a stage's best epoch, with heads for given tasks."""
    loading = Loading(stage.model, stage.training, encoded, stage.seed, device)
    return load_model(loading, str(checkpoint), None, tasks)


def encode_instances_for_model(
    model: ModelSpec, encoded: Path, card: Task, instances: Sequence[Instance]
) -> EncodedSplit:
    """Encode instances as a split, with the tokenizer in the folder ``encoded``."""
    family = model.family
    tokenizer = load_tokenizer(str(encoded / "tokenizer"), None, family)
    with tempfile.TemporaryDirectory() as folder:
        encode_instances(Path(folder), tokenizer, card, "test", instances, family, model.max_length)
        return read_split(Path(folder), card.name, "test")
