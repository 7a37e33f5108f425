"""What the models of an outcome answer on a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tasktransfer.core.nodes import Evaluation, Outcome, Start
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError
from tasktransfer.evaluation.numbers import values_of
from tasktransfer.models.encoded import EncodedSplit, read_manifest, read_split
from tasktransfer.models.load import load_model
from tasktransfer.training.evaluate import predict
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.setup import Setup
from tasktransfer.training.workers import Workers

TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of an outcome on a split, in its order."""

    split: EncodedSplit
    predictions: list[tuple[str, ...]]
    values: list[float]


def answered(
    evaluation: Evaluation,
    outcome: Outcome,
    encoded: Mapping[str, Path],
    folder_of: Any,
    threads: int = 1,
) -> Answered:
    """Let the models of an outcome answer.

    Args:
        encoded: model name → folder of the token ids of the evaluation's data.
        folder_of: start → the checkpoint's folder.

    Raises:
        ConfigError: how the outcome combines its starts does not fit the evaluation.
        DataError, ModelError: token ids or a checkpoint are missing or damaged.
    """
    torch.set_num_threads(max(1, threads))
    starts = _chosen(outcome, evaluation)
    each = [_one(evaluation, start, encoded, folder_of) for start in starts]
    if len(each) == 1:
        return each[0]
    task = get_task(evaluation.data.name, evaluation.task)
    values = [float(value) for value in np.mean([one.values for one in each], axis=0)]
    numbers = values_of(task, [(label,) for label in task.labels])
    nearest = [min(range(len(numbers)), key=lambda i: abs(numbers[i] - v)) for v in values]
    return Answered(each[0].split, [(task.labels[index],) for index in nearest], values)


def _chosen(outcome: Outcome, evaluation: Evaluation) -> Sequence[Start]:
    if any(start.merged or start.parts or start.stage is None for start in outcome.starts):
        raise ConfigError(
            f"{evaluation.label}: merged parameters are judged through a stage that starts from "
            "them; name that stage as the outcome"
        )
    if outcome.combine != "route":
        return outcome.starts
    domain = evaluation.settings.get("domain")
    if domain not in outcome.domains:
        raise ConfigError(
            f"{evaluation.label}: settings.domain is {domain!r}, the outcome has "
            f"{', '.join(outcome.domains)}"
        )
    return (outcome.starts[outcome.domains.index(domain)],)


def _one(
    evaluation: Evaluation, start: Start, encoded: Mapping[str, Path], folder_of: Any
) -> Answered:
    stage = start.stage
    assert stage is not None
    folder = encoded[stage.model.name]
    task = get_task(evaluation.data.name, evaluation.task)
    tasks = {name: get_task(evaluation.data.name, name) for name in {*stage.tasks, task.name}}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model(
        stage.model.family,
        str(folder_of(start)),
        None,
        dict(sorted(tasks.items())),
        read_manifest(folder),
        folder / "tokenizer",
        seed=stage.seed,
        fidelity=stage.training.fidelity,
        loss_on=stage.training.loss_on,
        dropout=None,
        device=device,
    )
    split = read_split(folder, task.name, evaluation.split)
    split = split.limited(evaluation.settings.get("limit"))
    setup = Setup(
        device, TokenBudget(TOKENS, "training"), TokenBudget(TOKENS, "evaluation"), "float32",
        Workers(1),
    )  # fmt: skip
    predictions = setup.eval_budget.fitting(
        lambda tokens: predict(model, split, tokens, setup), undo=lambda: None
    )
    values = values_of(task, predictions) if task.labels else [float("nan")] * len(predictions)
    return Answered(split, predictions, values)
