"""What is measured, and what a measuring process is told and answers. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.datasets import DATASETS
from tasktransfer.errors import ConfigError

DATASET = "DailyDialog"
BATCH = 60
"""Instances an update, as in the paper."""
SEED = 0
LENGTHS: dict[Family, int] = {"encoder": 512, "decoder": 1024, "encoder_decoder": 512}
"""Tokens that the models read, as the public checkpoints do."""

Contestant = Literal["tasktransfer", "tasktransfer_float32", "tlidb", "hf_trainer"]
CONTESTANTS: tuple[Contestant, ...] = (
    "tasktransfer",
    "tasktransfer_float32",
    "tlidb",
    "hf_trainer",
)
"""``tasktransfer_float32``: with ``training.precision: float32``, where ``auto`` is
bfloat16 (``training.precision``) and the others compute in float32."""


@dataclass(frozen=True, slots=True)
class Case:
    """A family on a task, written ``encoder:emotion_recognition``."""

    family: Family
    task: str

    @property
    def name(self) -> str:
        """As the option ``--cases`` takes it."""
        return f"{self.family}:{self.task}"


CASES = (
    Case("encoder", "emotion_recognition"),
    Case("encoder", "dialogue_nli"),
    Case("encoder", "causal_emotion_span_extraction"),
    Case("encoder", "adversarial_response_selection"),
    Case("decoder", "emotion_recognition"),
    Case("decoder", "dialogue_reasoning_span_extraction"),
    Case("encoder_decoder", "emotion_recognition"),
    Case("encoder_decoder", "dialogue_reasoning_span_extraction"),
)


def parse_case(text: str) -> Case:
    """The case of a name.

    Raises:
        ConfigError: it names no family or no task of DailyDialog.
    """
    family, _, task = text.partition(":")
    for known in FAMILIES:
        if family == known and task in DATASETS[DATASET].tasks:
            return Case(known, task)
    raise ConfigError(
        f"--cases {text}: no case; write FAMILY:TASK with a family of {', '.join(FAMILIES)} and a "
        f"task of {DATASET}, for example {CASES[0].name}"
    )


@dataclass(frozen=True, slots=True)
class Volume:
    """How much a process does: ``instances`` to train on, ``epochs`` passes over them, and at
    most ``evaluate`` instances of dev and of test each (None: all)."""

    instances: int
    epochs: int
    evaluate: int | None

    @property
    def updates(self) -> int:
        """All batches are full: the toolkit drops what does not fill an accumulation."""
        return self.epochs * (self.instances // BATCH)


def volume_for(updates: int, available: int, evaluate: int | None) -> Volume:
    """The instances and passes that make ``updates`` updates, or few more, of full batches.

    Args:
        available: instances of the training split.

    Raises:
        ConfigError: there is not even one full batch.
    """
    full = available // BATCH
    if not full:
        raise ConfigError(f"{available} training instances are less than one batch of {BATCH}")
    batches = min(updates, full)
    return Volume(batches * BATCH, -(-updates // batches), evaluate)


class Work(TypedDict):
    """What a measuring process is told, as JSON. Folders are absolute paths.

    ``warm_up`` and ``measured`` are ``Volume`` as dicts; ``stages`` holds the stage of each as
    ``Stage.to_json`` gives it; ``toolkit`` is None where there is none.
    """

    contestant: Contestant
    family: Family
    task: str
    config: str
    release: str
    encoded: str
    checkpoint: str
    toolkit: str | None
    scratch: str
    threads: int
    warm_up: dict[str, Any]
    measured: dict[str, Any]
    stages: dict[str, dict[str, Any]]


class Measured(TypedDict):
    """What a measuring process answers, as one line of JSON. Seconds and MiB.

    ``start_up``: from the start of the process to the beginning of its first update. ``train``,
    ``dev`` and ``test`` are after the warm-up. ``dev_samples`` counts every pass over dev.
    """

    start_up: float
    train: float
    train_samples: int
    updates: int
    dev: float
    dev_samples: int
    test: float
    test_samples: int
    memory_mb: float
    gpu_memory_mb: float | None
    device: str
    precision: str
    score: float | None
