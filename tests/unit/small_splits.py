"""Encoded splits of given lengths, without a tokenizer."""

from __future__ import annotations

import numpy as np

from tasktransfer.encoding.encoded import EncodedSplit, Ragged


def get_split(lengths: list[int], options: int = 1) -> EncodedSplit:
    """Return a split whose example u has ``options`` sequences of ``lengths[u]`` tokens."""
    counts = np.full(len(lengths), options, np.int32)
    each = np.repeat(np.array(lengths, np.int32), options)
    return EncodedSplit(
        task="t",
        instance=np.arange(len(lengths), dtype=np.int32),
        output=np.zeros(len(lengths), np.int32),
        first_sequence=np.concatenate([[0], counts.cumsum()]).astype(np.int32),
        sequences=Ragged(
            np.ones(int(each.sum()), np.int32),
            np.concatenate([[0], each.cumsum()]).astype(np.int32),
        ),
        second_starts=each,
        labels=Ragged(
            np.zeros(len(lengths), np.int32), np.arange(len(lengths) + 1, dtype=np.int32)
        ),
        offsets=Ragged(np.zeros(0, np.int32), np.zeros(len(lengths) + 1, np.int32)),
        ids=[str(i) for i in range(len(lengths))],
        dialogue_ids=[None] * len(lengths),
        targets=[("x",)] * len(lengths),
        contexts=[""] * len(lengths),
    )
