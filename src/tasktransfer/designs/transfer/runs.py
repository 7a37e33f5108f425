"""Runs of a transfer study.

A run (``core.runs``) combines a method (an algorithm, a control, a selector, a prompted model, a
reference, or a baseline on a sample) with a model and a seed. ``about`` has ``dataset``,
``sources`` (an empty tuple for a baseline) and ``target``. The run's last stage is evaluated on the
target's test set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasktransfer.core.nodes import Outcome, Stage, Start
from tasktransfer.core.nodes.data import FRACTIONS
from tasktransfer.core.plan import Plan
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.algorithms import CONTROLS
from tasktransfer.selection.nodes import is_selection_run

BASELINE = "baseline"
PROMPTED = "prompted"
"""Method of runs that prompt a released model instead of training one. ``about`` also has
``shots``."""

REFERENCE, NO_MODEL = "reference", "no model"
"""Method of runs of references, and their model if they read no embeddings. ``about`` also has
``reference``; ``target`` is empty, because one fit predicts all tasks of a dataset."""

SAMPLES: Mapping[str, float] = {
    f"baseline_{100 * fraction:.0f}_percent": fraction for fraction in FRACTIONS if fraction < 1
}
"""Method of runs of baselines on a sample of the training dialogues → the sample's fraction."""

CHECK = "reference on dev"
"""Method of runs of references that predict the dev split, for ``check_baselines``."""

RunName = tuple[str, str, str, tuple[str, ...], str, int]
"""Dataset, model, algorithm or control, sources, target, seed."""


def make_run(name: RunName, stage: Stage) -> Run:
    """Create a run that evaluates a stage's model."""
    dataset, model, method, sources, target, seed = name
    about = {"dataset": dataset, "sources": sources, "target": target}
    variant = "several sources" if len(sources) > 1 else ""
    return Run(method, model, seed, about, Outcome((Start(stage),)), variant=variant)


def get_run_name(run: Run) -> RunName:
    """Return the tuple that identifies a run in messages and tables."""
    about = run.about
    return (
        *(about["dataset"], run.model, run.method),
        *(about["sources"], about["target"], run.seed),
    )


def is_control(run: Run) -> bool:
    """Return whether the run is a control."""
    return run.method in CONTROLS


def is_prompted(run: Run) -> bool:
    """Return whether the run prompts a released model without training."""
    return run.method == PROMPTED


def is_reference(run: Run) -> bool:
    """Return whether the run is a reference, a simple predictor for comparison."""
    return run.method == REFERENCE


def is_check(run: Run) -> bool:
    """Return whether the run is a reference that is evaluated on the dev split."""
    return run.method == CHECK


def is_sample(run: Run) -> bool:
    """Return whether the run is a baseline on a sample of the training dialogues."""
    return run.method in SAMPLES


def is_transfer(run: Run) -> bool:
    """Return whether the run is a baseline or a transfer run."""
    others = (is_control, is_selection_run, is_prompted, is_reference, is_check, is_sample)
    return not any(is_other(run) for is_other in others)


def select_transfer_runs(plan: Plan) -> tuple[Run, ...]:
    """Return the plan's baselines and transfer runs.

    Controls, selectors, prompted models, references and samples are left out.
    """
    return tuple(run for run in plan.runs if is_transfer(run))


def get_cell_names(run: Run) -> dict[str, str] | None:
    """Return the names that identify a run's cell, or None for a run without a cell."""
    if not is_transfer(run) or run.method == BASELINE:
        return None
    about = run.about
    return {
        "dataset": about["dataset"],
        "model": run.model,
        "algorithm": run.method,
        "source": "+".join(about["sources"]),
        "target": about["target"],
    }


def is_baseline(cell: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run is the baseline of a cell, regardless of the seed."""
    names = (run.method, run.model, run.about.get("dataset"), run.about.get("target"))
    return names == (BASELINE, cell["model"], cell["dataset"], cell["target"])
