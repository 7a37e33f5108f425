"""Small random models of the three families, tokenizers trained on given text, and trainings."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from releases import tiny_release
from tasktransfer.core.nodes import Data, Stage
from tasktransfer.core.specs import FAMILIES, Family, ModelSpec, Selection, Training
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
from tasktransfer.results.records import read_record
from tasktransfer.results.schema import Record
from tasktransfer.training.job import Job
from tasktransfer.training.loop import Trained, train
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.precision import Precision
from tasktransfer.training.progress import Progress
from tasktransfer.training.resume import Snapshots
from tasktransfer.training.run import train_stage
from tasktransfer.training.setup import Setup
from tasktransfer.training.tiny import create_model, create_tokenizer
from tasktransfer.training.workers import Workers

KINDS = {
    "utterance_classification": ("DailyDialog", "emotion_recognition"),
    "dialogue_classification": ("DailyDialog", "dialogue_nli"),
    "multi_label": ("Friends", "relation_extraction"),
    "multi_output": ("Friends", "personality_detection"),
    "multiple_choice": ("DailyDialog", "adversarial_response_selection"),
    "span": ("DailyDialog", "dialogue_reasoning_span_extraction"),
}
"""One task of each kind."""


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


NO_DROPOUT = Training(dropout=0.0)
Loader = Callable[..., tuple[FamilyModel, EncodedSplit]]


def loader(base: Path) -> Loader:
    """Return a function that loads a small model and one of a task's splits.

    Its arguments are (family, dataset, task, plain=False, split="train", others=(),
    training=NO_DROPOUT), and fields of ``ModelSpec``; the model also has heads for the other tasks.
    A hand-made release, its caches and three models are written under ``base`` first.
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
        training: Training = NO_DROPOUT,
        **spec: Any,
    ) -> tuple[FamilyModel, EncodedSplit]:
        folder = base / f"{dataset}-{family}"
        model_spec = ModelSpec("small", family, "w1", 200, **spec)
        loading = Loading(model_spec, training, folder, 0, torch.device("cpu"), plain=plain)
        tasks = {name: get_task(dataset, name) for name in sorted({task, *others})}
        model = load_model(loading, str(base / family), None, tasks)
        return model, read_split(folder, task, split)

    return loaded


# --- trainings ------------------------------------------------------------------------------------


class KilledError(Exception):
    """A substitute for a kill of the process."""


def small_setup(
    tokens: int = 256, eval_tokens: int = 256, precision: Precision = "float32", workers: int = 1
) -> Setup:
    budgets = TokenBudget(tokens, "training"), TokenBudget(eval_tokens, "evaluation")
    return Setup(torch.device("cpu"), *budgets, precision, Workers(workers))


def train_quietly(
    model: FamilyModel,
    stage: Stage,
    splits: Mapping[str, EncodedSplit],
    setup: Setup | None = None,
    states: Path | None = None,
    dies_after: int = 0,
) -> Trained:
    """Train a model on splits of DailyDialog, and select on those that the stage names.

    Args:
        states: folder of the states that a training resumes from.
        dies_after: round after which ``KilledError`` is raised; 0 for none.
    """

    def report_round(number: int, *_: object) -> None:
        if number == dies_after:
            raise KilledError

    progress = Progress(1, "test", io.StringIO())
    if dies_after:
        progress.report_round = report_round  # type: ignore[method-assign]
    tasks = {name: get_task("DailyDialog", name) for name in splits}
    dev = {name: splits[name] for name in stage.select_on}
    kept = Snapshots(states, {"stage": "a"}, print, float("inf"), 0.0) if states else None
    return train(model, stage, tasks, splits, dev, setup or small_setup(), progress, kept)


def flatten_weights(model: FamilyModel) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.module.parameters()])


def build_job(small: Path, stage: Stage, out: Path, **more: Any) -> Job:
    """Build the job that trains a stage on the release and models that ``loader`` writes."""
    family = "encoder" if stage.model.family == "dual_encoder" else stage.model.family
    fields = {
        "stage": stage,
        "encoded": small / f"DailyDialog-{family}",
        "base": str(small / family),
        "revision": None,
        "out": out,
        "save_checkpoint": True,
        "threads": 1,
        "study": "small",
        "config_digest": "c",
    }
    return Job(**{**fields, **more})


def train_job(
    small: Path, stage: Stage, out: Path, starts: tuple[str, ...] = (), **more: Any
) -> Record:
    """Train a stage as a job of the workflow, and return its record."""
    train_stage(build_job(small, stage, out, starts=starts, **more))
    return read_record(out / "metrics.json")
