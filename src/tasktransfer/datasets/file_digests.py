"""Digests of files: what the revisions of releases and of local checkpoints are made of.

Standard library only and fast: the workflow asks at each parse. Digests are remembered in a small
side file (the memo), keyed by path, size and time of change, so that big files are hashed once.
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
from tasktransfer.files.regular import open_regular

MEMO_VERSION = 1
SETTLED_NS = 2_000_000_000
"""A file changed less than this long ago is not remembered: file systems keep time in coarse
steps, and a second change within one step would not be seen."""

Entries = dict[str, dict[str, object]]


def digest_of_files(files: Mapping[str, Path], memo: Path | None = None) -> str:
    """One digest (sha256, hex) of the names and contents of some files.

    Args:
        files: name → file. The names count, the places do not.
        memo: the side file of remembered digests; None: hash everything.

    Raises:
        DataError: a file cannot be read.
    """
    with remembering(memo) as digests:
        return combined({name: digests.of_file(file) for name, file in files.items()})


def combined(digests: Mapping[str, str]) -> str:
    """One digest of the sha256 of each of some files, by name."""
    lines = (f"{name}\0{digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@contextlib.contextmanager
def remembering(memo: Path | None) -> Iterator[Digests]:
    """Digests with a memo, which is written in the end if something was learnt."""
    digests = Digests(_read_memo(memo))
    before = dict(digests.entries)
    yield digests
    if memo is not None and digests.entries != before:
        _write_memo(memo, digests.entries)


class Digests:
    """Digests of files, remembered by place, size and time of change."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    def of_file(self, file: Path) -> str:
        """The sha256 of a file. Raises DataError if it cannot be read."""
        try:
            state = file.stat()
            digest = self.recall(str(file.absolute()), state)
            if digest is None:
                digest = _hash(file)
                self.remember(str(file.absolute()), state, digest)
        except OSError as error:
            raise DataError(f"{file}: cannot be read ({error})") from error
        return digest

    def recall(self, key: str, state: os.stat_result) -> str | None:
        """The remembered digest, if the file in this state is the one that it was taken of."""
        entry = self.entries.get(key, {})
        if entry.get("size") != state.st_size or entry.get("mtime_ns") != state.st_mtime_ns:
            return None
        digest = entry.get("sha256")
        return digest if isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) else None

    def remember(self, key: str, state: os.stat_result, digest: str) -> None:
        """Keep a digest, unless the file has changed only just now.

        A file from the future (of a clock that is ahead) is not read again at every start.
        """
        if abs(time.time_ns() - state.st_mtime_ns) >= SETTLED_NS:
            size, changed = state.st_size, state.st_mtime_ns
            self.entries[key] = {"size": size, "mtime_ns": changed, "sha256": digest}


def _hash(file: Path) -> str:
    with open_regular(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_memo(memo: Path | None) -> Entries:
    """What the memo remembers; nothing where it is absent or damaged, which only costs time."""
    if memo is None:
        return {}
    try:
        content = json_text.loads(memo.read_text(encoding="utf-8"))
        files = content["files"] if content["version"] == MEMO_VERSION else {}
        return {key: entry for key, entry in files.items() if isinstance(entry, dict)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write_memo(memo: Path, entries: Entries) -> None:
    """A memo that cannot be written only costs time at the next parse."""
    draft = memo.with_name(f".{memo.name}.{os.getpid()}")
    content = json.dumps({"version": MEMO_VERSION, "files": entries}, indent=1, sort_keys=True)
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(content, encoding="utf-8")
        draft.replace(memo)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
