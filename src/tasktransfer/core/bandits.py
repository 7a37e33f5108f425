"""Which source an update trains on beside its target, learnt while training: FLAD (Albalak et al.
2023, "Improving Few-Shot Generalization by Exploring and Exploiting Auxiliary Data"). Pure.

A turn is an update on a batch of the target and one of a source; its reward is the cosine of the
two batches' gradients. EXP3 draws the source, UCB1 takes the one that may be the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean
from typing import Literal

from tasktransfer.core.nodes import Stage
from tasktransfer.errors import ConfigError

Rule = Literal["exp3", "ucb1"]
RULES: tuple[Rule, ...] = ("exp3", "ucb1")

KEPT = 0.9
"""Of UCB1's mean reward, what stays of it when a new reward comes: an exponential moving average.
The paper leaves it to be chosen."""


@dataclass(slots=True)
class Bandit:
    """What has been learnt of the sources so far, as plain values: a training that is interrupted
    goes on with it.

    ``rewards``: of each source, for EXP3 the sum of rewards over the probabilities that they were
    drawn with, for UCB1 their moving average. ``explored``: EXP3's share of exploration in the turn
    before. ``drawn``: of each turn since ``take_weights``, the sources' probabilities.
    """

    rule: Rule
    target: str
    sources: tuple[str, ...]
    seed: int
    exp3_steps: Literal["taken", "released"] = "taken"
    turns: int = 0
    pulls: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    explored: float = 1.0
    drawn: list[list[float]] = field(default_factory=list)

    @staticmethod
    def of(stage: Stage) -> Bandit | None:
        """The untrained one of a stage; None: its sampler learns nothing.

        Raises:
            ConfigError: it has no target, the one task that selects its round, or no source.
        """
        rule = next((rule for rule in RULES if rule == stage.sampler), None)
        if rule is None:
            return None
        sources = tuple(task for task in stage.train_tasks if task not in stage.select_on)
        if len(stage.select_on) != 1 or len(sources) != len(stage.train_tasks) - 1 or not sources:
            raise ConfigError(
                f"{stage.label}: sampler {rule} mixes sources into one target, whose dev split "
                f"selects the round; it trains on {', '.join(stage.train_tasks)} and is selected "
                f"on {', '.join(stage.select_on)}"
            )
        steps = stage.training.fidelity.exp3_steps
        zeros = [0.0] * len(sources)
        return Bandit(
            *(rule, stage.select_on[0], sources, stage.seed, steps),
            pulls=[0] * len(sources),
            rewards=zeros,
            explored=1 / len(sources),
        )

    @property
    def exploration(self) -> float:
        """EXP3's share of exploration in this turn, for each source."""
        arms = len(self.sources)
        tau = self.turns + 1 if self.exp3_steps == "taken" else 10 * self.turns + 1
        return min(1 / arms, math.sqrt(math.log(arms) / (arms * tau)))

    @property
    def probabilities(self) -> list[float]:
        """Of each source, to be taken in this turn."""
        if self.rule == "exp3":
            return exp3(self.rewards, self.explored, self.exploration)
        best = ucb1(self.rewards, self.pulls)
        return [float(index == best) for index in range(len(self.sources))]

    def choose(self) -> tuple[str, str]:
        """The target, and the source of this turn."""
        shares = self.probabilities
        (source,) = Random(f"{self.seed} {self.turns}").choices(self.sources, shares)
        self.drawn.append(shares)
        return self.target, source

    def learn(self, source: str, reward: float) -> None:
        """End a turn with its reward."""
        index = self.sources.index(source)
        if self.rule == "exp3":
            self.rewards[index] += reward / self.drawn[-1][index]
            self.explored = self.exploration
        else:
            before = self.rewards[index]
            kept = KEPT if self.pulls[index] else 0.0
            self.rewards[index] = kept * before + (1 - kept) * reward
        self.pulls[index] += 1
        self.turns += 1

    def take_weights(self) -> dict[str, float]:
        """Source → its mean probability over the turns since this was asked last."""
        means = [fmean(of_source) for of_source in zip(*self.drawn, strict=True)]
        self.drawn.clear()
        return dict(zip(self.sources, means, strict=True))


def exp3(rewards: Sequence[float], before: float, now: float) -> list[float]:
    """Probabilities of some arms: (1 − K now) exp(before R) / Σ exp(before R) + now.

    Args:
        rewards: R, each arm's sum of rewards over their probabilities.
        before, now: shares of exploration in the turn before and in this one.
    """
    highest = max(rewards)
    shares = [math.exp(before * (reward - highest)) for reward in rewards]
    return [(1 - len(rewards) * now) * share / sum(shares) + now for share in shares]


def ucb1(means: Sequence[float], pulls: Sequence[int]) -> int:
    """The arm with the largest mean + sqrt(2 ln t / n), after t turns, of which it has had n; each
    of them once before that, in their order."""
    if 0 in pulls:
        return pulls.index(0)
    turns = math.log(sum(pulls))
    bounds = [mean + math.sqrt(2 * turns / n) for mean, n in zip(means, pulls, strict=True)]
    return bounds.index(max(bounds))
