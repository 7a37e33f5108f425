"""Revision of a release: a digest of its official files, identical for a folder and a zip."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from tasktransfer.datasets.feta import archive
from tasktransfer.datasets.file_digests import (
    Digests,
    cache_digests,
    combine_digests,
    compute_files_digest,
)


def compute_release_revision(path: Path | str, dataset: str, memo: Path | None = None) -> str:
    """Return the digest (SHA-256, hex) of the release of ``dataset`` under ``path``.

    It covers the official file names and their contents, so a folder and a zip with the same files
    have the same revision.

    Args:
        path: folder or zip, see ``archive.find_source``.
        dataset: name of the dataset.
        memo: cache file for digests. None to hash all files.

    Raises:
        DataError: there is no release, or one of its files is missing.
    """
    source = archive.find_source(path, dataset)
    if source.kind == "folder":
        return compute_files_digest(archive.find_folder_files(source), memo)
    with cache_digests(memo) as digests:
        return combine_digests(_hash_members(source, digests))


def _hash_members(source: archive.Source, digests: Digests) -> dict[str, str]:
    """Map name to digest of the zip's members, cached by the state of the zip."""
    state = source.path.stat()
    names = archive.list_official_files(source.dataset)
    keys = {name: f"{source.path.absolute()}::{name}" for name in names}
    recalled = {name: digests.get_cached_digest(keys[name], state) for name in names}
    if all(recalled.values()):
        return {name: digest for name, digest in recalled.items() if digest}
    members = {}
    for name, chunks in archive.stream_files(source, names).items():
        members[name] = _compute_digest(chunks)
        digests.cache_digest(keys[name], state, members[name])
    return members


def _compute_digest(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
