"""Sequences laid end to end, so that no layer of a model computes padding.

In random batches of dialogues two thirds of all positions are padding. A pack is one row of real
tokens: embeddings, linear layers, norms and activations see nothing else. Only attention needs to
know where a sequence ends; it works on groups of sequences of like length, padded to the longest
of their group (see ``attention``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasktransfer.layers.ragged import Ints, Longs, Ragged, ragged, spans, starts_of

LIKE_LENGTH = {"cpu": 0.9, "cuda": 0.5}
"""A group's shortest sequence has at least this share of its longest one's length. Padding costs
more on a CPU, a further group more on a GPU."""

PLACEHOLDER = (1, 1, 1, 1)
"""Shape of the mask that a packed call gives: transformers makes none of its own then."""


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
class Layout:
    """Where sequences lie that are laid end to end, the longest first. On the host.

    Attributes:
        lengths: tokens of each given sequence.
        starts: where each given sequence begins.
        order: the given sequences in the order of the pack.
        groups: rows, width and whether there is padding, in the order of the tokens.
        arrays: what a pack needs on the device: ``ids``, ``positions``, ``mask`` (a
            ``PLACEHOLDER``) and more.
        causal: whether a token sees only those before it.
        firsts_only: whether of the last layer nothing but each sequence's first token is wanted.
    """

    lengths: Longs
    starts: Longs
    order: Longs
    groups: tuple[tuple[int, int, bool], ...]
    arrays: dict[str, np.ndarray[Any, np.dtype[Any]]]
    causal: bool
    firsts_only: bool

    def per_token(self, of_sequence: Ints) -> Longs:
        """A number of each given sequence, said of each of its tokens, shape (1, tokens)."""
        order = self.order
        values: Longs = np.repeat(of_sequence[order].astype(np.int64), self.lengths[order])
        return values[None]

    def within(self) -> Longs:
        """Each token's place in its own sequence, from 0, shape (1, tokens)."""
        within: Longs = spans(np.zeros_like(self.lengths), self.lengths[self.order])
        return within[None]

    def firsts(self) -> Longs:
        """Index of each given sequence's first token, shape (sequences,)."""
        return self.starts

    def ranks(self) -> Longs:
        """Which sequence of the pack each given one is, shape (sequences,)."""
        return np.argsort(self.order)

    def table(self) -> Longs:
        """Index of each given sequence's tokens in the pack, shape (sequences, longest); beyond
        its last token, some other token's."""
        columns = np.arange(int(self.lengths.max()))
        table: Longs = np.minimum(self.starts[:, None] + columns, int(self.lengths.sum()) - 1)
        return table

    def pack(self, tensors: Mapping[str, Tensor]) -> Pack:
        """The pack, from ``arrays`` as tensors of a device."""
        padding = None
        if "places" in tensors:
            padding = Padding(tensors["places"], tensors["sources"], tensors["gaps"])
        groups, seen = [], 0
        for rows, width, has_padding in self.groups:
            hidden = None
            if has_padding:
                hidden = tensors["hidden"][seen : seen + rows * width].view(rows, 1, 1, width)
                seen += rows * width
            groups.append(Group(rows, width, hidden))
        return Pack(
            ids=tensors["ids"],
            positions=tensors["positions"],
            groups=tuple(groups),
            padding=padding,
            causal=self.causal,
            firsts_only=self.firsts_only,
            ends=tensors["ends"],
            longest=int(self.lengths.max()),
            first_places=tensors.get("first_places"),
            first_ends=tensors.get("first_ends"),
            layout=self,
        )


