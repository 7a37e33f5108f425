"""Identity of checkpoints: digests of local folders, and commits of models on the hub.

The module uses the standard library only, because every command needs it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from tasktransfer.datasets.file_digests import compute_files_digest
from tasktransfer.errors import DataError, ModelError

OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack")

CHECKPOINT_FILES = frozenset(
    {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.json",
        "vocab.txt",
        "merges.txt",
        "spiece.model",
        "tokenizer.model",
        "sentencepiece.bpe.model",
        "model.safetensors.index.json",
    }
)
"""Files of a local checkpoint, besides its ``*.safetensors``, that change its results."""
TEMPLATE_FILE = "chat_template.jinja"
"""The chat template, which changes the results of a prompted model only."""


def compute_folder_digest(
    path: Path | str, memo: Path | None = None, *, prompted: bool = False
) -> str:
    """Return the digest (sha256, hex) of a local checkpoint folder.

    It covers the names and contents of its config, tokenizer files and ``*.safetensors``. Other
    files and subfolders do not count.

    Args:
        prompted: whether the model is prompted instead of trained, so that its chat template
            counts, too.

    Raises:
        ModelError: the folder, its ``config.json`` or its weights are missing.
    """
    names = CHECKPOINT_FILES | ({TEMPLATE_FILE} if prompted else set())
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise ModelError(
            f"{folder}: The checkpoint folder does not exist. Specify an existing folder, or a "
            "model on the Hugging Face hub."
        )
    files = {
        file.name: file
        for file in folder.iterdir()
        if (file.name in names or file.suffix == ".safetensors") and file.is_file()
    }
    if "config.json" not in files:
        raise ModelError(
            f"{folder}: config.json is missing. Specify a folder that contains config.json, the "
            "tokenizer's files and *.safetensors, as written by save_pretrained."
        )
    if not any(name.endswith(".safetensors") for name in files):
        others = sorted(f.name for f in folder.iterdir() if f.suffix in OTHER_WEIGHTS)
        only = f", only {', '.join(others)}, which may hold code and are not read" if others else ""
        raise ModelError(
            f"{folder}: The folder contains no *.safetensors file{only}. Load the model once with "
            "transformers and save it with save_pretrained."
        )
    return _compute_digest(files, memo)


def compute_file_digest(file: Path | str, memo: Path | None = None) -> str:
    """Return the digest (sha256, hex) of a GGUF file, independent of its name.

    Raises:
        ModelError: the file cannot be read.
    """
    return _compute_digest({"gguf": Path(file).expanduser()}, memo)


def _compute_digest(files: Mapping[str, Path], memo: Path | None) -> str:
    try:
        return compute_files_digest(files, memo)
    except DataError as error:
        raise ModelError(str(error)) from error


_COMMIT = re.compile(r"[0-9a-f]{40}")
_SECONDS = 5.0
"""Time limit of a request to the hub, since every start of a study may send one."""


def is_commit(revision: str) -> bool:
    """Return whether a revision is a commit hash, and therefore never changes."""
    return _COMMIT.fullmatch(revision) is not None


@functools.cache
def resolve_commit(name: str, revision: str) -> str | None:
    """Resolve a branch or tag to its commit, from the hub or from the local cache.

    An offline training loads the cached commit. Return None if neither has it.
    """
    return _fetch_commit(name, revision) or _find_cached_commit(name, revision)


def _fetch_commit(name: str, revision: str) -> str | None:
    try:
        # Tables and figures can be made on machines without the model libraries.
        from huggingface_hub import HfApi, constants
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        return None
    if constants.HF_HUB_OFFLINE or _unreachable:
        return None
    try:
        return HfApi().model_info(name, revision=revision, timeout=_SECONDS).sha
    except HfHubHTTPError:  # unknown name or no access: loading reports it
        return None
    except Exception as error:  # raised by the hub client's HTTP library
        _unreachable.append(str(error))
        return None


_unreachable: list[str] = []
"""Errors of an unreachable hub; if there are any, this process sends no further requests."""


def _find_cached_commit(name: str, revision: str) -> str | None:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    found = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(found).parent.name if isinstance(found, str) else None
