"""Packing of sequences into one row, so that no layer computes padding.

In random batches of dialogues two thirds of all positions are padding. A pack is one row of real
tokens, so embeddings, linear layers, norms and activations never process padding. Only attention
needs the boundaries of sequences. It works on groups of sequences with similar lengths, padded to
the longest of their group (see ``attention``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasktransfer.layers.ragged import (
    Ints,
    Longs,
    Ragged,
    build_ragged,
    compute_starts,
    index_spans,
)

LIKE_LENGTH = {"cpu": 0.9, "cuda": 0.5}
"""Minimum ratio of the shortest to the longest sequence of a group.

Padding costs more on a CPU, and additional groups cost more on a GPU."""

PLACEHOLDER = (1, 1, 1, 1)
"""Shape of the mask in a call with a pack, which keeps transformers from creating a mask."""


def get_first_position(config: Any) -> int | None:
    """Return the position ID of a sequence's first token, or None if packing is unsupported.

    Only models whose packed results are tested against padded ones can be packed.

    Args:
        config: config of the model.
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
    """Sequences of similar length: ``rows`` rows of at most ``width`` tokens."""

    rows: int
    width: int
    padding: Tensor | None
    """Mask of padding, shape (rows, 1, 1, width), bool; None if there is no padding."""


@dataclass(frozen=True, slots=True)
class Padding:
    """The concatenated padded layouts of all groups.

    Attributes:
        places: position of each token in the layout, shape (tokens,), int64.
        sources: index of the token at each position, shape (padded tokens,); the first token for
            padding.
        gaps: positions of padding.
    """

    places: Tensor
    sources: Tensor
    gaps: Tensor


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of packed sequences, longest first, on the host.

    Attributes:
        lengths: number of tokens of each input sequence.
        starts: start of each input sequence in the pack.
        order: indices of the input sequences in the order of the pack.
        groups: rows, width and whether there is padding, in the order of the tokens.
        arrays: arrays that a pack needs on the device: ``ids``, ``positions``, ``mask`` (a
            ``PLACEHOLDER``) and more.
        causal: whether attention is causal.
        firsts_only: whether only each sequence's first token is needed from the last layer.
    """

    lengths: Longs
    starts: Longs
    order: Longs
    groups: tuple[tuple[int, int, bool], ...]
    arrays: dict[str, np.ndarray[Any, np.dtype[Any]]]
    causal: bool
    firsts_only: bool

    def repeat_per_token(self, of_sequence: Ints) -> Longs:
        """Repeat a number per sequence for each of its tokens, shape (1, tokens).

        Args:
            of_sequence: one number per input sequence.
        """
        order = self.order
        values: Longs = np.repeat(of_sequence[order].astype(np.int64), self.lengths[order])
        return values[None]

    def compute_positions(self) -> Longs:
        """Compute each token's position in its sequence (from 0), shape (1, tokens)."""
        within: Longs = index_spans(np.zeros_like(self.lengths), self.lengths[self.order])
        return within[None]

    def get_first_indices(self) -> Longs:
        """Return the index of each sequence's first token, shape (sequences,)."""
        return self.starts

    def compute_ranks(self) -> Longs:
        """Return each sequence's index in the pack, shape (sequences,)."""
        return np.argsort(self.order)

    def index_tokens(self) -> Longs:
        """Return the indices of each sequence's tokens in the pack, (sequences, longest).

        Entries after a sequence's last token refer to other tokens.
        """
        columns = np.arange(int(self.lengths.max()))
        table: Longs = np.minimum(self.starts[:, None] + columns, int(self.lengths.sum()) - 1)
        return table

    def build_pack(self, tensors: Mapping[str, Tensor]) -> Pack:
        """Build a pack from ``arrays``, with tensors on a device."""
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
    """Packed sequences, longest first, on a device.

    Attributes:
        ids: token ids, shape (1, tokens), int64.
        positions: position ids, same shape.
        groups: groups in the order of the tokens.
        padding: positions of the tokens in the groups' padded layout; None without padding.
        causal, firsts_only: as in ``Layout``.
        ends: cumulative lengths of the sequences, shape (sequences + 1,), int32.
        longest: number of tokens of the longest sequence.
        first_places: index of each sequence's first token, in the order of the pack; None if it is
            not needed.
        first_ends: ``ends`` for a pack of only first tokens.
        biases: cache of the groups' attention biases, shared by all layers.
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


def plan_layout(
    rows: Ragged,
    device: torch.device,
    *,
    first_position: int = 0,
    causal: bool = False,
    firsts_only: bool = False,
) -> Layout:
    """Compute the layout of packed sequences.

    Args:
        rows: token ids of the sequences, in any order; none may be empty.
        device: device of the future pack.
        first_position: position id of a sequence's first token.
    """
    given = rows.lengths().astype(np.int64)
    order = np.argsort(-given, kind="stable")
    lengths = given[order]
    ends = np.cumsum(lengths)
    starts = np.empty_like(ends)
    starts[order] = ends - lengths
    within = np.arange(int(ends[-1])) - np.repeat(ends - lengths, lengths)
    arrays: dict[str, np.ndarray[Any, np.dtype[Any]]] = {
        "ids": rows.values[index_spans(rows.starts[:-1][order], lengths)].astype(np.int64)[None],
        "positions": within[None] + first_position,
        "mask": np.zeros(PLACEHOLDER, np.float32),
    }
    groups, widths = _group_sequences(lengths, LIKE_LENGTH.get(device.type, LIKE_LENGTH["cuda"]))
    if int(widths.sum()) > len(within):
        arrays |= _build_padding(lengths, widths, within, groups)
    arrays["ends"] = compute_starts(lengths)
    if firsts_only:
        arrays["first_places"] = ends - lengths
        arrays["first_ends"] = np.arange(len(lengths) + 1, dtype=np.int32)
    return Layout(given, starts, order, groups, arrays, causal, firsts_only)


def pack_sequences(
    rows: Sequence[Ints], device: torch.device, *, causal: bool = False, firsts_only: bool = False
) -> Pack:
    """Pack sequences of token ids on a device.

    The sequences may be in any order, but must not be empty.
    """
    layout = plan_layout(build_ragged(rows), device, causal=causal, firsts_only=firsts_only)
    tensors = {name: torch.from_numpy(array) for name, array in layout.arrays.items()}
    return layout.build_pack({name: tensor.to(device) for name, tensor in tensors.items()})


def _group_sequences(
    lengths: Longs, like: float
) -> tuple[tuple[tuple[int, int, bool], ...], Longs]:
    """Group sorted sequences, and return the padded width of each sequence."""
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


def _build_padding(
    lengths: Longs, widths: Longs, within: Longs, groups: tuple[tuple[int, int, bool], ...]
) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Return the arrays of ``Padding``, and flat masks of the groups with padding.

    Args:
        lengths, widths: lengths and padded widths of the sorted sequences.
        within: position of each token in its sequence.
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
