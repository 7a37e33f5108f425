"""What data is there, as one digest: the part of a stage's identity that stands for its data.

Standard library only and fast: the workflow asks at each parse. Digests of files are remembered
in a small side file (the memo), keyed by path, size and time of change, so that big files are
hashed once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from tasktransfer import json_text
from tasktransfer.datasets.feta import archive
from tasktransfer.errors import DataError, ModelError

MEMO_VERSION = 1
SETTLED_NS = 2_000_000_000
"""A file changed less than this long ago is not remembered: file systems keep time in coarse
steps, and a second change within one step would not be seen."""

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

Memo = dict[str, dict[str, object]]


def release_revision(path: Path | str, dataset: str, memo: Path | None = None) -> str:
    """Digest (sha256, hex) of the release of ``dataset`` found under ``path``.

    Taken over official file names and contents, so a folder and a zip of the same files have the
    same revision. ``memo`` is the side file of remembered digests (None: hash everything).
    Raises DataError where there is no release, or a file of it is missing.
    """
    source = archive.find_source(path, dataset)
    known = _read_memo(memo)
    before = dict(known)
    if source.kind == "zip":
        digests = _zip_digests(source, known)
    else:
        files = archive.folder_files(source)
        digests = {name: _file_digest(file, known) for name, file in files.items()}
    _write_memo(memo, before, known)
    return revision_of(digests)


def revision_of(digests: Mapping[str, str]) -> str:
    """The revision of a release from the sha256 of each of its official files, by name."""
    lines = (f"{name}\0{digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def directory_digest(path: Path | str, memo: Path | None = None) -> str:
    """Digest (sha256, hex) of a local checkpoint folder.

    Taken over the names and contents of its config, tokenizer files and ``*.safetensors``;
    top-level files only, other files do not count. Raises ModelError where the folder, its
    ``config.json`` or its weights are missing.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such checkpoint folder; give a folder or a model's name")
    files = {
        file.name: file
        for file in folder.iterdir()
        if (file.name in CHECKPOINT_FILES or file.suffix == ".safetensors") and file.is_file()
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
    known = _read_memo(memo)
    before = dict(known)
    try:
        digests = {name: _file_digest(file, known) for name, file in files.items()}
    except DataError as error:
        raise ModelError(str(error)) from error
    _write_memo(memo, before, known)
    return revision_of(digests)


def _file_digest(file: Path, known: Memo) -> str:
    try:
        state = file.stat()
        key = str(file.absolute())
        found = _recall(known, key, state)
        if found is not None:
            return found
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error})") from error
    _remember(known, key, state, digest)
    return digest


def _zip_digests(source: archive.Source, known: Memo) -> dict[str, str]:
    state = source.path.stat()
    names = archive.official_files(source.dataset)
    keys = {name: f"{source.path.absolute()}::{name}" for name in names}
    found = {name: _recall(known, keys[name], state) for name in names}
    if all(found.values()):
        return {name: digest for name, digest in found.items() if digest}
    digests = {}
    for name, chunks in archive.stream_files(source, names).items():
        digests[name] = _digest_of(chunks)
        _remember(known, keys[name], state, digests[name])
    return digests


def _digest_of(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _recall(known: Memo, key: str, state: os.stat_result) -> str | None:
    entry = known.get(key, {})
    if entry.get("size") != state.st_size or entry.get("mtime_ns") != state.st_mtime_ns:
        return None
    digest = entry.get("sha256")
    return digest if isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) else None


def _remember(known: Memo, key: str, state: os.stat_result, digest: str) -> None:
    if time.time_ns() - state.st_mtime_ns < SETTLED_NS:
        return
    known[key] = {"size": state.st_size, "mtime_ns": state.st_mtime_ns, "sha256": digest}


def _read_memo(memo: Path | None) -> Memo:
    """What the memo remembers; nothing where it is absent or damaged, which only costs time."""
    if memo is None:
        return {}
    try:
        content = json_text.loads(memo.read_text(encoding="utf-8"))
        files = content["files"] if content["version"] == MEMO_VERSION else {}
        return {key: entry for key, entry in files.items() if isinstance(entry, dict)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write_memo(memo: Path | None, before: Memo, known: Memo) -> None:
    """Keep what was learnt. A memo that cannot be written only costs time at the next parse."""
    if memo is None or known == before:
        return
    draft = memo.with_name(f".{memo.name}.{os.getpid()}")
    content = json.dumps({"version": MEMO_VERSION, "files": known}, indent=1, sort_keys=True)
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(content, encoding="utf-8")
        draft.replace(memo)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
