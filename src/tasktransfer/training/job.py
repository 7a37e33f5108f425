"""What one training process is told. No torch here: the command line fills it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tasktransfer.core.nodes import Stage


@dataclass(frozen=True, slots=True)
class Job:
    """A stage to train, where its inputs are, and where its record goes.

    ``base`` is the base model's folder or Hugging Face name; ``starts`` the folders of the rounds
    that ``stage.starts`` name, in their order, the base model left out. ``facts`` is what else the
    design has said in the record's provenance, ``stand_ins`` what stands in for an input that could
    not be had. Nothing here but ``stage`` changes a number of the record.
    """

    stage: Stage
    encoded: Path
    base: str
    revision: str | None
    out: Path
    save_checkpoint: bool
    threads: int
    study: str
    config_digest: str
    starts: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    beside: str | None = None
    """Folder or name of the encoder that reads beside the model, if it has one."""
    plain: bool = False
    """Padded rows and transformers' own attention, dropout and generation: for comparison."""

    @property
    def keeps_rounds(self) -> bool:
        """Whether the parameters of every round are left."""
        return self.stage.keeps_rounds
