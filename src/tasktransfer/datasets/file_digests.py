"""Digests of files, for the revisions of releases and of local checkpoints.

This module is fast and uses the standard library only, because each parse of the workflow calls it.
Digests are cached in a small file (the memo), keyed by path, size and modification time, so that
large files are hashed once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tasktransfer.errors import DataError
from tasktransfer.files import json_text
from tasktransfer.files.untrusted import open_regular

MEMO_VERSION = 1
MIN_AGE_NS = 2_000_000_000
"""Minimum age in nanoseconds of a file whose digest is cached.

File systems store coarse times, and a second change within one step would not be detected."""

Entries = dict[str, dict[str, object]]


def compute_files_digest(files: Mapping[str, Path], memo: Path | None = None) -> str:
    """Return a digest (SHA-256, hex) of the names and contents of files.

    Args:
        files: name → file. The digest depends on the names, not on the paths.
        memo: cache file for digests. None to hash all files.

    Raises:
        DataError: a file cannot be read.
    """
    with cache_digests(memo) as digests:
        return combine_digests({name: digests.get_digest(file) for name, file in files.items()})


def combine_digests(digests: Mapping[str, str]) -> str:
    """Return a digest of named SHA-256 digests."""
    lines = (f"{name}\0{digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@contextlib.contextmanager
def cache_digests(memo: Path | None) -> Iterator[Digests]:
    """Yield a cache of digests, and write the new digests at the end."""
    digests = Digests(_read_memo(memo))
    before = dict(digests.entries)
    yield digests
    if memo is not None and digests.entries != before:
        _write_memo(memo, digests.entries)


class Digests:
    """Digests of files, cached by path, size and modification time."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    def get_digest(self, file: Path) -> str:
        """Return the SHA-256 of a file. Raises DataError if the file is unreadable."""
        try:
            state = file.stat()
            digest = self.get_cached_digest(str(file.absolute()), state)
            if digest is None:
                digest = _compute_sha256(file)
                self.cache_digest(str(file.absolute()), state, digest)
        except OSError as error:
            raise DataError(
                f"{file}: The file cannot be read ({error}). Check the permissions of the file."
            ) from error
        return digest

    def get_cached_digest(self, key: str, state: os.stat_result) -> str | None:
        """Return a file's cached digest, or None if its size or modification time has changed."""
        entry = self.entries.get(key, {})
        if entry.get("size") != state.st_size or entry.get("mtime_ns") != state.st_mtime_ns:
            return None
        digest = entry.get("sha256")
        return digest if isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) else None

    def cache_digest(self, key: str, state: os.stat_result, digest: str) -> None:
        """Cache the digest of a file, unless the file is very new and may still change.

        Files with a time in the future, from a fast clock, are cached as well.
        """
        if abs(time.time_ns() - state.st_mtime_ns) >= MIN_AGE_NS:
            size, changed = state.st_size, state.st_mtime_ns
            self.entries[key] = {"size": size, "mtime_ns": changed, "sha256": digest}


def _compute_sha256(file: Path) -> str:
    with open_regular(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_memo(memo: Path | None) -> Entries:
    """Read the cached digests, or return {} if the file is missing or damaged."""
    if memo is None:
        return {}
    try:
        content = json_text.loads(memo.read_text(encoding="utf-8"))
        files = content["files"] if content["version"] == MEMO_VERSION else {}
        return {key: entry for key, entry in files.items() if isinstance(entry, dict)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write_memo(memo: Path, entries: Entries) -> None:
    """Write the cache of digests, ignoring errors, which only cost time later."""
    draft = memo.with_name(f".{memo.name}.{os.getpid()}")
    content = json.dumps({"version": MEMO_VERSION, "files": entries}, indent=1, sort_keys=True)
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(content, encoding="utf-8")
        draft.replace(memo)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
