"""The record of a training, with its history, test results and provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import cast

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.models.family import FamilyModel
from tasktransfer.results.artefacts import Artefact
from tasktransfer.results.provenance import describe_provenance, read_peak_memory_mb
from tasktransfer.results.records import build_node_record
from tasktransfer.results.schema import (
    Cost,
    Provenance,
    Record,
    Round,
    RowsFile,
    Sizes,
    TaskResult,
    TrainingResult,
)
from tasktransfer.training.evaluate import Evaluation
from tasktransfer.training.job import Job
from tasktransfer.training.loop import Trained
from tasktransfer.training.setup import Setup
from tasktransfer.training.torch_facts import describe_machine, read_peak_gpu_memory

Clock = dict[str, float]
"""Phase of a training → its wall time in seconds."""


def build_record(
    job: Job,
    trained: Trained,
    tested: Mapping[str, Evaluation],
    *,
    sizes: Mapping[str, Sizes],
    synthetic: bool,
    rows: RowsFile | None,
    artefacts: Mapping[str, Artefact],
    provenance: Provenance,
) -> Record:
    """Build the record of a finished training."""
    results: dict[str, TaskResult] = {
        task: {
            "measures": evaluation.metrics,
            "score": evaluation.score,
            "instances": len(evaluation.predictions),
        }
        for task, evaluation in tested.items()
    }
    training: TrainingResult = {
        "rounds": [
            cast(
                Round,
                {key: value for key, value in asdict(entry).items() if value or key != "mixing"},
            )
            for entry in trained.rounds
        ],
        "selections": [
            {
                "select_on": list(best.selection.tasks),
                "round": best.round,
                "dev_score": best.score,
                "scores": best.scores,
            }
            for best in trained.best
        ],
    }
    return build_node_record(
        job.stage,
        training=training,
        results=results,
        sizes=sizes,
        synthetic=synthetic,
        rows=rows,
        artefacts=artefacts,
        provenance=provenance,
    )


def build_provenance(
    job: Job,
    trained: Trained,
    model: FamilyModel,
    setup: Setup,
    *,
    learnable: int,
    started: datetime,
    clock: Clock,
    joules: float | None,
    notes: list[str],
) -> Provenance:
    """Build the provenance of a record.

    Args:
        learnable: number of trainable parameters before the stage froze any.
        started: start time in UTC.
        joules: energy of the device, see ``energy.start_energy_meter``.
        notes: notes from loading the model.
    """
    rate = 1 / max(trained.train_seconds, 1e-9)
    resumed = [f"interrupted and resumed after round {number}" for number in trained.resumed_after]
    cost: Cost = {
        "tokens": trained.tokens,
        "samples": trained.samples,
        "samples_per_second": trained.samples * rate,
        "tokens_per_second": trained.tokens * rate,
        "parameters": {
            "all": sum(parameter.numel() for parameter in model.module.parameters()),
            "learnable": learnable,
            "trained": count_trainable_parameters(model),
        },
        "peak_memory_mb": read_peak_memory_mb(),
        "peak_gpu_memory_mb": read_peak_gpu_memory(setup.device),
        "paths": [
            *model.paths,
            *["workers"] * (setup.workers.count > 1),
            *["float32_heads"] * (setup.precision == "bfloat16"),
        ],
        "energy_joules": joules,
    }
    return describe_provenance(
        job.stage,
        study=job.study,
        config_digest=job.config_digest,
        facts=job.facts,
        substitutes=job.substitutes,
        host=describe_machine(setup.device, setup.precision, job.threads),
        started=started,
        seconds=clock,
        notes=[*notes, *resumed, *setup.notes],
        training=cost,
    )


def count_trainable_parameters(model: FamilyModel) -> int:
    """Return the number of trainable parameters."""
    return sum(weight.numel() for weight in model.module.parameters() if weight.requires_grad)


def count_split_instances(splits: Mapping[tuple[str, str], EncodedSplit]) -> dict[str, Sizes]:
    """Return the number of instances by task and split.

    The number is 0 for a split that is not used.
    """
    sizes: dict[str, Sizes] = {}
    for (task, split), examples in splits.items():
        size = sizes.setdefault(task, {"train": 0, "dev": 0, "test": 0})
        size[split] = len(examples.ids)
    return sizes
