"""Columns of every table: name, type and meaning, which are also in the Parquet files' footers.

Scores are 0-100; a delta is a difference of two scores; an improvement is a percentage of the
baseline's score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from tasktransfer.designs.transfer import outputs
from tasktransfer.results.store import Column, Columns, build_frame

KEYS = ("dataset", "model", "algorithm", "source", "target", "seed")
"""Columns that identify a run in every table. ``source`` joins the sources by ``+``; empty for a
baseline."""

_RUN: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("model", pa.string(), "model, by its name in the study"),
    ("algorithm", pa.string(), "baseline, or the transfer algorithm"),
    ("sources", pa.list_(pa.string()), "source tasks, sorted; empty for a baseline"),
    ("source", pa.string(), "source tasks joined by +; empty for a baseline"),
    ("n_sources", pa.int64(), "number of source tasks"),
    ("target", pa.string(), "target task"),
    ("seed", pa.int64(), "random seed"),
)
_KEYS: Columns = tuple(column for column in _RUN if column[0] in KEYS)
_DIGEST: Column = ("digest", pa.string(), "digest of the evaluated stage")

RUNS: Columns = (
    *_RUN,
    ("family", pa.string(), "encoder, decoder or encoder_decoder"),
    ("score", pa.float64(), "score on the target's test split, 0-100"),
    ("dev_score", pa.float64(), "selection score of the best epoch, 0-100"),
    ("best_epoch", pa.int64(), "epoch with the best selection score, from 1"),
    ("epochs", pa.int64(), "epochs trained"),
    ("train_size", pa.int64(), "training instances of the target"),
    ("dev_size", pa.int64(), "dev instances of the target"),
    ("test_size", pa.int64(), "test instances of the target"),
    _DIGEST,
    ("parent", pa.string(), "digest of the stage that training started from; null: base model"),
    ("path", pa.string(), "the run's record, relative to the results folder"),
    ("has_predictions", pa.bool_(), "whether a predictions file was written next to the record"),
    ("seconds", pa.float64(), "wall time of the last stage, all phases, seconds"),
    ("tokens", pa.int64(), "tokens processed in training by the last stage"),
    ("samples_per_second", pa.float64(), "training instances per second"),
    ("peak_memory_mb", pa.float64(), "peak resident memory, MiB"),
    ("peak_gpu_memory_mb", pa.float64(), "peak GPU memory, MiB; null: no GPU"),
    ("commit", pa.string(), "git commit of the code; null: unknown"),
    ("recipe", pa.int64(), "version of the training computation"),
    ("data_revision", pa.string(), "content digest of the data"),
    ("synthetic", pa.bool_(), "whether the dialogues are synthetic (tiny world)"),
    ("few_sample", pa.bool_(), "whether the few-sample split was used"),
    ("weights", pa.string(), "the model's initial weights (`<hub name>@<revision>`, or a digest)"),
    ("fidelity", pa.string(), "scoring rules: default, or tlidb (as in the paper's toolkit)"),
    ("predictions", pa.string(), "predictions file, relative to the results folder; null: none"),
    ("predictions_rows", pa.int64(), "number of rows in the predictions file"),
    ("predictions_sha256", pa.string(), "SHA-256 of the predictions file"),
    ("test_set", pa.string(), "digest of the target's test set: ids and gold answers; null: none"),
)
SCORES: Columns = (
    *_KEYS,
    ("split", pa.string(), "test, or dev at the best epoch"),
    ("task", pa.string(), "evaluated task"),
    ("metric", pa.string(), "metric; `score` is the mean of the task's metrics"),
    ("value", pa.float64(), "0-100"),
)
DELTAS: Columns = (
    *_RUN,
    ("score", pa.float64(), "score of the transfer run, 0-100"),
    ("baseline_score", pa.float64(), "score of the baseline of the same model, target and seed"),
    ("delta", pa.float64(), "score - baseline_score; NaN: baseline missing"),
    ("improvement", pa.float64(), "100 * delta / baseline_score, %; NaN: baseline missing or 0"),
    _DIGEST,
    ("baseline_digest", pa.string(), "digest of the baseline's stage; null: missing"),
)
SIZES: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("task", pa.string(), "task"),
    ("train", pa.int64(), "training instances"),
    ("dev", pa.int64(), "dev instances"),
    ("test", pa.int64(), "test instances"),
)
MISSING: Columns = (
    *_RUN,
    ("path", pa.string(), "expected path of its record, relative to the results folder"),
    ("reason", pa.string(), "why it has no score, in one line"),
    ("state", pa.string(), "waiting, running, failed, interrupted, damaged or baseline missing"),
    ("stage", pa.string(), "folder of the first of its stages that is not finished; null: unknown"),
    ("error", pa.string(), "last line of the error, or the damage; null: none"),
)
PROBLEMS: Columns = (
    ("path", pa.string(), "the record, relative to the results folder"),
    ("error", pa.string(), "why the record was left out"),
)

_GROUP: Columns = _RUN[:3]
_CELL: Columns = (*_RUN[:7],)

CELLS: Columns = (
    *_CELL,
    ("n_seeds", pa.int64(), "seeds with both the transfer run and its baseline"),
    ("seeds", pa.list_(pa.int64()), "those seeds, ascending"),
    (
        "n_baselines",
        pa.int64(),
        "baselines in the comparison: those of these seeds and of `baseline_seeds`",
    ),
    ("score", pa.float64(), "mean over seeds of the transfer runs' scores, 0-100"),
    ("baseline_score", pa.float64(), "mean score of those baselines, 0-100"),
    ("delta", pa.float64(), "score - baseline score, points"),
    ("improvement", pa.float64(), "100 * delta / baseline_score, %; NaN: baseline 0"),
    ("instances", pa.int64(), "test instances; 0: no predictions, seeds only"),
    ("dialogues", pa.int64(), "dialogues of these instances; 0: unknown, or no predictions"),
    ("resampled_by", pa.string(), "resampled unit: dialogue or instance; empty: none"),
    (
        "standard_error",
        pa.float64(),
        "standard error of delta over seeds and dialogues; with 1 seed over dialogues alone",
    ),
    (
        "test_error",
        pa.float64(),
        "part of the standard error from the test dialogues; NaN: not available",
    ),
    ("test_degrees", pa.float64(), "degrees of freedom of `test_error`; NaN: no predictions"),
    ("degrees", pa.float64(), "degrees of freedom of the interval's t distribution"),
    ("low", pa.float64(), "lower end of the 95 % interval of delta; NaN: not available"),
    ("high", pa.float64(), "upper end of the 95 % interval of delta"),
    ("p", pa.float64(), "two-sided p of delta = 0, paired by seed and dialogue; NaN: no test"),
    ("no_interval", pa.string(), "why there is no interval; null if there is one"),
    ("q", pa.float64(), "p adjusted for the dataset's heatmap (Benjamini-Hochberg); NaN: 1 seed"),
    ("significant", pa.bool_(), "q <= 0.05 with several seeds"),
    ("inputs", pa.string(), "digest of all inputs of this row"),
)
SUMMARY: Columns = (
    *_GROUP,
    ("n_cells", pa.int64(), "number of single-source cells"),
    ("n_seeds", pa.int64(), "number of seeds"),
    ("mean", pa.float64(), "mean over cells of the mean delta over seeds, points (as in Table 2)"),
    ("mean_low", pa.float64(), "lower end of its 95 % interval over seeds alone; NaN: one seed"),
    ("mean_high", pa.float64(), "upper end"),
    (
        "joint_low",
        pa.float64(),
        "lower end of the mean's 95 % interval over seeds and dialogues; NaN: not available",
    ),
    ("joint_high", pa.float64(), "upper end"),
    ("iqm", pa.float64(), "interquartile mean of the deltas of all cells and seeds, points"),
    ("iqm_low", pa.float64(), "lower end of its 95 % interval; NaN: one seed"),
    ("iqm_high", pa.float64(), "upper end"),
    ("positive", pa.float64(), "fraction of deltas above 0; a delta of 0 counts half"),
    ("positive_low", pa.float64(), "lower end of its 95 % interval; NaN: one seed"),
    ("positive_high", pa.float64(), "upper end"),
    ("rank", pa.float64(), "mean rank of its cells among the model's algorithms, 1 is best"),
    ("rank_low", pa.float64(), "lower end of its 95 % interval; NaN: one seed"),
    ("rank_high", pa.float64(), "upper end"),
    ("rank_cells", pa.int64(), "ranked cells: those that all algorithms of the model have"),
    (
        "pairing",
        pa.float64(),
        "correlation over seeds of a run and its seed's baseline; NaN: 1 seed",
    ),
    ("joint_p", pa.float64(), "two-sided p of mean delta = 0, over seeds and dialogues"),
    ("joint_q", pa.float64(), "joint_p adjusted for all rows (false-discovery control)"),
)
VARIANCE: Columns = (
    *_GROUP,
    ("component", pa.string(), "source, target, source x target, or seed"),
    ("variance", pa.float64(), "component of delta's variance, squared points; NaN: unknown"),
    ("share", pa.float64(), "fraction of the sum of the components, 0-1; NaN: unknown"),
)
ASYMMETRY: Columns = (
    *_GROUP,
    ("task_a", pa.string(), "first task of the pair"),
    ("task_b", pa.string(), "second task, later in the study's order"),
    ("a_to_b", pa.float64(), "delta of task_a as the source of task_b, points"),
    ("b_to_a", pa.float64(), "delta of task_b as the source of task_a, points"),
    ("difference", pa.float64(), "a_to_b - b_to_a, points"),
    ("n_seeds", pa.int64(), "seeds that both directions have"),
    ("low", pa.float64(), "lower end of the 95 % interval of difference; NaN: not available"),
    ("high", pa.float64(), "upper end"),
    ("p", pa.float64(), "two-sided p of difference = 0; NaN: no test"),
    ("q", pa.float64(), "p adjusted for the dataset's pairs (Benjamini-Hochberg); NaN: no test"),
)
AGREEMENT: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("between", pa.string(), "type of the compared items: model or algorithm"),
    ("held", pa.string(), "the algorithm (or model) that both share"),
    ("a", pa.string(), "first model (or algorithm)"),
    ("b", pa.string(), "second model (or algorithm)"),
    ("n_pairs", pa.int64(), "source-target pairs that both have"),
    ("correlation", pa.float64(), "Spearman's rank correlation of the two transfer matrices"),
    ("low", pa.float64(), "lower end of its 95 % interval (bootstrap over tasks)"),
    ("high", pa.float64(), "upper end"),
    ("p", pa.float64(), "two-sided p of no agreement (task labels permuted)"),
    (
        "disjoint",
        pa.float64(),
        "correlation of `a` on half of the seeds with `b` on the other half",
    ),
    ("reliability", pa.float64(), "expected value of `disjoint` if both had the same trends"),
)
OVERLAP: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("source", pa.string(), "source task"),
    ("target", pa.string(), "target task"),
    ("basis", pa.string(), "type of the shared data: `test instances` or `training dialogues`"),
    ("shared", pa.int64(), "number of the target's items that the source also contains"),
    ("of", pa.int64(), "number of the target's items"),
    ("share", pa.float64(), "shared / of, 0-1"),
)
OVERLAP_EFFECT: Columns = (
    *_GROUP,
    ("basis", pa.string(), "as in overlap"),
    ("n_pairs", pa.int64(), "source-target pairs"),
    ("correlation", pa.float64(), "Spearman's rank correlation of share and delta over pairs"),
    ("low", pa.float64(), "lower end of its 95 % interval (bootstrap over tasks)"),
    ("high", pa.float64(), "upper end"),
    ("p", pa.float64(), "two-sided p of no relation (task labels permuted)"),
)

CONTROL_CELLS: Columns = (
    (
        "control",
        pa.string(),
        "self_transfer, longer_baseline or shuffled_source; it replaces the baseline",
    ),
    *CELLS,
)
CONTROLS: Columns = (
    *_CELL,
    ("control", pa.string(), "self_transfer, longer_baseline or shuffled_source"),
    ("n_seeds", pa.int64(), "seeds with both the transfer run and the control's"),
    ("control_score", pa.float64(), "mean over seeds of the control's scores, 0-100; NaN: no run"),
    ("control_delta", pa.float64(), "control_score - baseline score, points"),
    ("delta", pa.float64(), "score of the transfer - control_score, points"),
    ("low", pa.float64(), "lower end of the 95 % interval of delta; NaN: not available"),
    ("high", pa.float64(), "upper end"),
    ("p", pa.float64(), "two-sided p of delta = 0; NaN: no test"),
    ("q", pa.float64(), "p adjusted for the dataset's cells over this control; NaN: no test"),
    (
        "verdict",
        pa.string(),
        "verdict on the cell: beats all controls, explained by a control, hurts, cannot tell, not "
        "judged",
    ),
)
TOP1: Columns = (
    *_GROUP,
    ("n_targets", pa.int64(), "number of targets"),
    ("n_pairs", pa.int64(), "candidate pairs: those with all seeds"),
    ("n_seeds", pa.int64(), "number of seeds"),
    ("top1", pa.float64(), "top-1 as in the paper: per target the best mean delta, at least 0"),
    ("top1_dev", pa.float64(), "delta of the source with the best dev score; 0 for the baseline"),
    ("top1_dev_low", pa.float64(), "lower end of its 95 % interval; NaN: not available"),
    ("top1_dev_high", pa.float64(), "upper end"),
    (
        "top1_heldout",
        pa.float64(),
        "delta of the source that is best for other seeds and dialogues",
    ),
    ("top1_heldout_low", pa.float64(), "lower end of its 95 % interval; NaN: not available"),
    ("top1_heldout_high", pa.float64(), "upper end"),
)
COLLAPSED: Columns = (
    *_CELL,
    ("n_runs", pa.int64(), "runs with predictions, one per seed"),
    ("n_collapsed", pa.int64(), "runs with the same answer for at least 99 % of the test set"),
    ("seeds", pa.list_(pa.int64()), "seeds of the collapsed runs"),
    ("answer", pa.string(), "answer of the first collapsed run; null: none collapsed"),
    ("share", pa.float64(), "largest fraction of one answer in a run of the cell, 0-1"),
    ("inputs", pa.string(), "digest of the predictions of this row"),
)

TABLES: dict[str, Columns] = dict(
    zip(
        outputs.TABLES,
        (RUNS, SCORES, DELTAS, SIZES, MISSING, PROBLEMS, RUNS, MISSING, MISSING),
        strict=True,
    )
)
"""Tables that ``collect`` writes."""

SCORED, WRITTEN = "log-likelihood", "written"
"""Answer methods of a prompted model: its choices are scored, or it generates text."""
MEAN = ""
"""Value of ``target`` in the row of a dataset's mean."""

