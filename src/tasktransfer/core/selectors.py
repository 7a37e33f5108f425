"""What a selector is: a value for each source of a target, higher is better.

Plans name selectors, so that this imports nothing; what computes them is imported when it is
called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tasktransfer.core.specs import Family
from tasktransfer.errors import ConfigError

Reads = Literal[
    "texts",
    "embeddings",
    "own_embeddings",
    "features",
    "gradients",
    "fisher",
    "losses",
    "transfers",
    "probe",
]
"""What a selector may read, see ``Selector``."""

SELECTOR = "selector"
"""The learner of a fit that is a selector's values."""

MEASUREMENTS = ("embeddings", "features", "gradients", "fisher", "losses")
"""Learners of fits that leave what a model makes of training instances, for all selectors."""

COST, TOKENS = "cost", "tokens"
"""Where the record of a measurement says how many tokens a model has read; that of a selector's
values has the values there, by target and source."""

SINGLE_LABEL = ("utterance_classification", "dialogue_classification")
"""Kinds of tasks whose instances have one class."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A ranking of sources.

    ``values``: from a ``fits.asked.Asked``, a target with its sources, to the value of each source
    by name; None where it has none. A selector that reads ``probe`` has no function: its value is
    that training's dev score.

    ``reads``: what it asks for, computed once for all selectors:

    ================== =========================================================================
    texts              training inputs of any task
    embeddings         the base model's mean states of any task's inputs
    own_embeddings     each source's baseline's mean states of the source's inputs
    features           each source's baseline's features of the target's inputs, and its
                       probabilities of its own labels for them
    gradients          the base model's mean gradient on any task
    fisher             the baselines' diagonal Fisher information, each on its own task
    losses             losses of the base model and of the target's baseline on any task
    transfers          dev gains of each source on *other* targets, from finished transfers
    probe              one epoch of the transfer itself
    ================== =========================================================================

    ``of_labels``: whether the target needs one class an instance; ``source_labels``: the source
    too. ``families``: of models that it is of. ``version``: raise it with the code.
    """

    name: str
    reads: tuple[Reads, ...] = ()
    values: Callable[[Any], Mapping[str, float | None]] | None = None
    of_labels: bool = False
    source_labels: bool = False
    families: tuple[Family, ...] = ("encoder", "decoder", "encoder_decoder")
    version: int = 1

    @property
    def is_fit(self) -> bool:
        """Whether its values are a node of their own. Those that read nothing, or what transfers
        left, are computed from records."""
        return bool(self.reads) and not {"transfers", "probe"} & {*self.reads}

    def lacks(self, source_kind: str, target_kind: str, family: Family) -> str | None:
        """Why it has no value for a pair of tasks of these kinds; None: it has."""
        if family not in self.families:
            return f"{self.name} is not defined for the family {family}"
        if self.of_labels and target_kind not in SINGLE_LABEL:
            return f"{self.name} needs one class an instance, and the target is {target_kind}"
        if self.source_labels and source_kind not in SINGLE_LABEL:
            return f"{self.name} needs one class an instance, and the source is {source_kind}"
        return None


def selector_named(name: str, selectors: Mapping[str, Selector]) -> Selector:
    """The selector of a name.

    Raises:
        ConfigError: there is none.
    """
    if name not in selectors:
        raise ConfigError(f"no selector is named {name!r}; there are {', '.join(selectors)}")
    return selectors[name]
