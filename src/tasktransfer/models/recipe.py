"""Models built from a recipe: a folder with a config and a vocabulary, but without weights.

A training initialises the weights from its seed. Rashkin et al., section 4: 4 layers, 6 heads,
hidden size 300, sinusoidal positions, one embedding for encoder, decoder and output (in retrieval,
for both encoders). Marian in transformers has this architecture.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import torch

from tasktransfer.models.weights import read_weights

BUILT_FILE = "built_model.json"
VECTORS_FILE = "vectors.safetensors"


def is_recipe_folder(start: str) -> bool:
    """Return whether a folder contains a recipe for a model, without weights."""
    return (Path(start) / BUILT_FILE).is_file()


def create_random_model(start: str, dropout: float | None) -> Any:
    """Create a randomly initialised encoder-decoder from a folder with a recipe.

    The weights depend on torch's seed. Words with a word vector are initialised with it.
    """
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    config = AutoConfig.from_pretrained(start)
    if dropout is not None:
        config.dropout = dropout
    classes: Any = AutoModelForSeq2SeqLM  # transformers leaves from_config untyped
    model = classes.from_config(config)
    vectors = Path(start) / VECTORS_FILE
    if vectors.is_file():
        given = read_weights(vectors)
        with torch.no_grad():
            model.get_input_embeddings().weight[given["rows"]] = given["vectors"]
    return model


def freeze_positions(model: Any) -> None:
    """Freeze the sinusoidal position embeddings of a Marian model.

    transformers leaves them trainable if it has read the other weights from a checkpoint, and never
    saves them.
    """
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    for module in model.modules():
        if isinstance(module, MarianSinusoidalPositionalEmbedding):
            module.requires_grad_(False)


def create_encoder_pair(model: Any, seed: int) -> tuple[Any, Any]:
    """Create two encoders that share their embedding only.

    The first is the encoder of an encoder-decoder. The second has the same shape and random weights
    from the seed.
    """
    from transformers.models.marian.modeling_marian import MarianEncoder

    first = model.get_encoder()
    torch.manual_seed(seed + 1)
    second = MarianEncoder(first.config)
    second.embed_tokens = first.embed_tokens
    return first, second


def create_empty_encoder_pair(start: str, dropout: float | None) -> tuple[Any, Any]:
    """Create the two encoders of a trained dual encoder from its config, without its weights."""
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(start)
    if config.is_encoder_decoder:
        return create_encoder_pair(create_random_model(start, dropout), 0)
    if dropout is not None:
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
    classes: Any = AutoModel  # transformers leaves from_config untyped
    return duplicate_encoder(classes.from_config(config))


def duplicate_encoder(encoder: Any) -> tuple[Any, Any]:
    """Return an encoder for contexts and a copy for candidates."""
    return encoder, deepcopy(encoder)
