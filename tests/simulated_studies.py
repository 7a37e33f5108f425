"""Simulated studies with known true effects, analysed by the code for real cells.

A training answers instance i correctly if

    mean + seed_spread * a + difficulty_i + [transfer] * reaction_spread * g_i + noise > 0

with a, g, noise standard normal. ``a`` is sampled once per training, noise once per answer.
Difficulty and ``g`` are sampled once per instance: ``g`` is the effect of this transfer on the
instance for every seed. The last three have correlation ``correlation`` between the instances of a
dialogue. ``pairing`` is the correlation of ``a`` between a run and the baseline of its seed. The
expected accuracy over seeds *and* dialogues is therefore known exactly, and so is the true delta in
accuracy. For macro-F1 it is the mean over many trainings with their own test sets.

``no_trend`` samples the mean deltas of a whole matrix of different tasks, and independent numbers
of training samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy import stats

from tasktransfer import metrics
from tasktransfer.datasets import get_task
from tasktransfer.metrics import CodedAnswers
from tasktransfer.stats import bootstrap, draws
from tasktransfer.stats.bootstrap import Confidence, Estimate, Trainings
from tasktransfer.stats.chosen import Target, split_dialogues
from tasktransfer.stats.draws import Units
from tasktransfer.tasks.card import Task

ACCURACY = get_task("DailyDialog", "dialogue_reasoning_multiple_choice_span_selection")
MACRO_F1 = replace(get_task("DailyDialog", "topic_classification"), paper_metrics=("macro_f1",))


@dataclass(frozen=True)
class Regime:
    """Sources and sizes of variation.

    ``difficulty``: spread between instances, shared by transfer runs and baselines. ``gain``:
    effect of the transfer on accuracy. ``longest``: largest number of instances per dialogue,
    uniform from 1. ``skewed``: whether this number is lognormal instead, with one in 20 dialogues
    five times the median. ``baselines``: number of baseline seeds; 0 for as many as runs.
    """

    name: str
    seed_spread: float
    reaction_spread: float
    task: Task = ACCURACY
    seeds: int = 5
    dialogues: int = 400
    longest: int = 1
    skewed: bool = False
    correlation: float = 0.0
    baselines: int = 0
    pairing: float = 0.0
    difficulty: float = 1.0
    level: float = 0.55
    gain: float = 0.05


REGIMES = (
    Regime("seeds dominate", 0.30, 0.0),
    Regime("instances dominate", 0.0, 2.0),
    Regime("both", 0.10, 1.0),
    Regime("neither: noise of each answer", 0.0, 0.0),
    Regime("both, two seeds", 0.10, 1.0, seeds=2),
    Regime("both, 60 instances", 0.15, 1.0, dialogues=60),
    Regime("seeds dominate, macro-F1", 0.30, 0.0, task=MACRO_F1),
    Regime("instances dominate, macro-F1", 0.0, 2.0, task=MACRO_F1),
    Regime("both, macro-F1", 0.10, 1.0, task=MACRO_F1),
)


DIALOGUES = tuple(
    Regime(name, spread, reaction, dialogues=60, longest=60, correlation=correlation)
    for correlation in (0.0, 0.05, 0.2)
    for name, spread, reaction in (
        ("seeds dominate", 0.30, 0.0),
        ("dialogues dominate", 0.0, 2.0),
        ("both", 0.10, 1.0),
    )
)
"""Dialogues of 1 to 60 instances, as in dialogue_nli (40) to causal_emotion_entailment (290)."""

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Instances:
    """A test set: gold class, difficulty, reaction and dialogue of each instance, shape (n,).

    ``correlation``: correlation between the instances of a dialogue.
    """

    golds: npt.NDArray[np.int64]
    difficulty: Values
    reaction: Values
    units: Units
    correlation: float

    def spread(self, chance: np.random.Generator) -> Values:
        """Sample one standard normal number per instance, correlated within dialogues."""
        of_dialogue = chance.standard_normal(self.units.count)[self.units.of_instance]
        own = chance.standard_normal(self.units.instances)
        return self.correlation**0.5 * of_dialogue + (1 - self.correlation) ** 0.5 * own


def draw_instances(regime: Regime, chance: np.random.Generator) -> Instances:
    """Sample a test set; class frequencies are proportional to 1, 1/2, 1/3, ..."""
    sizes = chance.integers(1, regime.longest + 1, regime.dialogues)
    if regime.skewed:
        drawn = np.exp(2 + chance.standard_normal(regime.dialogues))
        sizes = np.maximum(1, np.rint(drawn)).astype(np.int64)
    units = Units(np.repeat(np.arange(regime.dialogues), sizes), "dialogue")
    shares = 1 / np.arange(1, len(regime.task.labels) + 1)
    golds = chance.choice(len(shares), units.instances, p=shares / shares.sum())
    nothing = np.zeros(units.instances)
    test = Instances(golds, nothing, nothing, units, regime.correlation)
    difficulty = regime.difficulty * test.spread(chance)
    return replace(test, difficulty=difficulty, reaction=test.spread(chance))


def train(
    regime: Regime,
    test: Instances,
    transfer: bool,
    chance: np.random.Generator,
    of_seed: float | None = None,
) -> metrics.Sums:
    """Simulate the tally of a training; ``of_seed``: effect of its seed, None to sample it."""
    reaction = regime.reaction_spread if transfer else 0.0
    spread = (1 + regime.seed_spread**2 + regime.difficulty**2 + reaction**2) ** 0.5
    share = regime.level + (regime.gain if transfer else 0.0)
    of_seed = chance.standard_normal() if of_seed is None else of_seed
    strength = NormalDist().inv_cdf(share) * spread + regime.seed_spread * of_seed
    noise = test.spread(chance)
    right = strength + test.difficulty + reaction * test.reaction + noise > 0
    # A wrong answer is another class, sampled by frequency.
    classes = len(regime.task.labels)
    wrong = test.golds[chance.integers(0, len(test.golds), len(test.golds))]
    wrong = np.where(wrong == test.golds, (wrong + 1) % classes, wrong)
    codes = np.where(right, test.golds, wrong)
    starts = np.arange(len(codes) + 1)
    labels = regime.task.labels
    return metrics.tally_instances(
        regime.task, CodedAnswers(labels, codes, starts), CodedAnswers(labels, test.golds, starts)
    )


def score(task: Task, tally: metrics.Sums) -> float:
    """Return the official score of all instances."""
    return float(metrics.compute_score_from_sums(task, tally.sum(axis=0)))


def true_delta(regime: Regime, chance: np.random.Generator, draws: int = 4000) -> float:
    """Return the expected delta over seeds and test sets of this size."""
    if regime.task == ACCURACY:
        return 100 * regime.gain
    total = 0.0
    for _ in range(draws):
        test = draw_instances(regime, chance)
        total += score(regime.task, train(regime, test, True, chance))
        total -= score(regime.task, train(regime, test, False, chance))
    return total / draws


@dataclass(frozen=True)
class Study:
    """One cell: tallies of its runs and of its baselines, shape (seeds, instances, columns)."""

    test: Instances
    transfer: metrics.Sums
    baseline: metrics.Sums


def studies(regime: Regime, count: int, chance: np.random.Generator) -> Iterator[Study]:
    """Yield one cell for each of many studies, each with its own test set."""
    for _ in range(count):
        test = draw_instances(regime, chance)
        shared = chance.standard_normal(max(regime.seeds, regime.baselines))
        baseline = trainings(regime, test, False, chance, shared)
        yield Study(test, trainings(regime, test, True, chance, shared), baseline)


def trainings(
    regime: Regime,
    test: Instances,
    transfer: bool,
    chance: np.random.Generator,
    shared: Values | None = None,
) -> metrics.Sums:
    """Simulate one training per seed. ``shared``: effects shared by a seed's run and baseline."""
    count = regime.seeds if transfer else regime.baselines or regime.seeds
    own = chance.standard_normal(count)
    if shared is not None:
        own = regime.pairing**0.5 * shared[:count] + (1 - regime.pairing) ** 0.5 * own
    return np.stack([train(regime, test, transfer, chance, float(one)) for one in own])


