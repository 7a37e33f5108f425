"""The two segments of a sequence, each read by itself, and compared: two towers of one encoder.

Reimers and Gurevych (2019), Sentence-BERT: u and v are the means of the last layer's states over
the tokens of either segment; a head reads |u - v| and u * v. Both are taken of vectors of length
one, and scaled so that what a head reads is of the order of one whatever the width.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.errors import ModelError
from tasktransfer.layers.ragged import Ints, Ragged, ragged

START_SCALE, START_MIDDLE = 10.0, 0.25
"""A head that gives one number begins as the cosine of u and v: so many times what it is above the
middle. Of pairs that somebody said in a row, MiniLM's cosines are about that."""


def parted(sequences: Ragged, second_starts: Ints) -> Ragged:
    """First segments, then second ones, each with the special tokens of a sequence of its own.

    Args:
        second_starts: where the second segment of each sequence begins.

    Returns:
        Twice as many rows.

    Raises:
        ModelError: a sequence has one segment alone.
    """
    rows = [sequences[index] for index in range(len(second_starts))]
    if any(start >= len(row) for row, start in zip(rows, second_starts, strict=True)):
        raise ModelError(
            "a sequence has one segment, and two are compared: use this model for tasks that ask "
            "about a context (delete data/encoded where it was written by an earlier version)"
        )
    both = list(zip(rows, second_starts, strict=True))
    first = [row[:start] for row, start in both]
    second = [np.concatenate([row[:1], row[start:]]) for row, start in both]
    return ragged([*first, *second])


def average_tokens(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean state of each sequence, (sequences, hidden size).

    Args:
        states: (sequences, longest, hidden size); beyond a sequence's last token they are ignored.
        lengths: tokens of each sequence.
    """
    there = torch.arange(states.shape[1], device=states.device) < lengths[:, None]
    total = states.masked_fill(~there[:, :, None], 0).sum(1)
    return total / lengths[:, None]


def compared(states: Tensor, lengths: Tensor) -> Tensor:
    """What a head reads of pairs.

    Args:
        states: of the tokens of ``parted``'s rows, (2 x pairs, longest, hidden size).
        lengths: tokens of each row.

    Returns:
        |u - v| and u * v, (pairs, 2 x hidden size).
    """
    u, v = functional.normalize(average_tokens(states, lengths).float(), dim=-1).chunk(2)
    width = states.shape[-1]
    return torch.cat([math.sqrt(width) * (u - v).abs(), width * u * v], dim=-1)


def begin_as_cosine(head: nn.Linear) -> None:
    """Let a head of one output begin as the cosine of u and v."""
    width = head.in_features // 2
    with torch.no_grad():
        head.weight[:, :width] = 0
        head.weight[:, width:] = START_SCALE / width
        head.bias.fill_(-START_SCALE * START_MIDDLE)
