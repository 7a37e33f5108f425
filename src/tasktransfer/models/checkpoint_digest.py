"""What a local checkpoint is, as one digest. Standard library only: every start asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tasktransfer.datasets.file_digests import digest_of_files
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
"""The files of a local checkpoint, beside its ``*.safetensors``, that change its numbers."""
TEMPLATE_FILE = "chat_template.jinja"
"""The chat template, which changes the numbers of a prompted model alone."""


def directory_digest(path: Path | str, memo: Path | None = None, *, prompted: bool = False) -> str:
    """Digest (sha256, hex) of a local checkpoint folder.

    Taken over the names and contents of its config, tokenizer files and ``*.safetensors``;
    top-level files only, other files do not count. Raises ModelError where the folder, its
    ``config.json`` or its weights are missing.

    Args:
        prompted: whether the model is prompted and not trained: its chat template counts too.
    """
    names = CHECKPOINT_FILES | ({TEMPLATE_FILE} if prompted else set())
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such checkpoint folder; give a folder or a model's name")
    files = {
        file.name: file
        for file in folder.iterdir()
        if (file.name in names or file.suffix == ".safetensors") and file.is_file()
    }
    if "config.json" not in files:
        raise ModelError(
            f"{folder}: no config.json; a checkpoint's folder holds config.json, the tokenizer's "
            "files and *.safetensors, as save_pretrained writes them"
        )
    if not any(name.endswith(".safetensors") for name in files):
        others = sorted(f.name for f in folder.iterdir() if f.suffix in OTHER_WEIGHTS)
        only = f", only {', '.join(others)}, which may hold code and are not read" if others else ""
        raise ModelError(
            f"{folder}: no *.safetensors{only}; load the model once with transformers and write it "
            "with save_pretrained"
        )
    return _digest_of(files, memo)


def file_digest(file: Path | str, memo: Path | None = None) -> str:
    """Digest (sha256, hex) of a checkpoint that is one file in GGUF, whatever it is called.

    Raises ModelError where it cannot be read.
    """
    return _digest_of({"gguf": Path(file).expanduser()}, memo)


def _digest_of(files: Mapping[str, Path], memo: Path | None) -> str:
    try:
        return digest_of_files(files, memo)
    except DataError as error:
        raise ModelError(str(error)) from error
