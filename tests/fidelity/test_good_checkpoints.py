"""Architectures of all three families load, are checked and train, without code of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from architectures import FAMILY_OF, write_checkpoint
from releases import tiny_release
from tasktransfer.data.cache import prepare, read_instances
from tasktransfer.models.check_model import check_model
from tasktransfer.models.encode import encode_dataset
from tasktransfer.records import read_record
from tasktransfer.stage import ModelSpec, Stage, Training
from tasktransfer.tasks import DATASETS
from tasktransfer.training.job import Job
from tasktransfer.training.run import train_stage

DATASET, TASK, LENGTH = "DailyDialog", "emotion_recognition", 128

DRAWN = {
    "bert": "pooler.dense",
    "roberta": "pooler.dense",
    "mpnet": "pooler.dense",
    "albert": "pooler",
}
"""What a masked language model's checkpoint lacks of the backbone."""

LEFT = {
    "bert": "cls.predictions.transform.dense",
    "roberta": "lm_head",
    "distilbert": "vocab_transform",
    "electra": "generator_predictions.dense",
    "modernbert": "decoder",
}
"""And what of it no task here uses."""


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("release")
    tiny_release(DATASET).write(base)
    prepare(DATASET, base, False, base / "instances")
    return base / "instances"


@pytest.mark.parametrize("architecture", FAMILY_OF)
def test_an_architecture_loads_and_trains_an_epoch(
    architecture: str, instances: Path, tmp_path: Path
) -> None:
    family = FAMILY_OF[architecture]
    texts = [row.context for row in read_instances(instances, TASK, "train")] * 4
    checkpoint = str(write_checkpoint(architecture, tmp_path / "model", texts))
    notes: list[str] = []
    check_model(family, checkpoint, None, LENGTH, notes.append)
    encode_dataset(
        instances, DATASET, [TASK], checkpoint, None, family, LENGTH, tmp_path / "encoded", 0.05
    )
    stage = Stage(
        dataset=DATASET,
        data_revision="tiny",
        few_sample=False,
        model=ModelSpec("small", family, "sha256:0", LENGTH),
        train_tasks=(TASK,),
        select_on=(TASK,),
        parent=None,
        training=Training(epochs=1, batch_size=4, precision="float32"),
        seed=0,
        task_shorts={t: c.short for t, c in DATASETS[DATASET].items()},
    )
    run = {"dataset": DATASET, "model": "small", "family": family, "algorithm": "baseline"}
    job = Job(
        stage=stage,
        run={**run, "sources": [], "target": TASK, "seed": 0},
        encoded=tmp_path / "encoded",
        start=checkpoint,
        revision=None,
        out=tmp_path / "out",
        save_checkpoint=False,
        threads=1,
        study="test",
        config_digest="0" * 64,
    )
    train_stage(job)
    record = read_record(tmp_path / "out" / "metrics.json")
    assert record["score"] is not None
    assert record["provenance"]["notes"] == notes
    told = " | ".join(notes)
    assert (
        (f"{DRAWN[architecture]}: not in the checkpoint" in told)
        if architecture in DRAWN
        else ("drawn" not in told)
    )
    assert LEFT.get(architecture, "") in told
