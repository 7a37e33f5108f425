"""Operations of a model on real tokens, by hand and compared with torch's counter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.training_speed import flops
from benchmarks.training_speed.flops import Shape
from tasktransfer.errors import ModelError

SMALL = Shape(layers=1, decoder_layers=1, hidden=2, attention=2, inner=4, products=2, vocabulary=10)


def ints(*values: int) -> Any:
    return np.array(values, np.int32)


def test_a_layer_by_hand() -> None:
    # 3 tokens: projections 4·2·3·2·2 = 96, scores and sum 2·2·3·3·2 = 72, feed-forward 2·2·3·2·4.
    assert flops.count_layer_flops(SMALL, 3) == 96 + 72 + 96


def test_an_encoder_by_hand() -> None:
    # Pooler 2·2·2 and head 2·2·5 a sequence; the span head 2·2·2 a token.
    assert flops.count_encoder_flops(SMALL, ints(3), span=False, width=5) == 264 + 8 + 20
    assert flops.count_encoder_flops(SMALL, ints(3), span=True, width=2) == 264 + 3 * 8
    twice = flops.count_encoder_flops(SMALL, ints(3, 3), span=False, width=5)
    assert twice == 2 * (264 + 28)


def test_a_decoder_by_hand() -> None:
    # Prompt of 2 and answer of 1: a layer on 3, and the output layer 2·2·10 on the answer alone.
    assert flops.count_decoder_flops(SMALL, ints(2), ints(1)) == 264 + 40


def test_an_encoder_decoder_by_hand() -> None:
    # Encoder on 3: 264. Decoder on 2: itself 64 + 32 + 64, across 4·(2+3)·2·2 + 4·2·3·2, output 80.
    assert flops.count_encoder_decoder_flops(SMALL, ints(3), ints(2)) == 264 + 160 + 128 + 80


def test_other_architectures_are_refused() -> None:
    with pytest.raises(ModelError, match="bert, gpt2 and t5"):
        flops.read_shape({"model_type": "mamba"})


def counted(work: Any) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


def test_bert_as_torch_counts_it_forward_and_backward() -> None:
    from transformers import BertConfig, BertModel  # noqa: PLC0415

    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=40,
    )  # fmt: skip
    model = BertModel(config)
    model.set_attn_implementation("eager")
    head = torch.nn.Linear(16, 7)
    ids = torch.randint(50, (2, 11))
    expected = flops.count_encoder_flops(
        flops.read_shape(config.to_dict()), ints(11, 11), span=False, width=7
    )
    assert counted(lambda: head(model(ids).pooler_output)) == expected
    both = counted(lambda: head(model(ids).pooler_output).sum().backward())
    assert both == flops.TRAINING * expected


def test_gpt2_as_torch_counts_it() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel  # noqa: PLC0415

    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=64)
    model = GPT2LMHeadModel(config)
    model.set_attn_implementation("eager")
    ids = torch.randint(50, (1, 13))
    expected = flops.count_decoder_flops(flops.read_shape(config.to_dict()), ints(9), ints(4))
    assert counted(lambda: model(ids, logits_to_keep=4, use_cache=False)) == expected


@pytest.mark.parametrize("kind", ["relu", "gated-gelu"])
def test_t5_as_torch_counts_it(kind: str) -> None:
    from transformers import T5Config, T5ForConditionalGeneration  # noqa: PLC0415

    config = T5Config(
        vocab_size=50, d_model=16, d_kv=6, d_ff=40, num_layers=2, num_decoder_layers=3,
        num_heads=2, feed_forward_proj=kind, decoder_start_token_id=0,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config)
    model.set_attn_implementation("eager")
    ids, labels = torch.randint(50, (1, 13)), torch.randint(50, (1, 4))
    expected = flops.count_encoder_decoder_flops(
        flops.read_shape(config.to_dict()), ints(13), ints(4)
    )
    assert counted(lambda: model(input_ids=ids, labels=labels, use_cache=False)) == expected
