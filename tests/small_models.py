"""Small random models of the three families, with tokenizers trained on given text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from releases import tiny_release
from tasktransfer.core.fidelity import DEFAULT, Fidelity
from tasktransfer.core.nodes import Data, Stage
from tasktransfer.core.specs import FAMILIES, Family, LowRank, ModelSpec, Reads, Selection, Training
from tasktransfer.data.cache import (
    cache_dataset,
    get_instance_file_name,
    read_instances,
    write_instances,
)
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.load import Loading, load_model
from tasktransfer.training.tiny import create_model, create_tokenizer


def make_model(family: Family, texts: Sequence[str], folder: Path) -> Path:
    """Save a random model that trains quickly, as a normal checkpoint."""
    torch.manual_seed(0)
    tokenizer = create_tokenizer(family, list(texts))
    create_model(family, tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def first_instances(full: Path, folder: Path, tasks: Sequence[str], count: int) -> Path:
    """Copy the first ``count`` instances of each split of an instance cache."""
    folder.mkdir(parents=True)
    manifest = json.loads((full / "manifest.json").read_text())
    for task in tasks:
        for split in ("train", "dev", "test"):
            rows = read_instances(full, task, split)[:count]
            write_instances(folder / get_instance_file_name(task, split), rows)
            manifest["sha256"].pop(get_instance_file_name(task, split))
            manifest["tasks"][task][split]["samples"] = len(rows)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def small_stage(
    *tasks: str, family: Family = "encoder", selection: Selection | None = None, **changes: Any
) -> Stage:
    """Build a stage that trains DailyDialog tasks from the base model, selected by the first.

    ``changes`` replace its fields.
    """
    stage = Stage(
        kind="baseline",
        label="small",
        data=Data("DailyDialog", "r1"),
        model=ModelSpec("small", family, "w1", 200),
        train_tasks=tuple(sorted(tasks)),
        selection=selection or Selection(tasks[:1]),
        training=Training(),
        seed=0,
    )
    return replace(stage, **changes)


Loader = Callable[..., tuple[FamilyModel, EncodedSplit]]


def loader(base: Path) -> Loader:
    """Return a function that loads a small model and one of a task's splits.

    Its arguments are (family, dataset, task, plain=False, split="train", others=(),
    fidelity=DEFAULT, dropout=0.0); the model also has heads for the other tasks. A hand-made
    release, its caches and three models are written under ``base`` first.
    """
    texts = []
    for dataset in DATASETS:
        tiny_release(dataset).write(base / "release")
        cache_dataset(dataset, base / "release", False, base / f"instances-{dataset}")
        texts += [
            row.context
            for task in DATASETS[dataset].tasks
            for row in read_instances(base / f"instances-{dataset}", task, "train")
        ]
    for family in FAMILIES:
        checkpoint = make_model(family, texts * 5, base / family)
        for dataset in DATASETS:
            instances = base / f"instances-{dataset}"
            out = base / f"{dataset}-{family}"
            encode_dataset(instances, dataset, None, str(checkpoint), None, family, 200, out)

    def loaded(
        family: Family,
        dataset: str,
        task: str,
        plain: bool = False,
        split: str = "train",
        others: tuple[str, ...] = (),
        fidelity: Fidelity = DEFAULT,
        dropout: float = 0.0,
        adapter_reduction: int | None = None,
        adapter: LowRank | None = None,
        reads: Reads = "pooler",
    ) -> tuple[FamilyModel, EncodedSplit]:
        folder = base / f"{dataset}-{family}"
        spec = ModelSpec(
            *("small", family, "w1", 200),
            adapter_reduction=adapter_reduction,
            reads=reads,
            adapter=adapter,
        )
        training = Training(fidelity=fidelity, dropout=dropout)
        loading = Loading(spec, training, folder, 0, torch.device("cpu"), plain=plain)
        tasks = {name: get_task(dataset, name) for name in sorted({task, *others})}
        model = load_model(loading, str(base / family), None, tasks)
        return model, read_split(folder, task, split)

    return loaded
