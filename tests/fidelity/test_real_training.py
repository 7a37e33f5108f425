"""Training, scoring and writing of every task and family on real instances, for a few steps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from releases import PAPER_TASKS
from small_models import first_instances, make_model, small_stage, train_job
from tasktransfer.core.nodes import Data
from tasktransfer.core.specs import FAMILIES, Family, ModelSpec, Training
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.datasets import DATASETS, TINY_PARTS
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.encoding.encoded import read_split
from tasktransfer.results.rows import read_rows

INSTANCES = 24
PAIRS = [(task.dataset, task.name) for task in PAPER_TASKS]
FIRST_OF_KIND = {task.kind: task.name for task in reversed(PAPER_TASKS)}.values()
QUICK = {(FAMILIES[n % len(FAMILIES)], task) for n, task in enumerate(sorted(FIRST_OF_KIND))}
"""Families and tasks whose trainings are not slow tests: each kind of task with one family."""


@pytest.fixture(scope="module")
def instances(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write a few real instances of every task and split."""
    base = tmp_path_factory.mktemp("instances")
    found = {}
    for dataset in DATASETS:
        cache_dataset(dataset, shared / "feta", True, base / f"{dataset}-full")
        found[dataset] = first_instances(
            base / f"{dataset}-full",
            base / f"{dataset}-few",
            list(TINY_PARTS[dataset].sizes),
            INSTANCES,
        )
    return found


@pytest.fixture(scope="module")
def encoded(
    request: pytest.FixtureRequest,
    instances: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Family, Path, dict[str, Path]]]:
    """Return (family, checkpoint, encoded folder per dataset)."""
    family: Family = request.param
    base = tmp_path_factory.mktemp(family)
    texts = [row.context for d, t in PAIRS for row in read_instances(instances[d], t, "train")[:8]]
    checkpoint = make_model(family, texts, base / "model")
    folders = {}
    for dataset, folder in instances.items():
        folders[dataset] = base / dataset
        encode_dataset(folder, dataset, None, str(checkpoint), None, family, 384, folders[dataset])
    yield family, checkpoint, folders


@pytest.mark.parametrize(
    ("encoded", "dataset", "task"),
    [
        pytest.param(f, d, t, id=f"{f}-{d}-{t}", marks=[pytest.mark.slow] * ((f, t) not in QUICK))
        for f in FAMILIES
        for d, t in PAIRS
    ],
    indirect=["encoded"],
)
def test_every_task_trains_and_scores_with_every_family(
    encoded: tuple[Family, Path, dict[str, Path]], dataset: str, task: str, tmp_path: Path
) -> None:
    family, checkpoint, folders = encoded
    stage = small_stage(
        task,
        data=Data(dataset, "real", {"few_sample": True}),
        model=ModelSpec("small", family, "sha256:0", 384),
        training=Training(epochs=2, batch_size=12, learning_rate=1e-3, limit_test=10),
        seed=1,
    )
    out = tmp_path / "out"
    record = train_job(tmp_path, stage, out, encoded=folders[dataset], base=str(checkpoint))
    assert 0 <= record["results"][task]["score"] <= 100
    assert len(record["training"]["rounds"]) == 2
    losses = [one["train_loss"][task] for one in record["training"]["rounds"]]
    assert all(math.isfinite(loss) and loss > 0 for loss in losses)
    assert losses[1] < losses[0], "two passes over a few instances must lower their loss"
    assert record["rows"] is not None
    table = read_rows(out / "rows.parquet", record["rows"])
    test = read_split(folders[dataset], task, "test")
    expected = min(10, len(test.ids))
    assert table.num_rows == expected
    assert table["gold"].to_pylist() == [list(t) for t in test.limit_instances(10).targets]
    assert (out / "checkpoint" / "model.safetensors").is_file()
