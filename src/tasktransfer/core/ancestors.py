"""What a node needs before it can be made."""

from __future__ import annotations

from tasktransfer.core.nodes import Data, Node


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
