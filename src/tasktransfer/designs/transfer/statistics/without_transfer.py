"""Scores of methods without transfer, for the tables ``prompted`` and ``references``.

The score of a prompted model is the mean over the prompt wordings on a task's card and over the
seeds that sample the shots. Its interval is over dialogues, and over seeds if there are several.
Wordings are not a random sample, so their range is a separate column.

A reference is a simple predictor (``core.references``). Each baseline has a paired difference from
each reference, over dialogues and seeds, and a state. The state compares the baseline's mean score
with the best reference on the test split, which is the strictest comparison. Contrastive
fine-tuning is left out, because a baseline that it exceeds may have learned its task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from tasktransfer.core.nodes import Evaluation, Fit
from tasktransfer.core.references import COLLAPSED, CONTRASTIVE, LEARNED, NOT_BETTER
from tasktransfer.core.runs import Run
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.frames import (
    MEAN,
    PROMPTED,
    REFERENCES,
    SCORED,
    WRITTEN,
)
from tasktransfer.designs.transfer.runs import BASELINE, NO_MODEL, is_prompted, is_reference
from tasktransfer.results.collect import Collected
from tasktransfer.results.costs import compute_seconds, sum_tokens
from tasktransfer.results.frames import Frames
from tasktransfer.results.rows import select_task_rows
from tasktransfer.results.store import build_frame
from tasktransfer.stats.answers import is_collapsed
from tasktransfer.stats.bootstrap import (
    compute_confidences,
    compute_mean_confidence,
    compute_q_values,
)
from tasktransfer.stats.cells import (
    NO_SEED,
    Cell,
    Scored,
    compute_mean_cell,
    compute_mean_over_test_sets,
    gather_cells,
    score_answers,
)
from tasktransfer.tasks.asking import has_choices

# --- prompted models ---


Key = tuple[str, str, int, str]
"""Dataset, model, shots, target."""


@dataclass(frozen=True, slots=True)
class PromptedScore:
    """A model's score on a target; ``by_wording`` has each wording's mean over seeds.

    ``seconds`` is the mean wall time of an evaluation.
    """

    cell: Cell
    by_wording: tuple[float, ...]
    instances: int
    answers: frozenset[str]
    unreadable: float
    questions: float
    tokens: float
    seconds: float

    @property
    def spread(self) -> float:
        """Difference between the highest and the lowest score over prompt wordings."""
        return max(self.by_wording) - min(self.by_wording)


def make_prompted(frames: Frames) -> pd.DataFrame:
    """Return the frame ``prompted``, the scores of prompted models."""
    return compute_prompted_table(frames.collected, frames.compute_once(score_prompted_models))


def compute_prompted_table(
    collected: Collected, scores: Mapping[Key, PromptedScore]
) -> pd.DataFrame:
    """Compute the table ``PROMPTED``, with one row per target and the mean per dataset.

    A target without a complete run has a row without a score. ``n_seeds`` counts complete runs.

    Args:
        collected: the study's records.
        scores: result of ``score_prompted_models``.
    """
    seen = {entry.model: entry for entry in get_transfer_config(collected.study).prompted}
    planned = _group_runs(collected)
    groups: dict[tuple[str, str, int], list[Key]] = {}
    for key in planned:
        groups.setdefault(key[:3], []).append(key)
    rows = []
    for group, keys in groups.items():
        dataset, model, _ = group
        seen_before = seen[model].get_test_data_seen(dataset)
        seeds_planned = len({run.seed for key in keys for run in planned[key]})
        end = (seen_before, seeds_planned)
        rows += [(*key, *_build_row(scores.get(key), 1, 1), *end) for key in keys]
        there = [scores[key] for key in keys if key in scores]
        seeds = [set(target.cell.trainings.seeds) for target in there]
        mean = _average_targets(there) if there and set.intersection(*seeds) else None
        rows.append((*group, MEAN, *_build_row(mean, len(there), len(keys)), *end))
    return build_frame(rows, PROMPTED)


def score_prompted_models(frames: Frames) -> Mapping[Key, PromptedScore]:
    """Return the scores of prompted models on targets with a complete run."""
    collected = frames.collected
    holes = (hole.run for hole in collected.missing if is_prompted(hole.run))
    missing = {(_build_key(run), run.seed) for run in holes}
    scores = {}
    for key, runs in _group_runs(collected).items():
        if whole := [run for run in runs if (key, run.seed) not in missing]:
            scores[key] = _combine_runs(collected, whole)
    return scores


def _group_runs(collected: Collected) -> dict[Key, list[Run]]:
    planned: dict[Key, list[Run]] = {}
    for run in filter(is_prompted, collected.planned):
        planned.setdefault(_build_key(run), []).append(run)
    return planned


def _build_key(run: Run) -> Key:
    about = run.about
    return about["dataset"], run.model, about["shots"], about["target"]


def _combine_runs(collected: Collected, runs: Sequence[Run]) -> PromptedScore:
    """Combine a target's runs (one per seed), which have one evaluation per prompt wording."""
    wordings = [*zip(*(run.evaluations for run in runs), strict=True)]
    shots = runs[0].about["shots"]
    seeds = [run.seed if shots else NO_SEED for run in runs]
    cells = []
    for nodes in wordings:
        scored = [
            score_answers(collected.rows(node), get_task(node.data.name, node.task))
            for node in nodes
        ]
        named = (((), seed, count) for seed, count in zip(seeds, scored, strict=True))
        cells.append(gather_cells(named)[()])
    records = [collected.record(node) for nodes in wordings for node in nodes]
    counts = [record["report"]["prompting"] for record in records]
    task = runs[0].about["target"]
    return PromptedScore(
        cell=compute_mean_cell(cells),
        by_wording=tuple(float(cell.trainings.scores.mean()) for cell in cells),
        instances=records[0]["results"][task]["instances"],
        answers=frozenset(_describe_answer_mode(collected, wordings[0][0])),
        unreadable=sum(count["unreadable"] for count in counts),
        questions=sum(count["questions"] for count in counts),
        tokens=sum(map(sum_tokens, counts)),
        seconds=float(np.mean([compute_seconds(record) for record in records])),
    )


