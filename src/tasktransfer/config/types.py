"""A validated study as typed data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from tasktransfer.core.digests import digest_of
from tasktransfer.core.specs import Family, Training
from tasktransfer.designs.transfer.challenge.rules import Rules

TINY_WORLD = "tiny_world"
TINY = "tiny"


@dataclass(frozen=True, slots=True)
class TinyWorldConfig:
    """What the tiny world is generated from."""

    seed: int
    dialogues: int


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Which dialogues: ``release`` is ``tiny_world`` or a folder with the release."""

    release: str
    few_sample: bool
    tiny_world: TinyWorldConfig

    @property
    def generated(self) -> bool:
        """Whether the study generates its dialogues itself. Those of a folder may be generated too:
        that is for the release's metadata to say (``data.prepared``)."""
        return self.release == TINY_WORLD


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """The tasks of one dataset and its single-source pairs, in the order of the config."""

    name: str
    tasks: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    shorts: tuple[tuple[str, str], ...]
    """(name, short name) of all tasks of the dataset, studied or not."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The tasks that something is transferred to."""
        return tuple(dict.fromkeys(target for _, target in self.pairs))


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model as the config names it; ``study`` finds out what its weights are."""

    name: str
    family: Family
    checkpoint: str
    revision: str | None
    max_length: int
    max_unknown_words: float
    """A check of the tokenizer; it changes no number and so no digest."""


@dataclass(frozen=True, slots=True)
class NamedMultiSource:
    """A multi-source target and its sources, written out in the config."""

    dataset: str
    target: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MultiSourceConfig:
    """The multi-source part. ``named`` is empty unless the mode is ``named``."""

    mode: Literal["off", "named", "auto"]
    named: tuple[NamedMultiSource, ...]
    targets_per_dataset: int
    sources_per_target: int
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """Stage kinds whose checkpoints stay on disk."""

    keep: tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """A validated study."""

    study: str
    results: str
    data: DataConfig
    datasets: tuple[DatasetConfig, ...]
    models: tuple[ModelConfig, ...]
    algorithms: tuple[str, ...]
    """Always with ``baseline``, in the order of ``ALGORITHMS``."""
    seeds: tuple[int, ...]
    multi_source: MultiSourceConfig
    training: Mapping[str, Training]
    """Per dataset, since the paper trains Friends for fewer epochs."""
    checkpoints: CheckpointConfig
    rules: Rules
    """``challenge``: the plan refuses what the FETA challenge forbids (``config.challenge``)."""

    def training_for(self, dataset: str) -> Training:
        """The hyperparameters of all trainings on a dataset."""
        return self.training[dataset]

    @property
    def digest(self) -> str:
        """SHA-256 of the whole study as asked for, for the records' provenance."""
        content = asdict(self)
        for model in content["models"]:
            del model["max_unknown_words"]
        return digest_of(content)
