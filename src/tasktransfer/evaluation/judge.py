"""What a trained model answers to instances that are in memory, not in a prepared split."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from tasktransfer.core.nodes import Evaluation, Outcome, Stage
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encode import encode_instances
from tasktransfer.encoding.encoded import EncodedSplit, read_manifest, read_split
from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.evaluation.outcome import TOKENS, Places, load_judged
from tasktransfer.metrics.measures import values_of
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.load import load_model
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.training.evaluate import predict
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.setup import Setup
from tasktransfer.training.workers import Workers


def judged(
    stage: Stage,
    checkpoint: Path,
    encoded: Path,
    task: str,
    instances: Sequence[Instance],
    threads: int = 1,
) -> list[float]:
    """The number that a stage's best round answers to each instance.

    Args:
        checkpoint: its folder.
        encoded: folder of token ids that the stage was trained on, for its tokenizer.
        task: one of the stage's.

    Raises:
        DataError, ModelError: token ids or checkpoint are missing or damaged.
    """
    torch.set_num_threads(max(1, threads))
    card = get_task(stage.dataset, task)
    model = loaded(stage, checkpoint, encoded, {card.name: card})
    split = encoded_here(stage, encoded, card, instances)
    return values_of(card, answers(model, split))


def judged_by(
    evaluation: Evaluation,
    outcome: Outcome,
    places: Places,
    instances: Sequence[Instance],
    threads: int = 1,
) -> list[float]:
    """The number that an outcome, which is one model, answers to each instance, as it does in an
    evaluation to those of a split.

    Raises:
        DataError, ModelError: token ids or a checkpoint are missing or damaged.
    """
    torch.set_num_threads(max(1, threads))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    card, stage = get_task(evaluation.data.name, evaluation.task), outcome.stages[0]
    model = load_judged(evaluation, outcome, places, device)
    encoded = places.encoded[evaluation.data, stage.model.name]
    asked = [replace(one, task=card.name) for one in instances]
    return values_of(card, answers(model, encoded_here(stage, encoded, card, asked)))


def loaded(stage: Stage, checkpoint: Path, encoded: Path, tasks: dict[str, Task]) -> FamilyModel:
    """A stage's best round, with heads for some tasks."""
    return load_model(
        stage.model.family,
        str(checkpoint),
        None,
        tasks,
        read_manifest(encoded),
        encoded / "tokenizer",
        seed=stage.seed,
        fidelity=stage.training.fidelity,
        loss_on=stage.training.loss_on,
        dropout=None,
        device=torch.device("cuda" if torch.cuda.is_available() else "cpu"),
        adapter_reduction=stage.model.adapter_reduction,
        reads=stage.model.reads,
    )


def encoded_here(
    stage: Stage, encoded: Path, card: Task, instances: Sequence[Instance]
) -> EncodedSplit:
    """Instances as token ids of a stage's model, with the tokenizer of ``encoded``."""
    family = stage.model.family
    tokenizer = load_tokenizer(str(encoded / "tokenizer"), None, family)
    with tempfile.TemporaryDirectory() as folder:
        encode_instances(
            Path(folder), tokenizer, card, "test", instances, family, stage.model.max_length
        )
        return read_split(Path(folder), card.name, "test")


def answers(model: FamilyModel, split: EncodedSplit) -> list[tuple[str, ...]]:
    """A model's answers to a split."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    budgets = TokenBudget(TOKENS, "training"), TokenBudget(TOKENS, "evaluation")
    setup = Setup(device, *budgets, "float32", Workers(1))
    return setup.eval_budget.fitting(
        lambda tokens: predict(model, split, tokens, setup), undo=lambda: None
    )