PROMPTED: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("model", pa.string(), "model, by its name in the study"),
    ("shots", pa.int64(), "few-shot examples in each prompt"),
    ("target", pa.string(), "evaluated task; empty: the mean over the dataset's tasks"),
    ("score", pa.float64(), "score on the test split, mean over prompt wordings and seeds, 0-100"),
    ("low", pa.float64(), "lower end of its 95 % interval over dialogues and seeds"),
    ("high", pa.float64(), "upper end"),
    ("wordings", pa.int64(), "number of prompt wordings"),
    (
        "spread",
        pa.float64(),
        "best minus worst wording, points; in the row of a mean averaged over tasks",
    ),
    ("n_seeds", pa.int64(), "seeds for sampling shots; 1 without shots"),
    ("n_targets", pa.int64(), "number of tasks"),
    ("n_expected", pa.int64(), "planned tasks"),
    ("instances", pa.int64(), "test instances per wording and seed"),
    ("dialogues", pa.int64(), "dialogues of these instances"),
    (
        "answers",
        pa.string(),
        f"{SCORED}: choices were scored; {WRITTEN}: answers were generated, because the task has "
        "spans or the endpoint returns no log-likelihoods; a mean may have both",
    ),
    (
        "unreadable",
        pa.float64(),
        "answers that match no choice or cannot be parsed, %; they count as wrong",
    ),
    ("tokens", pa.int64(), "prompt and generated tokens over all wordings and seeds"),
    (
        "seen",
        pa.string(),
        "whether the model saw the test dialogues in its training, according to the config",
    ),
    ("n_seeds_planned", pa.int64(), "planned seeds for sampling shots; 1 without shots"),
)
"""Columns of the additional table of ``statistics`` for prompted models."""

