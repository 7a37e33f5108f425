"""Small random checkpoints of many architectures, with a tokenizer of their own, as folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from tasktransfer.core.specs import Family
from tasktransfer.training.tiny import create_tokenizer

SAVED_AS = {
    "encoder": AutoModelForMaskedLM,
    "decoder": AutoModelForCausalLM,
    "encoder_decoder": AutoModelForSeq2SeqLM,
}

_WIDTH, _HEADS, _LAYERS, _INNER, _POSITIONS = 32, 2, 2, 64, 256

SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "embedding_size", "d_model", "dim", "n_embd"), _WIDTH),
    **dict.fromkeys(("word_embed_proj_dim",), _WIDTH),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "d_ff", "ffn_dim", "d_inner"), _INNER),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), _INNER),
    **dict.fromkeys(("num_hidden_layers", "n_layers", "n_layer", "num_layers"), _LAYERS),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), _LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_heads", "n_head", "num_heads"), _HEADS),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), _HEADS),
    "num_key_value_heads": _HEADS,
    **dict.fromkeys(("head_dim", "d_kv", "d_head"), _WIDTH // _HEADS),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), _POSITIONS),
}
"""Sizes under the config keys of all architectures."""

FAMILY_OF: dict[str, Family] = {
    **dict.fromkeys(("bert", "roberta", "distilbert", "albert", "electra"), "encoder"),
    **dict.fromkeys(("deberta-v2", "mpnet", "modernbert"), "encoder"),
    **dict.fromkeys(("gpt2", "opt", "gpt_neox", "llama"), "decoder"),
    **dict.fromkeys(("modernbert-decoder", "qwen3"), "decoder"),
    **dict.fromkeys(("t5", "bart", "pegasus"), "encoder_decoder"),
}

TEXTS = [
    "Hello there, how are you today? I am fine, thank you, and happy to see you.",
    "the quick brown fox jumps over the lazy dog while we talk about the weather",
] * 4


def write_tokenizer(family: Family, texts: list[str], folder: Path) -> PreTrainedTokenizerBase:
    """Write a tokenizer of the family that contains the texts' words."""
    tokenizer = create_tokenizer(family, texts)
    if family == "encoder":  # only BERT has token types, most similar models have none
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    tokenizer.save_pretrained(folder)
    return tokenizer


def build_config(architecture: str, **settings: object) -> Any:
    """Build the config of a small model. ``settings`` replace its values."""
    defaults = AutoConfig.for_model(architecture)
    sizes = {name: value for name, value in SIZES.items() if hasattr(defaults, name)}
    return AutoConfig.for_model(architecture, **{**sizes, **settings})


def write_checkpoint(
    architecture: str, folder: Path, texts: list[str] = TEXTS, **settings: object
) -> Path:
    """Write a random language model of an architecture in the form of ``save_pretrained``.

    ``settings`` override values in its config.
    """
    family = FAMILY_OF[architecture]
    tokenizer = write_tokenizer(family, texts, folder)
    pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    tokens = {"pad_token_id": pad, "bos_token_id": end, "eos_token_id": end}
    tokens |= {"decoder_start_token_id": pad, "forced_eos_token_id": None}
    config = build_config(architecture)
    for name, value in {"vocab_size": len(tokenizer), **tokens, **settings}.items():
        setattr(config, name, value)
    torch.manual_seed(0)
    logging.disable_progress_bar()
    SAVED_AS[family].from_config(config).save_pretrained(folder)
    return folder
