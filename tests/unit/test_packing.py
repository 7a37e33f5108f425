"""Packed sequences, trees of prompts and dropout: their content, for any input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from tasktransfer.layers import attention
from tasktransfer.layers.dropout import FastDropout, apply_dropout, use_fast_dropout
from tasktransfer.layers.packing import pack_sequences
from tasktransfer.layers.prompt_trees import MAX_TREE_NODES, build_prompt_trees

CPU = torch.device("cpu")


def rows_of(*lengths: int) -> list[np.ndarray]:
    """Return random token ids of the requested lengths."""
    draw = np.random.default_rng(0)
    return [draw.integers(3, 50, length).astype(np.int32) for length in lengths]


# --- packs --------------------------------------------------------------------------------------

lengths = st.lists(st.integers(1, 40), min_size=1, max_size=25)


@given(lengths)
def test_a_pack_holds_each_sequence_in_one_piece(given_lengths: list[int]) -> None:
    rows = rows_of(*given_lengths)
    packed = pack_sequences(rows, CPU)
    assert packed.ids.shape == packed.positions.shape == (1, sum(given_lengths))
    for start, row, index in zip(
        packed.layout.starts, rows, packed.layout.index_tokens(), strict=True
    ):
        piece = slice(int(start), int(start) + len(row))
        assert packed.ids[0, piece].tolist() == row.tolist()
        assert packed.positions[0, piece].tolist() == list(range(len(row)))
        assert index[: len(row)].tolist() == list(range(piece.start, piece.stop))
    assert sum(group.rows for group in packed.groups) == len(rows)
    said = packed.layout.repeat_per_token(np.arange(len(rows)))[0]
    assert [int(said[start]) for start in packed.layout.starts] == list(range(len(rows)))


@settings(deadline=None, max_examples=30)
@given(lengths, st.booleans())
def test_packed_attention_is_that_of_each_sequence_alone(
    given_lengths: list[int], causal: bool
) -> None:
    packed = pack_sequences(rows_of(*given_lengths), CPU, causal=causal)
    tokens = sum(given_lengths)
    torch.manual_seed(tokens)
    query, key, value = (
        torch.randn(1, 2, tokens, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)
    )
    found, _ = attention.attend(nn.Identity(), query, key, value, None, packed=packed)
    toward = torch.randn_like(found)
    gradients = torch.autograd.grad((found * toward).sum(), (query, key, value))
    for start, length in zip(packed.layout.starts, packed.layout.lengths, strict=True):
        piece = slice(int(start), int(start) + int(length))
        q, k, v = (t[:, :, piece].detach().requires_grad_() for t in (query, key, value))
        alone = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        torch.testing.assert_close(found[:, piece], alone.transpose(1, 2))
        own = torch.autograd.grad((alone.transpose(1, 2) * toward[:, piece]).sum(), (q, k, v))
        for mine, theirs in zip(gradients, own, strict=True):
            torch.testing.assert_close(mine[:, :, piece], theirs)


# --- trees of prompts ---------------------------------------------------------------------------

prompts = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12), min_size=1, max_size=20)


@given(prompts)
def test_a_tree_spells_every_prompt_once(given_prompts: list[list[int]]) -> None:
    rows = [np.array(p, np.int32) for p in given_prompts]
    trees = build_prompt_trees(rows)
    assert sorted(p for tree in trees for p in tree.prompts) == list(range(len(rows)))
    for tree in trees:
        for prompt, leaf in zip(tree.prompts, tree.leaves, strict=True):
            way = np.flatnonzero(tree.visible[leaf])
            way = way[np.argsort(tree.depths[way])]
            assert tree.tokens[way].tolist() == given_prompts[prompt]
            assert tree.depths[way].tolist() == list(range(len(way)))


def test_what_prompts_share_stands_in_a_tree_once() -> None:
    dialogue = list(range(100, 140))
    rows = [np.array([*dialogue[:n], 7, 8], np.int32) for n in (10, 20, 30, 40)]
    (tree,) = build_prompt_trees(rows)
    assert len(tree) == 40 + 4 * 2
    apart = [np.arange(base, base + 10, dtype=np.int32) for base in (0, 100)]
    assert len(build_prompt_trees(apart)) == 2


def test_trees_stay_within_their_size() -> None:
    start = np.zeros(100, np.int32)
    rows = [np.concatenate([start, np.full(60, i, np.int32)]) for i in range(30)]
    trees = build_prompt_trees(rows)
    assert len(trees) > 1
    assert all(len(tree) <= MAX_TREE_NODES for tree in trees)
    (alone,) = build_prompt_trees([np.arange(2 * MAX_TREE_NODES, dtype=np.int32)])
    assert len(alone) == 2 * MAX_TREE_NODES


# --- dropout ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_dropout_keeps_the_share_and_the_mean(rate: float, dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    values = torch.ones(400, 501, dtype=dtype)
    made = apply_dropout(values, rate)
    assert made.dtype == dtype
    kept = made != 0
    # Five standard deviations of a share of 200,400 draws.
    assert abs(kept.float().mean() - (1 - rate)) < 5 * (rate * (1 - rate) / values.numel()) ** 0.5
    assert made[kept].float().unique().tolist() == pytest.approx([1 / (1 - rate)], rel=4e-3)
    # Neighbours are dropped independently: of pairs, rate squared lose both.
    both = ~kept.flatten()[:-1] & ~kept.flatten()[1:]
    assert both.float().mean() == pytest.approx(rate**2, abs=0.004)


def test_dropout_follows_torchs_seed_and_stops_in_evaluation() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Dropout(0.3)), nn.Dropout(0.0))
    use_fast_dropout(module)
    assert isinstance(module[1][0], FastDropout)
    assert isinstance(module[2], FastDropout)
    values = torch.randn(50, 4)
    made = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        made.append(module(values))
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])
    module.eval()
    assert torch.equal(module(values), module[0](values))
    assert not apply_dropout(torch.ones(10), 1.0).any()
