"""Runs of references: simple predictors on every task that a study trains a baseline on.

A reference of a dataset is one fit, which predicts the test splits of all its tasks. It reads as
many training and test instances as the study's trainings. Nothing is sampled, so it has no seed.
Contrastive fine-tuning has a fit per seed of the study. It is fitted only for targets, not for
tasks that are only sources, because it takes much longer than the other references.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from tasktransfer.core.nodes import Data, Fit
from tasktransfer.core.references import (
    CONTRASTIVE,
    CONTRASTIVE_SETTINGS,
    FROZEN,
    LIMIT_DEV,
    LIMIT_TEST,
    LIMIT_TRAIN,
    MODEL,
    OF_A_MODEL,
    REGULARISATION,
    SCORING,
    SPLIT,
    STRENGTH,
    TUNING,
)
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec, Training
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.runs import BASELINE, CHECK, NO_MODEL, REFERENCE, RunName
from tasktransfer.tasks.card import SINGLE_LABEL


def plan_reference_runs(
    references: Sequence[str],
    names: Iterable[RunName],
    data: Mapping[str, Data],
    models: Mapping[str, ModelSpec],
    training: Callable[[str, str], Training],
    targets: Mapping[str, Collection[str]],
    split: str = "test",
) -> Iterator[Run]:
    """Yield one run per dataset, reference and, where they matter, model and seed.

    Args:
        references: names in ``core.references.REFERENCES``.
        names: runs of the study, whose baselines' tasks are predicted.
        data: dataset → its data.
        models: model → its weights.
        training: function (dataset, model) → hyperparameters, for limits and scoring rules.
        targets: dataset → targets of transfers; empty for a study without transfers.
        split: ``test``, or ``dev`` for runs that ``check_baselines`` compares with baselines.
    """
    tasks: dict[str, dict[str, None]] = {}
    trained: dict[str, dict[str, None]] = {}
    seeds: dict[str, dict[int, None]] = {}
    for dataset, model, method, _, target, seed in names:
        if method == BASELINE:
            tasks.setdefault(dataset, {})[target] = None
            trained.setdefault(dataset, {})[model] = None
            seeds.setdefault(dataset, {})[seed] = None
    for dataset, reference in product(tasks, references):
        for model in trained[dataset] if reference in OF_A_MODEL else (NO_MODEL,):
            hyperparameters = training(dataset, next(iter(trained[dataset])))
            settings = _build_settings(reference, hyperparameters, models.get(model), split)
            is_costly = reference == CONTRASTIVE and len(targets) > 0
            wanted = targets.get(dataset, ()) if is_costly else tasks[dataset]
            own = [task for task in tasks[dataset] if task in wanted]
            known = _select_predictable(reference, dataset, own)
            if not known or not can_fit(reference, models.get(model), split):
                continue
            about = {"dataset": dataset, "sources": (), "target": "", "reference": reference}
            method = REFERENCE if split == "test" else CHECK
            for seed in seeds[dataset] if reference == CONTRASTIVE else (0,):
                fit = Fit(reference, data[dataset], known, seed, settings)
                yield Run(method, model, seed, about, fit, variant=reference)


def can_predict(reference: str, kind: str) -> bool:
    """Return whether a reference can predict tasks of a kind (``tasks.card.Kind``).

    Embeddings are not used for spans: every phrase of a context would have to be embedded. The
    contrastive loss needs one label per instance. No reference predicts answers without a fixed set
    (replies, open labels).
    """
    if kind in ("reply", "open_labels"):
        return False
    if reference == CONTRASTIVE:
        return kind in SINGLE_LABEL
    return not (reference in OF_A_MODEL and kind == "span")


def can_fit(reference: str, model: ModelSpec | None, split: str) -> bool:
    """Return whether a reference can be fitted for a model and a split.

    Contrastive fine-tuning is for encoders. It does not check baselines on dev, because a baseline
    that it exceeds may have learned its task.
    """
    if reference != CONTRASTIVE or model is None:
        return True
    return model.family == "encoder" and split == "test"


def _select_predictable(reference: str, dataset: str, tasks: Iterable[str]) -> tuple[str, ...]:
    return tuple(task for task in tasks if can_predict(reference, get_task(dataset, task).kind))


def _build_settings(
    reference: str, training: Training, model: ModelSpec | None, split: str
) -> dict[str, Any]:
    limit = LIMIT_TEST if split == "test" else LIMIT_DEV
    settings: dict[str, Any] = {
        LIMIT_TRAIN: training.limit_train,
        limit: getattr(training, limit),
        MODEL: model.as_released.identity if model else None,
        SPLIT: None if split == "test" else split,
    }
    if training.fidelity.scoring != "default":
        settings[SCORING] = training.fidelity.scoring
    if reference in (FROZEN, CONTRASTIVE):
        settings[STRENGTH] = REGULARISATION
    if reference == CONTRASTIVE:
        settings[TUNING] = dict(CONTRASTIVE_SETTINGS)
    return {key: value for key, value in settings.items() if value is not None}
