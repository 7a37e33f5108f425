"""What libraries say of a user's files, in words that name the file and the remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasktransfer.config.places import is_gguf
from tasktransfer.errors import ModelError

NOT_FOUND = ("couldn't connect", "offline mode", "valid model id", "Repo id must", "Can't load")
"""What transformers and the hub's client say of a name that they cannot find."""


def source(start: str, revision: str | None) -> dict[str, Any]:
    """What transformers' ``from_pretrained`` is given to find a checkpoint: a folder, a name on the
    hub, or a file in GGUF. No code of the checkpoint is run."""
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
def reading(start: str, what: str) -> Iterator[None]:
    """Tell whatever a library raises while it reads a user's checkpoint as a ModelError.

    Libraries raise nearly anything over a damaged file (KeyError, TypeError, bare Exception), so
    this is the one place that catches everything: what fails in it is the checkpoint's.
    """
    try:
        yield
    except (ModelError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ModelError(f"{start}: {what} cannot be read: {_in_our_words(error)}") from error


def _in_our_words(error: Exception) -> str:
    """The cause without advice that cannot be followed here, and without lists of classes."""
    from transformers import __version__

    text = str(error)
    if "trust_remote_code" in text:
        return (
            "it needs code of its own (auto_map in config.json), and code from checkpoints is not "
            "run; use a checkpoint whose architecture transformers has"
        )
    if "Unrecognized model" in text or "does not recognize this architecture" in text:
        return (
            f"its model_type is missing or no architecture that transformers {__version__} has; "
            "correct it, or use another checkpoint"
        )
    if any(words in text for words in NOT_FOUND):
        return (
            "there is no such folder, and the Hugging Face hub does not give it; give a name "
            "that the hub has (with HF_TOKEN where it is private), or a folder with config.json, "
            "the tokenizer's files and model.safetensors"
        )
    lines = text.strip().splitlines() or [repr(error)]
    return (
        f"{lines[0][:300]} ({type(error).__name__}); copy or download the checkpoint again, or use "
        "another"
    )
