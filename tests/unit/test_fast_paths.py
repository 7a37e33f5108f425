"""Every fast path against its plain reference: the same gradient, the same predictions."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch
from test_packing import rows_of
from torch import Tensor, nn
from transformers import AutoModel

from architectures import build_config
from small_models import KINDS, Loader, flatten_weights, small_setup, small_stage, train_quietly
from tasktransfer.core.specs import FAMILIES, Family, Training
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers import attention
from tasktransfer.layers.dropout import FastDropout, use_dropout_seed
from tasktransfer.layers.first_tokens import narrow_last_layer
from tasktransfer.layers.packing import PLACEHOLDER, get_first_position, pack_sequences
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.generation import TREE_ARCHITECTURES, can_decode_trees
from tasktransfer.training.evaluate import predict_instances
from tasktransfer.training.workers import Workers

CPU = torch.device("cpu")


def gradient(model: FamilyModel, split: EncodedSplit, micro_batches: list[list[int]]) -> Tensor:
    """Return the gradient of the mean loss of all examples as one vector.

    Parts without gradient are zeros.
    """
    model.module.train()
    divisor = model.compute_loss_divisor(split, [u for each in micro_batches for u in each])
    for micro_batch in micro_batches:
        (model.compute_loss(split, micro_batch) / divisor).backward()
    return torch.cat(
        [
            torch.zeros(p.numel()) if p.grad is None else p.grad.to_dense().flatten()
            for p in model.module.parameters()
        ]
    )


def sixty(split: EncodedSplit) -> list[int]:
    """Return a batch of 60 examples with all lengths of a split."""
    return [example % len(split) for example in range(60)]


@pytest.mark.parametrize(
    ("double", "family", "kind"),
    [
        pytest.param(
            double,
            family,
            kind,
            id=f"{'float64' if double else 'float32'}-{family}-{kind}",
            marks=[pytest.mark.slow] * (not double and kind != "multiple_choice"),
        )
        for double in (False, True)
        for family in FAMILIES
        for kind in KINDS
    ],
)
def test_one_update_has_the_gradient_of_the_plain_padded_batch(
    load: Loader, family: Family, kind: str, double: bool
) -> None:
    made = []
    for plain in (True, False):
        model, split = load(family, *KINDS[kind], plain=plain)
        if double:
            model.module.double()
        examples = sixty(split)
        micro_batches = [examples] if plain else model.split_for_training(split, examples, 200)
        made.append(gradient(model, split, micro_batches))
    reference, fast = made
    assert reference.norm() > 0
    # Options of a random model have similar scores: their float32 gradient is mostly cancellation.
    cancels = kind == "multiple_choice" and family == "encoder" and not double
    assert (fast - reference).norm() / reference.norm() < (1e-3 if cancels else 1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_predictions_are_those_of_the_plain_path(load: Loader, family: Family, kind: str) -> None:
    made = []
    for plain in (True, False):
        model, split = load(family, *KINDS[kind], plain=plain, split="test")
        made.append(predict_instances(model, split, 150, small_setup(60, 60)))
        made.append(predict_instances(model, split, 60, small_setup(60, 60, workers=3)))
    assert made[0] == made[1] == made[2] == made[3]


@pytest.mark.parametrize("family", FAMILIES)
def test_threads_that_work_side_by_side_give_the_same_weights(load: Loader, family: Family) -> None:
    """Bitwise equal when repeated, including dropout, and up to rounding those of one thread."""
    task = "dialogue_nli"
    training = Training(epochs=2, batch_size=4, learning_rate=1e-3)
    made = []
    for workers in (3, 3, 1):
        model, split = load(family, "DailyDialog", task)
        assert model.side_by_side
        for module in model.module.modules():
            if isinstance(module, FastDropout):
                module.p = 0.2
        stage = small_stage(task, family=family, training=training)
        trained = train_quietly(model, stage, {task: split}, small_setup(60, 60, workers=workers))
        made.append((flatten_weights(model), [one.train_loss for one in trained.rounds]))
    assert torch.equal(made[0][0], made[1][0])
    assert made[0][1] == made[1][1]
    assert (made[0][0] - made[2][0]).norm() / made[2][0].norm() < 1e-4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_micro_batches_dropout_is_drawn_from_its_own_source(
    load: Loader, family: Family, kind: str
) -> None:
    """Torch's generator is shared by threads, so masks would depend on which thread is first."""
    model, split = load(family, *KINDS[kind])
    assert model.side_by_side
    dropouts = [m for m in model.module.modules() if isinstance(m, torch.nn.Dropout)]
    for module in dropouts:
        module.p = 0.5
    model.module.train()
    state, losses = torch.get_rng_state(), []
    for seed in (1, 1, 2):
        with use_dropout_seed(seed):
            losses.append(float(model.compute_loss(split, range(len(split))).detach()))
    assert torch.equal(torch.get_rng_state(), state)
    assert dropouts and losses[0] == losses[1] != losses[2]


def test_an_error_in_a_thread_ends_the_batch_and_no_other_thread_continues() -> None:
    ended = []

    def work(number: int) -> int:
        if number == 1:
            raise ValueError("no")
        time.sleep(0.05)
        ended.append(number)
        return number

    with pytest.raises(ValueError, match="no"):
        Workers(2).apply(work, [0, 1, 2, 3])
    assert sorted(ended) == [0, 2, 3]
    assert Workers(2).apply(abs, [-1, -2, -3]) == [1, 2, 3]
    assert Workers(2).split_work([1, 2, 3]) == [[1, 3], [2]]
    assert Workers(4).split_work([1]) == [[1]]


