"""The table ``reference``: scores of simple predictors on each task, from its prepared instances.

It is written next to the tables of ``data stats`` and, like them, needs the dialogues. It is
computed once, because the path of the prepared instances contains their revision.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tasktransfer.core.references import MOST_FREQUENT, REFERENCES, TFIDF
from tasktransfer.errors import RecordError
from tasktransfer.files import replace_file

COLUMNS = {
    "dataset": "dataset",
    "target": "task that is scored",
    "reference": "most_frequent, by_frequency or tfidf_logistic",
    "score": "score on the task's test split, 0-100; for by_frequency the mean of 20 samples",
    "deviation": "standard deviation of the score over samples; 0: no sampling",
    "answer": "the constant answer of most_frequent; empty for the others",
    "train_size": "number of training instances",
    "test_size": "test instances",
    "data_revision": "content digest of the data",
    "few_sample": "few-sample split",
    "synthetic": "tiny world, not real dialogues",
}
"""Meanings of the columns."""

LABELS = {
    MOST_FREQUENT: REFERENCES[MOST_FREQUENT],
    "by_frequency": "answers by frequency",
    TFIDF: REFERENCES[TFIDF],
}


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write the table atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as part:
        frame.to_parquet(part, index=False)


def read(path: Path) -> pd.DataFrame | None:
    """Read the table; None if it does not exist.

    Raises:
        RecordError: it is damaged, or was written by another version.
    """
    if not path.exists():
        return None
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: cannot be read: {error}; delete it to recreate it") from error
    if list(frame.columns) != list(COLUMNS):
        raise RecordError(f"{path}: was written by another version; delete it to recreate it")
    return frame
