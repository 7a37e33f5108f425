"""The effect planted in the panel's tiny world: a response fits by the topic of the context."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tasktransfer.designs.panel.sources import tiny
from tasktransfer.metrics.measures import compute_spearman


def test_a_response_of_the_tiny_world_says_nothing_by_itself(tmp_path: Path) -> None:
    """Check that the context decides if a response fits.

    The thing that it mentions reveals nothing, and the order of its words little. The rule of the
    domain gives the correct answer.
    """
    tiny.write(tmp_path, 0, 1200)
    for domain, changes in tiny.CHANGES.items():
        if domain == "Workshop":  # has no rated set
            continue
        file = tmp_path / "ratings" / f"{domain}_Tiny.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        gold = np.array([np.mean(row["ratings"]) for row in rows])
        things = [_thing(row["response"]) for row in rows]
        ordered = np.array([_ordered(row["response"]) for row in rows], float)
        # The best rule that reads the response alone: the mean rating of the like of it.
        alike = list(zip(things, ordered, strict=True))
        means = {key: gold[[one == key for one in alike]].mean() for key in {*alike}}
        alone = np.array([means[key] for key in alike])
        assert 0.25 < compute_spearman(alone, gold) < 0.45
        right = [
            thing in tiny.list_fitting_things(domain, _thing(row["context"][0]) or "")
            if thing else 0.5
            for thing, row in zip(things, rows, strict=True)
        ]  # fmt: skip
        assert compute_spearman(np.array(right, float) + 0.4 * ordered, gold) > 0.85
        assert changes == (domain == "Orchard")


def _thing(text: str) -> str | None:
    return next((thing for thing in tiny.THINGS if thing in text), None)


def _ordered(text: str) -> bool:
    return any(text == reply.format(thing=thing) for reply in tiny.REPLIES for thing in tiny.THINGS)
