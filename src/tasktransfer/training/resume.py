"""Resuming after a kill: the state of a training after a round, stored until the stage is done.

It has its own folder inside the stage's folder. A resumed training ends with the same record as an
uninterrupted one, bit for bit on the same CPU.
"""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import torch

from tasktransfer.errors import ConfigError
from tasktransfer.results.state import RESUME

FILE = "epoch.pt"

SHARE = 0.1
"""Maximum fraction of a training's time for writing its state.

A round that is shorter than ten times the writing is not stored, because repeating it costs less
than storing every round."""


MIN_SECONDS_VARIABLE = "TASKTRANSFER_RESUME_SECONDS"
MIN_SECONDS = 300.0
"""Minimum training time in seconds since the last state, or the start, before one is written.

A state is four times as large as the weights, and repeating minutes costs less than writing many
states."""


def read_min_seconds() -> float:
    """Return ``MIN_SECONDS``, or the value that the environment sets instead.

    Raises:
        ConfigError: the override is not a non-negative number.
    """
    text = os.environ.get(MIN_SECONDS_VARIABLE, str(MIN_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ConfigError(
            f"{MIN_SECONDS_VARIABLE}={text}: The value must be a non-negative number of seconds. "
            "Correct the value, or unset the variable."
        )
    return seconds


class RandomState(TypedDict):
    """State of torch's random generators on the CPU and every CUDA device."""

    cpu: torch.Tensor
    cuda: list[torch.Tensor]


class TrainingState(TypedDict):
    """All state on which the next round of a training depends.

    ``history``: the training so far, without weights. ``best_weights``: round → weights of the
    best rounds other than the last one.
    """

    weights: Mapping[str, torch.Tensor]
    optimiser: dict[str, Any]
    scheduler: NotRequired[dict[str, Any]]
    random: RandomState
    history: dict[str, Any]
    best_weights: Mapping[int, Mapping[str, torch.Tensor]]


@dataclass(slots=True)
class Snapshots:
    """Storage of the state of one training. A damaged state is not used.

    Attributes:
        belongs_to: stage digest and other facts that a stored state must match to be used.
        say: function that reports why a state is not used or not written.
        share: maximum fraction of the time for writing, see ``SHARE``.
        least: minimum seconds between two states, see ``MIN_SECONDS``.
        refused: function that returns a reason not to use a state, or an empty string.
    """

    stage_folder: Path
    belongs_to: dict[str, str]
    say: Callable[[str], None]
    share: float = SHARE
    least: float = MIN_SECONDS
    refused: Callable[[TrainingState], str] = lambda state: ""
    _cost: float = 0.0
    _last: float = field(default_factory=time.perf_counter)

    @property
    def file(self) -> Path:
        return self.stage_folder / RESUME / FILE

    def read_state(self) -> TrainingState | None:
        """Read the last stored state, or return None if it is missing or unusable."""
        if not self.file.exists():
            return None
        try:
            # weights_only loads tensors and plain values, so nothing in the file is executed.
            kept = torch.load(self.file, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as e:
            self.say(f"{self.file}: The file is damaged ({e!r}). The training starts over.")
            return None
        if not isinstance(kept, dict) or kept.get("belongs_to") != self.belongs_to:
            problem = "The file is from another stage, device or version"
            self.say(f"{self.file}: {problem}, so the training starts over.")
            return None
        state = cast(TrainingState, kept)
        if reason := self.refused(state):
            self.say(f"{self.file}: {reason}, so the training starts over.")
            return None
        return state

    def write_state(self, state: Callable[[], TrainingState]) -> None:
        """Write the state after a round.

        It is not written within ``least`` seconds of the last one, or if writing would take more
        than ``share`` of the time since.
        """
        began = time.perf_counter()
        if began - self._last < self.least or self._cost > self.share * (began - self._last):
            return
        part = self.file.with_suffix(f".{os.getpid()}.part")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            torch.save({"belongs_to": self.belongs_to, **state()}, part)
            part.replace(self.file)  # atomic: a kill leaves the old state or the new one
        except (OSError, RuntimeError) as error:
            # torch reports a full disk as RuntimeError. The training can continue without a state.
            self.say(
                f"{part}: The state of the training cannot be written ({error}), so a killed run "
                "would repeat this round."
            )
        finally:
            with suppress(OSError):
                part.unlink()
        self._last = time.perf_counter()
        self._cost = self._last - began

    def clear(self) -> None:
        """Remove the stored state after the stage is done."""
        shutil.rmtree(self.file.parent, ignore_errors=True)


def get_random_state() -> RandomState:
    """Return the random state of torch on the CPU and on all CUDA devices."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def restore_random_state(state: RandomState) -> None:
    """Restore a random state from ``get_random_state``."""
    torch.set_rng_state(state["cpu"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
