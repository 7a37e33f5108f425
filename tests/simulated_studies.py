"""Studies whose true effect is known, judged by the code that judges real cells.

A training answers instance i right when

    mean + seed_spread * a + difficulty_i + [transfer] * reaction_spread * g_i + noise > 0

with a, g, noise standard normal: ``a`` once for each training, difficulty and ``g`` once for each
instance (which ones this transfer helps or harms, whatever the seed), noise for each answer.
With it the share of right answers expected over seeds *and* instances is known exactly, and so is
the true delta in accuracy. That of macro-F1 is the mean of many trainings with test sets of their
own.

``no_trend`` draws the mean deltas of a whole matrix whose tasks differ, beside counts of training
samples that have nothing to do with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from tasktransfer import metrics
from tasktransfer.datasets import get_task
from tasktransfer.metrics import Coded
from tasktransfer.stats import bootstrap
from tasktransfer.stats.bootstrap import Estimate
from tasktransfer.tasks.card import Task

ACCURACY = get_task("DailyDialog", "dialogue_reasoning_multiple_choice_span_selection")
MACRO_F1 = replace(get_task("DailyDialog", "topic_classification"), paper_metrics=("macro_f1",))


@dataclass(frozen=True)
class Regime:
    """What varies, and how much; ``difficulty`` is the spread between instances that transfer run
    and baseline share. ``gain`` is what transfer adds to the share of right answers."""

    name: str
    seed_spread: float
    reaction_spread: float
    task: Task = ACCURACY
    seeds: int = 5
    instances: int = 400
    difficulty: float = 1.0
    level: float = 0.55
    gain: float = 0.05


REGIMES = (
    Regime("seeds dominate", 0.30, 0.0),
    Regime("instances dominate", 0.0, 2.0),
    Regime("both", 0.10, 1.0),
    Regime("neither: noise of each answer", 0.0, 0.0),
    Regime("both, two seeds", 0.10, 1.0, seeds=2),
    Regime("both, 60 instances", 0.15, 1.0, instances=60),
    Regime("seeds dominate, macro-F1", 0.30, 0.0, task=MACRO_F1),
    Regime("instances dominate, macro-F1", 0.0, 2.0, task=MACRO_F1),
    Regime("both, macro-F1", 0.10, 1.0, task=MACRO_F1),
)


@dataclass(frozen=True)
class Instances:
    """A test set: gold class, difficulty and reaction to the transfer of each instance, (n,)."""

    golds: npt.NDArray[np.int64]
    difficulty: npt.NDArray[np.float64]
    reaction: npt.NDArray[np.float64]


def draw_instances(regime: Regime, chance: np.random.Generator) -> Instances:
    """A test set; classes are as rare as 1, 1/2, 1/3, ..."""
    shares = 1 / np.arange(1, len(regime.task.labels) + 1)
    golds = chance.choice(len(shares), regime.instances, p=shares / shares.sum())
    difficulty = regime.difficulty * chance.standard_normal(regime.instances)
    return Instances(golds, difficulty, chance.standard_normal(regime.instances))


def train(
    regime: Regime, test: Instances, transfer: bool, chance: np.random.Generator
) -> metrics.Sums:
    """The tally of a training with a seed of its own."""
    reaction = regime.reaction_spread if transfer else 0.0
    spread = (1 + regime.seed_spread**2 + regime.difficulty**2 + reaction**2) ** 0.5
    share = regime.level + (regime.gain if transfer else 0.0)
    strength = NormalDist().inv_cdf(share) * spread + regime.seed_spread * chance.standard_normal()
    noise = chance.standard_normal(len(test.golds))
    right = strength + test.difficulty + reaction * test.reaction + noise > 0
    # A wrong answer is another class, the frequent ones more often.
    classes = len(regime.task.labels)
    wrong = test.golds[chance.integers(0, len(test.golds), len(test.golds))]
    wrong = np.where(wrong == test.golds, (wrong + 1) % classes, wrong)
    codes = np.where(right, test.golds, wrong)
    starts = np.arange(len(codes) + 1)
    labels = regime.task.labels
    return metrics.tally(
        regime.task, Coded(labels, codes, starts), Coded(labels, test.golds, starts)
    )


def score(task: Task, tally: metrics.Sums) -> float:
    """The official score of all instances."""
    return float(metrics.score_of_sums(task, tally.sum(axis=0)))


def true_delta(regime: Regime, chance: np.random.Generator, draws: int = 4000) -> float:
    """The delta expected over seeds and test sets of this size."""
    if regime.task == ACCURACY:
        return 100 * regime.gain
    total = 0.0
    for _ in range(draws):
        test = draw_instances(regime, chance)
        total += score(regime.task, train(regime, test, True, chance))
        total -= score(regime.task, train(regime, test, False, chance))
    return total / draws


@dataclass(frozen=True)
class Trained:
    """Trainings of one kind, one a seed: scores (seeds,), and scores on resampled test sets."""

    scores: npt.NDArray[np.float64]
    resampled: npt.NDArray[np.float64]


def trainings(
    regime: Regime,
    test: Instances,
    transfer: bool,
    weights: bootstrap.Weights,
    chance: np.random.Generator,
) -> Trained:
    """One training for each seed."""
    tallies = [train(regime, test, transfer, chance) for _ in range(regime.seeds)]
    return Trained(
        np.array([score(regime.task, tally) for tally in tallies]),
        bootstrap.resampled_scores(
            np.stack(tallies), weights, partial(metrics.score_of_sums, regime.task)
        ),
    )


def judge(regime: Regime, transfer: Trained, baseline: Trained) -> Estimate:
    """What the analysis says of a cell."""
    return bootstrap.estimate(
        transfer.scores - baseline.scores,
        transfer.resampled - baseline.resampled,
        regime.instances,
    )


def studies(regime: Regime, count: int, chance: np.random.Generator) -> Iterator[Estimate]:
    """One cell of each of many studies, test set and all."""
    weights = bootstrap.instance_weights("simulated", regime.name, regime.instances)
    for _ in range(count):
        test = draw_instances(regime, chance)
        transfer = trainings(regime, test, True, weights, chance)
        yield judge(regime, transfer, trainings(regime, test, False, weights, chance))


def heatmap(regime: Regime, tasks: int, chance: np.random.Generator) -> npt.NDArray[np.float64]:
    """The p of all ordered pairs of a heatmap; the cells of a target share test set and
    baselines."""
    weights = bootstrap.instance_weights("simulated", regime.name, regime.instances)
    found = []
    for _ in range(tasks):
        test = draw_instances(regime, chance)
        baseline = trainings(regime, test, False, weights, chance)
        for _ in range(tasks - 1):
            # What a source does to an instance is its own.
            reaction = chance.standard_normal(regime.instances)
            here = replace(test, reaction=reaction)
            transfer = trainings(regime, here, True, weights, chance)
            found.append(judge(regime, transfer, baseline))
    return np.array([sure.p for sure in bootstrap.confidences(found)])


@dataclass(frozen=True)
class Matrix:
    """Cells of a source and a target each, all arrays (cells,): places of tasks, and deltas.
    ``counts`` (tasks,): training samples."""

    sources: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    deltas: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """The tasks of each cell, as the analysis names them."""
        return [f"task {n}" for n in self.sources], [f"task {n}" for n in self.targets]

    def logarithm(self, role: str) -> npt.NDArray[np.float64]:
        """Of the count of the "source" or "target", or of their "ratio"."""
        source, target = (np.log10(self.counts[place]) for place in (self.sources, self.targets))
        return {"source": source, "target": target, "ratio": source - target}[role]


def no_trend(
    tasks: int,
    chance: np.random.Generator,
    *,
    of_targets: float = 2.0,
    of_sources: float = 1.0,
    of_cells: float = 1.5,
    algorithms: int = 3,
) -> Matrix:
    """Every pair of tasks, once for each algorithm. Spreads in points: what a task does as target,
    as source, and what the two do together, of which algorithms share most. Counts, from some 50
    to some 7,000 as in the paper's Table 1, are drawn apart from all of it."""
    target = of_targets * chance.standard_normal(tasks)
    source = of_sources * chance.standard_normal((tasks, 1))
    both = of_cells * chance.standard_normal((tasks, tasks))
    deltas = target + source + both
    own = 0.5 * of_cells * chance.standard_normal((algorithms, tasks, tasks))
    counts = np.exp(chance.uniform(np.log(50), np.log(7000), tasks))
    apart = ~np.eye(tasks, dtype=bool)
    sources, targets = np.nonzero(apart)
    return Matrix(
        np.tile(sources, algorithms),
        np.tile(targets, algorithms),
        (deltas + own)[:, apart].ravel(),
        counts,
    )
