"""The columns of every table: name, type, meaning. The Parquet files carry them in their footers.

Scores are 0-100; a delta is a difference of two scores; an improvement is a percentage of the
baseline's score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from tasktransfer.designs.transfer import outputs
from tasktransfer.tables.store import Column, Columns, frame_of

KEYS = ("dataset", "model", "algorithm", "source", "target", "seed")
"""What names a run in every table. ``source`` joins the sources by ``+``; empty for a baseline."""

_RUN: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("model", pa.string(), "model, as the study names it"),
    ("algorithm", pa.string(), "baseline, or the transfer algorithm"),
    ("sources", pa.list_(pa.string()), "source tasks, sorted; empty for a baseline"),
    ("source", pa.string(), "source tasks joined by +; empty for a baseline"),
    ("n_sources", pa.int64(), "number of source tasks"),
    ("target", pa.string(), "target task"),
    ("seed", pa.int64(), "random seed"),
)
_KEYS: Columns = tuple(column for column in _RUN if column[0] in KEYS)
_DIGEST: Column = ("digest", pa.string(), "digest of the stage that was scored")

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
    ("parent", pa.string(), "digest of the stage that it started from; null: base model"),
    ("path", pa.string(), "the run's record, relative to the results folder"),
    ("has_predictions", pa.bool_(), "a predictions file was written beside the record"),
    ("seconds", pa.float64(), "wall time of the last stage, all phases, seconds"),
    ("tokens", pa.int64(), "tokens that the last stage trained on"),
    ("samples_per_second", pa.float64(), "training instances per second"),
    ("peak_memory_mb", pa.float64(), "peak resident memory, MiB"),
    ("peak_gpu_memory_mb", pa.float64(), "peak GPU memory, MiB; null: no GPU"),
    ("commit", pa.string(), "git commit of the code; null: unknown"),
    ("recipe", pa.int64(), "recipe version: what training computes"),
    ("data_revision", pa.string(), "content digest of the data"),
    ("synthetic", pa.bool_(), "tiny world, not real dialogues"),
    ("few_sample", pa.bool_(), "few-sample split"),
    ("weights", pa.string(), "what the model's weights are (`<hub name>@<revision>`, or a digest)"),
    ("fidelity", pa.string(), "how it was scored: default, or tlidb (as the paper's toolkit does)"),
    ("predictions", pa.string(), "predictions file, relative to the results folder; null: none"),
    ("predictions_rows", pa.int64(), "its rows"),
    ("predictions_sha256", pa.string(), "its SHA-256"),
    ("test_set", pa.string(), "digest of the target's test set: ids and right answers; null: none"),
)
SCORES: Columns = (
    *_KEYS,
    ("split", pa.string(), "test, or dev at the best epoch"),
    ("task", pa.string(), "task that is scored"),
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
    ("path", pa.string(), "where its record is expected, relative to the results folder"),
    ("reason", pa.string(), "why it has no number, in one line"),
    ("state", pa.string(), "waiting, running, failed, interrupted, damaged or baseline missing"),
    ("stage", pa.string(), "folder of the first of its trainings that is not done; null: unknown"),
    ("error", pa.string(), "last line of the error, or what is damaged; null: none"),
)
PROBLEMS: Columns = (
    ("path", pa.string(), "the record, relative to the results folder"),
    ("error", pa.string(), "why it was left out"),
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
        "baselines that they are compared with, of these and of `baseline_seeds`",
    ),
    ("score", pa.float64(), "mean over seeds of the transfer runs' scores, 0-100"),
    ("baseline_score", pa.float64(), "mean over those baselines of their scores"),
    ("delta", pa.float64(), "score - baseline score, points"),
    ("improvement", pa.float64(), "100 * delta / baseline_score, %; NaN: baseline 0"),
    ("instances", pa.int64(), "test instances; 0: no predictions, seeds only"),
    ("dialogues", pa.int64(), "dialogues that they are of; 0: unknown, or no predictions"),
    ("resampled_by", pa.string(), "what is drawn whole: dialogue or instance; empty: nothing"),
    ("standard_error", pa.float64(), "of delta, over seeds and dialogues; 1 seed: dialogues alone"),
    ("test_error", pa.float64(), "what the test set's dialogues add to it; NaN: cannot be told"),
    ("test_degrees", pa.float64(), "its degrees of freedom; NaN: no predictions"),
    ("degrees", pa.float64(), "degrees of freedom of the t distribution whose interval this is"),
    ("low", pa.float64(), "lower end of the 95 % interval of delta; NaN: cannot be told"),
    ("high", pa.float64(), "upper end of the 95 % interval of delta"),
    ("p", pa.float64(), "two-sided p of delta = 0, paired by seed and dialogue; NaN: no test"),
    ("no_interval", pa.string(), "why there is no interval; null: there is one"),
    ("q", pa.float64(), "p adjusted for the dataset's heatmap (Benjamini-Hochberg); NaN: 1 seed"),
    ("significant", pa.bool_(), "q <= 0.05, of several seeds"),
    ("inputs", pa.string(), "digest of everything that the numbers of this row depend on"),
)
SUMMARY: Columns = (
    *_GROUP,
    ("n_cells", pa.int64(), "single-source cells behind the row"),
    ("n_seeds", pa.int64(), "seeds behind the row"),
    ("mean", pa.float64(), "mean over cells of the mean delta over seeds, points (Table 2's)"),
    ("mean_low", pa.float64(), "lower end of its 95 % interval over seeds alone; NaN: one seed"),
    ("mean_high", pa.float64(), "upper end"),
    (
        "joint_low",
        pa.float64(),
        "lower end of that over seeds and dialogues; NaN: cannot be told",
    ),
    ("joint_high", pa.float64(), "upper end"),
    ("iqm", pa.float64(), "interquartile mean of the deltas of all cells and seeds, points"),
    ("iqm_low", pa.float64(), "lower end of its 95 % interval; NaN: one seed"),
    ("iqm_high", pa.float64(), "upper end"),
    ("positive", pa.float64(), "share of deltas above 0; ties half"),
    ("positive_low", pa.float64(), "lower end of its 95 % interval; NaN: one seed"),
    ("positive_high", pa.float64(), "upper end"),
    ("rank", pa.float64(), "mean rank of its cells among the model's algorithms, 1 is best"),
    ("rank_low", pa.float64(), "lower end of its 95 % interval; NaN: one seed"),
    ("rank_high", pa.float64(), "upper end"),
    ("rank_cells", pa.int64(), "cells that all algorithms of the model have, which are ranked"),
    ("pairing", pa.float64(), "correlation over seeds of run and baseline of a seed; NaN: 1 seed"),
    ("joint_p", pa.float64(), "two-sided p of no mean delta, over seeds and dialogues"),
    ("joint_q", pa.float64(), "the same after control of false discoveries over all rows"),
)
VARIANCE: Columns = (
    *_GROUP,
    ("component", pa.string(), "source, target, source x target, or seed"),
    ("variance", pa.float64(), "component of delta's variance, squared points; NaN: unknown"),
    ("share", pa.float64(), "of the sum of the components, 0-1; NaN: unknown"),
)
ASYMMETRY: Columns = (
    *_GROUP,
    ("task_a", pa.string(), "one task"),
    ("task_b", pa.string(), "another task, after it in the study's order"),
    ("a_to_b", pa.float64(), "delta of task_a as the source of task_b, points"),
    ("b_to_a", pa.float64(), "delta of task_b as the source of task_a, points"),
    ("difference", pa.float64(), "a_to_b - b_to_a, points"),
    ("n_seeds", pa.int64(), "seeds that both directions have"),
    ("low", pa.float64(), "lower end of the 95 % interval of difference; NaN: cannot be told"),
    ("high", pa.float64(), "upper end"),
    ("p", pa.float64(), "two-sided p of difference = 0; NaN: no test"),
    ("q", pa.float64(), "p adjusted for the dataset's pairs (Benjamini-Hochberg); NaN: no test"),
)
AGREEMENT: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("between", pa.string(), "what is compared: model or algorithm"),
    ("held", pa.string(), "the algorithm (or model) that both share"),
    ("a", pa.string(), "one model (or algorithm)"),
    ("b", pa.string(), "another model (or algorithm)"),
    ("n_pairs", pa.int64(), "source-target pairs that both have"),
    ("correlation", pa.float64(), "Spearman's rank correlation of the two transfer matrices"),
    ("low", pa.float64(), "lower end of its 95 % interval (bootstrap over tasks)"),
    ("high", pa.float64(), "upper end"),
    ("p", pa.float64(), "two-sided p of no agreement (task labels permuted)"),
    (
        "disjoint",
        pa.float64(),
        "correlation of one's half of the seeds with the other's other half",
    ),
    ("reliability", pa.float64(), "what `disjoint` would be if both had the same trends"),
)
OVERLAP: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("source", pa.string(), "source task"),
    ("target", pa.string(), "target task"),
    ("basis", pa.string(), "what is shared: `test instances` or `training dialogues`"),
    ("shared", pa.int64(), "how many of the target's the source has as well"),
    ("of", pa.int64(), "how many the target has"),
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
        "self_transfer, longer_baseline or shuffled_source, as baseline",
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
    ("low", pa.float64(), "lower end of the 95 % interval of delta; NaN: cannot be told"),
    ("high", pa.float64(), "upper end"),
    ("p", pa.float64(), "two-sided p of delta = 0; NaN: no test"),
    ("q", pa.float64(), "p adjusted for the dataset's cells over this control; NaN: no test"),
    (
        "verdict",
        pa.string(),
        "of the cell: beats all controls, explained by a control, hurts, cannot tell, not judged",
    ),
)
TOP1: Columns = (
    *_GROUP,
    ("n_targets", pa.int64(), "targets behind the row"),
    ("n_pairs", pa.int64(), "pairs that have all seeds: the candidates"),
    ("n_seeds", pa.int64(), "seeds behind the row"),
    ("top1", pa.float64(), "the paper's: per target the best mean delta, at least 0; points"),
    ("top1_dev", pa.float64(), "delta of the source that is best on dev; 0: the baseline is"),
    ("top1_dev_low", pa.float64(), "lower end of its 95 % interval; NaN: cannot be told"),
    ("top1_dev_high", pa.float64(), "upper end"),
    (
        "top1_heldout",
        pa.float64(),
        "delta of the source that other seeds and dialogues choose",
    ),
    ("top1_heldout_low", pa.float64(), "lower end of its 95 % interval; NaN: cannot be told"),
    ("top1_heldout_high", pa.float64(), "upper end"),
)
COLLAPSED: Columns = (
    *_CELL,
    ("n_runs", pa.int64(), "runs whose predictions are there, one a seed"),
    ("n_collapsed", pa.int64(), "those that give one answer to 99 % of the test set or more"),
    ("seeds", pa.list_(pa.int64()), "seeds of the collapsed runs"),
    ("answer", pa.string(), "what the first of them answers; null: none collapsed"),
    ("share", pa.float64(), "largest share of one answer in a run of the cell, 0-1"),
    ("inputs", pa.string(), "digest of the predictions that this row is made of"),
)

TABLES: dict[str, Columns] = dict(
    zip(
        outputs.TABLES,
        (RUNS, SCORES, DELTAS, SIZES, MISSING, PROBLEMS, RUNS, MISSING, MISSING),
        strict=True,
    )
)
"""What ``collect`` writes."""

SCORED, WRITTEN = "log-likelihood", "written"
"""How a model that is only asked answers: its choices are scored, or it writes."""
MEAN = ""
"""Stands for a target in the row of a dataset's mean."""

