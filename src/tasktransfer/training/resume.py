"""Going on after a kill: the state of a training after an epoch, kept until the stage is done.

It lives in a folder of its own inside the stage's folder. A training that goes on from it ends with
the record of an undisturbed one, bit for bit on the same CPU.
"""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from tasktransfer.errors import ConfigError
from tasktransfer.results.state import RESUME

FILE = "epoch.pt"

SHARE = 0.1
"""Of the time that a training takes, what writing its state may take at most. An epoch that is
shorter than ten times the writing is not kept; repeating it costs less than keeping all would."""


LEAST_VARIABLE = "TASKTRANSFER_RESUME_SECONDS"
LEAST_SECONDS = 300.0
"""Of training since the last state, or the start: before that none is written. A state is four
times the weights, and repeating minutes costs less than writing many of them."""


def least_seconds() -> float:
    """``LEAST_SECONDS``, or what the environment says.

    Raises:
        ConfigError: it says no number of 0 or more.
    """
    text = os.environ.get(LEAST_VARIABLE, str(LEAST_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ConfigError(f"{LEAST_VARIABLE}={text}: give seconds, 0 or more, or unset it")
    return seconds


@dataclass(slots=True)
class Snapshots:
    """Where the state of one training is kept.

    ``belongs_to`` is compared when it is read: the stage's digest and whatever else a state must
    agree with. A state of anything else, or a damaged one, is not used, nor is one that ``refused``
    gives a reason against.
    """

    stage_folder: Path
    belongs_to: dict[str, str]
    say: Callable[[str], None]
    share: float = SHARE
    least: float = LEAST_SECONDS
    refused: Callable[[dict[str, Any]], str] = lambda state: ""
    _cost: float = 0.0
    _last: float = field(default_factory=time.perf_counter)

    @property
    def file(self) -> Path:
        return self.stage_folder / RESUME / FILE

    def read(self) -> dict[str, Any] | None:
        """The last kept state; None if there is none that can be used."""
        if not self.file.exists():
            return None
        try:
            # Tensors and plain values only: nothing in the file is executed.
            kept = torch.load(self.file, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as e:
            self.say(f"{self.file}: damaged ({e!r}), the training starts over")
            return None
        if not isinstance(kept, dict) or kept.get("belongs_to") != self.belongs_to:
            self.say(f"{self.file}: of another stage, device or version; the training starts over")
            return None
        if reason := self.refused(kept):
            self.say(f"{self.file}: {reason}; the training starts over")
            return None
        return kept

    def keep(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write the state after a round, unless the last one is less than ``least`` seconds old, or
        writing would cost more than ``share`` of the time since."""
        began = time.perf_counter()
        if began - self._last < self.least or self._cost > self.share * (began - self._last):
            return
        part = self.file.with_suffix(f".{os.getpid()}.part")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            torch.save({"belongs_to": self.belongs_to, **state()}, part)
            part.replace(self.file)  # atomic: a kill leaves the old state or the new one
        except (OSError, RuntimeError) as error:
            # torch reports a full disk as RuntimeError. The training itself needs no state.
            self.say(f"{part}: cannot be written ({error}); if killed, it would lose this epoch")
        finally:
            with suppress(OSError):
                part.unlink()
        self._last = time.perf_counter()
        self._cost = self._last - began

    def clear(self) -> None:
        """Remove what was kept: the stage is done."""
        shutil.rmtree(self.file.parent, ignore_errors=True)


def random_state() -> dict[str, Any]:
    """The state of torch's random numbers, on the CPU and every CUDA device."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def restore_random_state(state: dict[str, Any]) -> None:
    """Put back what ``random_state`` gave."""
    torch.set_rng_state(state["cpu"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
