"""Runs that give one and the same answer whatever the instance is."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

LEAST_SHARE = 0.99
"""Share of one answer from which on a run is collapsed."""


def most_frequent(predictions: pa.ChunkedArray) -> tuple[str, float]:
    """Return the most frequent answer of a column of lists, its parts joined by ", ", and its
    share, 0-1; the first of several that are equally frequent."""
    counts = pc.value_counts(pc.binary_join(predictions, ", "))
    times = counts.field("counts").to_numpy()
    best = int(times.argmax())
    return counts.field("values")[best].as_py(), float(times[best] / len(predictions))


def answers_once(predictions: pa.ChunkedArray, *, empty: bool = False) -> bool:
    """Return whether a run is collapsed.

    Args:
        empty: whether no answer at all is an answer, as of sets of labels. Rows of a perplexity
            have none.
    """
    if not len(predictions):
        return False
    answer, share = most_frequent(predictions)
    return (empty or bool(answer)) and share >= LEAST_SHARE
