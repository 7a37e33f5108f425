"""Encoder representations of texts: one vector per text, used as features of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tasktransfer.core.architecture import read_metadata
from tasktransfer.core.specs import Family, LowRank
from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.models import next_utterance
from tasktransfer.models.load import load_body

BATCH_SIZE = 32

Pooling = Literal["mean", "first", "last"]


def compute_representations(
    checkpoint: Path,
    tokenizer_folder: Path,
    family: Family,
    texts: Sequence[str],
    max_length: int,
    pooling: Literal["mean", "first", "last", "input", "state", "sum"] = "mean",
    revision: str | None = None,
    *,
    device: torch.device,
    together: int = BATCH_SIZE,
    adapter: LowRank | None = None,
) -> npt.NDArray[np.float64]:
    """Compute each text's pooled states in the last layer of a checkpoint.

    Args:
        texts: texts, of which the last ``max_length`` tokens are used.
        pooling: ``mean`` over the tokens, the ``first`` or ``last`` token's vector, or ``input``
            for the mean of the input embeddings without positions. For a model built from a recipe
            ``state`` or ``sum``, see ``next_utterance.Representation``.
        revision: revision of a name on the hub.
        together: batch size.
        adapter: adapter settings that the checkpoint was trained with, if any.

    Returns:
        (texts, hidden size), computed in float32.

    Raises:
        ModelError: the checkpoint or its tokenizer cannot be loaded.
    """
    own = revision if tokenizer_folder == checkpoint else None
    tokenizer = load_tokenizer(str(tokenizer_folder), own, family)
    if read_metadata(checkpoint):
        model = next_utterance.load_next_utterance_model(str(checkpoint), tokenizer, {}, {}, device)
        how: next_utterance.Representation = "sum" if pooling == "sum" else "state"
        return model.encode_texts(texts, max_length, how, together).numpy().astype(np.float64)
    model = load_body(family, str(checkpoint), revision, adapter).eval().to(device)
    body = model.get_encoder() if family == "encoder_decoder" else model.base_model
    return pool_texts(body, tokenizer, texts, max_length, pooling, device, together)


def compute_layer_representations(
    checkpoint: Path,
    tokenizer_folder: Path,
    family: Family,
    texts: Sequence[str],
    max_length: int,
    pooling: Pooling,
    layers: Sequence[int],
    revision: str | None = None,
    *,
    device: torch.device,
    together: int = BATCH_SIZE,
) -> npt.NDArray[np.float32]:
    """Compute each text's pooled states in several layers, in one pass.

    Args:
        texts: texts, of which the last ``max_length`` tokens are used.
        pooling: ``mean`` over the tokens, or the ``first`` or ``last`` token's vector.
        layers: numbers of layers; 0 for the input embeddings. The last layer has the states that
            ``compute_representations`` uses, after the model's final normalisation.
        revision: revision of a name on the hub.
        together: batch size.

    Returns:
        (layers, texts, hidden size), float32.

    Raises:
        ModelError: the checkpoint or its tokenizer cannot be loaded, or a layer does not exist.
    """
    own = revision if tokenizer_folder == checkpoint else None
    tokenizer = load_tokenizer(str(tokenizer_folder), own, family)
    model = load_body(family, str(checkpoint), revision).eval().to(device)
    body = model.get_encoder() if family == "encoder_decoder" else model.base_model
    # Texts of similar length need little padding.
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    parts = []
    for begin in range(0, len(order), together):
        batch = [texts[index] for index in order[begin : begin + together]]
        ids, mask = tokenize_texts(tokenizer, batch, max_length, device)
        with torch.inference_mode():
            output = body(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        states = [*output.hidden_states[:-1], output.last_hidden_state]
        if max(layers) >= len(states):
            raise ModelError(
                f"{checkpoint}: The model has no layer {max(layers)}, only the layers 0 to "
                f"{len(states) - 1}. Change models[].layers."
            )
        pooled = [pool_states(states[layer].float(), mask, pooling).cpu() for layer in layers]
        parts.append(torch.stack(pooled))
    sorted_states = torch.cat(parts, dim=1).numpy()
    placed = np.empty_like(sorted_states)
    placed[:, order] = sorted_states
    return placed


def pool_texts(
    body: Any,
    tokenizer: Any,
    texts: Sequence[str],
    max_length: int,
    pooling: str,
    device: torch.device,
    together: int = BATCH_SIZE,
) -> npt.NDArray[np.float64]:
    """Compute each text's pooled states with a loaded model.

    Args:
        body: encoder or decoder of transformers, on the device.
    """
    parts = []
    for begin in range(0, len(texts), together):
        ids, mask = tokenize_texts(tokenizer, texts[begin : begin + together], max_length, device)
        with torch.inference_mode():
            if pooling == "input":
                states = body.get_input_embeddings()(ids).float()
            else:
                states = body(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        parts.append(pool_states(states, mask, pooling).cpu())
    return torch.cat(parts).numpy().astype(np.float64)


def tokenize_texts(
    tokenizer: Any, texts: Sequence[str], max_length: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Tokenize the last ``max_length`` tokens of each text, and return ids and mask."""
    tokenizer.truncation_side, tokenizer.padding_side = "left", "right"
    inputs = tokenizer(
        list(texts), truncation=True, max_length=max_length, padding=True, return_tensors="pt"
    )
    return inputs["input_ids"].to(device), inputs["attention_mask"].to(device)


def pool_states(states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """Pool the states of each text, from (texts, tokens, hidden size) to one vector per text."""
    if pooling == "first":
        return states[:, 0]
    if pooling == "last":
        ends = mask.sum(1) - 1
        return states[torch.arange(len(states), device=states.device), ends]
    weights = mask[:, :, None].float()
    return (states * weights).sum(1) / weights.sum(1)
