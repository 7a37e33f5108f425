"""Constructed studies whose aggregates are the paper's published numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from record_factory import ALGORITHMS, Run, constructed

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer import published
from tasktransfer.results.frames import Frames
from transfer_frames import compute_frames

MODELS = {"bert": "BERT", "gpt2": "GPT-2", "t5": "T5"}
SEEDS = (0, 1)
SOURCES = {
    "dialogue_reasoning_span_extraction": (
        "adversarial_response_selection",
        "causal_emotion_entailment",
        "dialogue_act_classification",
    ),
    "dialogue_nli": (
        "adversarial_response_selection",
        "emotion_recognition",
        "topic_classification",
    ),
    "character_identification": (
        "question_answering",
        "reading_comprehension",
        "relation_extraction",
    ),
    "question_answering": (
        "emory_emotion_recognition",
        "personality_detection",
        "relation_extraction",
    ),
}
"""Table 6's, as far as they are legible."""
LUCK = 3.0
"""How far a lucky seed moves a source's score, and an unlucky one moves it back."""


def gather(folder: Path, runs: list[Run], score: Callable[[Run], float], **changes: Any) -> Frames:
    return compute_frames(constructed(folder, runs, score, **changes))


class Paper:
    """Scores of every run of the paper's single-source study that aggregate to its Table 2.

    In a group of T tasks all sources of the first task lose 1 point; every other target has one
    source with the delta ``best`` and T - 2 with the delta ``rest``. So top-1 delta is
    (T-1)/T * best and the average delta is (best + (T-2) * rest - 1) / T: ``cells_of`` solves it.
    Sigma over the square root of 2 is added in one seed and taken in the other, so that their
    sample standard deviation is sigma. Two sources of each target are lucky in one seed, so that
    whoever chooses the best source seed by seed gets another top-1.
    """

    def __init__(self) -> None:
        table = published.read_table2().set_index(["dataset", "model", "algorithm"])
        self.baseline: dict[tuple[str, str], float] = {}
        self.deltas: dict[tuple[str, str, str], tuple[float, float, float]] = {}
        for dataset in DATASETS:
            for model, name in MODELS.items():
                rows = table.loc[dataset, name]
                mean = baseline_of(rows)
                self.baseline[dataset, model] = mean
                for algorithm in ALGORITHMS:
                    self.deltas[dataset, model, algorithm] = cells_of(
                        len(DATASETS[dataset].tasks), mean, rows.loc[algorithm]
                    )

    def score(self, run: Run) -> float:
        dataset, model, algorithm, sources, target, seed = run
        tasks = list(DATASETS[dataset].tasks)
        place = tasks.index(target)
        # Baselines differ from task to task and keep their mean.
        mean = self.baseline[dataset, model] + 2 * (place - (len(tasks) - 1) / 2)
        if not sources:
            return mean
        best, rest, sigma = self.deltas[dataset, model, algorithm]
        step = (tasks.index(sources[0]) - place) % len(tasks)
        delta = -1.0 if place == 0 else best if step == 1 else rest
        luck = {2: LUCK, 3: -LUCK}.get(step, 0.0) + sigma / math.sqrt(2)
        return mean + delta + (luck if seed == 0 else -luck)


def baseline_of(rows: pd.DataFrame) -> float:
    """Return a mean baseline that is consistent with all rounded published numbers of a model."""
    found = [*(rows.average_score - rows.average_delta), *(rows.top1_score - rows.top1_delta)]
    return (min(found) + max(found)) / 2


def cells_of(tasks: int, baseline: float, row: pd.Series[float]) -> tuple[float, float, float]:
    """Return (best, rest, sigma) of a group: see ``Paper``."""
    average = within_rounding(row.average_delta, row.average_score - baseline)
    top1 = within_rounding(row.top1_delta, row.top1_score - baseline)
    best = top1 * tasks / (tasks - 1)
    rest = (tasks * average + 1 - best) / (tasks - 2)
    assert rest < best
    return best, rest, row.average_sigma


def within_rounding(delta: float, other: float) -> float:
    """Return a delta and a score that are printed as published."""
    assert abs(delta - other) < 0.01
    return (delta + other) / 2


def some(frame: pd.DataFrame | None) -> pd.DataFrame:
    assert frame is not None
    return frame


TABLE6 = published.read_table6().set_index(["target", "model", "algorithm"])


def several_runs() -> list[Run]:
    """Return runs of Table 6's targets with three sources, alone and together, with two seeds."""
    runs: list[Run] = []
    targets = published.read_table6()[["dataset", "target"]].drop_duplicates()
    for dataset, target in targets.itertuples(index=False):
        sources = SOURCES[target]
        for model in MODELS:
            for seed in SEEDS:
                runs.append((dataset, model, "baseline", (), target, seed))
                for algorithm in ALGORITHMS:
                    runs += [(dataset, model, algorithm, (one,), target, seed) for one in sources]
                    runs.append((dataset, model, algorithm, sources, target, seed))
    return runs


def several_score(run: Run) -> float:
    """Return a score for Table 6: baseline 40, singles 1 below, at and 1 above its mean.

    Together is as in Table 6. For the cell that is not legible there, singles are 0 and together is
    Table 3's gain, 1.95.
    """
    _, model, algorithm, sources, target, seed = run
    if not sources:
        return 40.0
    row = TABLE6.loc[(target, MODELS[model], algorithm)]
    legible = row.note != "not legible in the source at hand"
    luck = 0.5 if seed else -0.5
    if len(sources) == 3:
        return 40.0 + luck + (row.multi_source_delta if legible else 1.95)
    place = SOURCES[target].index(sources[0])
    return 40.0 + luck + place - 1 + (row.single_source_delta if legible else 0.0)
