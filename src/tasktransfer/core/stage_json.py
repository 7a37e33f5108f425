"""A stage as JSON, as a training job is told it: checked before anything is trained."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic reads that of typing from Python 3.12 on

from tasktransfer.core.stage import Family, Fidelity, Stage
from tasktransfer.errors import ConfigError
from tasktransfer.validation import STRICT, wrong_type

MOST_PARENTS = 8
"""More than any algorithm has stages."""

_Name = Annotated[str, Field(min_length=1)]
_Names = Annotated[list[_Name], Field(min_length=1)]
_Positive = Annotated[int, Field(ge=1)]


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


@with_config(STRICT)
class _Stage(TypedDict):
    dataset: _Name
    data_revision: _Name
    few_sample: bool
    model: _Model
    train_tasks: _Names
    select_on: _Names
    parent: Any
    training: _Training
    seed: Annotated[int, Field(ge=0)]
    task_shorts: dict[str, str]


@cache
def _stage() -> TypeAdapter[_Stage]:
    return TypeAdapter(_Stage)


def stage_of(value: Any, source: str, datasets: Mapping[str, Collection[str]]) -> Stage:
    """The stage that ``Stage.to_json`` gave.

    Args:
        value: a JSON value.
        source: names it in messages.
        datasets: the names of each dataset's tasks.

    Raises:
        ConfigError: it is no stage; the message names key and value.
    """
    part, key = value, ""
    for _ in range(MOST_PARENTS):
        problem = wrong_type(_stage(), part) or _unknown_task(part, datasets)
        if problem:
            raise ConfigError(f"{source}: no stage: {key}{problem}; give what Stage.to_json made")
        part, key = part["parent"], f"{key}parent."
        if part is None:
            return Stage.from_json(value)
    raise ConfigError(f"{source}: no stage: it starts from more than {MOST_PARENTS} others in turn")


def _unknown_task(stage: dict[str, Any], datasets: Mapping[str, Collection[str]]) -> str | None:
    tasks = datasets.get(stage["dataset"])
    if tasks is None:
        return f"dataset: found {stage['dataset']!r}, expected one of {', '.join(datasets)}"
    for key in ("train_tasks", "select_on"):
        for task in stage[key]:
            if task not in tasks:
                return f"{key}: {task!r} is no task of {stage['dataset']}"
            if task not in stage["task_shorts"]:
                return f"task_shorts: no short name of {task}"
    return None
