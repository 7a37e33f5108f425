"""Sequences laid end to end, so that no layer of a model computes padding.

In random batches of dialogues two thirds of all positions are padding. A pack is one row of real
tokens: embeddings, linear layers, norms and activations see nothing else. Only attention needs to
know where a sequence ends; it works on groups of sequences of like length, padded to the longest
of their group (see ``attention``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasktransfer.models.encoded import Ints

Longs = np.ndarray[Any, np.dtype[np.int64]]

LIKE_LENGTH = {"cpu": 0.9, "cuda": 0.5}
"""A group's shortest sequence has at least this share of its longest one's length. Padding costs
more on a CPU, a further group more on a GPU."""


def first_position(config: Any) -> int | None:
    """The position id of a sequence's first token; None: models of this kind are not packed.

    ``config``: a model's. Only kinds whose packed results are tested against padded ones.
    """
    match config.model_type:
        case "bert" | "electra" | "gpt2":
            return 0
        case "roberta" | "xlm-roberta":
            return int(config.pad_token_id) + 1
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Group:
    """Sequences of like length: ``rows`` of at most ``width`` tokens."""

    rows: int
    width: int
    padding: Tensor | None
    """Where there is no token, shape (rows, 1, 1, width), bool; None: there is one everywhere."""


@dataclass(frozen=True, slots=True)
class Padding:
    """Groups' padded layouts laid end to end.

    Attributes:
        places: each token's place in it, shape (tokens,), int64.
        sources: the token at each place, shape (padded tokens,); where there is none, the first.
        gaps: the places without a token.
    """

    places: Tensor
    sources: Tensor
    gaps: Tensor


@dataclass(frozen=True, slots=True)
class Pack:
    """Sequences end to end, the longest first.

    Attributes:
        ids: token ids, shape (1, tokens), int64.
        positions: each token's place in its own sequence, from 0, same shape.
        starts: where the i-th sequence that was given begins.
        lengths: and how many tokens it has.
        groups: in the order of the tokens.
        padding: how the tokens lie in the groups' padded layout; None: nothing is padded.
        causal: whether a token sees only those before it.
        firsts_only: whether of the last layer nothing but each sequence's first token is wanted.
    """

    ids: Tensor
    positions: Tensor
    starts: Longs
    lengths: Longs
    groups: tuple[Group, ...]
    padding: Padding | None
    causal: bool
    firsts_only: bool = False

    def per_token(self, of_sequence: Ints) -> Tensor:
        """A number of each given sequence, said of each of its tokens, shape (1, tokens)."""
        order = np.argsort(self.starts)
        values = np.repeat(of_sequence[order], self.lengths[order])
        return torch.from_numpy(values.astype(np.int64)).to(self.ids.device)[None]

    def firsts(self) -> Tensor:
        """Index of each given sequence's first token, shape (sequences,)."""
        return torch.from_numpy(self.starts.astype(np.int64)).to(self.ids.device)

    def first_places(self) -> Tensor:
        """The same in the order of the pack, from its beginning to its end."""
        return torch.from_numpy(np.sort(self.starts)).to(self.ids.device)

    def ranks(self) -> Tensor:
        """Which sequence of the pack each given one is, shape (sequences,)."""
        return torch.from_numpy(np.argsort(np.argsort(self.starts))).to(self.ids.device)

    def table(self) -> Tensor:
        """Index of each given sequence's tokens in the pack, shape (sequences, longest); beyond
        its last token, some other token's."""
        columns = np.arange(int(self.lengths.max()))
        index = np.minimum(self.starts[:, None] + columns, int(self.lengths.sum()) - 1)
        return torch.from_numpy(index.astype(np.int64)).to(self.ids.device)


def pack(
    rows: Sequence[Ints],
    device: torch.device,
    *,
    causal: bool = False,
    firsts_only: bool = False,
) -> Pack:
    """Lay sequences end to end. ``rows``: their token ids, in any order, none of them empty."""
    given = np.array([len(row) for row in rows], dtype=np.int64)
    order = np.argsort(-given, kind="stable")
    lengths = given[order]
    ends = np.cumsum(lengths)
    starts = np.empty_like(ends)
    starts[order] = ends - lengths
    positions = np.arange(int(ends[-1])) - np.repeat(ends - lengths, lengths)
    groups, widths = _groups(lengths, LIKE_LENGTH.get(device.type, LIKE_LENGTH["cuda"]), device)
    padded_ends = np.cumsum(widths)
    places = positions + np.repeat(padded_ends - widths, lengths)
    padded = int(padded_ends[-1])

    def put(array: Ints | Longs) -> Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(device)

    padding = None
    if padded > len(positions):
        sources = np.full(padded, -1)
        sources[places] = np.arange(len(positions))
        gaps = np.flatnonzero(sources < 0)
        parts = (places, np.maximum(sources, 0), gaps)
        padding = Padding(*torch.split(put(np.concatenate(parts)), [len(part) for part in parts]))
    return Pack(
        ids=put(np.concatenate([rows[i] for i in order]))[None],
        positions=put(positions)[None],
        starts=starts,
        lengths=given,
        groups=groups,
        padding=padding,
        causal=causal,
        firsts_only=firsts_only,
    )


def _groups(lengths: Longs, like: float, device: torch.device) -> tuple[tuple[Group, ...], Longs]:
    """Groups of sequences that come sorted, and every sequence's width in its group."""
    groups: list[Group] = []
    widths = np.empty_like(lengths)
    begin = 0
    while begin < len(lengths):
        width = int(lengths[begin])
        end = begin + int(np.count_nonzero(lengths[begin:] >= like * width))
        widths[begin:end] = width
        padding = None
        if lengths[end - 1] < width:
            empty = np.arange(width) >= lengths[begin:end, None]
            padding = torch.from_numpy(empty).to(device)[:, None, None, :]
        groups.append(Group(end - begin, width, padding))
        begin = end
    return tuple(groups), widths
