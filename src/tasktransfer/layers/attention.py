"""Attention for packed or padded sequences, for models with exchangeable attention.

It is registered with transformers under ``NAME``. On a CPU it uses the plain formula with cheap
dropout, whose backward pass is faster there than that of torch's fused attention. On a GPU it uses
torch's attention, and for packs in half precision the variable-length kernel (``flash``).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.layers import flash
from tasktransfer.layers.dropout import FastDropout, apply_dropout
from tasktransfer.layers.packing import Pack, Padding

NAME = "tasktransfer"
ARCHITECTURES = frozenset(
    {"bert", "roberta", "xlm-roberta", "electra", "distilbert", "gpt2", "t5", "bart"}
)
"""``model_type`` of the models tested with it; others keep transformers' attention."""
ALL_DROPOUT_OURS = ARCHITECTURES - {"bart"}
"""Architectures with dropout only in modules and attention, so that all of it is sampled here."""


def register_attention() -> None:
    """Register this package's attention with transformers, using masks of eager attention."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)


def list_fast_paths(
    module: nn.Module,
    config: Any,
    *,
    packed: bool,
    trees: bool = False,
    first_tokens: bool = False,
) -> tuple[str, ...]:
    """Return the names of a model's active fast paths."""
    on = {
        "packed": packed,
        "attention": config._attn_implementation == NAME,
        "dropout": any(isinstance(part, FastDropout) for part in module.modules()),
        "trees": trees,
        "first_tokens": first_tokens,
    }
    return tuple(name for name, yes in on.items() if yes)


def uses_own_attention(model: Any) -> bool:
    """Return whether this package computes a model's attention, including its dropout."""
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
    """Compute attention as one of transformers' attention functions.

    Args:
        query, key, value: shape (rows, heads, tokens, head size).
        attention_mask: mask added to the scores, shape (rows, 1, tokens, keys).
        position_bias: bias added to the scores (T5), shape (1 or rows, heads, tokens, keys).
        packed: layout of packed sequences, if the only row is a pack. Its sequences do not attend
            to each other.

    Returns:
        The output, shape (rows, tokens, heads, head size), and None instead of weights.
    """
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    rate = dropout if module.training else 0.0
    if packed is not None:
        return _compute_packed_attention(packed, query, key, value, scaling, rate), None
    if attention_mask is not None:
        # A static cache may have more positions than tokens.
        attention_mask = attention_mask[..., : key.shape[-2]]
    bias = attention_mask if position_bias is None else position_bias
    if attention_mask is not None and position_bias is not None:
        bias = position_bias + attention_mask
    return _compute_attention(query, key, value, bias, scaling, rate).transpose(1, 2), None


def attend_from_first_tokens(
    packed: Pack, query: Tensor, key: Tensor, value: Tensor, scaling: float, rate: float
) -> Tensor:
    """Compute attention from each sequence's first token to all its tokens.

    Args:
        query: queries of first tokens, in the order of the pack, (sequences, heads, head size).
        key, value: keys and values of all tokens, (tokens, heads, head size).

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
    padded = (_pad_groups(packed, states) for states in (key, value))
    apart = zip(*(torch.split(states, sizes) for states in padded), strict=True)
    attended = []
    for index, (group, asking, parts) in enumerate(
        zip(packed.groups, torch.split(query, rows), apart, strict=True)
    ):
        k, v = (part.unflatten(0, (group.rows, group.width)).transpose(1, 2) for part in parts)
        bias = _get_group_bias(packed, index, query.dtype)
        attended.append(_compute_attention(asking[:, :, None], k, v, bias, scaling, rate)[:, :, 0])
    return torch.cat(attended)


def _compute_packed_attention(
    packed: Pack, query: Tensor, key: Tensor, value: Tensor, scaling: float, rate: float
) -> Tensor:
    # No indexing, because its backward pass would first write zeros.
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
    apart = [torch.split(_pad_groups(packed, states), sizes) for states in rows]
    attended = []
    for index, (group, *parts) in enumerate(zip(packed.groups, *apart, strict=True)):
        q, k, v = (part.unflatten(0, (group.rows, group.width)).transpose(1, 2) for part in parts)
        bias = _get_group_bias(packed, index, q.dtype)
        attended.append(
            _compute_attention(q, k, v, bias, scaling, rate).transpose(1, 2).flatten(0, 1)
        )
    together = torch.cat(attended) if len(attended) > 1 else attended[0]
    if packed.padding is not None:
        together = _Unpadded.apply(together, packed.padding)  # type: ignore[no-untyped-call]
    return together[None]


def _pad_groups(packed: Pack, rows: Tensor) -> Tensor:
    """Pad the tokens of groups, (tokens, heads, size) → (padded tokens, heads, size).

    Padding positions contain states of other tokens, which the bias masks.
    """
    if packed.padding is None:
        return rows
    padded: Tensor = _Padded.apply(rows, packed.padding)  # type: ignore[no-untyped-call]
    return padded


class _Padded(torch.autograd.Function):
    """A function that pads packed tokens, with gathers in both directions.

    Each token has one position, and padding has no gradient. Gathers give bitwise reproducible
    results.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, padding: Padding) -> Tensor:
        ctx.padding = padding
        return rows.index_select(0, padding.sources)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_select(0, ctx.padding.places), None


class _Unpadded(torch.autograd.Function):
    """A function that removes padding, the inverse of ``_Padded``; padding has no gradient."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, padding: Padding) -> Tensor:
        ctx.padding = padding
        return padded.index_select(0, padding.places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        padded = gradient.index_select(0, ctx.padding.sources)
        return padded.index_fill_(0, ctx.padding.gaps, 0.0), None


def _get_group_bias(packed: Pack, number: int, dtype: torch.dtype) -> Tensor | None:
    """Return the bias of a group's attention scores, which all layers share.

    With causal attention it masks later tokens, which include the padding.
    """
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


def _compute_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, scaling: float, rate: float
) -> Tensor:
    """Return dropout(softmax(scaled scores + bias)) @ values, in the shape of ``query``."""
    bias = None if bias is None else bias.to(query.dtype)
    if query.is_cuda or not torch.is_grad_enabled():
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=bias, dropout_p=rate, scale=scaling
        )
    scores = (query * scaling) @ key.transpose(-1, -2)
    if bias is not None:
        scores += bias
    return apply_dropout(torch.softmax(scores, -1).to(value.dtype), rate) @ value
