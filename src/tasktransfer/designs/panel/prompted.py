"""Ratings of prompted models, and the frame ``prompted`` with their templates and cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tasktransfer.core.nodes import Evaluation
from tasktransfer.core.runs import Run
from tasktransfer.designs.panel.config import get_config
from tasktransfer.designs.panel.names import PROMPTED
from tasktransfer.metrics.measures import compute_spearman
from tasktransfer.results.collect import Collected
from tasktransfer.results.costs import compute_seconds, sum_tokens
from tasktransfer.results.frames import Frames

Values = tuple[Any, ...]


def make_rating_rows(collected: Collected, run: Run) -> Iterator[Values]:
    """Yield a prompted model's rows of the frame ``ratings``, averaged over prompt templates."""
    for name, nodes in _group_by_set(run).items():
        tables = [collected.rows(node) for node in nodes]
        items = tables[0]["instance_id"].to_pylist()
        values = np.mean([rows["predicted_value"].to_numpy() for rows in tables], axis=0)
        for item, value in zip(items, values.tolist(), strict=True):
            yield run.method, run.about["domain"], run.seed, name, item, value


def make_prompted(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``prompted``, one per model, rated set and prompt template."""
    collected = frames.collected
    seen = {rater.model: rater.test_data_seen for rater in get_config(frames.study).prompted}
    for run in collected.runs:
        if run.model != PROMPTED:
            continue
        for name, nodes in _group_by_set(run).items():
            for template, node in enumerate(nodes, 1):
                rows, record = collected.rows(node), collected.record(node)
                counts = record["report"]["prompting"]
                values, gold = (
                    rows[column].to_numpy() for column in ("predicted_value", "gold_value")
                )
                yield (
                    *(run.method, name, template, 100 * compute_spearman(values, gold)),
                    *(float(values.mean()), len(values)),
                    100 * counts["unreadable"] / max(1, counts["questions"]),
                    *(sum_tokens(counts), compute_seconds(record), seen[run.method]),
                )


def _group_by_set(run: Run) -> dict[str, list[Evaluation]]:
    """Map each rated set to its evaluations, one per prompt template."""
    by_set: dict[str, list[Evaluation]] = {}
    for node in run.evaluations:
        by_set.setdefault(node.task, []).append(node)
    return by_set
