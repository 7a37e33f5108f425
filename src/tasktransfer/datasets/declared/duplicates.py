"""Dialogues that occur twice: the scope of dialogue names, and duplicate names and texts.

Some corpora restart dialogue names in each file. Duplicates are an error across splits with files,
and are kept together in sampled splits.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Literal

from tasktransfer.core.identity import compute_digest
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue, read_dialogues
from tasktransfer.datasets.declared.row_fields import SourceRow
from tasktransfer.datasets.declared.section import DialogueSection
from tasktransfer.datasets.disjoint_splits import (
    LEAK_REASON,
    MIN_WORDS,
    count_words,
    normalise_text,
)
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


class Duplicates:
    """Index of the names and texts of a dataset's dialogues, which finds duplicates.

    Args:
        id_field: the declaration's ``dialogue.id``, for messages. None if names are not unique in
            the dataset.
        by_split: whether several splits have files, so that texts are compared across splits.
    """

    def __init__(self, id_field: str | None, *, by_split: bool) -> None:
        self.id_field, self.by_split = id_field, by_split
        self._names: dict[bytes, tuple[str, str]] = {}
        self._by_text: dict[bytes, tuple[str, str]] = {}
        self._texts = array("q")

    def add(self, split: str, dialogue: DeclaredDialogue) -> None:
        """Add a dialogue to the index.

        Raises:
            DataError: its name occurred before, or its text occurred in another split.
        """
        where = dialogue.location.place
        before = self._names.setdefault(_compute_key(dialogue.id), (split, where))
        if before != (split, where):
            self._raise_name_error(split, dialogue, before)
        text = compute_digest(normalise_text(dialogue.words))
        if split == "train":
            self._texts.append(int(text[:16], 16) >> 1)
        if not self.by_split or count_words(dialogue.words) < MIN_WORDS:
            return
        same = self._by_text.setdefault(text[:16].encode(), (split, where))
        if same[0] != split:
            raise DataError(
                f"{where}: The dialogue {dialogue.id!r} of the split {split} has the same text as "
                f"a dialogue of the split {same[0]} ({same[1]}). Keep the dialogue in one split "
                f"only, {LEAK_REASON}."
            )

    def _raise_name_error(
        self, split: str, dialogue: DeclaredDialogue, before: tuple[str, str]
    ) -> None:
        named = f"{dialogue.location.place}: The dialogue {dialogue.id!r} is"
        if before[0] == split:
            raise DataError(f"{named} already at {before[1]}. Give each dialogue its own name.")
        remedy = f"set dialogue.id: {{field: {self.id_field}, per: split}}"
        raise DataError(
            f"{named} in {split} and in {before[0]} ({before[1]}). Keep the dialogue in one of "
            f"them, {LEAK_REASON}."
            + (f" If names restart in each file, {remedy}." if self.id_field else "")
        )

    def number_groups(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return a group number per training dialogue, equal for equal texts, or () if all differ.

        It is the lowest number among the dialogues with the same text.

        Args:
            numbers: numbers of these dialogues (``sampling.compute_sampling_number``).
        """
        if len(set(self._texts)) == len(self._texts):
            return ()
        lowest: dict[int, int] = {}
        for number, text in zip(numbers, self._texts, strict=True):
            lowest[text] = min(number, lowest.get(text, number))
        return array("q", (lowest[text] for text in self._texts))


def count_duplicates(groups: Sequence[int]) -> int:
    """Return the number of dialogues whose text occurs more than once."""
    return sum(size for size in Counter(groups).values() if size > 1)


def _compute_key(name: str) -> bytes:
    return compute_digest(name)[:16].encode()
