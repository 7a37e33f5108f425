"""The guard that every reader calls: no dialogue, by its name or by its text, is in two splits.

Texts are compared without case, spaces and punctuation (``normalise_text``), and count from
``LEAST_WORDS`` on: shorter ones are said twice by chance ("i like this one"). Some published
releases have the same dialogue in two splits under two names. Such a dataset says so, as the share
of a split that it may be; within it the dialogues are counted and told, above it, as everywhere
else, the release is refused.
Generated dialogues, which a grammar draws twice by chance, are compared by name alone.
docs/decisions/0025-no-dialogue-in-two-splits.md gives the counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple, NoReturn

from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS

LEAST_WORDS = 12
"""The longest text that unlike dialogues at hand share by chance has 5 words."""

LEARNT = "else a model is tested on what it has learnt"
_PASSED_OVER = bytes(code for code in range(128) if not chr(code).isalnum())
_VARIATION_SELECTORS = range(0xFE00, 0xFE10)
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)
"""Characters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, kana, Han."""


_WORD = re.compile(r"\w\S*")


class _Significant(dict[int, int | None]):
    """A table for ``str.translate``: spaces, punctuation and characters without a width become
    None. Letters, marks, digits and emojis stay: they tell texts apart in every script."""

    def __missing__(self, code: int) -> int | None:
        category = unicodedata.category(chr(code))
        dropped = category[0] in "ZPC" or code in _VARIATION_SELECTORS
        self[code] = None if dropped or (code < 128 and not chr(code).isalnum()) else code
        return self[code]


_SIGNIFICANT = _Significant()


def normalise_text(text: str) -> str:
    """Return a text as duplicates are looked for: in one Unicode form, without case, spaces and
    punctuation. A text of punctuation alone loses its spaces only."""
    lowered = text.lower()
    if not text.isascii():
        lowered = unicodedata.normalize("NFC", lowered)
    return lowered.translate(_SIGNIFICANT) or "".join(lowered.split())


def count_words(text: str) -> int:
    """Return the number of words in a text, without punctuation that stands alone. Two characters
    count as a word in scripts that put no spaces between words."""
    unspaced = 0 if text.isascii() else len(_WITHOUT_SPACES.findall(text))
    return len(_WORD.findall(text)) + unspaced // 2


class Said(NamedTuple):
    """A dialogue: ``text`` is all that is said in it, ``location`` its file, and line if known."""

    name: str
    split: str
    text: str
    location: str


def refuse_shared(
    dialogues: Iterable[Said],
    remedy: str = "keep it in one of them",
    *,
    allowed: float = 0.0,
    least_words: int = LEAST_WORDS,
    generated: bool = False,
) -> tuple[str, ...]:
    """Refuse dialogues that are in two splits.

    Args:
        dialogues: all of a dataset, of every split.
        remedy: what a user can do about it.
        allowed: share of the smaller of two splits that may be in the other by text.
        generated: compare names alone.

    Returns:
        What is in two splits by its text and allowed, a line for each two splits.

    Raises:
        DataError: a dialogue is in two; names files, dialogues, splits and remedy.
    """
    splits: dict[str, _Split] = {}
    for name, split, text, location in dialogues:
        side = splits.setdefault(split, _Split(split))
        side.names.append(name)
        side.places.append(location)
        if not generated:
            side.texts.append(text)
            lowered = text.lower().encode("utf-8", "replace")
            side.keys.append(lowered.translate(None, _PASSED_OVER) or lowered)
    names = {split: set(side.names) for split, side in splits.items()}
    keys = {split: set(side.keys) for split, side in splits.items()}
    told = []
    for first, second in combinations(sorted(splits, key=[*SPLITS, *splits].index), 2):
        earlier, other = splits[first], splits[second]
        if same := names[first] & names[second]:
            _refuse(earlier, other, earlier.names, other.names, same, remedy)
        if not (twice := keys[first] & keys[second]):
            continue
        long = zip(other.keys, other.texts, strict=True)
        counted = {k for k, text in long if k in twice and len(text.split()) >= least_words}
        sizes = len(earlier.names), len(other.names)
        if len(counted) > allowed * min(sizes):
            _refuse(earlier, other, earlier.keys, other.keys, counted, remedy)
        elif counted:
            told.append(
                f"{len(counted):,} dialogues are in {first} and in {second} by their text (of "
                f"{sizes[0]:,} and {sizes[1]:,}), as in the published release"
            )
    return tuple(told)


@dataclass(frozen=True, slots=True)
class _Split:
    """Lists by dialogue, not a list of dialogues: of a million, Python's collector would look
    through each. ``keys``: texts as they are compared."""

    name: str
    names: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)


def _refuse(
    split: _Split,
    other: _Split,
    of_one: Sequence[Any],
    of_other: Sequence[Any],
    twice: Collection[Any],
    remedy: str,
) -> NoReturn:
    """Name the first dialogue that is in two splits: by names, or by texts as they are compared."""
    first = next(index for index, key in enumerate(of_one) if key in twice)
    second = of_other.index(of_one[first])
    name, same = split.names[first], other.names[second]
    here, there = split.places[first], other.places[second]
    what = f"dialogues {name!r} ({split.name}) and {same!r} ({other.name}) say the same"
    if name == same:
        what = f"dialogue {name!r} is in {split.name} and in {other.name}"
    count = f" ({len(twice):,} in all)" if len(twice) > 1 else ""
    where = here if here == there else f"{here} and {there}"
    raise DataError(f"{where}: {what}{count}: {remedy}, {LEARNT}")