PROMPTED: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("model", pa.string(), "model, as the study names it"),
    ("shots", pa.int64(), "examples that its prompts show"),
    ("target", pa.string(), "task that it is asked about; empty: the mean over the dataset's"),
    ("score", pa.float64(), "score on the test split, mean over wordings and seeds, 0-100"),
    ("low", pa.float64(), "lower end of its 95 % interval over dialogues and seeds"),
    ("high", pa.float64(), "upper end"),
    ("wordings", pa.int64(), "ways in which it is asked"),
    ("spread", pa.float64(), "best minus worst wording, points; of a mean that over its tasks"),
    ("n_seeds", pa.int64(), "seeds that drew shots; 1 without any"),
    ("n_targets", pa.int64(), "tasks behind the row"),
    ("n_expected", pa.int64(), "tasks that were planned"),
    ("instances", pa.int64(), "test instances of a wording and seed"),
    ("dialogues", pa.int64(), "dialogues that they are of"),
    (
        "answers",
        pa.string(),
        f"{SCORED}: choices were scored; {WRITTEN}: generated, as of spans, or as the endpoint "
        "gives no log-likelihoods; both, of a mean",
    ),
    (
        "unreadable",
        pa.float64(),
        "answers that are not a choice or cannot be read, %; they count as wrong",
    ),
    ("tokens", pa.int64(), "tokens read and written, of all wordings and seeds"),
    ("seen", pa.string(), "whether the model has read the test dialogues, as the config says"),
    ("n_seeds_planned", pa.int64(), "seeds that were planned to draw shots; 1 without any"),
)
"""What ``statistics`` makes besides where models are only asked."""

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
"""What ``statistics`` makes of them."""

ALL = TABLES | STATISTICS | {outputs.PROMPTED[0]: PROMPTED}


def names(table: str) -> list[str]:
    """The column names of a table, in order."""
    return [name for name, _, _ in ALL[table]]


def frame(table: str, rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """Rows to a frame with the table's types, also when there are none."""
    return frame_of(rows, ALL[table])
