"""Baselines on nested samples of the training dialogues, for the learning curve of fine-tuning.

They are neither algorithms nor controls: only ``tasktransfer learning-curve`` reads their runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from tasktransfer.core.nodes.data import FRACTION, SAMPLED
from tasktransfer.core.plan import Step
from tasktransfer.core.specs import Selection
from tasktransfer.designs.transfer.algorithms import StudySettings
from tasktransfer.designs.transfer.dataset_section import DatasetConfig
from tasktransfer.designs.transfer.runs import SAMPLES, RunName

LIMIT = "limit_train"


def list_sample_runs(
    datasets: Sequence[DatasetConfig], models: Sequence[str], seeds: Iterable[int]
) -> Iterator[RunName]:
    """Yield the runs on subsampled data, one per target, model, seed and fraction below 1.

    The targets are those of the study's pairs, or all tasks if no task has a source.
    """
    has_pairs = any(dataset.pairs for dataset in datasets)
    for model, seed, dataset in product(models, seeds, datasets):
        of_pairs = {target for _, target in dataset.pairs}
        for target in dataset.tasks:
            if target in of_pairs or not has_pairs:
                for method in SAMPLES:
                    yield dataset.name, model, method, (), target, seed


def build_sample_steps(method: str, target: str, usual: StudySettings) -> list[Step]:
    """Return the step of a baseline on a subsample of the training dialogues.

    Samples with one seed are nested, and the training has the same seed as its sample. A limit of
    training instances applies before the sampling, so 100 % are the instances of the baseline.
    """
    settings = {**usual.data.settings, FRACTION: SAMPLES[method], "seed": usual.seed}
    if usual.training.limit_train is not None:
        settings[LIMIT] = usual.training.limit_train
    sampled = replace(usual.data, recipe=SAMPLED, settings=settings)
    return [Step((target,), Selection((target,)), data=sampled)]
