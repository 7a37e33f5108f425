"""Parts of the data that ``heatmap.js`` reads as JSON: types, runs' curves and cards of tasks.

A card has the task in one sentence, and its type, labels and metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pandas as pd

from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError
from tasktransfer.present.numbers import round_significant

RunKey = tuple[Any, ...]
"""Dataset, model, algorithm, source, target and seed of a run."""
Curve = list[float | None]
_KEYS = ("dataset", "model", "algorithm", "source", "target", "seed")
_MEASURES = ("loss", "dev_score")
_MOST_LABELS = 12
"""Maximum number of labels that a card lists."""


def get_run_key(row: Mapping[str, Any]) -> RunKey:
    """Return the key of the run in a row of ``transfer_runs`` or ``training_curves``."""
    return tuple(row[key] for key in _KEYS)


def group_curves(curves: pd.DataFrame) -> dict[RunKey, list[Curve]]:
    """Map each run to its losses and dev scores by round, with None for a missing loss."""
    ordered = curves.sort_values("round", kind="stable")
    return {
        key: [[round_significant(value) for value in rows[measure]] for measure in _MEASURES]
        for key, rows in ordered.groupby(list(_KEYS), sort=False)
    }


class TaskDetails(TypedDict):
    """Description of a task, and facts on it as [name, value]."""

    description: str
    facts: list[list[str]]


def describe_tasks(dataset: str, tasks: Sequence[str]) -> dict[str, TaskDetails]:
    """Map each task to the details that its card in the report shows.

    Tasks without a card, for example those of a plugin that is not loaded, are left out.
    """
    return {name: card for name in tasks if (card := _describe_task(dataset, name))}


def _describe_task(dataset: str, name: str) -> TaskDetails | None:
    try:
        task = get_task(dataset, name)
    except ConfigError:
        return None
    named = ", ".join(task.labels[:_MOST_LABELS])
    more = f" and {len(task.labels) - _MOST_LABELS} more" if len(task.labels) > _MOST_LABELS else ""
    facts = (
        ("answer", task.kind.replace("_", " ")),
        (f"{task.classes} labels", f"{named}{more}" if task.labels else ""),
        ("score", ", ".join(task.paper_metrics or [spec.key for spec in task.metrics])),
        ("source", task.citation),
        ("licence", task.licence),
    )
    return {"description": task.description, "facts": [list(fact) for fact in facts if fact[1]]}


class CellLook(TypedDict):
    """Text of a cell in one unit, its colours, and whether it is beyond the colour scale."""

    text: str
    fill: NotRequired[str]
    ink: NotRequired[str]
    beyond: bool


class HeatmapCell(TypedDict):
    """A cell of the heatmap. ``heatmap.js`` reads it as JSON, so no number is NaN.

    Attributes:
        algorithm: None on the diagonal, because algorithms share baselines.
        source: name of the source, several joined by +; empty on the diagonal.
        state: transfer, baseline or missing.
        runs: [index in ``HeatmapData.runs``, index of its baseline or None] by seed.
        gaps: planned runs that are missing from the cell, with reasons.
        mark: frame, ring or hatching: significant, one-training, left-race or empty.
        faded: whether the interval includes 0, or there is only one seed.
        mixed: whether the signs of its seeds differ.
        looks: unit → look, for a transfer. Other cells have one ``text``, ``fill`` and ``ink``.
    """

    model: str
    algorithm: str | None
    source: str
    target: str
    state: str
    runs: list[list[int | None]]
    gaps: list[str]
    text: NotRequired[str]
    fill: NotRequired[str]
    ink: NotRequired[str]
    score: NotRequired[float | None]
    baseline_score: NotRequired[float | None]
    delta: NotRequired[float | None]
    improvement: NotRequired[float | None]
    p: NotRequired[float | None]
    q: NotRequired[float | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    significant: NotRequired[bool]
    mark: NotRequired[str]
    faded: NotRequired[bool]
    mixed: NotRequired[bool]
    looks: NotRequired[dict[str, CellLook]]
    seeds: NotRequired[list[int]]
    instances: NotRequired[int]
    dialogues: NotRequired[int]
    no_interval: NotRequired[str | None]


class PromptedRow(TypedDict):
    """Scores of a prompted model by task, below the heatmap."""

    name: str
    scores: dict[str, str]


class DatasetHeatmap(TypedDict):
    """Heatmap of one dataset.

    Attributes:
        algorithms: name and label of each algorithm.
        tasks: name and short name of each row with one source.
        targets: name and short name of each column.
        several: name and short name of each row with several sources.
        opens: model → the algorithm with the highest mean change, which is shown first.
        cards: details of the tasks.
        asked: rows of prompted models.
        limits: limit of the colour scale by unit.
        colours: colours of the scale, low to high.
        unlearned: [model, target] of baselines that have not learned.
    """

    name: str
    models: list[str]
    algorithms: list[dict[str, str]]
    tasks: list[dict[str, str]]
    targets: list[dict[str, str]]
    several: list[dict[str, str]]
    opens: dict[str, str]
    cards: dict[str, TaskDetails]
    asked: list[PromptedRow]
    limits: dict[str, float]
    colours: list[str]
    cells: list[HeatmapCell]
    unlearned: list[list[str]]


class HeatmapData(TypedDict):
    """Data that ``heatmap.js`` reads.

    Attributes:
        explain: command that explains a cell, up to the dataset.
        runs: [seed, score, digest, path of the record, curves] of each run, with the losses and dev
            scores by round as curves.
        datasets: heatmap of each dataset.
    """

    explain: str
    runs: list[list[int | float | str | list[Curve] | None]]
    datasets: list[DatasetHeatmap]
