"""Training with this package."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.toolkit_fidelity.side import (
    CPU,
    SEED,
    EnoughError,
    Side,
    select_first_instances,
)
from tasktransfer.core.nodes import Stage
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.load import Loading, load_model
from tasktransfer.tasks.card import Task
from tasktransfer.training.evaluate import predict_instances
from tasktransfer.training.loop import train
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.progress import Progress
from tasktransfer.training.samplers import Schedule, Update
from tasktransfer.training.setup import Setup


def train_ours(
    stage: Stage, encoded: Path, checkpoint: Path, count: int
) -> tuple[Side, list[list[Update]], dict[str, torch.Tensor]]:
    """Train, and return the results, each epoch's updates and the heads' initial weights."""
    model, tasks = _load_model(stage, encoded, checkpoint)
    splits = {task: read_split(encoded, task, "train") for task in stage.train_tasks}
    dev = {
        task: select_first_instances(read_split(encoded, task, "dev")) for task in stage.select_on
    }
    before = _copy_weights(model)
    heads = {name: t for name, t in before.items() if name.startswith("heads.")}
    log = _Losses()
    after: dict[str, torch.Tensor] = {}

    def keep_weights(number: int) -> None:
        if number == count:
            after.update(_copy_weights(model))
            raise EnoughError

    setup = Setup(CPU, TokenBudget(4096, "training"), TokenBudget(4096, "evaluation"))
    with contextlib.suppress(EnoughError):
        train(model, stage, tasks, splits, dev, setup, log, keep_round=keep_weights)
    predictions = {
        task: predict_instances(
            model, select_first_instances(read_split(encoded, task, "dev")), 4096, setup
        )
        for task in stage.train_tasks
    }
    return Side(log.losses, before, after, predictions), _list_epochs(stage, splits, count), heads


class _Losses(Progress):
    """Progress that keeps the losses of each round, which is an update here."""

    def __init__(self) -> None:
        super().__init__(1, "ours", io.StringIO())
        self.losses: list[dict[str, float]] = []

    def round(
        self, number: int, train_loss: Mapping[str, float], chosen: Sequence[tuple[float, int]]
    ) -> None:
        self.losses.append(dict(train_loss))


def _load_model(
    stage: Stage, encoded: Path, checkpoint: Path
) -> tuple[FamilyModel, dict[str, Task]]:
    tasks = {name: get_task(stage.dataset, name) for name in stage.tasks}
    loading = Loading(stage.model, stage.training, encoded, SEED, CPU)
    return load_model(loading, str(checkpoint), None, tasks), tasks


def _copy_weights(model: FamilyModel) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.module.named_parameters()}


def _list_epochs(
    stage: Stage, splits: Mapping[str, EncodedSplit], count: int
) -> list[list[Update]]:
    """Return the updates of the epochs that ``count`` updates need, and of one more epoch."""
    selection = replace(stage.selection, every=None)
    schedule = Schedule.build(replace(stage, selection=selection), splits)
    epochs: list[list[Update]] = []
    while sum(map(len, epochs[:-1])) < count:
        epochs.append(list(schedule.iterate_round(len(epochs) + 1)))
    return epochs
