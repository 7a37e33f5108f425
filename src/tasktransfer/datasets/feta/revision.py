"""The revision of a release: a digest of its official files, the same for a folder and a zip."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from tasktransfer.datasets.feta import archive
from tasktransfer.datasets.file_digests import Digests, combined, digest_of_files, remembering


def release_revision(path: Path | str, dataset: str, memo: Path | None = None) -> str:
    """Digest (sha256, hex) of the release of ``dataset`` found under ``path``.

    Taken over official file names and contents, so a folder and a zip of the same files have the
    same revision. ``memo`` is the side file of remembered digests (None: hash everything).
    Raises DataError where there is no release, or a file of it is missing.
    """
    source = archive.find_source(path, dataset)
    if source.kind == "folder":
        return digest_of_files(archive.folder_files(source), memo)
    with remembering(memo) as digests:
        return combined(_member_digests(source, digests))


def _member_digests(source: archive.Source, digests: Digests) -> dict[str, str]:
    """Name → digest of the zip's members, for which the state of the zip itself counts."""
    state = source.path.stat()
    names = archive.official_files(source.dataset)
    keys = {name: f"{source.path.absolute()}::{name}" for name in names}
    recalled = {name: digests.recall(keys[name], state) for name in names}
    if all(recalled.values()):
        return {name: digest for name, digest in recalled.items() if digest}
    members = {}
    for name, chunks in archive.stream_files(source, names).items():
        members[name] = _digest_of(chunks)
        digests.remember(keys[name], state, members[name])
    return members


def _digest_of(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
