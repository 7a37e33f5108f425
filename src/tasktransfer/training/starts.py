"""The model that a stage starts from: the base model, another stage's, or parts of several."""

from __future__ import annotations

import torch

from tasktransfer.core.nodes import Stage, Start
from tasktransfer.datasets import get_task
from tasktransfer.models.check_parameters import Note
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.load import Loading, load_model
from tasktransfer.models.parts import replace_parts
from tasktransfer.results.rounds import check_round_folder
from tasktransfer.tasks.card import Task
from tasktransfer.training.job import Job


def load_start(job: Job, tasks: dict[str, Task], device: torch.device, note: Note) -> FamilyModel:
    """Load the model from which a job's stage starts.

    A stage that continues from another stage's complete best round is loaded from that checkpoint.
    Any other stage starts from its base model, into which the parts of its starts are copied.

    Args:
        tasks: tasks of the stage, see ``list_tasks``.
        note: called with the weights of a checkpoint that are not used or initialised at random.

    Raises:
        ConfigError: a named part is unknown.
        DataError: the token ids are missing or damaged.
        ModelError: a checkpoint is damaged, a round was not kept, or parts do not fit.
        RecordError: a checkpoint differs from the one that its stage wrote.
    """
    stage = job.stage

    def load(
        folder: str,
        revision: str | None,
        source: Stage,
        tasks: dict[str, Task],
        *,
        begins: bool = False,
    ) -> FamilyModel:
        loading = Loading(
            source.model,
            stage.training,
            job.encoded,
            stage.seed,
            device,
            beside=job.beside if source.model.beside else None,
            plain=job.plain,
            note=note if source is stage else lambda text: None,
            base=job.base,
            base_revision=job.revision,
            begins=begins,
        )
        return load_model(loading, folder, revision, tasks)

    def load_other(start: Start) -> FamilyModel:
        if start.stage is None:
            return load(job.base, job.revision, stage, tasks)
        folder = check_round_folder(next(folders), start.stage.digest)
        return load(folder, None, start.stage, list_tasks(start.stage))

    if stage.starts_whole:
        (start,) = stage.starts
        assert start.stage is not None
        folder = check_round_folder(job.starts[0], start.stage.digest)
        return load(folder, None, stage, tasks, begins=True)
    model = load(job.base, job.revision, stage, tasks)
    folders = iter(job.starts)
    laid = [start for start in stage.starts if start != Start(None)]
    replace_parts(model, [(start, load_other(start)) for start in laid])
    return model


def list_tasks(stage: Stage) -> dict[str, Task]:
    """Return the tasks that a stage trains on or is selected by.

    Their order is the same in every process, because the model's weights and the optimiser's state
    follow it.
    """
    return {name: get_task(stage.dataset, name) for name in stage.tasks}
