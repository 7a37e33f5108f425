"""Bandits that choose the source of each update during training: FLAD.

Source: Albalak et al. 2023, "Improving Few-Shot Generalization by Exploring and Exploiting
Auxiliary Data". A turn is an update on one batch of the target and one batch of a source. Its
reward is the cosine similarity of the two batches' gradients. EXP3 samples the source; UCB1 takes
the source with the highest upper confidence bound.
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

REWARD_DECAY = 0.9
"""Decay of UCB1's exponential moving average of rewards. The paper gives no value."""


@dataclass(slots=True)
class Bandit:
    """The state of a bandit as plain values, which an interrupted run resumes from.

    Attributes:
        rule: exp3 or ucb1.
        target: name of the target task.
        sources: names of the source tasks.
        seed: seed of EXP3's sampling.
        exp3_steps: definition of EXP3's step count (``config.from_core``).
        turns: number of finished turns.
        pulls: number of turns per source.
        rewards: value per source: for EXP3 the sum of its rewards divided by their sampling
            probabilities, for UCB1 their moving average.
        explored: EXP3's exploration rate in the previous turn.
        drawn: probabilities of the sources in each turn since the last ``pop_weights``.
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
    def start(stage: Stage) -> Bandit | None:
        """Create the bandit of a stage, or return None if its sampler is not a bandit.

        Raises:
            ConfigError: the stage has no source, or does not have a single task as its target,
                on which it is selected.
        """
        rule = next((rule for rule in RULES if rule == stage.sampler), None)
        if rule is None:
            return None
        sources = tuple(task for task in stage.train_tasks if task not in stage.select_on)
        if len(stage.select_on) != 1 or len(sources) != len(stage.train_tasks) - 1 or not sources:
            raise ConfigError(
                f"{stage.label}: The sampler {rule} needs source tasks and a single target task "
                "on whose dev split the model is selected. The stage trains on the tasks "
                f"{', '.join(stage.train_tasks)} and selects on {', '.join(stage.select_on)}. "
                "Train on at least one source and on the target, and select on the target."
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
    def exploration_rate(self) -> float:
        """Exploration rate of EXP3 in this turn, per source."""
        arms = len(self.sources)
        tau = self.turns + 1 if self.exp3_steps == "taken" else 10 * self.turns + 1
        return min(1 / arms, math.sqrt(math.log(arms) / (arms * tau)))

    @property
    def probabilities(self) -> list[float]:
        """Probability of each source in this turn."""
        if self.rule == "exp3":
            return compute_exp3_probabilities(self.rewards, self.explored, self.exploration_rate)
        best = choose_ucb1_arm(self.rewards, self.pulls)
        return [float(index == best) for index in range(len(self.sources))]

    def choose_source(self) -> tuple[str, str]:
        """Choose the source of this turn, and return the target and the source."""
        shares = self.probabilities
        (source,) = Random(f"{self.seed} {self.turns}").choices(self.sources, shares)
        self.drawn.append(shares)
        return self.target, source

    def add_reward(self, source: str, reward: float) -> None:
        """Update the state with a reward, which ends the turn."""
        index = self.sources.index(source)
        if self.rule == "exp3":
            self.rewards[index] += reward / self.drawn[-1][index]
            self.explored = self.exploration_rate
        else:
            before = self.rewards[index]
            kept = REWARD_DECAY if self.pulls[index] else 0.0
            self.rewards[index] = kept * before + (1 - kept) * reward
        self.pulls[index] += 1
        self.turns += 1

    def pop_weights(self) -> dict[str, float]:
        """Return the mean probability of each source since the last call, and reset the means."""
        means = [fmean(values) for values in zip(*self.drawn, strict=True)]
        self.drawn.clear()
        return dict(zip(self.sources, means, strict=True))


def compute_exp3_probabilities(rewards: Sequence[float], before: float, now: float) -> list[float]:
    """Compute EXP3's probabilities, (1 − K now) exp(before R) / Σ exp(before R) + now.

    Args:
        rewards: R, each arm's sum of rewards divided by their probabilities; K is the number of
            arms.
        before: exploration rate of the previous turn.
        now: exploration rate of this turn.
    """
    highest = max(rewards)
    shares = [math.exp(before * (reward - highest)) for reward in rewards]
    return [(1 - len(rewards) * now) * share / sum(shares) + now for share in shares]


def choose_ucb1_arm(means: Sequence[float], pulls: Sequence[int]) -> int:
    """Choose the arm with the largest upper confidence bound, mean + sqrt(2 ln t / n).

    t is the total number of turns, n the number of turns of the arm. Before that each arm has one
    turn, in order.
    """
    if 0 in pulls:
        return pulls.index(0)
    turns = math.log(sum(pulls))
    bounds = [mean + math.sqrt(2 * turns / n) for mean, n in zip(means, pulls, strict=True)]
    return bounds.index(max(bounds))
