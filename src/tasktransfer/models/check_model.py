"""Checks that a checkpoint, its tokenizer and a study's maximum sequence length fit together.

They run before any training: in ``tasktransfer validate``, and in the job that tokenizes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tasktransfer.core.specs import Family
from tasktransfer.encoding.tokenizer import check_vocabulary_size, load_tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.models.check_parameters import Note
from tasktransfer.models.checkpoint import load_pretrained


def check_model(
    family: Family, checkpoint: str, revision: str | None, max_length: int, note: Note
) -> None:
    """Load tokenizer and weights as for training, and check that they fit together.

    Args:
        checkpoint: Hugging Face name or folder.
        max_length: maximum sequence length of the study in tokens.
        note: called with the pooler and heads that are missing in the checkpoint or not used.

    Raises:
        ModelError: a file is missing, damaged, or does not fit the others.
    """
    model = load_pretrained(family, checkpoint, revision, note=note)
    tokenizer = load_tokenizer(checkpoint, revision, family)
    check_vocabulary_size(tokenizer, model.get_input_embeddings().weight.shape[0], checkpoint)
    check_length(model, checkpoint, max_length)
    if family == "encoder" and "token_type_ids" in tokenizer.model_input_names:
        _check_token_types(model, checkpoint)


def check_length(model: Any, checkpoint: str, max_length: int) -> None:
    """Raise ModelError if the maximum sequence length exceeds a model's positions."""
    limit = count_positions(model)
    if limit is not None and max_length > limit:
        raise ModelError(
            f"{checkpoint}: The model has positions for {limit} tokens, but its max_length in "
            f"the study is {max_length}. Set max_length to {limit} or less."
        )


def count_positions(model: Any) -> int | None:
    """Return the number of positions of a model, or None if it is unlimited.

    RoBERTa and similar models count positions from the padding token's id, so they have slightly
    fewer than ``max_position_embeddings``.
    """
    stated = getattr(model.config, "max_position_embeddings", None)
    limits = [stated] if isinstance(stated, int) and stated > 0 else []
    limits += [
        module.num_embeddings - module.padding_idx - 1
        for name, module in model.named_modules()
        if "position" in name
        and isinstance(module, nn.Embedding)
        and module.padding_idx is not None
    ]
    return min(limits, default=None)


def _check_token_types(model: Any, checkpoint: str) -> None:
    ids = torch.zeros(1, 4, dtype=torch.int64)
    types = torch.tensor([[0, 0, 1, 1]])
    try:
        with torch.inference_mode():
            model.eval()(input_ids=ids, token_type_ids=types)
    except (TypeError, IndexError) as error:
        raise ModelError(
            f"{checkpoint}: The tokenizer returns token types (token_type_ids in model_input_names "
            "of tokenizer_config.json), but the model has none or only one. Use a tokenizer and "
            "weights from the same checkpoint, or remove token_type_ids from "
            "tokenizer_config.json."
        ) from error
