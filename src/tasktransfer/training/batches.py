"""Which instances make up which update, and in which order. Pure numpy.

The order depends on the seed and the epoch only. (The portions in which a batch goes through the
model are the model's matter and change no gradient: their losses are added up before the update.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Batch:
    """One update: units of one task."""

    task: str
    units: tuple[int, ...]


def epoch_batches(sizes: Mapping[str, int], batch_size: int, seed: int, epoch: int) -> list[Batch]:
    """The batches of one epoch.

    Every batch of every task comes once, batches hold one task, and the next task is drawn in
    proportion to its remaining batches (paper, section 4; feta-spec, multitask mixing).

    Args:
        sizes: units per task; the order of the mapping does not matter.
        batch_size: units a batch; a task's last batch may be smaller.
    """
    generator = np.random.default_rng([seed, epoch])
    waiting: dict[str, list[Batch]] = {}
    for task in sorted(sizes):
        order = generator.permutation(sizes[task]).tolist()
        waiting[task] = [
            Batch(task, tuple(order[i : i + batch_size])) for i in range(0, len(order), batch_size)
        ]
    tickets = [task for task, batches in waiting.items() for _ in batches]
    # Shuffling one ticket a batch is drawing without replacement in proportion to what remains.
    return [waiting[tickets[i]].pop(0) for i in generator.permutation(len(tickets))]


def task_weights(sizes: Mapping[str, int], batch_size: int, weighting: str) -> dict[str, float]:
    """What each task's loss is multiplied by.

    ``none``: 1, the paper's plain sum. ``inverse_sqrt``: 1/sqrt(number of the task's batches) when
    several tasks are trained together, as the toolkit does by default; 1 for a task alone.
    """
    if weighting == "none" or len(sizes) == 1:
        return dict.fromkeys(sizes, 1.0)
    return {task: 1 / math.sqrt(math.ceil(n / batch_size)) for task, n in sizes.items()}