def _describe_answer_mode(collected: Collected, node: Evaluation) -> Iterator[str]:
    """Yield ``SCORED`` if choices were scored, or ``WRITTEN`` if answers were generated.

    The notes of a record say if a model could not score choices and generated answers instead.
    """
    fell_back = any("log-likelihoods" in n for n in collected.record(node)["provenance"]["notes"])
    scored = has_choices(get_task(node.data.name, node.task)) and not fell_back
    yield SCORED if scored else WRITTEN


def _average_targets(several: Sequence[PromptedScore]) -> PromptedScore:
    """Average over targets, and over the n-th prompt wordings of all targets."""
    fewest = min(len(target.by_wording) for target in several)
    columns = zip(*(target.by_wording[:fewest] for target in several), strict=True)
    return PromptedScore(
        cell=compute_mean_over_test_sets([target.cell for target in several]),
        by_wording=tuple(float(np.mean(column)) for column in columns),
        instances=sum(target.instances for target in several),
        answers=frozenset().union(*(target.answers for target in several)),
        unreadable=sum(target.unreadable for target in several),
        questions=sum(target.questions for target in several),
        tokens=sum(target.tokens for target in several),
        seconds=sum(target.seconds for target in several),
    )


def _build_row(score: PromptedScore | None, targets: int, expected: int) -> Iterable[object]:
    if score is None:
        return (*[np.nan] * 3, 0, np.nan, 0, 0, expected, 0, 0, "", np.nan, 0)
    cell = score.cell
    sure = compute_mean_confidence(cell.trainings, cell.units)
    return (
        float(cell.trainings.scores.mean()),
        *(sure.low, sure.high),
        *(len(score.by_wording), score.spread),
        *(len(cell.trainings.seeds), targets, expected),
        score.instances,
        0 if cell.units is None else cell.units.count,
        ", ".join(sorted(score.answers)),
        100 * score.unreadable / max(1.0, score.questions),
        int(score.tokens),
    )


# --- references ---


Target = tuple[str, str, str]
"""Dataset, model and target."""


class Baseline(NamedTuple):
    """A target's baselines; ``collapsed`` has one flag per seed, in the order of the seeds."""

    cell: Cell
    collapsed: tuple[bool, ...]

    @property
    def has_collapsed(self) -> bool:
        """Return whether at least half of the seeds predict a single label."""
        return 2 * sum(self.collapsed) >= len(self.collapsed)


def make_references(frames: Frames) -> pd.DataFrame:
    """Return the frame ``references``, comparisons of baselines with simple predictors."""
    return build_reference_table(
        frames.compute_once(score_references), frames.compute_once(score_baselines)
    )


def build_reference_table(
    references: Mapping[tuple[Target, str], Cell], baselines: Mapping[Target, Baseline]
) -> pd.DataFrame:
    """Compute the table ``references``, which compares each target's baselines with references.

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
    """Return the state (learned, not better or collapsed) of a cell and of each of its runs."""
    scores = baseline.cell.trainings.scores
    runs = zip(scores, baseline.collapsed, strict=True)
    states = [
        COLLAPSED if collapsed else LEARNED if score > reference else NOT_BETTER
        for score, collapsed in runs
    ]
    if baseline.has_collapsed:
        return COLLAPSED, states
    return LEARNED if float(np.mean(scores)) > reference else NOT_BETTER, states


def score_references(frames: Frames) -> Mapping[tuple[Target, str], Cell]:
    """Return a cell with the scores of each reference on each target.

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
    """Return the seed of a reference's run, or ``NO_SEED`` for a deterministic reference."""
    return run.seed if run.about["reference"] == CONTRASTIVE else NO_SEED


def score_task_rows(collected: Collected, run: Run, rows: object, task: str) -> Scored:
    """Score a run's predictions for a task by the scoring rules of its dataset's trainings."""
    dataset = run.about["dataset"]
    scoring = (
        get_transfer_config(collected.study).get_training_hyperparameters(dataset).fidelity.scoring
    )
    return score_answers(select_task_rows(rows, task), get_task(dataset, task), scoring)


def score_baselines(frames: Frames) -> Mapping[Target, Baseline]:
    """Map each (dataset, model, target) to its baselines that have predictions."""
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
        card = get_task(target[0], target[2])
        collapsed[target][run.seed] = is_collapsed(rows["prediction"], card, empty=True)
    return {
        (dataset, model, task): Baseline(
            cell, tuple(collapsed[dataset, model, task][seed] for seed in cell.trainings.seeds)
        )
        for (dataset, model, task), cell in gather_cells(scored).items()
    }