REFERENCES: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("model", pa.string(), "model of the baselines, by its name in the study"),
    ("target", pa.string(), "task that is predicted"),
    (
        "reference",
        pa.string(),
        "simple predictor, by its name in the config",
    ),
    ("reference_score", pa.float64(), "score of the reference on the test split, 0-100"),
    ("is_best", pa.bool_(), "whether its score is the highest of the target's references"),
    ("n_seeds", pa.int64(), "baselines with predictions, one per seed"),
    ("score", pa.float64(), "score of the baselines, mean over seeds, 0-100"),
    ("delta", pa.float64(), "score minus reference_score on the same instances, points"),
    ("low", pa.float64(), "lower end of the delta's 95 % interval over dialogues and seeds"),
    ("high", pa.float64(), "upper end"),
    ("p", pa.float64(), "two-sided p of a delta of 0"),
    ("q", pa.float64(), "p adjusted for all rows of the dataset; null: one seed"),
    (
        "state",
        pa.string(),
        "learned: above all references; not better: at most the best of them; collapsed: at least "
        "half of the baselines give one answer to 99 % of the test split",
    ),
    ("seeds", pa.list_(pa.int64()), "seeds of the baselines"),
    ("states", pa.list_(pa.string()), "state of each of them"),
)
"""Columns of the additional table of ``statistics`` for studies with references."""