class Judge:
    """Analysis of simulated studies. ``by_instance``: treat all instances as independent."""

    def __init__(self, regime: Regime, by_instance: bool = False) -> None:
        self.regime, self.by_instance = regime, by_instance

    def __call__(self, study: Study) -> Estimate:
        return bootstrap.estimate_delta(
            self.trained(study.test, study.transfer),
            self.trained(study.test, study.baseline),
            self.units(study.test),
            more_baselines=True,
        )

    def units(self, test: Instances) -> Units:
        """Return the units that are resampled."""
        return draws.build_instance_units(test.units.instances) if self.by_instance else test.units

    def trained(self, test: Instances, tallies: metrics.Sums) -> Trainings:
        """Return the scores of trainings, including those on resampled test sets."""
        task, units = self.regime.task, self.units(test)
        return Trainings(
            tuple(range(len(tallies))),
            np.array([score(task, tally) for tally in tallies]),
            draws.compute_jackknife_scores(
                units.sum_tally(tallies), partial(metrics.compute_score_from_sums, task)
            ),
        )


def welch_satterthwaite(estimates: Sequence[Estimate]) -> list[Confidence]:
    """Return interval and test from a t distribution with Satterthwaite's degrees of freedom."""
    result = []
    for one in estimates:
        squares = sum(variance**2 / degrees for variance, degrees in one.parts)
        degrees, error = one.standard_error**4 / squares, one.standard_error
        reach = float(stats.t.isf((1 - bootstrap.LEVEL) / 2, degrees)) * error
        p = float(2 * stats.t.sf(abs(one.delta) / error, degrees))
        result.append(Confidence(one.delta - reach, one.delta + reach, p, degrees))
    return result