@dataclass(frozen=True, slots=True)
class Pack:
    """Sequences end to end, the longest first, on a device.

    Attributes:
        ids: token ids, shape (1, tokens), int64.
        positions: position ids, same shape.
        groups: in the order of the tokens.
        padding: how the tokens lie in the groups' padded layout; None: nothing is padded.
        causal, firsts_only: as in ``Layout``.
        ends: where each sequence begins and the last one ends, shape (sequences + 1,), int32.
        longest: tokens of the longest sequence.
        first_places: of each sequence's first token, in the order of the pack; None: nobody asks.
        first_ends: ``ends`` of what holds first tokens only.
        biases: what was made of the groups' padding by attention, for all layers.
    """

    ids: Tensor
    positions: Tensor
    groups: tuple[Group, ...]
    padding: Padding | None
    causal: bool
    firsts_only: bool
    ends: Tensor
    longest: int
    first_places: Tensor | None
    first_ends: Tensor | None
    layout: Layout
    biases: dict[tuple[int, torch.dtype], Tensor | None] = field(default_factory=dict)


def lay_out(
    rows: Ragged,
    device: torch.device,
    *,
    first_position: int = 0,
    causal: bool = False,
    firsts_only: bool = False,
) -> Layout:
    """Lay sequences end to end.

    Args:
        rows: their token ids, in any order, none of them empty.
        device: that they are meant for.
        first_position: the position id of a first token.
    """
    given = rows.lengths().astype(np.int64)
    order = np.argsort(-given, kind="stable")
    lengths = given[order]
    ends = np.cumsum(lengths)
    starts = np.empty_like(ends)
    starts[order] = ends - lengths
    within = np.arange(int(ends[-1])) - np.repeat(ends - lengths, lengths)
    arrays: dict[str, np.ndarray[Any, np.dtype[Any]]] = {
        "ids": rows.values[spans(rows.starts[:-1][order], lengths)].astype(np.int64)[None],
        "positions": within[None] + first_position,
        "mask": np.zeros(PLACEHOLDER, np.float32),
    }
    groups, widths = _groups(lengths, LIKE_LENGTH.get(device.type, LIKE_LENGTH["cuda"]))
    if int(widths.sum()) > len(within):
        arrays |= _padding(lengths, widths, within, groups)
    arrays["ends"] = starts_of(lengths)
    if firsts_only:
        arrays["first_places"] = ends - lengths
        arrays["first_ends"] = np.arange(len(lengths) + 1, dtype=np.int32)
    return Layout(given, starts, order, groups, arrays, causal, firsts_only)


def pack(
    rows: Sequence[Ints], device: torch.device, *, causal: bool = False, firsts_only: bool = False
) -> Pack:
    """Sequences on a device, end to end: their token ids, in any order, none of them empty."""
    layout = lay_out(ragged(rows), device, causal=causal, firsts_only=firsts_only)
    tensors = {name: torch.from_numpy(array) for name, array in layout.arrays.items()}
    return layout.pack({name: tensor.to(device) for name, tensor in tensors.items()})


def _groups(lengths: Longs, like: float) -> tuple[tuple[tuple[int, int, bool], ...], Longs]:
    """Groups of sequences that come sorted, and every sequence's width in its group."""
    groups: list[tuple[int, int, bool]] = []
    widths = np.empty_like(lengths)
    begin = 0
    while begin < len(lengths):
        width = int(lengths[begin])
        end = begin + int(np.count_nonzero(lengths[begin:] >= like * width))
        widths[begin:end] = width
        groups.append((end - begin, width, bool(lengths[end - 1] < width)))
        begin = end
    return tuple(groups), widths


def _padding(
    lengths: Longs, widths: Longs, within: Longs, groups: tuple[tuple[int, int, bool], ...]
) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """The arrays of ``Padding``, and ``hidden``: the masks of the groups that have padding, flat.

    Args:
        lengths, widths: of sequences, sorted.
        within: each token's place in its own sequence.
    """
    places = within + np.repeat(np.cumsum(widths) - widths, lengths)
    empty = np.ones(int(widths.sum()), dtype=bool)
    empty[places] = False
    sources = np.zeros(len(empty), dtype=np.int64)
    sources[places] = np.arange(len(places))
    in_a_padded_group = np.repeat([p for _, _, p in groups], [r * w for r, w, _ in groups])
    return {
        "places": places,
        "sources": sources,
        "gaps": np.flatnonzero(empty),
        "hidden": empty[in_a_padded_group],
    }
