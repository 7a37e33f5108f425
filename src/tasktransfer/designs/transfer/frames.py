"""Frames of the transfer study, and the functions that compute them.

docs/columns.md lists their columns (``collect.columns``), and docs/analysis.md defines each number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.core.nodes import Fit
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.method_columns import (
    CONFUSIONS,
    ERRORS,
    LABELS,
    LEARNING_CURVE,
    PROMPTED,
    REFERENCE,
    REFERENCES,
)
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.runs import BASELINE, is_reference
from tasktransfer.results.frames import FLAG, NUMBER, TEXT, WHOLE, Columns, Frame
from tasktransfer.results.study import Study
from tasktransfer.selection.columns import REGRET, VALUES
from tasktransfer.tasks.card import SINGLE_LABEL

if TYPE_CHECKING:
    from tasktransfer.designs.transfer import selectors
    from tasktransfer.designs.transfer.collect import collect
    from tasktransfer.designs.transfer.statistics import (
        answers,
        cells,
        controls,
        deltas,
        matrices,
        methods,
        overlap,
        summary,
        top1,
        without_transfer,
    )
else:
    package = LazyPackage("tasktransfer.designs.transfer.statistics")
    answers, cells, controls = package.answers, package.cells, package.controls
    deltas, matrices, methods = package.deltas, package.matrices, package.methods
    overlap, summary, top1 = package.overlap, package.summary, package.top1
    without_transfer = package.without_transfer
    collect = LazyPackage("tasktransfer.designs.transfer.collect").collect
    selectors = LazyPackage("tasktransfer.designs.transfer").selectors

ABOUT = ("dataset", "sources", "target", "shots")
"""Keys of ``Run.about`` that identify a run."""


METHODS: Columns = (
    ("dataset", TEXT, "dataset"),
    ("target", TEXT, "task that is predicted"),
    ("method", TEXT, "method, by its name in `core.references`"),
    ("model", TEXT, "model, by its name in the study; null if the method uses no model"),
    (
        "variant",
        TEXT,
        "transfer: algorithm and source, as in `pretrain_finetune:CRE`; prompted: number of shots; "
        "null for other methods",
    ),
    ("n_seeds", WHOLE, "seeds; 1 if nothing is sampled"),
    ("score", NUMBER, "score on the test split, mean over seeds, 0-100"),
    ("low", NUMBER, "lower end of its 95 % interval over dialogues and seeds"),
    ("high", NUMBER, "upper end"),
    ("is_best", FLAG, "whether its score is the highest of the target"),
    (
        "best_q",
        NUMBER,
        "q of its difference from the best method, adjusted for all pairs of the target's "
        "methods; null if not tested, because one has a single seed or other test instances",
    ),
    (
        "recommended",
        FLAG,
        "the simplest method that is not significantly worse than any other method (q > 0.05)",
    ),
    ("delta", NUMBER, "score minus the recommended method's on the same instances, points"),
    ("delta_low", NUMBER, "lower end of the delta's 95 % interval over dialogues and seeds"),
    ("delta_high", NUMBER, "upper end"),
    ("q", NUMBER, "p of a delta of 0, adjusted for all pairs of the target's methods"),
    ("train_size", WHOLE, "training instances of the target; 0 for a prompted model"),
    (
        "seconds",
        NUMBER,
        "wall time to train with one seed, with dev evaluation and the training on the source; for "
        "a reference its whole job, divided among its tasks by instances; 0 for a prompted model",
    ),
    (
        "milliseconds",
        NUMBER,
        "wall time per test instance of the test phase or of a prompted evaluation; null if "
        "the records do not contain it",
    ),
    ("parameters", WHOLE, "parameters of the model with its heads; null if unknown"),
    ("trained_parameters", WHOLE, "parameters that are trained; null if unknown"),
)
"""Columns of the frame for targets with references or prompted models."""


def _has_prompted_models(study: Study) -> bool:
    return bool(get_transfer_config(study).prompted)


def has_references(study: Study) -> bool:
    """Return whether the plan contains references (simple predictors)."""
    return any(map(is_reference, study.plan.runs))


def compares_methods(study: Study) -> bool:
    """Return whether the study compares baselines with references or prompted models."""
    return has_references(study) or _has_prompted_models(study)


def has_single_label_tasks(study: Study) -> bool:
    """Return whether a baseline or reference predicts a task with one label per instance."""
    return any(
        _is_single_label(run.about["dataset"], task)
        for run in study.plan.runs
        if run.method == BASELINE or is_reference(run)
        for task in (run.outcome.tasks if isinstance(run.outcome, Fit) else [run.about["target"]])
    )


def _is_single_label(dataset: str, task: str) -> bool:
    known = DATASETS[dataset].tasks
    return task in known and known[task].kind in SINGLE_LABEL


def list_own_tasks(study: Study) -> Iterator[tuple[str, str]]:
    """Yield (dataset, task) for the user's own tasks with one label per instance."""
    baselines = (run.about for run in study.plan.runs if run.method == BASELINE)
    for dataset, task in dict.fromkeys((about["dataset"], about["target"]) for about in baselines):
        if DATASETS[dataset].has_own_files and get_task(dataset, task).kind in SINGLE_LABEL:
            yield dataset, task


