"""Small models outside the FETA families, without weights, for the fake CUDA device.

They are encoders with adapters, dual encoders, reply generators, and models built from a recipe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from transformers import BertConfig, BertModel, MarianConfig, MarianMTModel

from fake_models import LONGEST_ANSWER, META, TOKENIZER, batch_of, model_of
from tasktransfer.core.architecture import Architecture
from tasktransfer.core.fidelity import DEFAULT
from tasktransfer.core.specs import LowRank
from tasktransfer.datasets import get_task
from tasktransfer.datasets.multiwoz import REPLY
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.models.dual_encoder import DualEncoder
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.low_rank import add_adapter
from tasktransfer.models.next_utterance import Network, NextUtterance
from tasktransfer.models.recipe import create_encoder_pair
from tasktransfer.models.reply_writer import ReplyWriter
from tasktransfer.models.text_to_text import EncoderDecoder

LABELS = ("DailyDialog", "emotion_recognition")
REPLIES = {REPLY.name: REPLY}
LONGEST = {REPLY.name: LONGEST_ANSWER}
COUNT = 6


def labelled() -> EncodedSplit:
    return batch_of("encoder", *LABELS, COUNT)


def replies(sides: int = 1) -> EncodedSplit:
    """Build contexts with replies; for a dual encoder, a reply is a second sequence."""
    split = batch_of("encoder_decoder", *LABELS, COUNT * sides)
    first = np.arange(0, COUNT * sides + 1, sides, dtype=np.int32)
    return replace(
        split,
        task=REPLY.name,
        instance=split.instance[:COUNT],
        output=split.output[:COUNT],
        first_sequence=first,
        labels=split.labels.take(range(COUNT)),
        offsets=split.offsets.take(range(COUNT)),
        ids=split.ids[:COUNT],
        dialogue_ids=split.dialogue_ids[:COUNT],
        targets=split.targets[:COUNT],
        contexts=split.contexts[:COUNT],
    )


def bottlenecks() -> tuple[FamilyModel, EncodedSplit]:
    return model_of("encoder", get_task(*LABELS), 2, adapter_reduction=16), labelled()


def low_rank() -> tuple[FamilyModel, EncodedSplit]:
    with META:
        backbone = BertModel(BertConfig(num_hidden_layers=2))
    add_adapter(backbone, LowRank(rank=4), "encoder", None, seed=0)
    return model_of("encoder", get_task(*LABELS), 2, backbone=backbone), labelled()


def marian() -> Any:
    with META:
        return MarianMTModel(
            MarianConfig(vocab_size=1000, d_model=64, encoder_layers=2, decoder_layers=2,
                         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
                         decoder_ffn_dim=64, max_position_embeddings=1024, pad_token_id=0,
                         eos_token_id=1, decoder_start_token_id=0, forced_eos_token_id=None)
        )  # fmt: skip


def dual_encoder() -> tuple[FamilyModel, EncodedSplit]:
    with META:
        encoders = create_encoder_pair(marian(), 0)
    model = DualEncoder(
        *encoders, REPLIES, seed=0, pads=(0,), cosine_scale=None, fidelity=DEFAULT, device=META
    )
    return model, replies(sides=2)


def reply_writer() -> tuple[FamilyModel, EncodedSplit]:
    inner = EncoderDecoder(marian(), TOKENIZER, REPLIES, max_answer_tokens=LONGEST, device=META)
    return ReplyWriter(inner, REPLIES, seed=0), replies()


def next_utterance() -> tuple[FamilyModel, EncodedSplit]:
    architecture = Architecture("transformer", embedding=32, units=32, feed_forward=64)
    with META:
        network = Network(architecture, 1000)
    return NextUtterance(network, architecture, TOKENIZER, REPLIES, LONGEST, META), replies()


MODELS: dict[str, Callable[[], tuple[FamilyModel, EncodedSplit]]] = {
    "bottleneck adapters": bottlenecks,
    "low-rank adapters": low_rank,
    "dual encoder": dual_encoder,
    "reply writer": reply_writer,
    "next utterance, transformer": next_utterance,
}
"""Name → builder of a model without weights (``fake_models.move``) and a batch for it."""
