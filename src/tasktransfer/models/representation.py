"""Encoder representations of texts: one vector per text, used as features of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from tasktransfer.core.architecture import read_saved
from tasktransfer.core.specs import Family, LowRank
from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.models import next_utterance
from tasktransfer.models.load import load_body

TOGETHER = 32


def compute_representations(
    checkpoint: Path,
    tokenizer_folder: Path,
    family: Family,
    texts: Sequence[str],
    max_length: int,
    pooling: Literal["mean", "first", "state", "sum"] = "mean",
    revision: str | None = None,
    *,
    device: torch.device,
    together: int = TOGETHER,
    adapter: LowRank | None = None,
) -> npt.NDArray[np.float64]:
    """Return each text's pooled states from the last layer of a checkpoint's encoder or decoder.

    Args:
        texts: texts, of which the last ``max_length`` tokens are used.
        pooling: ``mean`` over the tokens or the ``first`` token's vector; for a model built from a
            recipe ``state`` or ``sum``, see ``next_utterance.Representation``.
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
    if read_saved(checkpoint):
        model = next_utterance.load(str(checkpoint), tokenizer, {}, {}, device)
        how: next_utterance.Representation = "sum" if pooling == "sum" else "state"
        return model.encode_texts(texts, max_length, how, together).numpy().astype(np.float64)
    model = load_body(family, str(checkpoint), revision, adapter).eval().to(device)
    body = model.get_encoder() if family == "encoder_decoder" else model.base_model
    return pool_texts(body, tokenizer, texts, max_length, pooling, device, together)


def pool_texts(
    body: Any,
    tokenizer: Any,
    texts: Sequence[str],
    max_length: int,
    pooling: str,
    device: torch.device,
    together: int = TOGETHER,
) -> npt.NDArray[np.float64]:
    """Return each text's pooled states from a loaded model, as ``compute_representations``.

    Args:
        body: encoder or decoder of transformers, on the device.
    """
    tokenizer.truncation_side, tokenizer.padding_side = "left", "right"
    parts = []
    for begin in range(0, len(texts), together):
        inputs = tokenizer(
            list(texts[begin : begin + together]),
            truncation=True,
            max_length=max_length,
            padding=True,
            return_tensors="pt",
        )
        ids, mask = (inputs[name].to(device) for name in ("input_ids", "attention_mask"))
        with torch.inference_mode():
            states = body(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        if pooling == "first":
            parts.append(states[:, 0].cpu())
        else:
            weights = mask[:, :, None].float()
            parts.append(((states * weights).sum(1) / weights.sum(1)).cpu())
    return torch.cat(parts).numpy().astype(np.float64)
