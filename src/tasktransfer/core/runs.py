"""A run: what a method comes to on a model and a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tasktransfer.core.ancestors import with_ancestors
from tasktransfer.core.nodes import Evaluation, Fit, Node, Outcome, Stage


@dataclass(frozen=True)
class Run:
    """A method on a model and a seed, with what it is about and what is judged of it.

    ``about`` is the design's: source and target, domain, probe. It is ordered, and so are lists in
    it: what comes first is trained first. ``variant``: what is special about it, where runs of a
    method are counted apart.
    """

    method: str
    model: str
    seed: int
    about: Mapping[str, Any] = field(hash=False)
    outcome: Outcome | Fit
    evaluations: tuple[Evaluation, ...] = ()
    variant: str = ""

    @property
    def results_in(self) -> tuple[Node, ...]:
        """The nodes whose records have its numbers: its fit, its evaluations; a training that is
        judged in its own process where it has none of them."""
        fitted = (self.outcome,) if isinstance(self.outcome, Fit) else ()
        return (*fitted, *self.evaluations) or self.judged

    @property
    def judged(self) -> tuple[Node, ...]:
        """The fit, or the stages whose parameters its outcome has."""
        return (self.outcome,) if isinstance(self.outcome, Fit) else self.outcome.stages

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Its trainings, those that others start from before these."""
        return tuple(node for node in with_ancestors(self.judged) if isinstance(node, Stage))
