"""The description of a training job. No torch here: the command line creates it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tasktransfer.core.nodes import Stage


@dataclass(frozen=True, slots=True)
class Job:
    """A stage to train, with the locations of its inputs and its record.

    Only ``stage`` influences the numbers of the record.

    Attributes:
        base: folder or Hugging Face name of the base model.
        starts: folders of the checkpoints in ``stage.starts``, in their order, without the base
            model.
        facts: facts that the design adds to the record's provenance.
        substitutes: substitutes for inputs that are not available.
        tracking: client of a live view (`training.tracking`), if any.
        tracking_folder: folder for the client's files.
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
    substitutes: Mapping[str, str] = field(default_factory=dict)
    tracking: str | None = None
    tracking_folder: str = ""
    beside: str | None = None
    """Folder or name of the encoder whose states the model reads in addition, if any."""
    plain: bool = False
    """True to use padding and transformers' own attention, dropout and generation.

    This is the reference for comparisons."""

    @property
    def keeps_rounds(self) -> bool:
        """True if the job keeps checkpoints of rounds."""
        return self.stage.keeps_rounds
