"""Collapsed runs, which give the same answer to every instance."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

LEAST_SHARE = 0.99
"""Minimum fraction of one answer for a collapsed run."""


def find_most_frequent(predictions: pa.ChunkedArray) -> tuple[str, float]:
    """Return the most frequent answer of a column of lists, and its fraction, 0-1.

    The parts of the answer are joined by ", ". If several answers are equally frequent, the first
    one is returned.
    """
    counts = pc.value_counts(pc.binary_join(predictions, ", "))
    times = counts.field("counts").to_numpy()
    best = int(times.argmax())
    return counts.field("values")[best].as_py(), float(times[best] / len(predictions))


def is_collapsed(predictions: pa.ChunkedArray, *, empty: bool = False) -> bool:
    """Return whether a run is collapsed.

    Args:
        predictions: answers, a column of lists.
        empty: true if an empty list counts as an answer, as for sets of labels. Rows of a
            perplexity have empty answers.
    """
    if not len(predictions):
        return False
    answer, share = find_most_frequent(predictions)
    return (empty or bool(answer)) and share >= LEAST_SHARE
