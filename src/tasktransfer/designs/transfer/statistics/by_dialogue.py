"""Scores of single-source runs and baselines on the dialogues of their test set.

Statistics over several targets, or over parts of a test set, cannot be computed from the cells: the
best source of each target (``top1``) and the mean over pairs (``joint``). They read every run's
predictions and keep a few numbers per dialogue and run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from tasktransfer import metrics
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.statistics.tested_runs import (
    Run,
    build_resampling_units,
    map_runs,
    read_tally,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.tallies import TallyReader
from tasktransfer.stats import draws
from tasktransfer.stats.chosen import Halves, split_dialogues
from tasktransfer.stats.draws import Floats
from tasktransfer.stats.resampling import create_generator

RunName = tuple[str, str]
"""Model, and digest of the stage."""


@dataclass(frozen=True)
class DialogueScores:
    """Scores of a target's runs on parts of its test set.

    Attributes:
        names: names of the dialogues.
        degrees: degrees of freedom (``Units.degrees``).
        firsts: mask of the dialogues in the first half of each random split, (splits, dialogues).
        halves: run → its scores on the first and the second half, (2, splits).
        pulls: run → influence of each dialogue on its score, (dialogues,). The sum of squares is
            the score's variance over test sets.
    """

    names: tuple[str, ...]
    degrees: float
    firsts: Halves
    halves: Mapping[RunName, Floats]
    pulls: Mapping[RunName, Floats]


def make_dialogue_scores(frames: Frames) -> dict[tuple[str, str], DialogueScores]:
    """Return the scores by dialogue of a study's transfer runs."""
    return compute_dialogue_scores(frames["transfer_runs"], Path(frames.study.config.results))


def compute_dialogue_scores(
    runs: pd.DataFrame, root: Path
) -> dict[tuple[str, str], DialogueScores]:
    """Map (dataset, target) to scores by dialogue of all runs with predictions.

    Targets whose runs have several test sets, or fewer than four test dialogues, are left out.

    Args:
        runs: columns of ``columns.RUNS``.
        root: the results folder that the paths in the tables are relative to.

    Raises:
        RecordError: a predictions file is not the one that was collected; names it.
    """
    single = runs[(runs["n_sources"] <= 1) & runs["predictions"].notna()]
    all_runs = map_runs(single)
    members: dict[tuple[str, str], dict[RunName, Run]] = defaultdict(dict)
    for dataset, target, *name in single[["dataset", "target", "model", "digest"]].itertuples(
        index=False, name=None
    ):
        members[dataset, target][tuple(name)] = all_runs[*name, target]
    scores = {key: _resample_target(*key, tested, root) for key, tested in members.items()}
    return {key: of_target for key, of_target in scores.items() if of_target is not None}


def _resample_target(
    dataset: str, target: str, runs: Mapping[RunName, Run], root: Path
) -> DialogueScores | None:
    tested_on = {(run.test_set, run.instances, run.fidelity) for run in runs.values()}
    if len(tested_on) > 1:
        return None
    ((_, instances, fidelity),) = tested_on
    tested = [run.predictions for run in runs.values()]
    units = build_resampling_units(root, target, instances, tested)
    if units.count < 4:
        return None
    task = get_task(dataset, target)
    score = partial(metrics.compute_score_from_sums, task, fidelity=fidelity)
    tallies = TallyReader(task, fidelity, instances)
    firsts = split_dialogues(units.count, create_generator("halves", dataset, target))
    in_half = np.stack([firsts, ~firsts]).astype(np.float64)
    halves, pulls = {}, {}
    for name, run in runs.items():
        tally = units.sum_tally(read_tally(run, root, tallies)).astype(np.float64)
        halves[name] = np.asarray(score(in_half @ tally), np.float64)
        without = draws.compute_jackknife_scores(tally, score)
        pulls[name] = (without.mean() - without) / (units.count - 1) ** 0.5
    alone = tuple(f"{target} {number}" for number in range(units.count))
    return DialogueScores(units.names or alone, units.degrees, firsts, halves, pulls)
