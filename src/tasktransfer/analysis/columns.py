"""The columns of every table: name, type, meaning. The Parquet files carry them in their footers.

Scores are 0-100; a delta is a difference of two scores; an improvement is a percentage of the
baseline's score.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

KEYS = ("dataset", "model", "algorithm", "source", "target", "seed")
"""What names a run in every table. ``source`` joins the sources by ``+``; empty for a baseline."""

_Column = tuple[str, pa.DataType, str]

_RUN: tuple[_Column, ...] = (
    ("dataset", pa.string(), "dataset"),
    ("model", pa.string(), "model, as the study names it"),
    ("algorithm", pa.string(), "baseline, or the transfer algorithm"),
    ("sources", pa.list_(pa.string()), "source tasks, sorted; empty for a baseline"),
    ("source", pa.string(), "source tasks joined by +; empty for a baseline"),
    ("n_sources", pa.int64(), "number of source tasks"),
    ("target", pa.string(), "target task"),
    ("seed", pa.int64(), "random seed"),
)
_KEYS: tuple[_Column, ...] = tuple(column for column in _RUN if column[0] in KEYS)
_DIGEST: _Column = ("digest", pa.string(), "digest of the stage that was scored")

RUNS: tuple[_Column, ...] = (
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
)
SCORES: tuple[_Column, ...] = (
    *_KEYS,
    ("split", pa.string(), "test, or dev at the best epoch"),
    ("task", pa.string(), "task that is scored"),
    ("metric", pa.string(), "metric; `score` is the mean of the task's metrics"),
    ("value", pa.float64(), "0-100"),
)
DELTAS: tuple[_Column, ...] = (
    *_RUN,
    ("score", pa.float64(), "score of the transfer run, 0-100"),
    ("baseline_score", pa.float64(), "score of the baseline of the same model, target and seed"),
    ("delta", pa.float64(), "score - baseline_score; NaN: baseline missing"),
    ("improvement", pa.float64(), "100 * delta / baseline_score, %; NaN: baseline missing or 0"),
    _DIGEST,
    ("baseline_digest", pa.string(), "digest of the baseline's stage; null: missing"),
)
SIZES: tuple[_Column, ...] = (
    ("dataset", pa.string(), "dataset"),
    ("task", pa.string(), "task"),
    ("train", pa.int64(), "training instances"),
    ("dev", pa.int64(), "dev instances"),
    ("test", pa.int64(), "test instances"),
)
MISSING: tuple[_Column, ...] = (
    *_RUN,
    ("path", pa.string(), "where its record is expected, relative to the results folder"),
    ("reason", pa.string(), "no record, damaged record, or baseline missing"),
)
PROBLEMS: tuple[_Column, ...] = (
    ("path", pa.string(), "the record, relative to the results folder"),
    ("error", pa.string(), "why it was left out"),
)

TABLES: dict[str, tuple[_Column, ...]] = {
    "runs": RUNS,
    "scores": SCORES,
    "deltas": DELTAS,
    "sizes": SIZES,
    "missing": MISSING,
    "problems": PROBLEMS,
}


def arrow_schema(table: str) -> pa.Schema:
    """The Arrow schema of a table; each field's metadata holds the column's description."""
    return pa.schema(
        [pa.field(name, kind, metadata={"description": text}) for name, kind, text in TABLES[table]]
    )


def names(table: str) -> list[str]:
    """The column names of a table, in order."""
    return [name for name, _, _ in TABLES[table]]


def to_frame(table: pa.Table) -> pd.DataFrame:
    """An Arrow table as a frame, lists as Python lists. Frames are made this way both from records
    and from Parquet, so that they are alike before they are written and after they are read."""
    frame: pd.DataFrame = table.to_pandas()
    for field in table.schema:
        if pa.types.is_list(field.type):
            frame[field.name] = pd.Series(table[field.name].to_pylist(), dtype=object)
    return frame
