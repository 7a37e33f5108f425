"""The inputs of selectors: training instances of target and sources, and measurements on them.

Nothing comes from a test split or from a transfer to the target.
"""

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
"""Function (measurement, task whose baseline was measured or None for the base model, task that it
was measured on) → arrays by name."""

INSTANCES = 300
"""Number of training instances per task that selectors read: the first of a fixed shuffle."""


def build_input_text(instance: Instance) -> str:
    """Join context, query and options into one text."""
    return " ".join([instance.context, *instance.query.values(), *instance.options])


def _refuse_undeclared_input(*_: object) -> Arrays:
    raise LookupError(
        "The selector does not declare this input (Selector.reads). Add the input to `reads`."
    )


@dataclass(frozen=True)
class SelectorInput:
    """A target and its sources as input of a selector, see ``selection.selector.Selector.reads``.

    Attributes:
        kinds: task → kind (``tasks.card.Kind``).
        sizes: task → number of training instances.
        instances: function task → training instances.
        measured: function that returns a measurement's arrays.
        transfers: source → its dev gains on other targets, one per target and seed.
    """

    target: str
    sources: tuple[str, ...]
    kinds: Mapping[str, str]
    sizes: Mapping[str, int] = field(default_factory=dict)
    instances: Callable[[str], Sequence[Instance]] = _refuse_undeclared_input  # type: ignore[assignment]
    measured: Measured = _refuse_undeclared_input
    transfers: Mapping[str, Floats] = field(default_factory=dict)

    def texts(self, task: str) -> list[str]:
        """Return the input texts of a task (``build_input_text``)."""
        return [build_input_text(instance) for instance in self.instances(task)]

    @property
    def classes(self) -> Classes:
        """Gold class of each target input, numbered from 0, shape (target inputs,)."""
        right = [instance.target for instance in self.instances(self.target)]
        places = {answer: index for index, answer in enumerate(sorted(set(right)))}
        return np.array([places[answer] for answer in right], np.int64)

    def embeddings(self, task: str) -> Floats:
        """Return mean-pooled states of the base model, (inputs, size)."""
        return self.measured("embeddings", None, task)["embeddings"]

    def own_embeddings(self, source: str) -> Floats:
        """Return mean-pooled states of the source's baseline, (source inputs, size)."""
        return self.measured("embeddings", source, source)["embeddings"]

    def features(self, source: str) -> Floats:
        """Return classifier inputs from the source's baseline, (target inputs, size)."""
        return self.measured("features", source, self.target)["features"]

    def probabilities(self, source: str) -> Floats | None:
        """Return class probabilities from the source's baseline, (target inputs, source labels).

        None if the source has no classifier.
        """
        return self.measured("features", source, self.target).get("probabilities")

    def gradient(self, task: str) -> Floats:
        """Return the base model's mean gradient on a task as a random projection, (size,)."""
        return self.measured("gradients", None, task)["gradient"]

    def fisher(self, task: str) -> Arrays:
        """Return the diagonal Fisher information of a task's baseline, by parameter tensor."""
        return self.measured("fisher", task, task)

    def losses(self, of: str | None, on: str) -> Floats:
        """Return the loss of each instance of task ``on``, by a task's baseline or the base model.

        Args:
            of: task of the baseline; None for the base model.
        """
        return self.measured("losses", of, on)["losses"]
