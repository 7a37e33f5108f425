"""What one training process is told. No torch here: the command line fills it in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tasktransfer.core.stage import Stage

CHECKPOINT = "checkpoint"
"""Folder of the best epoch's weights, in the stage's folder."""


@dataclass(frozen=True, slots=True)
class Job:
    """A stage to train, where its inputs are, and where its record goes.

    ``run`` is the identity of the run that the stage scores, None for a stage that no run ends
    with. ``start`` is the parent's checkpoint folder, or the base model's folder or Hugging Face
    name. Nothing here but ``stage`` changes a number of the record.
    """

    stage: Stage
    run: dict[str, Any] | None
    encoded: Path
    start: str
    revision: str | None
    out: Path
    save_checkpoint: bool
    threads: int
    study: str
    config_digest: str
    rules: Literal["challenge", "free"] = "free"
    plain: bool = False
    """Padded rows and transformers' own attention, dropout and generation: for comparison."""
