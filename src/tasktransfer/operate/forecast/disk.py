"""Disk space of a results folder: its current size, and its estimated peak."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tasktransfer.core.nodes import Stage
from tasktransfer.operate.facts import DiskSpace
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.results.node_folders import NodesOnDisk
from tasktransfer.results.rounds import CHECKPOINT

RESUME_COPIES = 3
"""Copies of the weights in a resume state without best rounds: weights and Adam's two moments."""

TEMPORARY_A_DEVICE = 2
"""Temporary checkpoints per device: one being written, and one from which a training started.

Snakemake deletes the latter when that training is done, and starts no other training before.
"""


def estimate_disk(
    estimates: Estimates, left: Collection[Stage], there: NodesOnDisk, devices: int
) -> DiskSpace:
    """Estimate the disk space that the remaining trainings need."""
    study, results = estimates.study, Path(estimates.study.config.results)
    to_write = [
        stage
        for stage in left
        if study.makes_checkpoint(stage.kind)
        and CHECKPOINT not in there.names.get(stage.digest, frozenset())
    ]
    passing = [
        estimates.estimate_cost(s).checkpoint
        for s in to_write
        if not study.keeps_checkpoints(s.kind)
    ]
    largest = max((_estimate_state_bytes(estimates, stage) for stage in left), default=0)
    at_once = min(len(passing), TEMPORARY_A_DEVICE * devices) * max(passing, default=0)
    resuming = min(len(left), devices) * largest
    kept = sum(
        estimates.estimate_cost(s).checkpoint for s in to_write if study.keeps_checkpoints(s.kind)
    )
    records = sum(estimates.estimate_cost(stage).results for stage in left)
    used, free = measure_bytes(results), _find_free_bytes(results)
    needed = kept + at_once + resuming + records
    return {
        "there": used,
        "kept_checkpoints": kept,
        "temporary": at_once + resuming,
        "records_and_predictions": records,
        "peak": used + needed,
        "free": free,
        "short": free is not None and needed > free,
    }


def _estimate_state_bytes(estimates: Estimates, stage: Stage) -> int:
    """Estimate the bytes of a state from which a training resumes."""
    best = len(stage.selections)
    return (RESUME_COPIES + best) * estimates.estimate_cost(stage).checkpoint // best


def measure_bytes(path: Path | str) -> int:
    """Return the size of a file, or the total size of a folder, in bytes.

    The size is 0 if the path does not exist. Links are not followed. Files removed meanwhile do not
    count.
    """
    try:
        entries = list(os.scandir(path))
    except NotADirectoryError:
        return os.lstat(path).st_size
    except OSError:
        return 0
    total = 0
    for entry in entries:
        with suppress(OSError):
            is_folder = entry.is_dir(follow_symlinks=False)
            total += measure_bytes(entry.path) if is_folder else os.lstat(entry.path).st_size
    return total


def _find_free_bytes(folder: Path) -> int | None:
    """Return the free bytes on the file system of a folder, even before the folder exists."""
    for place in (folder, *folder.absolute().parents):
        with suppress(OSError):
            return shutil.disk_usage(place).free
    return None


def format_bytes(count: float) -> str:
    """Format a number of bytes, as in 1.4 MiB or 120 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
