"""Results of training with the toolkit or with this package, and their common inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tasktransfer.core.specs import Family
from tasktransfer.encoding.encoded import EncodedSplit

UPDATES = 10
DEV_INSTANCES = 20
LENGTHS: dict[Family, int] = {"encoder": 512, "decoder": 1024, "encoder_decoder": 512}
RATE = 3e-5
SEED = 0

CPU = torch.device("cpu")


@dataclass
class Side:
    """Results of training with the toolkit or with this package.

    They are each update's mean loss by task, weights by name before and after, and the predictions
    by task.
    """

    losses: list[dict[str, float]]
    before: dict[str, torch.Tensor]
    after: dict[str, torch.Tensor]
    predictions: dict[str, list[Any]]


def select_first_instances(split: EncodedSplit) -> EncodedSplit:
    """Return the first instances of a fixed shuffle, which are the same on both sides."""
    return split.limit_instances(DEV_INSTANCES)


class EnoughError(Exception):
    """Signal that all compared updates are done."""
