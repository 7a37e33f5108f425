"""Measured cases, and messages to and from a measuring process. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.datasets import DATASETS
from tasktransfer.errors import ConfigError

DATASET = "DailyDialog"
BATCH = 60
"""Instances per update, as in the paper."""
SEED = 0
LENGTHS: dict[Family, int] = {"encoder": 512, "decoder": 1024, "encoder_decoder": 512}
"""Maximum sequence lengths of the models, as for the public checkpoints."""

Contestant = Literal["tasktransfer", "tasktransfer_float32", "tlidb", "hf_trainer"]
CONTESTANTS: tuple[Contestant, ...] = (
    "tasktransfer",
    "tasktransfer_float32",
    "tlidb",
    "hf_trainer",
)
"""Contestants.

``tasktransfer_float32`` has ``training.precision: float32``. It is measured where ``auto`` resolves
to bfloat16 and the others compute in float32.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A family and a task, written ``encoder:emotion_recognition``."""

    family: Family
    task: str

    @property
    def name(self) -> str:
        """Name for the option ``--cases``."""
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
    """Parse the name of a case.

    Raises:
        ConfigError: the family is unknown, or the task is not in DailyDialog.
    """
    family, _, task = text.partition(":")
    for known in FAMILIES:
        if family == known and task in DATASETS[DATASET].tasks:
            return Case(known, task)
    raise ConfigError(
        f"--cases {text}: The value is not a case. Write FAMILY:TASK with a family of "
        f"{', '.join(FAMILIES)} and a task of {DATASET}, for example {CASES[0].name}."
    )


@dataclass(frozen=True, slots=True)
class Volume:
    """Amount of work for a process.

    ``instances``: training instances. ``epochs``: passes over them. ``evaluate``: largest number of
    dev and of test instances; None for all.
    """

    instances: int
    epochs: int
    evaluate: int | None

    @property
    def updates(self) -> int:
        """The number of updates, all full, since the toolkit drops incomplete ones."""
        return self.epochs * (self.instances // BATCH)


def compute_volume(updates: int, available: int, evaluate: int | None) -> Volume:
    """Return the instances and passes for ``updates`` updates, or slightly more, of full batches.

    Args:
        available: number of training instances.

    Raises:
        ConfigError: the instances do not fill one batch.
    """
    full = available // BATCH
    if not full:
        raise ConfigError(f"{available} training instances do not fill one batch of {BATCH}.")
    batches = min(updates, full)
    return Volume(batches * BATCH, -(-updates // batches), evaluate)


class Work(TypedDict):
    """Request to a measuring process, as JSON. Folders are absolute paths.

    ``warm_up``, ``measured``: ``Volume`` as dicts. ``limits``: overrides of the config for each.
    ``nodes``: digest of each one's stage. ``toolkit``: folder of TLiDB, or None.
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
    limits: dict[str, dict[str, Any]]
    nodes: dict[str, str]
    few_sample: bool


class Measured(TypedDict):
    """Answer of a measuring process, as one line of JSON, in seconds and MiB.

    ``start_up``: time from the start of the process to the beginning of its first update.
    ``train``, ``dev`` and ``test`` exclude the warm-up. ``dev_samples`` counts every pass over dev.
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
