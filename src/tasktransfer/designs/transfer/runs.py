"""Runs of a transfer study, and the names of algorithms and tasks in its tables and figures.

A run (``core.runs``) combines a method (an algorithm, a control, a selector, a prompted model, a
reference, or a baseline on a sample) with a model and a seed. ``about`` has ``dataset``,
``sources`` (an empty tuple for a baseline) and ``target``. The run's last stage is evaluated on the
target's test set. The Snakefile imports this module, so it must not import pandas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tasktransfer.core.nodes import Outcome, Stage, Start
from tasktransfer.core.nodes.data import FRACTIONS
from tasktransfer.core.plan import Plan
from tasktransfer.core.runs import Run
from tasktransfer.datasets import ALL_TASKS
from tasktransfer.designs.transfer.algorithms import CONTROLS
from tasktransfer.selection.nodes import is_selection_run

if TYPE_CHECKING:
    from tasktransfer.results.store import Metadata

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

_ALGORITHMS = {
    "baseline": "Baseline",
    "pretrain_finetune": "Pre-train → fine-tune",
    "multitask": "Multitask",
    "multitask_finetune": "Multitask → fine-tune",
}
_WORDS = {"nli": "NLI", "emory": "Emory"}
"""Words of task names that are spelled with capitals."""


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


# --- names in tables and figures ---


def get_algorithm_label(algorithm: str) -> str:
    """Return the readable name of an algorithm, or the name itself if it has none."""
    return _ALGORITHMS.get(algorithm, algorithm)


def get_short_names(metadata: Metadata) -> dict[str, str]:
    """Map each task to its short name, from the study or from the task's card."""
    return {task.name: task.short for task in ALL_TASKS} | dict(metadata.shorts)


def format_task_name(task: str) -> str:
    """Return a task's name as words: ``dialogue_nli`` → ``dialogue NLI``."""
    return " ".join(_WORDS.get(word, word) for word in task.split("_"))


def fit_short_names(tasks: Iterable[str], shorts: Mapping[str, str]) -> dict[str, str]:
    """Map each task to a name that is short enough for an axis.

    It is the short name in ``shorts``, or otherwise the initials of its words. Tasks that would
    share such a name keep their whole names.
    """
    listed = list(tasks)
    names = {task: shorts.get(task) or _abbreviate(task) for task in listed}
    used = list(names.values())
    return {task: name if used.count(name) == 1 else task for task, name in names.items()}


def explain_short_names(names: Mapping[str, str]) -> list[str]:
    """Return a list with one note that explains a figure's abbreviations.

    The list is empty if the figure has no abbreviations.

    Args:
        names: names in the figure, by task.
    """
    known = sorted((name, task) for task, name in names.items() if name != task)
    if not known:
        return []
    return ["; ".join(f"{name}: {format_task_name(task)}" for name, task in known) + "."]


def _abbreviate(task: str) -> str:
    """Return the initials of a task's words, or the task's name if it is a single word."""
    words = [word for word in task.split("_") if word]
    return "".join(word[0].upper() for word in words) if len(words) > 1 else task
