"""Frames of the transfer study, and the functions that compute them.

docs/columns.md lists their columns (``columns``), and docs/analysis.md defines each number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.core.nodes import Fit
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.runs import BASELINE, is_reference
from tasktransfer.results.frames import FLAG, NUMBER, TEXT, TEXTS, WHOLE, WHOLES, Columns, Frame
from tasktransfer.results.study import Study
from tasktransfer.selection.declared import REGRET, VALUES
from tasktransfer.tasks.card import SINGLE_LABEL

if TYPE_CHECKING:
    from tasktransfer.designs.transfer import collect
    from tasktransfer.designs.transfer.statistics import (
        answers,
        cells,
        choices,
        controls,
        deltas,
        matrices,
        methods,
        overlap,
        summary,
        without_transfer,
    )
else:
    package = LazyPackage("tasktransfer.designs.transfer.statistics")
    answers, cells, controls = package.answers, package.cells, package.controls
    deltas, matrices, methods = package.deltas, package.matrices, package.methods
    overlap, summary, choices = package.overlap, package.summary, package.choices
    without_transfer = package.without_transfer
    collect = LazyPackage("tasktransfer.designs.transfer").collect

ABOUT = ("dataset", "sources", "target", "shots")
"""Keys of ``Run.about`` that identify a run."""

# --- columns of tables about methods without transfer ---

SCORED, WRITTEN = "log-likelihood", "written"
"""Ways of answering of a prompted model: log-likelihoods of the choices, or generated text."""
MEAN = ""
"""Value of ``target`` in the row of a dataset's mean."""

PROMPTED: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model, by its name in the study"),
    ("shots", WHOLE, "few-shot examples in each prompt"),
    ("target", TEXT, "evaluated task; empty in the row with the mean over the dataset's tasks"),
    ("score", NUMBER, "score on the test split, mean over prompt wordings and seeds, 0-100"),
    ("low", NUMBER, "lower end of its 95 % interval over dialogues and seeds"),
    ("high", NUMBER, "upper end"),
    ("wordings", WHOLE, "number of prompt wordings"),
    (
        "spread",
        NUMBER,
        "best minus worst wording, points; averaged over tasks in the row of a mean",
    ),
    ("n_seeds", WHOLE, "seeds for sampling shots; 1 without shots"),
    ("n_targets", WHOLE, "number of tasks"),
    ("n_expected", WHOLE, "planned tasks"),
    ("instances", WHOLE, "test instances per wording and seed"),
    ("dialogues", WHOLE, "dialogues of these instances"),
    (
        "answers",
        TEXT,
        f"{SCORED}: choices were scored; {WRITTEN}: answers were generated, because the task has "
        "spans or the endpoint returns no log-likelihoods; a mean may have both",
    ),
    (
        "unreadable",
        NUMBER,
        "answers that match no choice or cannot be parsed, %; they count as wrong",
    ),
    ("tokens", WHOLE, "prompt and generated tokens over all wordings and seeds"),
    (
        "seen",
        TEXT,
        "whether the model saw the test dialogues in its training, according to the config",
    ),
    ("n_seeds_planned", WHOLE, "planned seeds for sampling shots; 1 without shots"),
)
"""Columns of the additional table of ``statistics`` for prompted models."""

REFERENCES: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model of the baselines, by its name in the study"),
    ("target", TEXT, "task that is predicted"),
    (
        "reference",
        TEXT,
        "simple predictor, by its name in the config",
    ),
    ("reference_score", NUMBER, "score of the reference on the test split, 0-100"),
    ("is_best", FLAG, "whether its score is the highest of the target's references"),
    ("n_seeds", WHOLE, "baselines with predictions, one per seed"),
    ("score", NUMBER, "score of the baselines, mean over seeds, 0-100"),
    ("delta", NUMBER, "score minus reference_score on the same instances, points"),
    ("low", NUMBER, "lower end of the delta's 95 % interval over dialogues and seeds"),
    ("high", NUMBER, "upper end"),
    ("p", NUMBER, "two-sided p of a delta of 0"),
    ("q", NUMBER, "p adjusted for all rows of the dataset; null with one seed"),
    (
        "state",
        TEXT,
        "learned: above all references; not better: at most the best of them; collapsed: at least "
        "half of the baselines give one answer to 99 % of the test split",
    ),
    ("seeds", WHOLES, "seeds of the baselines"),
    ("states", TEXTS, "state of the baseline with each seed"),
)
"""Columns of the additional table of ``statistics`` for studies with references."""

