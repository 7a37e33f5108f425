"""The challenge-demo preset, trained in one process that imports torch once, not 34 times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from small_models import make_model
from tasktransfer.cli import main
from tasktransfer.core.nodes import Stage
from tasktransfer.data.cache import prepare, read_instances
from tasktransfer.designs import get_design, open_study
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.results.study import Study
from tasktransfer.training.job import Job
from tasktransfer.training.run import train_stage

PRESET = Path(__file__).resolve().parent.parent / "workflow" / "presets" / "challenge-demo.yaml"
MODEL = "tiny-bert"


def trained_preset(base: Path, overrides: Mapping[str, Any] | None = None) -> Study:
    """Train every stage of the preset, with results under ``base``.

    The model has random weights and the same shape, and needs no pre-training. Everything else is
    as with Snakemake.
    """
    checkpoint = base / "checkpoint"
    model = {"name": MODEL, "family": "encoder", "checkpoint": str(checkpoint), "max_length": 128}
    changed = {"results": str(base / "results"), "models": [model], **(overrides or {})}
    study = open_study(PRESET, changed, need_inputs=False)
    world = study.config.data.tiny_world
    out = ["--out", study.release]
    assert (
        main(["world", "--seed", str(world.seed), "--dialogues", str(world.dialogues), *out]) == 0
    )
    study = open_study(PRESET, changed, need_inputs=False)
    texts = []
    for dataset in study.config.datasets:
        folder = Path(study.instances(dataset.name))
        prepare(dataset.name, study.release, study.config.data.few_sample, folder)
        texts += [
            row.context for task in dataset.tasks for row in read_instances(folder, task, "train")
        ]
    make_model("encoder", texts, checkpoint)
    # The study is opened again, since the revisions of dialogues and checkpoint are known only now.
    study = open_study(PRESET, changed)
    for dataset in study.config.datasets:
        encode_dataset(
            Path(study.instances(dataset.name)),
            dataset.name,
            None,
            study.base_model(MODEL),
            None,
            "encoder",
            study.model(MODEL).max_length,
            Path(study.encoded(study.get_released_data(dataset.name), MODEL)),
        )
    for stage in study.plan.stages:
        train_stage(_job(study, stage))
    return study


def _job(study: Study, stage: Stage) -> Job:
    return Job(
        stage=stage,
        encoded=Path(study.encoded(stage.data, stage.model.name)),
        base=study.base_model(stage.model.name),
        starts=tuple(study.start(start) for start in stage.starts),
        revision=None,
        out=Path(study.folder(stage)),
        save_checkpoint=study.makes_checkpoint(stage.kind),
        threads=1,
        study=study.config.study,
        config_digest=study.config.digest,
        facts=get_design(study.config).facts(study.config),
    )
