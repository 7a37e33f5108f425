"""Check that no dialogue is in two splits, by its name or by its text. All readers call it.

Texts are compared without case, spaces and punctuation (``normalise_text``). Only texts of at least
``MIN_WORDS`` words count, because shorter ones repeat by chance ("i like this one"). Some published
releases have the same dialogue in two splits under two names. Such a dataset allows a fraction of a
split. Up to this fraction a note reports the number of dialogues. Above it an error is raised.
Generated dialogues, which a grammar may repeat by chance, are compared by name alone.
docs/decisions/0025-no-dialogue-in-two-splits.md gives the counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple, NoReturn

from tasktransfer.errors import DataError, format_quantity
from tasktransfer.tasks.card import SPLITS
from tasktransfer.tasks.compose import count_unspaced_characters

MIN_WORDS = 12
"""Minimum number of words of a compared text. The longest text that different dialogues of the
datasets share by chance has 5 words."""

LEAK_REASON = "otherwise a model is tested on its training data"
_IGNORED_BYTES = bytes(code for code in range(128) if not chr(code).isalnum())
_VARIATION_SELECTORS = range(0xFE00, 0xFE10)
_WORD = re.compile(r"\w\S*")


class _SignificantCharacters(dict[int, int | None]):
    """Table for ``str.translate`` that removes spaces, punctuation and zero-width characters.

    Letters, marks, digits and emojis stay, because they distinguish texts in all scripts.
    """

    def __missing__(self, code: int) -> int | None:
        category = unicodedata.category(chr(code))
        dropped = category[0] in "ZPC" or code in _VARIATION_SELECTORS
        self[code] = None if dropped or (code < 128 and not chr(code).isalnum()) else code
        return self[code]


_SIGNIFICANT = _SignificantCharacters()


def normalise_text(text: str) -> str:
    """Normalise a text for the comparison of duplicates.

    It is in one Unicode form, without case, spaces and punctuation. If a text has only punctuation,
    only the spaces are removed.
    """
    lowered = text.lower()
    if not text.isascii():
        lowered = unicodedata.normalize("NFC", lowered)
    return lowered.translate(_SIGNIFICANT) or "".join(lowered.split())


def count_words(text: str) -> int:
    """Return the number of words in a text, without separate punctuation marks.

    In scripts without spaces between words, two characters count as a word.
    """
    return len(_WORD.findall(text)) + count_unspaced_characters(text) // 2


class SplitDialogue(NamedTuple):
    """A dialogue of a split. ``text`` is the text of all turns, ``location`` the file and line."""

    name: str
    split: str
    text: str
    location: str


def check_disjoint_splits(
    dialogues: Iterable[SplitDialogue],
    remedy: str = "Keep the dialogue in one of them",
    *,
    allowed: float = 0.0,
    least_words: int = MIN_WORDS,
    generated: bool = False,
) -> tuple[str, ...]:
    """Raise an error if a dialogue is in two splits, and return notes on allowed duplicates.

    Args:
        dialogues: dialogues of all splits of a dataset.
        remedy: remedy in the error message.
        allowed: fraction of the smaller split whose texts may also be in the other split.
        least_words: minimum number of words of a compared text.
        generated: whether names alone are compared.

    Returns:
        Notes about allowed dialogues whose texts are in two splits, one per pair of splits.

    Raises:
        DataError: a dialogue is in two splits. The message names files, dialogues and splits.
    """
    splits: dict[str, _Split] = {}
    for name, split, text, location in dialogues:
        side = splits.setdefault(split, _Split(split))
        side.names.append(name)
        side.places.append(location)
        if not generated:
            side.texts.append(text)
            lowered = text.lower().encode("utf-8", "replace")
            side.keys.append(lowered.translate(None, _IGNORED_BYTES) or lowered)
    names = {split: set(side.names) for split, side in splits.items()}
    keys = {split: set(side.keys) for split, side in splits.items()}
    notes = []
    for first, second in combinations(sorted(splits, key=[*SPLITS, *splits].index), 2):
        earlier, other = splits[first], splits[second]
        if same := names[first] & names[second]:
            _raise_shared_error(earlier, other, earlier.names, other.names, same, remedy)
        if not (shared := keys[first] & keys[second]):
            continue
        long = zip(other.keys, other.texts, strict=True)
        counted = {k for k, text in long if k in shared and len(text.split()) >= least_words}
        sizes = len(earlier.names), len(other.names)
        if len(counted) > allowed * min(sizes):
            _raise_shared_error(earlier, other, earlier.keys, other.keys, counted, remedy)
        elif counted:
            verb = "is" if len(counted) == 1 else "are"
            notes.append(
                f"{format_quantity(len(counted), 'dialogue')} {verb} in {first} and in {second} "
                f"with the same text (of {sizes[0]:,} and {sizes[1]:,}), as in the published "
                "release"
            )
    return tuple(notes)


@dataclass(frozen=True, slots=True)
class _Split:
    """Dialogues of a split.

    The fields are parallel lists, because Python's garbage collector would traverse a million
    objects for dialogues. ``keys`` are the normalised texts.
    """

    name: str
    names: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)


def _raise_shared_error(
    split: _Split,
    other: _Split,
    keys: Sequence[Any],
    other_keys: Sequence[Any],
    shared: Collection[Any],
    remedy: str,
) -> NoReturn:
    """Raise DataError for the first dialogue that two splits share by name or by text."""
    first = next(index for index, key in enumerate(keys) if key in shared)
    second = other_keys.index(keys[first])
    name, same = split.names[first], other.names[second]
    here, there = split.places[first], other.places[second]
    what = f"Dialogues {name!r} ({split.name}) and {same!r} ({other.name}) have the same text"
    if name == same:
        what = f"Dialogue {name!r} is in {split.name} and in {other.name}"
    count = f" ({len(shared):,} in all)" if len(shared) > 1 else ""
    where = here if here == there else f"{here} and {there}"
    raise DataError(f"{where}: {what}{count}. {remedy}, {LEAK_REASON}.")
