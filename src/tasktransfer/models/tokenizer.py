"""Loading a tokenizer, by Hugging Face name or from a folder, fit for its family."""

from __future__ import annotations

from typing import Any

from tasktransfer.errors import ModelError
from tasktransfer.stage import Family


def load_tokenizer(checkpoint: str, revision: str | None, family: Family) -> Any:
    """The checkpoint's fast tokenizer, cutting inputs from the left, with a padding token.

    Raises:
        ModelError: it cannot be loaded, has no fast version (character offsets need one), or has
            no end-of-sequence token where answers are generated.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            checkpoint, revision=revision or "main", trust_remote_code=False
        )
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(
            f"cannot load the tokenizer of {checkpoint!r}: {error}. Give a Hugging Face name that "
            "this machine can reach, or a folder with tokenizer.json"
        ) from error
    if not tokenizer.is_fast:
        raise ModelError(f"{checkpoint!r} has no fast tokenizer; its folder needs tokenizer.json")
    if family != "encoder" and tokenizer.eos_token_id is None:
        raise ModelError(f"{checkpoint!r} has no end-of-sequence token; a {family} needs one")
    if tokenizer.pad_token_id is None:
        # GPT-2 and its kin have none; what is padded is masked, so any token serves.
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.truncation_side = "left"
    tokenizer.model_max_length = 1 << 30  # lengths are the study's business: no warnings
    return tokenizer
