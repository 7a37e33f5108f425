"""Simulated heatmaps with controls of known gains, analysed like real ones.

Each cell has a transfer, its own ``shuffled_source``, and two controls shared with the other cells
of its target. The true effect of a cell's source is its *kind*; see ``KINDS``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulated_studies import Judge, Regime, draw_instances, trainings
from tasktransfer.designs.transfer.statistics.controls import ControlEffect, judge_cell
from tasktransfer.stats import bootstrap
from tasktransfer.stats.bootstrap import Estimate, compute_q_values


@dataclass(frozen=True)
class Kind:
    """Fractions of ``Regime.gain`` that the transfer and each control bring."""

    name: str
    transfer: float
    of_target: tuple[float, float] = (0.0, 0.0)
    shuffled: float = 0.0

    @property
    def beats(self) -> bool:
        """Return whether the transfer's true gain exceeds the baseline and every control."""
        return self.transfer > max(0.0, self.shuffled, *self.of_target)


KINDS = (
    Kind("no effect", 0.0),
    Kind("no effect, controls harm", 0.0, (-1.0, -1.0), -1.0),
    Kind("a control of the target gives it all", 1.0, (1.0, 0.0), 0.0),
    Kind("the shuffled source gives it all", 1.0, (0.0, 0.0), 1.0),
    Kind("all controls give it all", 1.0, (1.0, 1.0), 1.0),
    Kind("a control gives half", 1.0, (0.5, 0.0), 0.0),
    Kind("the source alone gives it", 1.0),
)


def verdicts(
    regime: Regime, kinds: Sequence[Kind], sources: int, chance: np.random.Generator
) -> list[tuple[Kind, str]]:
    """Return the verdict on each cell of a heatmap with one target per kind."""
    judge = Judge(regime)
    names: list[Kind] = []
    over: list[list[Estimate]] = [[], [], [], []]
    for kind in kinds:
        test = draw_instances(regime, chance)

        def trained(share: float) -> bootstrap.Trainings:
            # Each training has its own effects on instances.
            own = replace(test, reaction=test.spread(chance))  # noqa: B023
            gains = replace(regime, gain=share * regime.gain)
            return judge.trained(test, trainings(gains, own, True, chance))  # noqa: B023

        baseline = judge.trained(test, trainings(regime, test, False, chance))
        of_target = [trained(share) for share in kind.of_target]
        for _ in range(sources):
            transfer, shuffled = trained(kind.transfer), trained(kind.shuffled)
            names.append(kind)
            for place, other in enumerate((baseline, *of_target, shuffled)):
                found = bootstrap.estimate_delta(transfer, other, judge.units(test))
                over[place].append(found)
    sure = [bootstrap.compute_confidences(estimates) for estimates in over]
    q = [compute_q_values([one.p for one in some]) for some in sure]
    return [
        (
            kind,
            judge_cell(
                over[0][cell].delta,
                float(q[0][cell]),
                [
                    ControlEffect(over[c][cell].delta, sure[c][cell].high, float(q[c][cell]))
                    for c in (1, 2, 3)
                ],
            ),
        )
        for cell, kind in enumerate(names)
    ]