# --- architectures ------------------------------------------------------------------------------


def random_model(kind: str) -> nn.Module:
    torch.manual_seed(0)
    config = build_config(kind, vocab_size=50, decoder_start_token_id=0)
    model: nn.Module = AutoModel.from_config(config, attn_implementation="eager")
    return model.eval()


LENGTHS = (7, 19, 3, 18, 17, 5)


@pytest.mark.parametrize("kind", sorted(attention.ARCHITECTURES))
def test_every_architecture_gives_its_own_states_with_our_attention(kind: str) -> None:
    model = random_model(kind)
    ids = torch.from_numpy(np.stack([row[:9] for row in rows_of(12, 9, 10)])).long()
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if kind in ("t5", "bart"):
        inputs["decoder_input_ids"] = ids[:, :4]
    expected = model(**inputs).last_hidden_state
    attention.register_attention()
    model.set_attn_implementation(attention.NAME)
    for grad in (True, False):  # the two formulas
        with torch.set_grad_enabled(grad):
            found = model(**inputs).last_hidden_state
        seen = mask[:, : found.shape[1]].bool()
        torch.testing.assert_close(found[seen], expected[seen], rtol=1e-4, atol=1e-5)


def compute_packed_states(
    model: Any, rows: list[np.ndarray], firsts_only: bool = False
) -> tuple[Any, Tensor]:
    """Return packed sequences, and the states of all their tokens or of each first one."""
    attention.register_attention()
    model.set_attn_implementation(attention.NAME)
    causal, first = model.config.model_type == "gpt2", get_first_position(model.config)
    assert first is not None
    packed = pack_sequences(rows, CPU, causal=causal, firsts_only=firsts_only)
    tokens = {"input_ids": packed.ids, "position_ids": packed.positions + first}
    states = model(**tokens, attention_mask=torch.zeros(PLACEHOLDER), packed=packed)
    return packed, states.last_hidden_state[0]


PACKED = ("bert", "electra", "gpt2", "roberta", "xlm-roberta")


@pytest.mark.parametrize("kind", PACKED)
def test_packed_states_are_those_of_each_sequence_alone(kind: str) -> None:
    model = random_model(kind)
    rows = rows_of(*LENGTHS)
    alone = [model(input_ids=torch.from_numpy(row)[None].long()).last_hidden_state for row in rows]
    packed, together = compute_packed_states(model, rows)
    for start, row, expected in zip(packed.layout.starts, rows, alone, strict=True):
        found = together[start : start + len(row)]
        torch.testing.assert_close(found, expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("lengths", [LENGTHS, (1, 1), (4,)])
def test_first_tokens_by_themselves_are_what_they_are_among_all(
    kind: str, lengths: tuple[int, ...]
) -> None:
    attention.register_attention()
    model = random_model(kind)
    model.set_attn_implementation(attention.NAME)
    narrowed = narrow_last_layer(model)
    assert narrowed == (kind != "gpt2")
    rows = rows_of(*lengths)
    made = []
    for firsts_only in (False, narrowed):
        packed, states = compute_packed_states(model, rows, firsts_only=firsts_only)
        assert len(states) == (len(rows) if firsts_only else sum(lengths))
        layout = packed.layout
        made.append(states[layout.compute_ranks() if firsts_only else layout.get_first_indices()])
    torch.testing.assert_close(made[0], made[1], rtol=1e-4, atol=1e-5)


def test_a_vocabulary_s_gradient_names_the_rows_that_it_has(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", "dialogue_nli")
    (gradient,) = torch.autograd.grad(
        model.compute_loss(split, [0, 1]), [model.backbone.get_input_embeddings().weight]
    )
    assert gradient.is_sparse
    words = {int(token) for example in (0, 1) for token in split.sequences[example]}
    assert set(gradient.coalesce().indices()[0].tolist()) == words


def test_architectures_that_are_not_packed_say_so() -> None:
    assert all(get_first_position(build_config(kind)) is not None for kind in PACKED)
    for kind in attention.ARCHITECTURES - set(PACKED):
        assert get_first_position(build_config(kind)) is None


def test_a_checkpoint_that_forbids_repetition_is_decoded_by_transformers(load: Loader) -> None:
    model, _ = load("decoder", "DailyDialog", "emotion_recognition")
    assert model.module.config.model_type in TREE_ARCHITECTURES
    assert can_decode_trees(model.module)
    model.module.generation_config.repetition_penalty = 1.3
    assert not can_decode_trees(model.module)


def test_the_plain_path_uses_nothing_of_ours(load: Loader) -> None:
    model, _ = load("encoder", "DailyDialog", "dialogue_nli", plain=True)
    assert isinstance(model, Encoder)
    assert model.first_position is None
    assert not any(isinstance(m, FastDropout) for m in model.module.modules())
    assert model.backbone.config._attn_implementation == "eager"
    fast, _ = load("encoder", "DailyDialog", "dialogue_nli")
    assert isinstance(fast, Encoder)
    assert fast.first_position == 0
    assert fast.paths == ("packed", "attention", "dropout", "first_tokens")
    assert model.paths == ()
    assert fast.backbone.config._attn_implementation == attention.NAME