_LABELLED: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model, by its name in the study; no model: the method reads none"),
    ("target", TEXT, "task with one label per input"),
    ("method", TEXT, "baseline, or a reference by its name in the config"),
)
LABELS: Columns = (
    *_LABELLED,
    ("label", TEXT, "label"),
    ("n_seeds", WHOLE, "baselines with predictions, one per seed; 1: a reference"),
    ("support", WHOLE, "test instances with the label"),
    ("predicted", NUMBER, "test instances with this predicted label, mean over seeds"),
    *(
        column
        for measure, reason in (
            ("precision", "no seed predicts the label"),
            ("recall", "no instance has the label"),
            ("f1", "unavailable"),
        )
        for column in (
            (
                measure,
                NUMBER,
                f"{measure} on the test split, mean over seeds, 0-100; NaN if {reason}",
            ),
            (f"{measure}_low", NUMBER, "lower end of its 95 % interval over dialogues and seeds"),
            (f"{measure}_high", NUMBER, "upper end; NaN if unavailable"),
        )
    ),
)
CONFUSIONS: Columns = (
    *_LABELLED,
    ("gold", TEXT, "gold label"),
    ("predicted", TEXT, "predicted label; empty if the answer is not a label"),
    ("count", WHOLE, "test instances with both, summed over seeds"),
    ("n_seeds", WHOLE, "baselines with predictions, one per seed; 1: a reference"),
)
"""Columns of the frames about single labels. Pairs of labels that never occur have no row."""
ERRORS: Columns = (
    *_LABELLED,
    ("instance", TEXT, "test instance: file and line of the user's data"),
    ("gold", TEXT, "gold label"),
    ("predicted", TEXT, "most frequent label over seeds; empty if the answer is not a label"),
    ("wrong", WHOLE, "seeds with a wrong prediction"),
    ("n_seeds", WHOLE, "baselines with predictions, one per seed; 1: a reference"),
)
"""Columns of the frame ``errors``: all methods on each instance that any of them gets wrong."""

LEARNING_CURVE: Columns = (
    *_LABELLED,
    ("fraction", NUMBER, "fraction of the training dialogues; 2: forecast for twice as many"),
    ("dialogues", WHOLE, "training dialogues"),
    ("instances", WHOLE, "training instances, mean over samples"),
    ("n_seeds", WHOLE, "samples of dialogues, each within the next larger one; 0: forecast"),
    ("score", NUMBER, "score on the test split, mean over samples, 0-100"),
    ("low", NUMBER, "lower end of its 95 % interval over samples and test dialogues"),
    ("high", NUMBER, "upper end"),
    ("gain", NUMBER, "score minus the score of the previous fraction (2: of 1), points"),
    ("gain_low", NUMBER, "lower end of its 95 % interval, paired by sample and test dialogue"),
    ("gain_high", NUMBER, "upper end; for 2, the interval covers several rules (`learning-curve`)"),
)
"""Columns of the table that `learning-curve` computes from the dialogues."""

REFERENCE: Columns = (
    ("dataset", TEXT, "dataset"),
    ("target", TEXT, "task that is scored"),
    ("reference", TEXT, "most_frequent, by_frequency or tfidf_logistic"),
    (
        "score",
        NUMBER,
        "score on the task's test split, 0-100; for by_frequency the mean of 20 samples",
    ),
    ("deviation", NUMBER, "standard deviation of the score over samples; 0: no sampling"),
    ("answer", TEXT, "the constant answer of most_frequent; empty for other references"),
    ("train_size", WHOLE, "number of training instances"),
    ("test_size", WHOLE, "test instances"),
    ("data_revision", TEXT, "content digest of the data"),
    ("few_sample", FLAG, "few-sample split"),
    ("synthetic", FLAG, "tiny world, not real dialogues"),
)
"""Columns of the table that `data reference` computes from the dialogues."""


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
        "the simplest method that is not significantly worse than any other method (q > 0.05); "
        "transfers to a target whose baseline has collapsed are ignored",
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
    Frame("cells", columns.CELLS, cells.make_cells, (RUNS, DELTAS, "references")),
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
    Frame("top1", columns.TOP1, choices.make_top1, (RUNS, DELTAS)),
    Frame("collapsed", columns.COLLAPSED, answers.make_collapsed, (RUNS, "control_runs")),
    Frame("race", columns.RACE, deltas.make_race, (DELTAS,), planned=_has_race),
    Frame(
        "selectors",
        VALUES,
        choices.make_selectors,
        (RUNS, DELTAS, "sizes"),
        planned=_has_selectors,
    ),
    Frame(
        "regret",
        REGRET,
        choices.make_regret,
        (RUNS, DELTAS, "selectors", "references"),
        planned=_has_selectors,
    ),
)
