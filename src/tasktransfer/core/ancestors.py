"""Ancestors of nodes: everything that has to be computed before them."""

from __future__ import annotations

from collections.abc import Container, Iterable

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