CONTROL_SUMMARY: Columns = (
    *_GROUP,
    ("control", pa.string(), "self_transfer, longer_baseline or shuffled_source"),
    ("n_pairs", pa.int64(), "source-target pairs with a run of the control"),
    ("n_seeds", pa.int64(), "seeds with both the transfer run and the control's"),
    ("mean", pa.float64(), "score of the transfer - score of the control, mean over pairs, points"),
    ("low", pa.float64(), "lower end of its 95 % interval over seeds and dialogues; NaN: one seed"),
    ("high", pa.float64(), "upper end"),
    ("p", pa.float64(), "two-sided p of a mean of 0; NaN: no test"),
    ("q", pa.float64(), "p adjusted for all rows (false-discovery control)"),
)
"""Columns of the additional table of ``statistics`` for studies with controls."""

STATISTICS: dict[str, Columns] = dict(
    zip(
        outputs.STATISTICS,
        (
            *(CELLS, SUMMARY, VARIANCE, ASYMMETRY, AGREEMENT, OVERLAP, OVERLAP_EFFECT),
            *(CONTROL_CELLS, CONTROLS, TOP1, COLLAPSED),
        ),
        strict=True,
    )
)
"""Tables that ``statistics`` computes from them."""

ALL = {
    **TABLES,
    **STATISTICS,
    outputs.PROMPTED[0]: PROMPTED,
    outputs.REFERENCES[0]: REFERENCES,
    outputs.CONTROL_SUMMARY[0]: CONTROL_SUMMARY,
}


def describe_cells() -> dict[str, str]:
    """Return the meanings of the columns of ``cells``."""
    return {name: meaning for name, _, meaning in CELLS}


def names(table: str) -> list[str]:
    """Return the column names of a table, in order."""
    return [name for name, _, _ in ALL[table]]


def frame(table: str, rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """Return rows as a frame with the table's types, also if there are none."""
    return build_frame(rows, ALL[table])
