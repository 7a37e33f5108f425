"""Floating-point operations of a model on real tokens, without padding.

Only matrix products are counted, with two operations per multiplication and addition, from the
model's config and the sequence lengths. A layer on a sequence of n tokens, with hidden size h,
attention width a (heads times their width; mostly h) and inner size f, needs:

    projections of queries, keys, values and output   4 · 2·n·h·a
    attention scores, and their sum of values         2 · 2·n·n·a
    feed-forward                                      2 · 2·n·h·f   (3 where it is gated)

A decoder's layer is the same: the scores are counted in full, as libraries compute them, although
causal attention needs only half. An encoder-decoder's decoder layer on m answer tokens adds cross
attention: queries and output 2 · 2·m·h·a, keys and values of the encoder's tokens 2 · 2·n·h·a, and
scores and sum 2 · 2·m·n·a.

Outputs: an encoder's pooler 2·h·h and head 2·h·w per sequence, or the span head 2·h·2 per token; a
text-to-text model's output layer 2·h·V per answer token. Other computations of a contestant are not
counted. Embeddings are lookups. Forward is the sum. Backward is twice the forward, since every
product has two operands with gradients, so a training is 3 × forward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasktransfer.core.specs import Family
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import ModelError
from tasktransfer.layers.ragged import Ints
from tasktransfer.tasks.card import Task

TRAINING = 3
"""Operations of a training in forward passes: one for forward, two for backward."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model's matrix products. ``products``: number of feed-forward matrices."""

    layers: int
    decoder_layers: int
    hidden: int
    attention: int
    inner: int
    products: int
    vocabulary: int


def read_shape(config: Mapping[str, Any]) -> Shape:
    """Return the shape of a BERT, GPT-2 or T5 model from its ``config.json``.

    Raises:
        ModelError: the model has another architecture.
    """
    match config.get("model_type"):
        case "bert":
            hidden = config["hidden_size"]
            layers, inner = config["num_hidden_layers"], config["intermediate_size"]
            return Shape(layers, 0, hidden, hidden, inner, 2, config["vocab_size"])
        case "gpt2":
            hidden = config["n_embd"]
            inner = config.get("n_inner") or 4 * hidden
            return Shape(config["n_layer"], 0, hidden, hidden, inner, 2, config["vocab_size"])
        case "t5":
            layers = config["num_layers"]
            decoder = config.get("num_decoder_layers") or layers
            gated = str(config.get("feed_forward_proj", "relu")).startswith("gated")
            width = config["num_heads"] * config["d_kv"]
            return Shape(
                layers, decoder, config["d_model"], width, config["d_ff"], 3 if gated else 2,
                config["vocab_size"],
            )  # fmt: skip
    raise ModelError(
        f"model_type {config.get('model_type')!r}: Operations are counted only for bert, gpt2 and "
        "t5. Set --weights of a BERT architecture."
    )


def count_layer_flops(shape: Shape, tokens: Ints | int) -> Any:
    """Return the forward operations of one layer for each sequence length."""
    n = np.asarray(tokens, dtype=np.float64)
    projections = 8 * n * shape.hidden * shape.attention
    scores = 4 * n * n * shape.attention
    feed_forward = 2 * shape.products * n * shape.hidden * shape.inner
    return projections + scores + feed_forward


def count_cross_attention_flops(shape: Shape, answer: Ints | int, tokens: Ints | int) -> Any:
    """Return the operations of one layer's cross attention from answer to encoder tokens."""
    m, n = np.asarray(answer, dtype=np.float64), np.asarray(tokens, dtype=np.float64)
    projections = 4 * (m + n) * shape.hidden * shape.attention
    return projections + 4 * m * n * shape.attention


def count_encoder_flops(shape: Shape, tokens: Ints, *, span: bool, width: int) -> float:
    """Sum the forward operations of an encoder with a head of ``width`` outputs."""
    n = np.asarray(tokens, dtype=np.float64)
    heads = 2 * n * shape.hidden * 2 if span else 2 * shape.hidden * (shape.hidden + width) + 0 * n
    return float((shape.layers * count_layer_flops(shape, tokens) + heads).sum())


def count_decoder_flops(shape: Shape, prompt: Ints, answer: Ints) -> float:
    """Sum the forward operations of a decoder that reads prompts and answers."""
    body = shape.layers * count_layer_flops(shape, prompt + answer)
    return float((body + 2.0 * answer * shape.hidden * shape.vocabulary).sum())


def count_encoder_decoder_flops(shape: Shape, prompt: Ints, answer: Ints) -> float:
    """Sum the forward operations of an encoder-decoder."""
    encoder = shape.layers * count_layer_flops(shape, prompt)
    each = count_layer_flops(shape, answer) + count_cross_attention_flops(shape, answer, prompt)
    output = 2.0 * answer * shape.hidden * shape.vocabulary
    return float((encoder + shape.decoder_layers * each + output).sum())


def count_split_flops(shape: Shape, family: Family, task: Task, split: EncodedSplit) -> float:
    """Return the forward operations of one pass over a split."""
    tokens = split.sequences.lengths()
    if family == "encoder":
        width = 1 if task.kind == "multiple_choice" else task.classes
        return count_encoder_flops(shape, tokens, span=task.kind == "span", width=width)
    answer = split.labels.lengths()
    if family == "decoder":
        return count_decoder_flops(shape, tokens, answer)
    return count_encoder_decoder_flops(shape, tokens, answer)