def has_own_single_label_tasks(study: Study) -> bool:
    """Return whether the study has a task of the user's own with one label per instance."""
    return any(True for _ in list_own_tasks(study))


def _has_controls(study: Study) -> bool:
    return bool(get_transfer_config(study).planned_controls)


def _has_selectors(study: Study) -> bool:
    return bool(get_transfer_config(study).selectors)


def _has_race(study: Study) -> bool:
    return get_transfer_config(study).racing is not None


def _has_bandit(study: Study) -> bool:
    return get_transfer_config(study).multi_source.uses_bandit


CURVES: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model, by its name in the study"),
    ("algorithm", TEXT, "baseline, or the transfer algorithm"),
    ("source", TEXT, "source tasks joined by +; empty for a baseline"),
    ("target", TEXT, "target task"),
    ("seed", WHOLE, "random seed"),
    ("round", WHOLE, "round of the last stage, from 1; 0: the untrained model"),
    ("loss", NUMBER, "mean training loss of the target in the round; NaN if not trained on it"),
    ("dev_score", NUMBER, "score on the dev set that selects the best round, 0-100"),
)

RUNS, DELTAS = "transfer_runs", "deltas"
FRAMES = (
    Frame(RUNS, columns.RUNS, collect.make_transfer_runs),
    Frame("control_runs", columns.RUNS, collect.make_control_runs),
    Frame("prompted", PROMPTED, without_transfer.make_prompted, planned=_has_prompted_models),
    Frame("references", REFERENCES, without_transfer.make_references, planned=has_references),
    Frame("methods", METHODS, methods.make_methods, planned=compares_methods, version=2),
    Frame("labels", LABELS, answers.make_labels, planned=has_single_label_tasks),
    Frame("confusions", CONFUSIONS, answers.make_confusions, planned=has_single_label_tasks),
    Frame("errors", ERRORS, answers.make_errors, planned=has_own_single_label_tasks),
    Frame("mixing", columns.MIXING, collect.make_mixing, planned=_has_bandit),
    Frame("training_curves", CURVES, collect.make_training_curves),
    # computed from the dialogues by `data stats` and `data reference`
    Frame("lengths", (), None, from_dialogues=True),
    Frame("overlap_data", (), None, from_dialogues=True),
    Frame("reference", REFERENCE, None, from_dialogues=True),
    # computed from the dialogues by `learning-curve`
    Frame(
        "learning_curve", LEARNING_CURVE, None, from_dialogues=True, planned=has_single_label_tasks
    ),
    # computed from other frames
    Frame(DELTAS, columns.DELTAS, collect.make_deltas, (RUNS,)),
    Frame("sizes", columns.SIZES, collect.make_sizes, (RUNS,)),
    Frame("missing_runs", columns.MISSING, collect.make_missing_runs, ("missing", RUNS, DELTAS)),
    Frame("cells", columns.CELLS, cells.make_cells, (RUNS, DELTAS)),
    Frame("summary", columns.SUMMARY, summary.make_summary, (RUNS, DELTAS)),
    Frame("variance", columns.VARIANCE, matrices.make_variance, (DELTAS,)),
    Frame("asymmetry", columns.ASYMMETRY, matrices.make_asymmetry, ("cells", DELTAS)),
    Frame("agreement", columns.AGREEMENT, matrices.make_agreement, (DELTAS,)),
    Frame("overlap", columns.OVERLAP, overlap.make_overlap, (RUNS, "overlap_data")),
    Frame(
        "overlap_effect", columns.OVERLAP_EFFECT, overlap.make_overlap_effect, ("overlap", DELTAS)
    ),
    Frame(
        "control_cells",
        columns.CONTROL_CELLS,
        controls.make_control_cells,
        (RUNS, "control_runs"),
    ),
    Frame("controls", columns.CONTROLS, controls.make_controls, ("control_cells", "cells")),
    Frame(
        "control_summary",
        columns.CONTROL_SUMMARY,
        controls.make_control_summary,
        (RUNS, "control_runs"),
        planned=_has_controls,
    ),
    Frame("top1", columns.TOP1, top1.make_top1, (RUNS, DELTAS)),
    Frame("collapsed", columns.COLLAPSED, answers.make_collapsed, (RUNS, "control_runs")),
    Frame("race", columns.RACE, deltas.make_race, (DELTAS,), planned=_has_race),
    Frame(
        "selectors",
        VALUES,
        selectors.make_selectors,
        (RUNS, DELTAS, "sizes"),
        planned=_has_selectors,
    ),
    Frame(
        "regret",
        REGRET,
        selectors.make_regret,
        (RUNS, DELTAS, "selectors", "references"),
        planned=_has_selectors,
    ),
)
