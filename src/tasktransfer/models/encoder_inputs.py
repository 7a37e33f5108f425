"""The inputs of an encoder for a micro-batch: packed or padded sequences, masks and labels.

They are numpy arrays on the host; ``staging.copy_to_device`` copies them to the device.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import ModelError
from tasktransfer.layers.packing import Layout
from tasktransfer.layers.ragged import Ints, Longs, Ragged, pad_rows
from tasktransfer.models.staging import Arrays


def build_packed_arrays(
    layout: Layout, second_starts: Ints, *, token_types: bool, each_token: bool
) -> Arrays:
    """Return the input arrays of packed sequences.

    ``wanted`` is the index of each sequence's tokens, shape (sequences, longest), or of its first
    token, shape (sequences,).

    Args:
        second_starts: start of each sequence's second segment.
    """
    arrays: Arrays = dict(layout.arrays)
    if token_types:
        second = layout.repeat_per_token(second_starts)
        arrays["token_types"] = (layout.compute_positions() >= second).astype(np.int64)
    if each_token:
        arrays["wanted"] = layout.index_tokens()
    else:
        arrays["wanted"] = (
            layout.compute_ranks() if layout.firsts_only else layout.get_first_indices()
        )
    return arrays


def build_padded_arrays(
    rows: Ragged, second_starts: Ints, *, fill: int, multiple: int, token_types: bool
) -> Arrays:
    """Return the input arrays of sequences, padded to a multiple of ``multiple`` tokens."""
    ids, mask = pad_rows(rows, fill, multiple=multiple)
    arrays: Arrays = {"ids": ids, "mask": mask}
    if token_types:
        arrays["token_types"] = (np.arange(ids.shape[1]) >= second_starts[:, None]) * mask
    return arrays


def get_labels(split: EncodedSplit, examples: Sequence[int]) -> Longs:
    """Return the labels, shape (examples, labels per example), int64."""
    return split.labels.take(examples).values.astype(np.int64).reshape(len(examples), -1)


def get_turn_starts(split: EncodedSplit, sequences: Longs) -> Longs:
    """Return the index of the first token of each sequence's labelled turn, or 0, int64.

    Raises:
        ModelError: the token ids do not contain the indices.
    """
    if split.turn_starts is None:
        raise ModelError(
            "models[].reads: The value is turn, but the study's token ids were written by an "
            "earlier version of tasktransfer and do not contain the positions of turns. Delete "
            "the folder data/encoded in the study's results folder, and run the study again."
        )
    return split.turn_starts[sequences].astype(np.int64)


def mask_allowed_tokens(
    split: EncodedSplit, examples: Sequence[int], width: int, *, first: bool
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return a mask of tokens that may begin or end a span, shape (examples, ``width``).

    These are the context's tokens, and the first token, which means "no answer", if ``first``.
    """
    offsets = split.offsets.take(examples)
    tokens = offsets.lengths() // 2  # each has a start and an end
    allowed = np.zeros((len(tokens), width), dtype=bool)
    allowed[np.arange(width) < tokens[:, None]] = offsets.values[0::2] >= 0
    allowed[:, 0] = first
    return allowed


def index_options(split: EncodedSplit, examples: Sequence[int]) -> Arrays:
    """Return two index arrays for multiple choice, shape (examples, largest number of options).

    ``options`` is the index of each option's sequence. ``no_option`` is True if an example has
    fewer options.
    """
    counts = np.diff(split.first_sequence)[np.asarray(examples)].astype(np.int64)
    columns = np.arange(int(counts.max()))
    missing = columns >= counts[:, None]
    begins = np.cumsum(counts) - counts
    return {
        "options": np.where(missing, 0, begins[:, None] + columns),
        "no_option": missing,
    }
