"""What a selector is told of a target and its sources: training instances, and what models made of
them. Nothing of it is of a test split, nor of a transfer to the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tasktransfer.tasks.card import Instance

Floats = NDArray[np.float64]
Classes = NDArray[np.int64]
Arrays = Mapping[str, Floats]
Measured = Callable[[str, str | None, str], Arrays]
"""(measurement, task whose baseline was measured or None for the base model, task that it was
measured on) → arrays by name."""

INSTANCES = 300
"""Training instances of a task that selectors read: the first of a fixed shuffle."""


def input_text(instance: Instance) -> str:
    """Context, what is asked of it, and options."""
    return " ".join([instance.context, *instance.query.values(), *instance.options])


def _nothing(*_: object) -> Arrays:
    raise LookupError("the selector did not say that it reads this (Selector.reads)")


@dataclass(frozen=True)
class Asked:
    """A target and its sources, see ``core.selectors.Selector.reads``.

    ``kinds``: task → kind (``tasks.card.Kind``). ``sizes``: task → training instances.
    ``transfers``: source → its dev gains on other targets, one a target and seed.
    """

    target: str
    sources: tuple[str, ...]
    kinds: Mapping[str, str]
    sizes: Mapping[str, int] = field(default_factory=dict)
    instances: Callable[[str], Sequence[Instance]] = _nothing  # type: ignore[assignment]
    measured: Measured = _nothing
    transfers: Mapping[str, Floats] = field(default_factory=dict)

    def texts(self, task: str) -> list[str]:
        """The inputs of a task, see ``input_text``."""
        return [input_text(instance) for instance in self.instances(task)]

    @property
    def classes(self) -> Classes:
        """(target inputs,): the right classes, from 0 on; those that occur."""
        right = [instance.target for instance in self.instances(self.target)]
        places = {answer: index for index, answer in enumerate(sorted(set(right)))}
        return np.array([places[answer] for answer in right], np.int64)

    def embeddings(self, task: str) -> Floats:
        """(inputs, size): the base model's mean states."""
        return self.measured("embeddings", None, task)["embeddings"]

    def own_embeddings(self, source: str) -> Floats:
        """(source inputs, size): the same of the source's baseline."""
        return self.measured("embeddings", source, source)["embeddings"]

    def features(self, source: str) -> Floats:
        """(target inputs, size): what a classifier reads of the source's baseline."""
        return self.measured("features", source, self.target)["features"]

    def probabilities(self, source: str) -> Floats | None:
        """(target inputs, source labels); None: the source has no classifier."""
        return self.measured("features", source, self.target).get("probabilities")

    def gradient(self, task: str) -> Floats:
        """(size,): the base model's mean gradient on a task, as a random sketch."""
        return self.measured("gradients", None, task)["gradient"]

    def fisher(self, task: str) -> Arrays:
        """Parameter tensor → diagonal Fisher information after the task's baseline."""
        return self.measured("fisher", task, task)

    def losses(self, of: str | None, on: str) -> Floats:
        """(inputs,): losses on a task, of a task's baseline or (None) the base model."""
        return self.measured("losses", of, on)["losses"]
