"""Encoded splits of given token ids or lengths, without a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers.ragged import build_ragged

Rows = Sequence[Sequence[int] | np.ndarray]


def build_split(
    task: str,
    sequences: Rows,
    options: int = 1,
    *,
    labels: Rows = (),
    second_starts: Sequence[int] = (),
    targets: Sequence[tuple[str, ...]] = (),
) -> EncodedSplit:
    """Return a split of token ids, each instance with ``options`` successive sequences."""
    count = len(sequences) // options
    nothing = [np.zeros(0, np.int32)] * count
    names = [str(number) for number in range(count)]
    return EncodedSplit(
        task=task,
        instance=np.arange(count, dtype=np.int32),
        output=np.zeros(count, np.int32),
        first_sequence=np.arange(0, len(sequences) + 1, options, dtype=np.int32),
        sequences=build_ragged([np.array(row, np.int32) for row in sequences]),
        second_starts=np.array(second_starts or [0] * len(sequences), np.int32),
        labels=build_ragged([np.array(row, np.int32) for row in labels] or nothing),
        offsets=build_ragged(nothing),
        ids=names,
        dialogue_ids=[*names],
        targets=[*targets] or [("x",)] * count,
        contexts=[""] * count,
    )


def get_split(lengths: list[int], options: int = 1) -> EncodedSplit:
    """Return a split whose example u has ``options`` sequences of ``lengths[u]`` tokens."""
    each = [length for length in lengths for _ in range(options)]
    ones = [np.ones(length, np.int32) for length in each]
    return build_split("t", ones, options, labels=[[0]] * len(lengths), second_starts=each)
