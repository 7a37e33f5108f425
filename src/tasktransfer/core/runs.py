"""A run: one method applied to one model with one seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tasktransfer.core.ancestors import add_ancestors
from tasktransfer.core.nodes import Evaluation, Fit, Node, Outcome, Stage


@dataclass(frozen=True)
class Run:
    """A method applied to a model with a seed, and its outcome and evaluations.

    Attributes:
        about: keys of the design, such as source and target, domain, or probe. The mapping and its
            lists are ordered: what comes first is trained first.
        outcome: the model or fit that is evaluated.
        variant: name of a variant of the method, whose runs are counted separately.
    """

    method: str
    model: str
    seed: int
    about: Mapping[str, Any] = field(hash=False)
    outcome: Outcome | Fit
    evaluations: tuple[Evaluation, ...] = ()
    variant: str = ""

    @property
    def result_nodes(self) -> tuple[Node, ...]:
        """Fit and evaluations whose records contain the run's numbers.

        A run without them has its numbers in the record of its last stage.
        """
        fitted = (self.outcome,) if isinstance(self.outcome, Fit) else ()
        return (*fitted, *self.evaluations) or self.judged

    @property
    def judged(self) -> tuple[Node, ...]:
        """Fit of the run, or the stages whose parameters form its outcome."""
        return (self.outcome,) if isinstance(self.outcome, Fit) else self.outcome.stages

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Stages of the run, in topological order."""
        return tuple(node for node in add_ancestors(self.judged) if isinstance(node, Stage))
