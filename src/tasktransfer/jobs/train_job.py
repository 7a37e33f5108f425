"""Training of one stage of a study. The device is leased before torch is imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tasktransfer.core.nodes import Stage, Start
from tasktransfer.results.study import Study
from tasktransfer.training.attempt import train_if_needed
from tasktransfer.training.job import Job

if TYPE_CHECKING:  # imports pyarrow
    from tasktransfer.jobs.recorded_job import DesignParts


def train(
    study: Study, stage: Stage, design: DesignParts, threads: int, *, plain: bool = False
) -> None:
    """Train a stage, and write its record and, if it is used, its checkpoint.

    Args:
        plain: True for the reference of the fast paths (``Job.plain``).

    Raises:
        TaskTransferError: an error of ``training.attempt.train_if_needed``.
    """
    train_if_needed(build_job(study, stage, design, threads, study.get_start_folder, plain=plain))


def build_job(
    study: Study,
    stage: Stage,
    design: DesignParts,
    threads: int,
    start_folder: Callable[[Start], str],
    *,
    out: Path | None = None,
    plain: bool = False,
) -> Job:
    """Build the job that trains a stage.

    Args:
        start_folder: a function that returns the folder of a start that is another stage.
        out: folder in place of the stage's own. A job with this folder always saves a checkpoint.
        plain: True for the reference of the fast paths (``Job.plain``).
    """
    config, model = study.config, stage.model.name
    return Job(
        stage=stage,
        encoded=Path(study.get_encoded_folder(stage.data, model)),
        base=study.get_checkpoint_source(model),
        revision=study.get_base_revision(stage),
        starts=tuple(start_folder(start) for start in stage.starts if start.stage is not None),
        out=out or Path(study.get_node_folder(stage)),
        save_checkpoint=out is not None or study.makes_checkpoint(stage.kind),
        threads=threads,
        study=config.study,
        config_digest=config.digest,
        facts=design.facts(config),
        substitutes=design.substitutes(config),
        plain=plain,
        beside=study.get_second_encoder_source(model),
        tracking=config.tracking if out is None else None,
        tracking_folder=str(Path(config.results) / "tracking"),
    )
