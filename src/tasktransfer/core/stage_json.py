"""A stage as JSON, as a training job is told it: checked before anything is trained."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from tasktransfer.core.stage import Family, Fidelity, Stage
from tasktransfer.datasets import DATASETS
from tasktransfer.errors import ConfigError
from tasktransfer.shape import AtLeast, Matches, checker

MOST_PARENTS = 8
"""More than any algorithm has stages."""

_Name = Annotated[str, Matches("^.+$")]
_Positive = Annotated[int, AtLeast(1)]


class _Model(TypedDict):
    name: _Name
    family: Family
    weights: _Name
    max_length: _Positive


class _Training(TypedDict):
    learning_rate: float
    batch_size: _Positive
    epochs: _Positive
    max_grad_norm: float
    precision: Literal["auto", "float32", "bfloat16"]
    task_weighting: Literal["none", "inverse_sqrt"]
    loss_on: Literal["answer", "sequence"]
    fidelity: Fidelity
    dropout: float | None
    limit_train: _Positive | None
    limit_dev: _Positive | None
    limit_test: _Positive | None


class _Stage(TypedDict):
    dataset: _Name
    data_revision: _Name
    few_sample: bool
    model: _Model
    train_tasks: list[_Name]
    select_on: list[_Name]
    parent: Any
    training: _Training
    seed: Annotated[int, AtLeast(0)]
    task_shorts: dict[str, str]


_check = checker(_Stage)


def stage_of(value: Any, source: str) -> Stage:
    """The stage that ``Stage.to_json`` gave; ``source`` names it in messages.

    Raises:
        ConfigError: it is none; the message names key and value.
    """
    part, key = value, ""
    for _ in range(MOST_PARENTS):
        problem = _check(part) or _stranger(part)
        if problem:
            raise ConfigError(f"{source}: no stage: {key}{problem}; give what Stage.to_json made")
        part, key = part["parent"], f"{key}parent."
        if part is None:
            return Stage.from_json(value)
    raise ConfigError(f"{source}: no stage: it starts from more than {MOST_PARENTS} others in turn")


def _stranger(stage: dict[str, Any]) -> str | None:
    if stage["dataset"] not in DATASETS:
        return f"dataset: found {stage['dataset']!r}, expected one of {', '.join(DATASETS)}"
    for key in ("train_tasks", "select_on"):
        if not stage[key]:
            return f"{key}: found [], expected a task at least"
        for task in stage[key]:
            if task not in DATASETS[stage["dataset"]].tasks:
                return f"{key}: {task!r} is no task of {stage['dataset']}"
            if task not in stage["task_shorts"]:
                return f"task_shorts: no short name of {task}"
    return None
