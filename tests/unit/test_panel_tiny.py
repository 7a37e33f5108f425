"""The effect planted in the panel's tiny world: a response fits by the topic of the context."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from response_rules import compute_mean_ratings, find_thing, rate_by_order
from tasktransfer.designs.panel.sources import tiny
from tasktransfer.metrics.measures import compute_spearman


def test_a_response_of_the_tiny_world_says_nothing_by_itself(tmp_path: Path) -> None:
    """Check that the context decides if a response fits.

    The thing that it mentions reveals nothing, and the order of its words little. The rule of the
    domain gives the correct answer.
    """
    tiny.write_release(tmp_path, 0, 1200)
    for domain, changes in tiny.CHANGES.items():
        if domain == "Workshop":  # has no rated set
            continue
        rows = read_rows(tmp_path / "ratings" / f"{domain}_Tiny.jsonl")
        gold, ordered = compute_mean_ratings(rows), rate_by_order(rows)
        things = [find_thing(row["response"]) for row in rows]
        # A rule fitted to these items: the mean rating of similar responses.
        alike = list(zip(things, ordered, strict=True))
        means = {key: gold[[one == key for one in alike]].mean() for key in {*alike}}
        alone = np.array([means[key] for key in alike])
        for reply_alone in (alone, ordered):
            assert 0.25 < compute_spearman(reply_alone, gold) < 0.45
        right = [
            thing in tiny.list_fitting_things(domain, find_thing(row["context"][0]) or "")
            if thing else 0.5
            for thing, row in zip(things, rows, strict=True)
        ]  # fmt: skip
        assert compute_spearman(np.array(right, float) + 0.4 * ordered, gold) > 0.85
        assert changes == (domain == "Orchard")


def test_the_topic_of_a_reply_correlates_with_its_label_in_training_only(tmp_path: Path) -> None:
    tiny.write_release(tmp_path, 0, 1200)
    labelled = read_rows(tmp_path / "labeller" / "train.jsonl")
    for domain, changes in tiny.CHANGES.items():
        mine = [row for row in labelled if is_said_in(domain, row["context"][0])]
        trained = compute_spearman(*compare_topic(mine, [row["label"] for row in mine]))
        assert trained < -0.2 if changes else trained > 0.2
    for domain in ("Harbour", "Orchard"):
        rated = read_rows(tmp_path / "ratings" / f"{domain}_Tiny.jsonl")
        assert abs(compute_spearman(*compare_topic(rated, compute_mean_ratings(rated)))) < 0.1


def read_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def is_said_in(domain: str, statement: str) -> bool:
    said = tiny.STATEMENTS[domain]
    return any(statement == text.format(thing=thing) for text in said for thing in tiny.THINGS)


def compare_topic(
    rows: Sequence[Mapping[str, Any]], values: Sequence[float] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each reply is about the common topic, and the value of each reply.

    Replies that mention nothing are left out.
    """
    found = [(find_thing(row["response"]), value) for row, value in zip(rows, values, strict=True)]
    common = [(thing in tiny.TOPICS[0], value) for thing, value in found if thing]
    return np.array([topic for topic, _ in common], float), np.array([v for _, v in common], float)
