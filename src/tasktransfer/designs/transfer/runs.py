"""The runs of a transfer study: what they are about, and which of them are no controls.

A run is one of ``core.runs``: its method is an algorithm or control, and ``about`` has ``dataset``,
``sources`` (a tuple, empty of a baseline) and ``target``. Its last stage is scored on the target's
test set.
"""

from __future__ import annotations

from tasktransfer.core.nodes import Outcome, Stage, Start
from tasktransfer.core.plan import Plan
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.selectors.nodes import is_selector

BASELINE = "baseline"
PROMPTED = "prompted"
"""The method of runs in which a model as released is asked and nothing is trained; ``about`` has
``shots`` too."""

RunName = tuple[str, str, str, tuple[str, ...], str, int]
"""dataset, model, algorithm or control, sources, target, seed"""


def run_of(name: RunName, stage: Stage) -> Run:
    """The run that a stage's model is judged for."""
    dataset, model, method, sources, target, seed = name
    about = {"dataset": dataset, "sources": sources, "target": target}
    variant = "several sources" if len(sources) > 1 else ""
    return Run(method, model, seed, about, Outcome((Start(stage),)), variant=variant)


def name_of(run: Run) -> RunName:
    """What names a run in messages and tables."""
    about = run.about
    return (
        *(about["dataset"], run.model, run.method),
        *(about["sources"], about["target"], run.seed),
    )


def is_control(run: Run) -> bool:
    """Whether algorithms are held against it, and it is none itself."""
    return run.method in CONTROLS


def is_prompted(run: Run) -> bool:
    """Whether a model as released is asked in it, and nothing trained."""
    return run.method == PROMPTED


def is_transfer(run: Run) -> bool:
    """Whether it is a baseline's run or an algorithm's."""
    return not (is_control(run) or is_selector(run) or is_prompted(run))


def transfer_runs(plan: Plan) -> tuple[Run, ...]:
    """The runs of a transfer study's plan: no controls, no selectors, none of models that are only
    asked."""
    return tuple(run for run in plan.runs if is_transfer(run))
