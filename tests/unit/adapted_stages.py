"""Stages that train adapters of small models, and the resulting models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from small_models import small_setup, small_stage
from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import FAMILIES, Family, LowRank, Training
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.load import Loading, load_model
from tasktransfer.training.evaluate import evaluate_split

EMOTIONS, NLI = "emotion_recognition", "dialogue_nli"
LORA = LowRank(rank=4, alpha=8, dropout=0.0)
TRAINING = Training(epochs=1, batch_size=2, learning_rate=3e-3, precision="float32", dropout=0.0)
EVERY_FAMILY: tuple[Family, ...] = (*FAMILIES, "dual_encoder")


def adapted(
    family: Family, adapter: LowRank | None = LORA, task: str = EMOTIONS, **more: Any
) -> Stage:
    stage = small_stage(task, family=family, training=TRAINING)
    return replace(stage, model=replace(stage.model, adapter=adapter), **more)


def read_by(family: Family) -> Family:
    """Return the family whose checkpoint and token ids a small model of a family reads."""
    return "encoder" if family == "dual_encoder" else family


def bodies(model: FamilyModel, family: Family) -> list[Any]:
    """Return the pre-trained models inside a model, by transformers' classes."""
    parts: Any = model.module
    within = {"encoder": ["backbone"], "dual_encoder": ["context", "candidate"]}.get(family)
    return [parts] if within is None else [parts[name] for name in within]


def loaded(small: Path, stage: Stage, folder: Path, begins: bool = False) -> FamilyModel:
    """Load a stage's model as an evaluation does, or as a training that starts from it."""
    family, tasks = read_by(stage.model.family), {EMOTIONS, NLI}
    encoded, base = small / f"DailyDialog-{family}", str(small / family)
    device = torch.device("cpu")
    loading = Loading(stage.model, stage.training, encoded, 0, device, base=base, begins=begins)
    cards = {task: get_task("DailyDialog", task) for task in sorted(tasks)}
    model = load_model(loading, str(folder), None, cards)
    model.module.eval()
    return model


def logits(model: FamilyModel, split: EncodedSplit) -> torch.Tensor:
    """Return the loss of each instance, which distinguishes models up to rounding."""
    with torch.no_grad():
        return torch.stack([model.compute_loss(split, [example]) for example in range(len(split))])


def scored(model: FamilyModel, split: EncodedSplit) -> dict[str, float]:
    task, setup = get_task("DailyDialog", split.task), small_setup(512, 512)
    return evaluate_split(model, task, split, setup, "default").metrics


def get_split(
    small: Path, family: Family, task: str = EMOTIONS, split: str = "train"
) -> EncodedSplit:
    return read_split(small / f"DailyDialog-{read_by(family)}", task, split)
