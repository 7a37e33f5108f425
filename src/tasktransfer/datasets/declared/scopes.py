"""The scope in which dialogue names are unique, because some corpora restart them in each file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Literal

from tasktransfer.core.nodes.identity import compute_digest
from tasktransfer.datasets.declared.dialogues import read_dialogues
from tasktransfer.datasets.declared.section import DialogueSection
from tasktransfer.datasets.declared.source_row import SourceRow
from tasktransfer.datasets.disjoint_splits import normalise_text
from tasktransfer.errors import DataError

TextDigests = Mapping[str, str]
"""Dialogue name → digest of its text."""


def guess_scope(
    files: Sequence[tuple[str, TextDigests]],
) -> tuple[Literal["split", "file"], int] | None:
    """Guess if dialogue names are unique only within a split or file, and count conflicts.

    A name conflicts if two files have it with different texts. The result is None if names are
    unique everywhere, or if several files have the same dialogues.

    Args:
        files: (split, texts of its dialogues) for each file.
    """
    scopes: set[str] = set()
    names = 0
    for (split, texts), (split_2, texts_2) in combinations(files, 2):
        shared = texts.keys() & texts_2.keys()
        differing = sum(texts[name] != texts_2[name] for name in shared)
        smaller = min(len(texts), len(texts_2))
        if shared and 2 * len(shared) >= smaller and 2 * differing >= len(shared):
            scopes.add("file" if split == split_2 else "split")
            names = max(names, differing)
    if not scopes:
        return None
    return ("file" if "file" in scopes else "split"), names


def read_text_digests(rows: Iterable[SourceRow], section: DialogueSection) -> TextDigests:
    """Map each dialogue name to the digest of its text, up to the first unreadable row."""
    texts: dict[str, str] = {}
    with suppress(DataError):
        for dialogue in read_dialogues(rows, section, ""):
            texts[dialogue.id] = compute_digest(normalise_text(dialogue.words))
    return texts
