"""Identities from before schema 4 of the records, which let older results be found.

Two things changed since then (CHANGELOG). The tasks that select a stage's best round are no longer
part of its identity, so two former stages may be one now, and a node that starts from it names the
round. The cards of a stage's tasks are now part of its identity.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any, cast

from tasktransfer.core.digests import compute_digest
from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Outcome, Stage, Start

SINCE = ("parent_selected_on", "cards")
"""Keys that former identities do not have."""


class Former:
    """The former identities of a plan's nodes, each computed once."""

    def __init__(self) -> None:
        self._digests: dict[tuple[str, tuple[str, ...]], str] = {}

    def digests(self, node: Node) -> dict[str, tuple[str, ...]]:
        """Return former digest → selecting tasks, one for each selection of a stage."""
        if not isinstance(node, Stage):
            return {self.digest(node): ()}
        alone = (
            replace(node, selection=selection, also_selected=()) for selection in node.selections
        )
        return {self.digest(stage): stage.select_on for stage in alone}

    def digest(self, node: Node) -> str:
        """Return the former digest of a node, for a stage with its own selection."""
        key = node.digest, node.select_on if isinstance(node, Stage) else ()
        if key not in self._digests:
            self._digests[key] = compute_digest(self.identity(node))
        return self._digests[key]

    def identity(self, node: Node) -> dict[str, Any]:
        """Return the former identity of a node, for a stage with its own selection."""
        identity = {key: value for key, value in node.identity.items() if key not in SINCE}
        data = node if isinstance(node, Data) else node.data
        if data.recipe:
            uses = [self.digest(used) for used in data.uses]
            derived = {k: v for k, v in identity["derived"].items() if k not in SINCE}
            identity["derived"] = {**derived, "uses": uses}
        match node:
            case Stage():
                return {**identity, **self._of_stage(node)}
            case Fit():
                return {**identity, "on": self._start(node.on) if node.on else None}
            case Evaluation():
                return {**identity, **self._of_evaluation(node)}
        return identity

    def _of_stage(self, stage: Stage) -> dict[str, Any]:
        identity: dict[str, Any] = {"select_on": list(stage.select_on)}
        if stage.starts_whole:
            return {**identity, "parent": self._start(stage.starts[0])["stage"]}
        return (
            {**identity, "starts": [self._start(s) for s in stage.starts]}
            if stage.starts
            else identity
        )

    def _of_evaluation(self, evaluation: Evaluation) -> dict[str, Any]:
        of = evaluation.of
        judged = self._hash_outcome(of) if isinstance(of, Outcome) else self.digest(of)
        pools = [[self.digest(pool.data), pool.task] for pool in evaluation.pools]
        return {"of": judged, **({"pools": pools} if pools else {})}

    def _hash_outcome(self, outcome: Outcome) -> str:
        return compute_digest(
            {**outcome.identity, "starts": [self._start(s) for s in outcome.starts]}
        )

    def _start(self, start: Start) -> dict[str, Any]:
        identity = {key: value for key, value in start.identity.items() if key != "selected_on"}
        return {**identity, "stage": self.digest(start.stage) if start.stage else None}


def find_changed_cards(node: Node) -> list[str]:
    """Return the tasks of a node, with their dataset, whose cards have changed.

    Former records do not contain the cards. They are compared with those of the last release before
    schema 4.
    """
    data = node if isinstance(node, Data) else node.data
    identity = node.identity.get("derived", {}) if isinstance(node, Data) else node.identity
    then, cards = _cards_then().get(data.name, {}), identity.get("cards", {})
    return [f"{data.name}/{task}" for task in cards if then.get(task) != cards[task]]


@cache
def _cards_then() -> dict[str, dict[str, str]]:
    """Return dataset → task → digest of its card, as of when cards became part of identities."""
    text = resources.files("tasktransfer.core").joinpath("former_cards.json").read_text("utf-8")
    return cast(dict[str, dict[str, str]], json.loads(text))
