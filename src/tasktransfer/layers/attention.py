"""Attention for every model that lets its attention be exchanged, packed or padded.

Registered with transformers under ``NAME``. On a CPU it is the plain formula with cheap dropout,
whose backward pass is faster there than that of torch's fused attention; on a GPU torch's own,
for a pack in half precision the one for sequences of any length (``flash``).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.layers import flash
from tasktransfer.layers.dropout import FastDropout, dropped
from tasktransfer.layers.packing import Pack, Padding

NAME = "tasktransfer"
ARCHITECTURES = frozenset(
    {"bert", "roberta", "xlm-roberta", "electra", "distilbert", "gpt2", "t5", "bart"}
)
"""``model_type`` of those that are tested with it; others keep transformers' attention."""
ALL_DROPOUT_OURS = ARCHITECTURES - {"bart"}
"""Those that have no dropout but modules and attention, so that all of it is drawn here."""


def register() -> None:
    """Make the attention known to transformers, with masks as its eager attention has them."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)


def paths_of(
    module: nn.Module,
    config: Any,
    *,
    packed: bool,
    trees: bool = False,
    first_tokens: bool = False,
) -> tuple[str, ...]:
    """The fast paths that a model takes, by name."""
    on = {
        "packed": packed,
        "attention": config._attn_implementation == NAME,
        "dropout": any(isinstance(part, FastDropout) for part in module.modules()),
        "trees": trees,
        "first_tokens": first_tokens,
    }
    return tuple(name for name, yes in on.items() if yes)


def is_ours(model: Any) -> bool:
    """Whether a model's attention and all of its dropout are computed here."""
    config = model.config
    return config._attn_implementation == NAME and config.model_type in ALL_DROPOUT_OURS


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,
    packed: Pack | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it.

    Args:
        query, key, value: shape (rows, heads, tokens, size of a head).
        attention_mask: added to the scores, shape (rows, 1, tokens, tokens seen).
        position_bias: added as well (T5), shape (1 or rows, heads, tokens, tokens seen).
        packed: the one row is a pack of sequences that do not see each other.

    Returns:
        Shape (rows, tokens, heads, size of a head), and no weights.
    """
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    rate = dropout if module.training else 0.0
    if packed is not None:
        return _packed(packed, query, key, value, scaling, rate), None
    if attention_mask is not None:
        # A static cache may hold more places than there are tokens yet.
        attention_mask = attention_mask[..., : key.shape[-2]]
    bias = attention_mask if position_bias is None else position_bias
    if attention_mask is not None and position_bias is not None:
        bias = position_bias + attention_mask
    return _attention(query, key, value, bias, scaling, rate).transpose(1, 2), None


def attend_from_firsts(
    packed: Pack, query: Tensor, key: Tensor, value: Tensor, scaling: float, rate: float
) -> Tensor:
    """Attention of every sequence's first token to all of its tokens.

    Args:
        query: of first tokens, in the order of the pack, shape (sequences, heads, size of a head).
        key, value: of all tokens, shape (tokens, heads, size of a head).

    Returns:
        Shape of ``query``.
    """
    if packed.first_ends is not None and flash.is_usable(query):
        return flash.attend(
            query,
            key,
            value,
            (packed.first_ends, packed.ends),
            (1, packed.longest),
            causal=False,
            scaling=scaling,
            rate=rate,
        )
    rows = [group.rows for group in packed.groups]
    sizes = [group.rows * group.width for group in packed.groups]
    padded = (_padded(packed, states) for states in (key, value))
    apart = zip(*(torch.split(states, sizes) for states in padded), strict=True)
    attended = []
    for index, (group, asking, parts) in enumerate(
        zip(packed.groups, torch.split(query, rows), apart, strict=True)
    ):
        k, v = (part.unflatten(0, (group.rows, group.width)).transpose(1, 2) for part in parts)
        bias = _group_bias(packed, index, query.dtype)
        attended.append(_attention(asking[:, :, None], k, v, bias, scaling, rate)[:, :, 0])
    return torch.cat(attended)


def _packed(
    packed: Pack, query: Tensor, key: Tensor, value: Tensor, scaling: float, rate: float
) -> Tensor:
    # No index: its backward pass would write zeros first.
    rows = [states.squeeze(0).transpose(0, 1) for states in (query, key, value)]
    if flash.is_usable(query):
        together = flash.attend(
            rows[0],
            rows[1],
            rows[2],
            (packed.ends, packed.ends),
            (packed.longest, packed.longest),
            causal=packed.causal,
            scaling=scaling,
            rate=rate,
        )
        return together[None]
    sizes = [group.rows * group.width for group in packed.groups]
    apart = [torch.split(_padded(packed, states), sizes) for states in rows]
    attended = []
    for index, (group, *parts) in enumerate(zip(packed.groups, *apart, strict=True)):
        q, k, v = (part.unflatten(0, (group.rows, group.width)).transpose(1, 2) for part in parts)
        bias = _group_bias(packed, index, q.dtype)
        attended.append(_attention(q, k, v, bias, scaling, rate).transpose(1, 2).flatten(0, 1))
    together = torch.cat(attended) if len(attended) > 1 else attended[0]
    if packed.padding is not None:
        together = _Unpadded.apply(together, packed.padding)  # type: ignore[no-untyped-call]
    return together[None]


def _padded(packed: Pack, rows: Tensor) -> Tensor:
    """(tokens, heads, size) → (padded tokens, heads, size); where there is no token, some other's
    states, which the bias hides."""
    if packed.padding is None:
        return rows
    padded: Tensor = _Padded.apply(rows, packed.padding)  # type: ignore[no-untyped-call]
    return padded


class _Padded(torch.autograd.Function):
    """Lay tokens out with gaps. Each is at one place, and what fills a gap has no gradient: so both
    ways are gathers, which give the same bits every time."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, padding: Padding) -> Tensor:
        ctx.padding = padding
        return rows.index_select(0, padding.sources)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_select(0, ctx.padding.places), None


class _Unpadded(torch.autograd.Function):
    """Pick the real tokens: the other way round, with no gradient for what is in a gap."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, padding: Padding) -> Tensor:
        ctx.padding = padding
        return padded.index_select(0, padding.places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        padded = gradient.index_select(0, ctx.padding.sources)
        return padded.index_fill_(0, ctx.padding.gaps, 0.0), None


def _group_bias(packed: Pack, number: int, dtype: torch.dtype) -> Tensor | None:
    """What is added to a group's scores; a token does not see later ones, and so no padding, if
    attention is causal. Made once for all layers."""
    key = (number, dtype)
    if key not in packed.biases:
        group, device = packed.groups[number], packed.ids.device
        hidden = group.padding
        if packed.causal:
            hidden = torch.ones(group.width, group.width, dtype=torch.bool, device=device).triu(1)
        bias = None
        if hidden is not None:
            zeros = torch.zeros(hidden.shape, dtype=dtype, device=device)
            bias = zeros.masked_fill(hidden, torch.finfo(dtype).min)
        packed.biases[key] = bias
    return packed.biases[key]


def _attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, scaling: float, rate: float
) -> Tensor:
    """Softmax of scaled scores and bias, dropout, times values; shape of ``query``."""
    bias = None if bias is None else bias.to(query.dtype)
    if query.is_cuda or not torch.is_grad_enabled():
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=bias, dropout_p=rate, scale=scaling
        )
    scores = (query * scaling) @ key.transpose(-1, -2)
    if bias is not None:
        scores += bias
    return dropped(torch.softmax(scores, -1).to(value.dtype), rate) @ value
