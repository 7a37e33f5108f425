"""Computation of only the first tokens in the last layer, for models pooled by the first token.

Keys and values of all tokens are still needed. Queries, the attention's output and the feed-forward
part are computed for first tokens only. This saves five sixths of the layer's matrix products, and
does not change any result.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

from torch import Tensor

from tasktransfer.layers.attention import attend_from_first_tokens, uses_own_attention
from tasktransfer.layers.packing import Pack

ARCHITECTURES = frozenset({"bert", "electra", "roberta", "xlm-roberta"})
"""``model_type`` of models whose layers are built like BERT's."""


def narrow_last_layer(backbone: Any) -> bool:
    """Let the last layer compute first tokens only, when that is sufficient.

    It does so for packs with ``Pack.firsts_only``.

    Returns:
        True if the architecture supports it; other models are not changed.
    """
    if backbone.config.model_type not in ARCHITECTURES or not uses_own_attention(backbone):
        return False
    last = backbone.encoder.layer[-1]
    # The method is replaced on the instance, so weights keep their names.
    last.forward = MethodType(_run_layer, last)
    return True


def _run_layer(
    layer: Any, hidden_states: Tensor, *arguments: Any, packed: Pack | None = None, **others: Any
) -> Tensor:
    """Run the complete layer, or compute only first tokens.

    In the second case (1, tokens, hidden size) → (1, sequences, hidden size), with sequences in the
    pack's order.
    """
    if packed is None or packed.first_places is None:
        whole: Tensor = type(layer).forward(
            layer, hidden_states, *arguments, packed=packed, **others
        )
        return whole
    own = layer.attention.self
    firsts = hidden_states.index_select(1, packed.first_places)
    query, key, value = own.query(firsts), own.key(hidden_states), own.value(hidden_states)
    heads = (own.num_attention_heads, own.attention_head_size)
    query, key, value = (states.squeeze(0).unflatten(-1, heads) for states in (query, key, value))
    rate = own.dropout.p if own.training else 0.0
    context = attend_from_first_tokens(packed, query, key, value, own.scaling, rate)
    attended = layer.attention.output(context.flatten(-2)[None], firsts)
    fed_forward: Tensor = layer.feed_forward_chunk(attended)
    return fed_forward
