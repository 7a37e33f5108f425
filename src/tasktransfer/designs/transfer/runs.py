"""A run of the transfer study, and the same as the core's plans have it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tasktransfer.core.nodes import Outcome, Stage, Start
from tasktransfer.core.plan import Plan
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import Family
from tasktransfer.designs.transfer.controls import CONTROLS


@dataclass(frozen=True)
class TransferRun:
    """A model, algorithm or control, sources, target and seed: the unit that gets a score.

    ``stages`` are its trainings in order; the last one is scored on the target's test set.
    """

    dataset: str
    model: str
    family: Family
    algorithm: str
    sources: tuple[str, ...]
    target: str
    seed: int
    stages: tuple[Stage, ...] = field(compare=False)

    @property
    def identity(self) -> dict[str, Any]:
        """The run as plan files and tables name it."""
        return {
            "dataset": self.dataset,
            "model": self.model,
            "family": self.family,
            "algorithm": self.algorithm,
            "sources": list(self.sources),
            "target": self.target,
            "seed": self.seed,
        }

    @property
    def is_control(self) -> bool:
        """Whether algorithms are held against it, and it is none itself."""
        return self.algorithm in CONTROLS

    @property
    def scored(self) -> Stage:
        """The stage whose record holds this run's score."""
        return self.stages[-1]

    def in_plan(self) -> Run:
        """The run as any plan has it."""
        about = {"dataset": self.dataset, "sources": self.sources, "target": self.target}
        outcome = Outcome((Start(self.scored),))
        variant = "several sources" if len(self.sources) > 1 else ""
        return Run(self.algorithm, self.model, self.seed, about, outcome, variant=variant)


def transfer_runs(plan: Plan) -> tuple[TransferRun, ...]:
    """The runs of a transfer study's plan, without its controls."""
    return tuple(run for run in all_runs(plan) if not run.is_control)


def all_runs(plan: Plan) -> tuple[TransferRun, ...]:
    """The runs of a transfer study's plan and those of its controls."""
    return tuple(
        TransferRun(
            run.about["dataset"],
            run.model,
            run.scored.model.family,
            run.method,
            run.about["sources"],
            run.about["target"],
            run.seed,
            run.stages,
        )
        for run in plan.runs
    )
