"""The two segments of a sequence, encoded separately by one encoder and then compared.

Reimers and Gurevych (2019), Sentence-BERT: u and v are the means of the last layer's states over
the tokens of each segment. A head reads |u - v| and u * v. Both are computed from unit vectors, and
scaled so that the head's inputs are of the order of one for every hidden size.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.errors import ModelError
from tasktransfer.layers.ragged import Ints, Ragged, build_ragged

START_SCALE, START_MIDDLE = 10.0, 0.25
"""Scale and middle of a single-output head's initial function, scale * (cosine(u, v) - middle).

The middle is about MiniLM's cosine similarity for consecutive utterances."""


def split_pairs(sequences: Ragged, second_starts: Ints) -> Ragged:
    """Split sequences into first and second segments, each with special tokens.

    Args:
        second_starts: start of each sequence's second segment.

    Returns:
        Twice as many rows.

    Raises:
        ModelError: a sequence has only one segment.
    """
    rows = [sequences[index] for index in range(len(second_starts))]
    if any(start >= len(row) for row, start in zip(rows, second_starts, strict=True)):
        raise ModelError(
            "A sequence has only one segment, but this model compares two segments. Use the "
            "model for tasks with a question about a context. Delete the folder data/encoded if "
            "an earlier version of tasktransfer wrote it."
        )
    both = list(zip(rows, second_starts, strict=True))
    first = [row[:start] for row, start in both]
    second = [np.concatenate([row[:1], row[start:]]) for row, start in both]
    return build_ragged([*first, *second])


def average_tokens(states: Tensor, lengths: Tensor, starts: Tensor | None = None) -> Tensor:
    """Average the states of each sequence, (sequences, hidden size).

    Args:
        states: (sequences, longest, hidden size); states after a sequence's last token are ignored.
        lengths: number of tokens of each sequence.
        starts: index of the first token to average in each sequence. None to average all tokens.
    """
    places = torch.arange(states.shape[1], device=states.device)
    there, counts = places < lengths[:, None], lengths
    if starts is not None:
        there, counts = there & (places >= starts[:, None]), lengths - starts
    total = states.masked_fill(~there[:, :, None], 0).sum(1)
    return total / counts[:, None]


def compare_pairs(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the features of pairs of vectors for a head.

    Args:
        states: token states of the rows of ``split_pairs``, (2 x pairs, longest, hidden size).
        lengths: number of tokens of each row.

    Returns:
        |u - v| and u * v, (pairs, 2 x hidden size).
    """
    u, v = functional.normalize(average_tokens(states, lengths).float(), dim=-1).chunk(2)
    width = states.shape[-1]
    return torch.cat([math.sqrt(width) * (u - v).abs(), width * u * v], dim=-1)


def initialise_as_cosine(head: nn.Linear) -> None:
    """Initialise a head with one output to compute the cosine similarity of u and v."""
    width = head.in_features // 2
    with torch.no_grad():
        head.weight[:, :width] = 0
        head.weight[:, width:] = START_SCALE / width
        head.bias.fill_(-START_SCALE * START_MIDDLE)
