"""Scores of single-source runs and baselines on the dialogues of their test set, and mean deltas.

Statistics over several targets, or over parts of a test set, cannot be computed from the cells:
the best source of each target (``top1``) and the mean delta over pairs. They read every run's
predictions and keep a few numbers per dialogue and run. Instances are resampled one by one if the
prediction rows do not name their dialogues.

The interval of a mean delta is over seeds and dialogues together. Tasks are fixed, because they are
the benchmark and not a sample. Seeds are sampled: all sources of a target share its baselines, so a
target's mean over sources varies over seeds as one number, and targets vary independently.
Dialogues are sampled: a dialogue in the test sets of several tasks counts in all of them jointly.
The two are combined as in the cells (``stats.bootstrap``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.datasets import get_task
from tasktransfer.errors import RecordError, TaskTransferError
from tasktransfer.results.frames import Frames
from tasktransfer.results.rows import read_columns, select_task_rows
from tasktransfer.results.schema import RowsFile
from tasktransfer.results.tallies import TallyReader
from tasktransfer.stats import draws
from tasktransfer.stats.bootstrap import Confidence, Estimate, compute_confidence
from tasktransfer.stats.chosen import Halves, split_dialogues
from tasktransfer.stats.draws import (
    Floats,
    Units,
    build_dialogue_units,
    build_instance_units,
    create_generator,
)


@dataclass(frozen=True, slots=True)
class PredictionsFile:
    """File with a run's predictions on a test set, relative to the results folder."""

    file: str
    rows: int
    sha256: str

    @property
    def rows_file(self) -> RowsFile:
        """Description of the rows file, as in records."""
        return {"file": Path(self.file).name, "rows": self.rows, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the table, for statistics; ``file`` is None if it has no predictions."""

    model: str
    digest: str
    seed: int
    score: float
    fidelity: Scoring
    file: str | None
    rows: int | None
    sha256: str | None
    test_set: str | None
    instances: int

    @property
    def predictions(self) -> PredictionsFile:
        """File with the predictions of the run, which must have one."""
        assert self.file is not None
        assert self.rows is not None
        assert self.sha256 is not None
        return PredictionsFile(self.file, int(self.rows), self.sha256)


def map_runs(table: pd.DataFrame) -> dict[tuple[str, str, str], Run]:
    """Map each (model, digest of the stage, target) to its run.

    Two models of a study may have the same weights and therefore the same stages. A stage may be
    tested on several targets.
    """
    names = ["model", "digest", "seed", "score", "fidelity", "predictions", "predictions_rows"]
    names += ["predictions_sha256", "test_set", "test_size"]
    plain = table[names].astype(object).where(table[names].notna(), None)
    targets = table["target"]
    rows = zip(plain.itertuples(index=False, name=None), targets, strict=True)
    return {(row[0], row[1], target): Run(*row) for row, target in rows}


def read_tally(run: Run, root: Path, tallies: TallyReader) -> metrics.Sums:
    """Read each instance's contributions to the sums of a run's score, (instances, columns).

    Raises:
        RecordError: the predictions file has changed since it was collected.
    """
    tested = run.predictions
    try:
        return tallies.read(root / tested.file, tested.rows_file)
    except TaskTransferError as error:
        raise RecordError(
            f"{str(error).rstrip('.')}. The predictions file has changed since it was collected. "
            "Run `tasktransfer collect` again."
        ) from error


def build_resampling_units(
    root: Path, target: str, instances: int, tested: Sequence[PredictionsFile]
) -> Units:
    """Return the units of a test set that are resampled.

    Args:
        root: the results folder that files are relative to.
        target: the evaluated task.
        instances: size of the test set.
        tested: predictions of the runs on the test set. All runs answer the same instances, so the
            dialogues are read from the first file.

    Returns:
        The dialogues, or single instances if any row does not name its dialogue.

    Raises:
        RecordError: a predictions file has changed since it was collected.
    """
    first = tested[0]
    try:
        rows = read_columns(root / first.file, first.rows_file, ["task", "cluster"])
    except RecordError as error:
        raise RecordError(
            f"{str(error).rstrip('.')}. The predictions file has changed since it was collected. "
            "Run `tasktransfer collect` again."
        ) from error
    names = select_task_rows(rows, target)["cluster"]
    if names.null_count or len(names) != instances:
        return build_instance_units(instances)
    return build_dialogue_units(names.to_pylist())


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
    """Return the dialogue scores of a study's transfer runs."""
    return compute_dialogue_scores(frames["transfer_runs"], Path(frames.study.config.results))


def compute_dialogue_scores(
    runs: pd.DataFrame, root: Path
) -> dict[tuple[str, str], DialogueScores]:
    """Map (dataset, target) to the dialogue scores of all runs with predictions.

    Targets whose runs have several test sets, or fewer than four test dialogues, are left out.

    Args:
        runs: columns of ``columns.RUNS``.
        root: the results folder that the paths in the tables are relative to.

    Raises:
        RecordError: a predictions file has changed since it was collected.
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


# --- intervals of mean deltas ---


UNKNOWN = Confidence(np.nan, np.nan, np.nan, np.nan)


def compute_joint_interval(
    group: pd.DataFrame, dialogues: Mapping[tuple[str, str], DialogueScores]
) -> Confidence:
    """Return the 95 % interval of the mean delta over pairs, and its p-value.

    NaN with one seed, if a pair has fewer seeds than others, or if a run has no predictions.

    Args:
        group: the single-source deltas of one dataset, model and algorithm.
        dialogues: (dataset, target) → scores by dialogue.
    """
    seeds = sorted(group["seed"].unique())
    pairs = group.groupby(["source", "target"]).ngroups
    if len(seeds) < 2 or len(group) != pairs * len(seeds):
        return UNKNOWN
    of_seeds: list[float] = []
    in_both = 0.0
    pulled: dict[str, float] = defaultdict(float)
    degrees: list[float] = []
    for (dataset, target), rows in group.groupby(["dataset", "target"], sort=False):
        tested = dialogues.get((str(dataset), str(target)))
        pulls = None if tested is None else _sum_dialogue_influences(rows, tested, seeds)
        if tested is None or pulls is None:
            return UNKNOWN
        deltas = rows.groupby("seed")["delta"].sum().loc[seeds].to_numpy() / (pairs * len(seeds))
        pulls /= pairs * len(seeds)
        of_seeds.append(len(seeds) * float(deltas.var(ddof=1)))
        in_both += len(seeds) * float(pulls.var(axis=0, ddof=1).sum())
        for name, pull in zip(tested.names, pulls.sum(axis=0), strict=True):
            pulled[name] += float(pull)
        degrees.append(tested.degrees)
    of_dialogues = max(0.0, float(np.square([*pulled.values()]).sum()) - in_both)
    squares = float(np.square(of_seeds).sum())
    of_targets = sum(of_seeds) ** 2 / squares if squares else 1.0
    parts = (
        (sum(of_seeds), of_targets * (len(seeds) - 1)),
        (of_dialogues, min(degrees)),
    )
    return compute_confidence(Estimate(float(group["delta"].mean()), parts, len(seeds)))


def _sum_dialogue_influences(
    rows: pd.DataFrame, tested: DialogueScores, seeds: list[int]
) -> Floats | None:
    """Sum each dialogue's influence on deltas over all sources, (seeds, dialogues)."""
    total = np.zeros((len(seeds), len(tested.names)))
    names = rows[["model", "seed", "digest", "baseline_digest"]]
    for model, seed, run, baseline in names.itertuples(index=False, name=None):
        if (model, run) not in tested.pulls or (model, baseline) not in tested.pulls:
            return None
        pull = tested.pulls[model, run] - tested.pulls[model, baseline]
        total[seeds.index(seed)] += pull
    return total
