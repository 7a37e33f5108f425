"""Greedy decoding, by transformers or from trees of prompts.

Both give the same answers. Checkpoints whose settings modify scores (penalties, forbidden or forced
tokens) are always decoded by transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasktransfer.layers.ended import have_all_ended
from tasktransfer.layers.prompt_trees import Bools, PromptTree
from tasktransfer.layers.ragged import Longs

TREE_ARCHITECTURES = frozenset({"gpt2"})
"""``model_type`` of the decoders for which prompt trees are tested."""

_CHANGES_GREEDY = (
    "bad_words_ids",
    "begin_suppress_tokens",
    "encoder_no_repeat_ngram_size",
    "encoder_repetition_penalty",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "guidance_scale",
    "min_length",
    "no_repeat_ngram_size",
    "repetition_penalty",
    "sequence_bias",
    "suppress_tokens",
)
_NO_CHANGE: tuple[object, ...] = (None, 0, 1.0, [])


def can_decode_trees(model: Any) -> bool:
    """Return whether a causal language model can generate from trees of prompts."""
    settings = model.generation_config
    greedy = all(getattr(settings, name, None) in _NO_CHANGE for name in _CHANGES_GREEDY)
    return greedy and model.config.model_type in TREE_ARCHITECTURES


def generate_sequences(
    model: Any,
    tokenizer: Any,
    ids: Tensor,
    mask: Tensor,
    longest: int,
    penalty: float = 1.0,
    **more: Any,
) -> Tensor:
    """Generate greedily with transformers, ignoring sampling settings of the checkpoint.

    Return the token ids of transformers, which in a decoder begin with the prompt.

    Args:
        longest: maximum number of new tokens.
        penalty: repetition penalty on generated tokens, and in a decoder also on the prompt's
            tokens; 1.0 keeps the checkpoint's setting.
        more: further inputs of the model, such as encoder outputs.
    """
    settings = deepcopy(model.generation_config)
    if penalty != 1.0:
        settings.update(repetition_penalty=penalty)
    settings.update(
        do_sample=False,
        num_beams=1,
        temperature=None,
        top_p=None,
        top_k=None,
        max_new_tokens=longest,
        min_new_tokens=None,
        max_length=None,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    sequences: Tensor = model.generate(
        input_ids=ids, attention_mask=mask, generation_config=settings, **more
    )
    return sequences


def generate_from_trees(
    model: Any, trees: Sequence[PromptTree], *, longest: int, end: int, fill: int
) -> Tensor:
    """Generate a greedy continuation of every prompt in trees.

    Every tree is a row, and every step appends a node to each of its prompts. A new node attends to
    its own prompt and its continuation, but not to other branches.

    Args:
        model: a causal language model of ``TREE_ARCHITECTURES``.
        longest: maximum number of new tokens.
        end: token that ends an answer.
        fill: padding token after the end.

    Returns:
        The new tokens of each prompt, in the order of their indices, shape (prompts, new tokens).
    """
    from transformers import DynamicCache

    device = model.device
    ids, depths, leaves, visible = (
        torch.from_numpy(array).to(device) for array in _pad_trees(trees, fill)
    )
    rows, branches = leaves.shape
    each = torch.arange(rows, device=device)[:, None]
    cache = DynamicCache(config=model.config)
    hidden = _extend_cache(model, ids, depths, visible, cache)[each, leaves]
    seen, depth = visible[each, leaves], depths[each, leaves]
    itself = torch.eye(branches, dtype=torch.bool, device=device).expand(rows, -1, -1)
    exists = torch.zeros((rows, branches), dtype=torch.bool, device=device)
    for row, tree in enumerate(trees):
        exists[row, : len(tree.prompts)] = True
    tokens: list[Tensor] = []
    going = exists
    while True:
        best = model.get_output_embeddings()(hidden).argmax(-1)
        tokens.append(torch.where(going, best, fill))
        going = going & (best != end)
        if len(tokens) == longest or have_all_ended(~going, len(tokens) - 1):
            break
        depth, seen = depth + 1, torch.cat([seen, itself], dim=-1)
        hidden = _extend_cache(model, tokens[-1], depth, seen, cache)
    # In row-major order, the existing branches follow the order of the trees and their prompts.
    answers = torch.stack(tokens, dim=-1)[exists]
    prompts = torch.tensor([prompt for tree in trees for prompt in tree.prompts])
    return answers[prompts.argsort().to(device)]


def _extend_cache(model: Any, ids: Tensor, depths: Tensor, visible: Tensor, cache: Any) -> Tensor:
    """Add new nodes to the key-value cache, and return their states, (rows, nodes, hidden size).

    Args:
        visible: attention mask, shape (rows, nodes, nodes so far), bool.
    """
    hidden = torch.zeros(visible.shape, dtype=torch.float32, device=ids.device)
    bias = hidden.masked_fill_(~visible, torch.finfo(torch.float32).min)[:, None]
    read: Tensor = model.base_model(
        input_ids=ids,
        position_ids=depths,
        attention_mask=bias,
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state
    return read


def _pad_trees(trees: Sequence[PromptTree], fill: int) -> tuple[Longs, Longs, Longs, Bools]:
    """Pad the arrays of a batch of trees to the largest tree.

    Padding attends only to itself, and no node attends to padding.

    Returns:
        Token ids (rows, nodes), depths (rows, nodes), leaves (rows, branches) and the attention
        mask (rows, nodes, nodes).
    """
    width, branches = max(map(len, trees)), max(len(tree.prompts) for tree in trees)
    ids = np.full((len(trees), width), fill, dtype=np.int64)
    depths = np.zeros((len(trees), width), dtype=np.int64)
    leaves = np.zeros((len(trees), branches), dtype=np.int64)
    visible = np.zeros((len(trees), width, width), dtype=bool)
    for row, tree in enumerate(trees):
        size = len(tree)
        ids[row, :size] = tree.tokens
        depths[row, :size] = tree.depths
        leaves[row, : len(tree.leaves)] = tree.leaves
        visible[row, :size, :size] = tree.visible
        visible[row, range(size, width), range(size, width)] = True
    return ids, depths, leaves, visible
