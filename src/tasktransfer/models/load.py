"""From a checkpoint (a Hugging Face name, a folder, a parent stage) to a model of a family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tasktransfer.errors import ModelError
from tasktransfer.models import attention
from tasktransfer.models.dropout import use_fast_dropout
from tasktransfer.models.encoder import HEADS_FILE, Encoder
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.packing import first_position
from tasktransfer.models.text_to_text import Decoder, EncoderDecoder
from tasktransfer.models.tokenizer import load_tokenizer
from tasktransfer.stage import Family, Fidelity
from tasktransfer.tasks.card import Task


def load_model(
    family: Family,
    start: str,
    revision: str | None,
    tasks: dict[str, Task],
    manifest: dict[str, Any],
    tokenizer_folder: Path,
    *,
    seed: int,
    fidelity: Fidelity,
    loss_on: str,
    dropout: float | None,
    device: torch.device,
    plain: bool = False,
) -> FamilyModel:
    """Build the model that a stage starts from.

    Args:
        start: Hugging Face name or folder; the folder of a parent stage brings its heads along.
        manifest: the encoded data's manifest (token ids of padding, longest answers).
        tokenizer_folder: where the encoded data keeps its tokenizer.
        seed: weights that the checkpoint lacks, new heads above all, start from it.
        dropout: replaces every dropout rate of the checkpoint's config; None keeps them.
        plain: transformers' own attention, dropout and generation on padded rows: the reference
            that the fast paths are held to.

    Raises:
        ModelError: the checkpoint cannot be loaded, has no safetensors, or is of another family.
    """
    torch.manual_seed(seed)  # weights that the checkpoint lacks (a pooler) are drawn while loading
    if family == "encoder":
        backbone = _pretrained(family, start, revision, dropout, device, plain)
        encoder = Encoder(
            backbone,
            tasks,
            seed=seed,
            pad_token_id=manifest["pad_token_id"],
            token_types=manifest["token_types"],
            fidelity=fidelity,
            device=device,
            first_position=None if plain else first_position(backbone.config),
        )
        heads = Path(start) / HEADS_FILE
        if heads.is_file():
            encoder.load_heads(heads)
        return encoder
    tokenizer = load_tokenizer(str(tokenizer_folder), None, family)
    model = _pretrained(family, start, revision, dropout, device, plain)
    longest = manifest["max_answer_tokens"]
    if family == "decoder":
        return Decoder(
            model,
            tokenizer,
            tasks,
            max_answer_tokens=longest,
            loss_on=loss_on,
            device=device,
            plain=plain,
        )
    return EncoderDecoder(model, tokenizer, tasks, max_answer_tokens=longest, device=device)


def _pretrained(
    family: Family,
    start: str,
    revision: str | None,
    dropout: float | None,
    device: torch.device,
    plain: bool,
) -> Any:
    """The checkpoint through transformers' Auto classes: safetensors only, no remote code."""
    from transformers import AutoConfig
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        config = AutoConfig.from_pretrained(
            start, revision=revision or "main", trust_remote_code=False
        )
        if dropout is not None:
            _set_dropout(config, dropout)
        model = _auto_class(family).from_pretrained(
            start,
            config=config,
            revision=revision or "main",
            dtype=torch.float32,
            # On CPUs torch's fused attention runs its backward pass slower than plain products.
            attn_implementation="eager" if device.type == "cpu" else None,
            use_safetensors=True,
            trust_remote_code=False,
        )
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise ModelError(
            f"cannot load {start!r} as {family}: {error}. Give a Hugging Face name that this "
            "machine can reach, or a folder with config.json and model.safetensors"
        ) from error
    if not plain:
        use_fast_dropout(model)
        if config.model_type in attention.ARCHITECTURES:
            attention.register()
            model.set_attn_implementation(attention.NAME)
    return model


def _set_dropout(config: Any, rate: float) -> None:
    """Every dropout rate of a config, however its architecture spells it (``resid_pdrop``,
    ``hidden_dropout_prob``, ``dropout_rate``, ``classifier_dropout``, ...)."""
    for name, value in config.to_dict().items():
        if "drop" in name and (isinstance(value, float) or name == "classifier_dropout"):
            setattr(config, name, rate)


def _auto_class(family: Family) -> Any:
    if family == "encoder":
        from transformers import AutoModel

        return AutoModel
    if family == "decoder":
        from transformers import AutoModelForCausalLM

        return AutoModelForCausalLM
    from transformers import AutoModelForSeq2SeqLM

    return AutoModelForSeq2SeqLM