def heatmap(
    regime: Regime,
    tasks: int,
    chance: np.random.Generator,
    by_instance: bool = False,
    helpful: int = 0,
) -> Values:
    """Return the p values of all ordered pairs of a heatmap, shape (targets, sources).

    The cells of a target share test set and baselines. The first ``helpful`` sources of each target
    add ``gain``, the others nothing.
    """
    judge, estimates = Judge(regime, by_instance), []
    without = replace(regime, gain=0.0)
    for _ in range(tasks):
        test = draw_instances(regime, chance)
        baseline = judge.trained(test, trainings(regime, test, False, chance))
        for source in range(tasks - 1):
            # Each source has its own effects on instances.
            of_source = replace(test, reaction=test.spread(chance))
            own = regime if source < helpful else without
            transfer = judge.trained(test, trainings(own, of_source, True, chance))
            estimates.append(bootstrap.estimate_delta(transfer, baseline, judge.units(test)))
    p = np.array([sure.p for sure in bootstrap.compute_confidences(estimates)])
    return p.reshape(tasks, tasks - 1)


def top1_target(
    sources: int,
    seeds: int,
    luck: float,
    chance: np.random.Generator,
    *,
    dialogues: int = 40,
    effect: float = 0.0,
) -> Target:
    """Sample deltas of sources without effect (except perhaps the first) that share a baseline.

    The unit is the standard deviation of a run over seeds, of whose variance a quarter is noise of
    single answers. ``luck``: standard deviation of scores due to test dialogues, equal for all
    seeds.
    """
    of_seed = 0.75**0.5 * chance.standard_normal((sources + 1, seeds, 1))
    of_dialogue = luck * chance.standard_normal((sources + 1, 1, dialogues))
    of_both = 0.5 * chance.standard_normal((sources + 1, seeds, dialogues))
    scores = of_seed + dialogues**0.5 * (of_dialogue + of_both)
    deltas = scores[1:] - scores[0]
    deltas[0] += effect
    firsts = split_dialogues(dialogues, chance)
    halves = np.stack(
        [deltas @ half.T / half.sum(axis=1) for half in (1.0 * firsts, 1.0 * ~firsts)]
    )
    apart = deltas - deltas.mean(axis=-1, keepdims=True)
    pulls = apart / (dialogues * (dialogues - 1)) ** 0.5
    return Target(np.moveaxis(halves, -1, 1), firsts, pulls)


@dataclass(frozen=True)
class Matrix:
    """Cells of one source and one target each, as arrays of shape (cells,): task numbers, deltas.

    ``counts``, shape (tasks,): numbers of training samples.
    """

    sources: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    deltas: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """Return the tasks of each cell, with the names used by the analysis."""
        return [f"task {n}" for n in self.sources], [f"task {n}" for n in self.targets]

    def logarithm(self, role: str) -> npt.NDArray[np.float64]:
        """Return the logarithm of the "source" or "target" count, or of their "ratio"."""
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
    """Sample every pair of tasks, once per algorithm.

    Spreads are in points: effects of a task as target, as source, and of the pair, which algorithms
    mostly share. Counts range from about 50 to 7,000 as in the paper's Table 1, and are independent
    of the effects.
    """
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
