"""The table ``reference``: what each task scores without any model, from its prepared instances.

Beside the tables of ``data stats``, and like them only where the dialogues are there. It is made
once: the prepared instances have their revision in their path.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tasktransfer.errors import RecordError
from tasktransfer.files import replacing

COLUMNS = {
    "dataset": "dataset",
    "target": "task that is scored",
    "reference": "most_frequent, by_frequency or tfidf_logistic",
    "score": "score on the task's test split, 0-100; of by_frequency the mean of 20 draws",
    "deviation": "standard deviation of the score over draws; 0: nothing is drawn",
    "answer": "what most_frequent answers; empty for the others",
    "train_size": "training instances that it has learnt from",
    "test_size": "test instances",
    "data_revision": "content digest of the data",
    "few_sample": "few-sample split",
    "synthetic": "tiny world, not real dialogues",
}
"""Column → meaning."""

LABELS = {
    "most_frequent": "most frequent answer",
    "by_frequency": "answers by frequency",
    "tfidf_logistic": "TF-IDF, logistic regression",
}


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write the table atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        frame.to_parquet(part, index=False)


def read(path: Path) -> pd.DataFrame | None:
    """The table; None where it was not made.

    Raises:
        RecordError: it is damaged, or of another version.
    """
    if not path.exists():
        return None
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise RecordError(
            f"{path}: cannot be read: {error}; delete it, it is made again"
        ) from error
    if list(frame.columns) != list(COLUMNS):
        raise RecordError(f"{path}: of another version; delete it, it is made again")
    return frame
