"""Selectors: functions that give each source of a target a value, of which higher is better.

Plans contain the names of selectors, so this module imports little. The code that computes their
values is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tasktransfer.core.specs import Family
from tasktransfer.errors import ConfigError
from tasktransfer.tasks.card import SINGLE_LABEL

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
"""Inputs that a selector may read, see ``Selector``."""

ChooseBy = str
"""The split whose scores choose sources (dev or test), or a selector."""

SELECTOR = "selector"
"""Learner of fits that compute a selector's values."""

MEASUREMENTS = ("embeddings", "features", "gradients", "fisher", "losses")
"""Learners of fits that measure training instances with a model, for use by all selectors."""

COST, TOKENS = "cost", "tokens"
"""Keys of the number of tokens that a model has read, in the record of a measurement.

The record of a selector's values has the values at this place, by target and source.
"""


@dataclass(frozen=True, slots=True)
class Selector:
    """A ranking of sources.

    ``values`` maps an ``inputs.SelectorInput`` (a target with its sources) to the value of each
    source by name, or to None for a source without value. A selector that reads ``probe`` has no
    function: its value is the dev score of that training run.

    ``reads`` names its inputs, which are computed once for all selectors:

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

    ``of_labels`` is True if the target needs one class per instance, ``source_labels`` if the
    source does. ``families`` are the supported families of models. Increase ``version`` when the
    code changes values.
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
        """True if a node computes the selector's values.

        Values of selectors that read nothing, or results of transfers, are computed from records.
        """
        return bool(self.reads) and not {"transfers", "probe"} & {*self.reads}

    def explain_absence(self, source_kind: str, target_kind: str, family: Family) -> str | None:
        """Explain why the selector has no value for tasks of given kinds, or return None."""
        if family not in self.families:
            return f"{self.name} is not defined for the family {family}"
        if self.of_labels and target_kind not in SINGLE_LABEL:
            return f"{self.name} needs one class per instance, but the target is {target_kind}"
        if self.source_labels and source_kind not in SINGLE_LABEL:
            return f"{self.name} needs one class per instance, but the source is {source_kind}"
        return None


def find_selector(name: str, selectors: Mapping[str, Selector]) -> Selector:
    """Return the selector that is registered under a name.

    Raises:
        ConfigError: no selector has this name.
    """
    if name not in selectors:
        raise ConfigError(f"There is no selector {name!r}. Choose one of {', '.join(selectors)}.")
    return selectors[name]
