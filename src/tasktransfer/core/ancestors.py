"""What a node needs before it can be made."""

from __future__ import annotations

from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Outcome, Stage, Start


def with_ancestors(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Nodes and all that they use, directly or not, each once, what is used before what uses it.
    Data that are only read are no nodes of a plan."""
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


def starts_of(node: Node) -> tuple[Start, ...]:
    """The rounds of stages whose parameters a node reads."""
    if isinstance(node, Stage):
        return node.starts
    if isinstance(node, Data):
        return tuple(Start(used) for used in node.uses if isinstance(used, Stage))
    if isinstance(node, Fit):
        return (node.on,) if node.on else ()
    assert isinstance(node, Evaluation)
    return node.of.starts if isinstance(node.of, Outcome) else ()
