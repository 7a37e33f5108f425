"""A run, which is one method applied to one model with one seed, and the ancestors of nodes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Outcome, Stage, Start


def add_ancestors(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return nodes and all their ancestors, without duplicates, in topological order.

    Data that are read from a release are omitted: they are not nodes of a plan.
    """
    ordered: dict[str, Node] = {}

    def visit(node: Node) -> None:
        if node.digest not in ordered:
            for used in node.uses:
                visit(used)
            if not isinstance(node, Data) or node.recipe:
                ordered[node.digest] = node

    for node in nodes:
        visit(node)
    return tuple(ordered.values())


def collect_stages(nodes: Iterable[Node], skip: Container[int] = ()) -> dict[int, Stage]:
    """Return all stages among nodes and their ancestors, keyed by Python's object ID.

    Equal stages that are requested with several selections are several objects.

    Args:
        skip: ids of objects to leave out, with their ancestors.
    """
    stages: dict[int, Stage] = {}

    def visit(node: Node) -> None:
        if id(node) in stages or id(node) in skip:
            return
        if isinstance(node, Stage):
            stages[id(node)] = node
        for used in (*node.uses, *(start.stage for start in list_starts(node) if start.stage)):
            visit(used)

    for node in nodes:
        visit(node)
    return stages


def list_starts(node: Node) -> tuple[Start, ...]:
    """Return the starts (rounds of stages) whose parameters a node loads."""
    if isinstance(node, Stage):
        return node.starts
    if isinstance(node, Data):
        return tuple(Start(used) for used in node.uses if isinstance(used, Stage))
    if isinstance(node, Fit):
        read = [Start(stage) for stage in node.reads if isinstance(stage, Stage)]
        return (*([node.on] if node.on else []), *read)
    assert isinstance(node, Evaluation)
    return node.of.starts if isinstance(node.of, Outcome) else ()


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
