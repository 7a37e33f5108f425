"""Checkpoints of finished trainings: the kept one, or one from training the stage again.

A training that is repeated here writes into the folder ``exports`` of the results, next to the
study's records, which stay unchanged.
"""

from __future__ import annotations

from pathlib import Path

from tasktransfer.core.nodes import Stage, Start
from tasktransfer.errors import DataError
from tasktransfer.jobs import inputs
from tasktransfer.jobs.recorded_job import DesignParts
from tasktransfer.jobs.train_job import build_job
from tasktransfer.results.rounds import check_round_folder, get_round_folder
from tasktransfer.results.study import Study
from tasktransfer.training.attempt import train_if_needed

FOLDER = "exports"


def restore_checkpoint(study: Study, start: Start, design: DesignParts, threads: int) -> str:
    """Return the folder of a stage's round, training the stage again if necessary.

    The checkpoints that the stage starts from are restored, too.

    Raises:
        DataError: token ids that the training reads are missing.
        RecordError: a checkpoint differs from the one that its stage wrote.
    """
    stage = start.stage
    assert stage is not None
    if Path(study.get_start_folder(start)).is_dir():
        return inputs.get_checkpoint(study, start)
    out = Path(study.config.results, FOLDER, stage.path)
    folder = get_round_folder(str(out), start.at, start.selected_on)
    if not Path(folder).is_dir():
        find_encoded_folder(study, stage)

        def restore_start(parent: Start) -> str:
            return restore_checkpoint(study, parent, design, threads)

        job = build_job(study, stage, design, threads, restore_start, out=out)
        train_if_needed(job)
    return check_round_folder(folder, stage.digest)


def find_encoded_folder(study: Study, stage: Stage) -> Path:
    """Find the folder of a stage's token ids.

    Raises:
        DataError: it is missing.
    """
    name = stage.model.name
    folder = Path(study.get_encoded_folder(stage.data, name))
    if not (folder / "manifest.json").is_file():
        raise DataError(
            f"{folder}: The token IDs of {stage.data.name} are missing. Write the token IDs with "
            f"`tasktransfer encode {study.config_file} --dataset {stage.data.name} --model {name} "
            f"--out {folder}`."
        )
    return folder
