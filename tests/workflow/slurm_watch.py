"""Observation of trainings from outside during a test: the job, node and device of each."""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from slurm_cluster import Cluster, command_of, environment_of


@dataclass(frozen=True)
class Training:
    """A running training.

    ``given``: CUDA_VISIBLE_DEVICES as set by Slurm. ``device``: device that the training holds;
    None until it holds one.
    """

    pid: int
    job: str
    node: str
    given: str
    stage: Path
    device: str | None

    @property
    def place(self) -> tuple[str, str | None]:
        return self.node, self.device


def trainings(cluster: Cluster, folder: Path) -> list[Training]:
    """Return the running trainings of the cluster's jobs by age; ``folder``: working directory."""
    found = (_training(pid, folder) for pid in sorted(cluster.processes("HF_HUB_OFFLINE=1")))
    return [training for training in found if training is not None]


def _training(pid: int, folder: Path) -> Training | None:
    words, environment = command_of(pid), environment_of(pid)
    if "train" not in words or "--node" not in words or "SLURM_JOB_ID" not in environment:
        return None
    node = words[words.index("--node") + 1]
    stage = next(folder.glob(f"*/stages/**/*-{node}"), None)
    if stage is None:
        return None
    claim = {}
    with suppress(OSError, ValueError):
        claim = json.loads((stage / ".claim").read_text())
    return Training(
        pid,
        environment["SLURM_JOB_ID"],
        environment.get("SLURMD_NODENAME", ""),
        environment.get("CUDA_VISIBLE_DEVICES", "none"),
        stage,
        claim.get("device") if claim.get("pid") == pid else None,
    )


@dataclass
class Watch:
    """Thread that observes trainings repeatedly during a ``with`` block."""

    cluster: Cluster
    folder: Path
    seen: dict[int, Training] = field(default_factory=dict)
    """Last observation of each training, by process."""
    shared: list[tuple[Training, Training]] = field(default_factory=list)
    """Pairs of trainings that held the same device at the same time."""
    at_once: int = 0
    """Largest number of trainings that held devices at the same time."""

    def __enter__(self) -> Watch:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.25):
            holders: dict[tuple[str, str | None], Training] = {}
            for training in trainings(self.cluster, self.folder):
                self.seen[training.pid] = training
                if training.device is None:
                    continue
                other = holders.setdefault(training.place, training)
                # It may have ended between the two observations.
                if other != training and _training(other.pid, self.folder) == other:
                    self.shared.append((other, training))
            self.at_once = max(self.at_once, len(holders))

    def holders(self) -> list[Training]:
        """Return the trainings that held a device, without their forks."""
        return [one for one in self.seen.values() if one.device is not None]

    def devices(self) -> dict[str, int]:
        """Return "node:device" → number of trainings that held it."""
        return dict(sorted(Counter(f"{one.node}:{one.device}" for one in self.holders()).items()))

    def given(self) -> dict[str, int]:
        """Return CUDA_VISIBLE_DEVICES → number of trainings with this value."""
        return dict(sorted(Counter(one.given for one in self.holders()).items()))
