"""The challenge-demo preset with its records, from a pack or trained in one process.

``python tests/challenge_study.py`` trains them and packs them again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from packed_results import restore, write_pack
from small_models import make_model
from tasktransfer.cli import main
from tasktransfer.core.nodes import Stage
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.designs import get_design, open_study
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.results.study import Study
from tasktransfer.training.job import Job
from tasktransfer.training.run import train_stage

PRESET = Path(__file__).resolve().parent.parent / "workflow" / "presets" / "challenge-demo.yaml"
MODEL = "tiny-bert"


def trained_preset(base: Path) -> Study:
    """Return the preset's study with the record of every stage, in the folder ``base``.

    The records are from the pack "challenge", or from trainings.
    """
    study = open_preset(base)
    if not restore(study, "challenge"):
        train(study)
    return study


def open_preset(base: Path) -> Study:
    """Open the preset with its data and model in the folder ``base``.

    The model has random weights and the same shape, and needs no pre-training. Everything else is
    as with Snakemake.
    """
    checkpoint = base / "checkpoint"
    model = {"name": MODEL, "family": "encoder", "checkpoint": str(checkpoint), "max_length": 128}
    changed: dict[str, Any] = {"results": str(base / "results"), "models": [model]}
    changed["data"] = {"release": str(base / "world")}
    study = open_study(PRESET, changed, need_inputs=False)
    world = study.config.data.tiny_world
    out = ["--out", study.release]
    assert (
        main(["world", "--seed", str(world.seed), "--dialogues", str(world.dialogues), *out]) == 0
    )
    study = open_study(PRESET, changed, need_inputs=False)
    texts = []
    for dataset in study.config.datasets:
        folder = Path(study.get_instances_folder(dataset.name))
        cache_dataset(dataset.name, study.release, study.config.data.few_sample, folder)
        texts += [
            row.context for task in dataset.tasks for row in read_instances(folder, task, "train")
        ]
    make_model("encoder", texts, checkpoint)
    # The study is opened again, since the revisions of dialogues and checkpoint are known only now.
    return open_study(PRESET, changed)


def train(study: Study) -> None:
    """Train every stage of a study whose data and model exist."""
    for dataset in study.config.datasets:
        encode_dataset(
            Path(study.get_instances_folder(dataset.name)),
            dataset.name,
            None,
            study.get_checkpoint_source(MODEL),
            None,
            "encoder",
            study.get_model_config(MODEL).max_length,
            Path(study.get_encoded_folder(study.get_released_data(dataset.name), MODEL)),
        )
    for stage in study.plan.stages:
        train_stage(_job(study, stage))


def _job(study: Study, stage: Stage) -> Job:
    return Job(
        stage=stage,
        encoded=Path(study.get_encoded_folder(stage.data, stage.model.name)),
        base=study.get_checkpoint_source(stage.model.name),
        starts=tuple(study.get_start_folder(start) for start in stage.starts),
        revision=None,
        out=Path(study.get_node_folder(stage)),
        save_checkpoint=study.makes_checkpoint(stage.kind),
        threads=1,
        study=study.config.study,
        config_digest=study.config.digest,
        facts=get_design(study.config).facts(study.config),
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        study = open_preset(Path(folder))
        train(study)
        print(write_pack(study, "challenge"))
