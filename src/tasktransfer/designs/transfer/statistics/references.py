"""Comparison of baselines with references on the same instances, for the table ``references``.

A reference is a simple predictor (``core.references``). Each baseline has a paired difference from
each reference, over dialogues and seeds, and a state. The state compares the baseline's mean score
with the best reference on the test split, which is the strictest comparison. Contrastive
fine-tuning is left out, because a baseline that it exceeds may have learned its task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from tasktransfer.core.nodes import Fit
from tasktransfer.core.references import COLLAPSED, CONTRASTIVE, LEARNED, NOT_BETTER
from tasktransfer.core.runs import Run
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.collect.method_columns import REFERENCES
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.runs import BASELINE, NO_MODEL, is_reference
from tasktransfer.results.collect import Collected
from tasktransfer.results.frames import Frames
from tasktransfer.results.rows import select_task_rows
from tasktransfer.results.store import build_frame
from tasktransfer.stats.answers import is_collapsed
from tasktransfer.stats.bootstrap import compute_confidences, compute_q_values
from tasktransfer.stats.cells import NO_SEED, Cell, Scored, gather_cells, score_answers

Target = tuple[str, str, str]
"""Dataset, model and target."""


class Baseline(NamedTuple):
    """A target's baselines; ``collapsed`` has one flag per seed, in the order of the seeds."""

    cell: Cell
    collapsed: tuple[bool, ...]


def make_references(frames: Frames) -> pd.DataFrame:
    """Return the frame ``references``."""
    return build_reference_table(
        frames.compute_once(score_references), frames.compute_once(score_baselines)
    )


def build_reference_table(
    references: Mapping[tuple[Target, str], Cell], baselines: Mapping[Target, Baseline]
) -> pd.DataFrame:
    """Compute the table ``references``, whose rows compare a target's baselines with a reference.

    ``q`` is adjusted over all rows of a dataset. Baselines with one seed have no q, because the
    variation between seeds is unknown.

    Args:
        references: result of ``score_references``.
        baselines: result of ``score_baselines``.
    """
    rows, pairs = [], []
    for target, baseline in baselines.items():
        dataset, model, task = target
        scored = {
            name: cell
            for (place, name), cell in references.items()
            if place in ((dataset, model, task), (dataset, NO_MODEL, task)) and name != CONTRASTIVE
        }
        if not scored:
            continue
        best = max(scored, key=lambda name: _get_score(scored[name]))
        state, states = _judge_baseline(baseline, _get_score(scored[best]))
        for name, cell in scored.items():
            estimate = baseline.cell.subtract(cell)
            pairs.append(estimate)
            seeds = list(baseline.cell.trainings.seeds)
            rows.append(
                {
                    **dict(zip(("dataset", "model", "target"), target, strict=True)),
                    "reference": name,
                    "reference_score": _get_score(cell),
                    "is_best": name == best,
                    "n_seeds": len(seeds),
                    "score": _get_score(baseline.cell),
                    "delta": estimate.delta,
                    "state": state,
                    "seeds": seeds,
                    "states": states,
                }
            )
    for row, confidence in zip(rows, compute_confidences(pairs), strict=True):
        row |= {"low": confidence.low, "high": confidence.high, "p": confidence.p}
    return _order_columns(pd.DataFrame(rows))


def _order_columns(frame: pd.DataFrame) -> pd.DataFrame:
    names = [name for name, _, _ in REFERENCES]
    if frame.empty:
        return build_frame([], REFERENCES)
    tested = frame["p"].where(frame["n_seeds"] > 1)
    frame["q"] = tested.groupby(frame["dataset"], sort=False).transform(compute_q_values)
    return build_frame(frame[names].itertuples(index=False, name=None), REFERENCES)


def _get_score(cell: Cell) -> float:
    return float(cell.trainings.scores.mean())


def _judge_baseline(baseline: Baseline, reference: float) -> tuple[str, list[str]]:
    """Return the state of a cell and of each of its runs."""
    scores = baseline.cell.trainings.scores
    runs = zip(scores, baseline.collapsed, strict=True)
    states = [
        COLLAPSED if collapsed else LEARNED if score > reference else NOT_BETTER
        for score, collapsed in runs
    ]
    if 2 * sum(baseline.collapsed) >= len(states):
        return COLLAPSED, states
    return LEARNED if float(np.mean(scores)) > reference else NOT_BETTER, states


def score_references(frames: Frames) -> Mapping[tuple[Target, str], Cell]:
    """Return the cell of each pair (target, reference).

    The model of a target is ``NO_MODEL`` if the reference reads no embeddings.
    """
    cells = gather_cells(_list_scored_references(frames.collected))
    return {((key[0], key[1], key[2]), key[3]): cell for key, cell in cells.items()}


def _list_scored_references(
    collected: Collected,
) -> Iterator[tuple[tuple[str, str, str, str], int, Scored]]:
    for run in collected.runs:
        if not is_reference(run):
            continue
        assert isinstance(run.outcome, Fit)
        rows = collected.rows(run.outcome)
        for task in run.outcome.tasks:
            key = (run.about["dataset"], run.model, task, run.about["reference"])
            yield key, get_reference_seed(run), score_task_rows(collected, run, rows, task)


def get_reference_seed(run: Run) -> int:
    """Return the seed of a reference's run, or ``NO_SEED`` if nothing is sampled."""
    return run.seed if run.about["reference"] == CONTRASTIVE else NO_SEED


def score_task_rows(collected: Collected, run: Run, rows: object, task: str) -> Scored:
    """Score a run's rows of a task by the scoring rules of its dataset's trainings."""
    dataset = run.about["dataset"]
    scoring = (
        get_transfer_config(collected.study).get_training_hyperparameters(dataset).fidelity.scoring
    )
    return score_answers(select_task_rows(rows, task), get_task(dataset, task), scoring)


def score_baselines(frames: Frames) -> Mapping[Target, Baseline]:
    """Map (dataset, model, target) to the target's baselines, if they have predictions."""
    collected = frames.collected
    scored: list[tuple[Target, int, Scored]] = []
    collapsed: dict[Target, dict[int, bool]] = defaultdict(dict)
    for run in collected.runs:
        if run.method != BASELINE:
            continue
        target = (run.about["dataset"], run.model, run.about["target"])
        rows = select_task_rows(collected.rows(run.stages[-1]), target[2])
        if not len(rows):
            continue
        scored.append((target, run.seed, score_task_rows(collected, run, rows, target[2])))
        collapsed[target][run.seed] = is_collapsed(rows["prediction"], empty=True)
    return {
        (dataset, model, task): Baseline(
            cell, tuple(collapsed[dataset, model, task][seed] for seed in cell.trainings.seeds)
        )
        for (dataset, model, task), cell in gather_cells(scored).items()
    }
