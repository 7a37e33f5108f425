"""Runs that prompt a language model on a task without training.

A run is a model with a number of shots and a seed that samples them, on one task. It has one
evaluation per prompt wording on the task's card.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from tasktransfer.core.nodes import Data, Evaluation, Outcome
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec
from tasktransfer.designs.names import get_tasks
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.config_sections import PromptedConfig
from tasktransfer.designs.transfer.runs import PROMPTED
from tasktransfer.tasks.asking import compute_wording_digest, get_wordings
from tasktransfer.tasks.card import Task


def plan_prompted_runs(
    config: TransferConfig, data: Mapping[str, Data], models: Mapping[str, ModelSpec]
) -> Iterator[Run]:
    """Yield one run per prompted model, task and number of shots.

    With shots there is one run per seed, otherwise one run with the first seed.
    """
    for dataset, entry in product(config.datasets, config.prompted):
        outcome = Outcome((), model=entry.to_spec(models))
        limit = entry.limit_test or config.get_training_hyperparameters(dataset.name).limit_test
        for shots in entry.shots:
            for seed, name in product(config.seeds if shots else config.seeds[:1], dataset.tasks):
                about = {"dataset": dataset.name, "sources": (), "target": name, "shots": shots}
                card = get_tasks(dataset.name)[name]
                evaluations = _build_evaluations(
                    entry, outcome, data[dataset.name], card, shots, seed, limit
                )
                yield Run(
                    PROMPTED, entry.model, seed, about, outcome, evaluations, f"{shots} shots"
                )


def _build_evaluations(
    entry: PromptedConfig,
    outcome: Outcome,
    data: Data,
    card: Task,
    shots: int,
    seed: int,
    limit: int | None,
) -> tuple[Evaluation, ...]:
    measures = (*(metric.key for metric in card.metrics), "score")
    evaluations = []
    for index, wording in enumerate(get_wordings(card)):
        settings: dict[str, Any] = {
            "shots": shots,
            "wording": index,
            "prompt": compute_wording_digest(card, wording),
        }
        if shots:
            settings["seed"] = seed
        settings |= entry.get_evaluation_settings()
        if limit is not None:
            settings["limit_test"] = limit
        evaluations.append(
            Evaluation(outcome, data, card.name, measures, settings={"asked": settings})
        )
    return tuple(evaluations)
