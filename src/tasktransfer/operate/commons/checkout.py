"""Reading the commit of an untrusted checkout without git.

Git would run programs named in the checkout's configuration (``core.fsmonitor``, filters, hooks).
The commit itself is in a few small text files.
"""

from __future__ import annotations

import re
from pathlib import Path

from tasktransfer.files.untrusted import read_regular

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = re.compile(r"refs/heads/[^\s\x00-\x1f\x7f]+")
MOST_REF = 1000
MOST_PACKED = 16 * 2**20
"""Largest size in bytes of a list of branches and tags."""


def read_commit(folder: Path) -> str:
    """Return the commit hash of the checkout in a folder, or "" for other folders."""
    place = folder.resolve()
    for parent in (place, *place.parents):
        if (git := parent / ".git").is_dir():
            return _read_head_commit(git)
    return ""


def _read_head_commit(git: Path) -> str:
    head = _read_text(git / "HEAD", MOST_REF).strip()
    if _HASH.fullmatch(head):
        return head
    branch = head.removeprefix("ref:").strip()
    if not _BRANCH.fullmatch(branch) or ".." in branch:
        return ""
    loose = _read_text(git / branch, MOST_REF).strip()
    return loose if _HASH.fullmatch(loose) else _find_packed_commit(git, branch)


def _find_packed_commit(git: Path, branch: str) -> str:
    for line in _read_text(git / "packed-refs", MOST_PACKED).splitlines():
        commit, _, name = line.partition(" ")
        if name == branch and _HASH.fullmatch(commit):
            return commit
    return ""


def _read_text(file: Path, most: int) -> str:
    try:
        return read_regular(file, most, follow_links=False).decode("utf-8", "replace")
    except OSError:
        return ""
