"""Translation of libraries' errors about a user's files to messages with file and remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasktransfer.config.places import is_gguf
from tasktransfer.errors import ModelError

NOT_FOUND = ("couldn't connect", "offline mode", "valid model id", "Repo id must", "Can't load")
"""Phrases of transformers and the hub's client for an unknown name."""


def build_source_arguments(start: str, revision: str | None) -> dict[str, Any]:
    """Return the arguments of ``from_pretrained`` for a folder, hub name or GGUF file.

    They prevent that code in the checkpoint is run.
    """
    if is_gguf(start):
        file = Path(start)
        return {
            "pretrained_model_name_or_path": str(file.parent),
            "gguf_file": file.name,
            "trust_remote_code": False,
        }
    return {
        "pretrained_model_name_or_path": start,
        "revision": revision or "main",
        "trust_remote_code": False,
    }


@contextmanager
def translate_library_errors(start: str, what: str) -> Iterator[None]:
    """Convert any exception of a library that reads a checkpoint to a ModelError.

    Libraries raise many kinds of exceptions for a damaged file (KeyError, TypeError, bare
    Exception). This is therefore the only place that catches all of them.

    Args:
        start: folder or hub name, which begins the message.
        what: subject of the message, for example ``The weights``.
    """
    try:
        yield
    except (ModelError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ModelError(f"{start}: {what} cannot be read. {_explain_error(error)}") from error


def _explain_error(error: Exception) -> str:
    """Explain the cause and the remedy of a library's error in sentences.

    They leave out lists of classes and advice that does not apply here.
    """
    from transformers import __version__

    text = str(error)
    if "trust_remote_code" in text:
        return (
            "It needs custom code (auto_map in config.json), but code from checkpoints is never "
            "run. Use a checkpoint whose architecture is part of transformers."
        )
    if "Unrecognized model" in text or "does not recognize this architecture" in text:
        return (
            f"Its model_type is missing or unknown to transformers {__version__}. "
            "Correct it, or use another checkpoint."
        )
    if any(words in text for words in NOT_FOUND):
        return (
            "The folder does not exist, and the Hugging Face Hub does not have the model or cannot "
            "be reached. Specify a model on the hub (with HF_TOKEN if it is private), or a folder "
            "with config.json, the tokenizer's files and model.safetensors."
        )
    lines = text.strip().splitlines() or [repr(error)]
    return (
        f"The error is {lines[0][:300]!r} ({type(error).__name__}). Copy or download the "
        "checkpoint again, or use another one."
    )
