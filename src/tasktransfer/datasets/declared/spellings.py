"""Labels with several spellings, such as two Unicode forms, or 1 and 1.0.

Spellings that differ only in invisible characters, or in the format of a number, are one label. It
is read as the spelling that the declaration lists, otherwise as the plain one
(``normalise_label``), and a note reports it. A label with a single spelling is not changed.
Spellings that differ in case or in inner spaces may be different labels, so they are refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

_WHOLE = re.compile(r"(-?[0-9]+)\.0*")
_VARIATION_SELECTORS = range(0xFE00, 0xFE10)
MAX_FORMS = 4
"""Maximum number of forms recorded per label."""
SHOWN = 5
"""Maximum number of labels that a note lists."""

MISSING_WORDS = frozenset({"nan", "null", "n/a", "#n/a", "<na>"})
"""Texts for a missing value in tables, in lower case."""

Spellings = Mapping[str, str]
"""Spelling → the label that it is read as, without spellings that do not change."""


@lru_cache(maxsize=4096)
def normalise_label(label: str) -> str:
    """Return the plain spelling of a label. Empty if the label has no visible character.

    It is composed Unicode without zero-width characters and without outer spaces. Whole numbers
    have no fraction, and true and false are in lower case.
    """
    composed = unicodedata.normalize("NFC", label)
    plain = unicodedata.normalize("NFC", "".join(map(_normalise_character, composed))).strip()
    if number := _WHOLE.fullmatch(plain):
        plain = number[1]
    if plain in ("-0", "+0"):
        return "0"
    return plain.lower() if plain.lower() in ("true", "false") else plain


def _normalise_character(character: str) -> str:
    """Return a character in its usual width and form.

    Numerals such as ² and ① do not change: they are not the digits 2 and 1.
    """
    if unicodedata.category(character) == "Cf" or ord(character) in _VARIATION_SELECTORS:
        return ""
    if character.isnumeric() and not character.isdecimal():
        return character
    return unicodedata.normalize("NFKC", character)


def merge_spellings(labels: Iterable[str], listed: Collection[str] = ()) -> dict[str, str]:
    """Return the spellings that are read as another label.

    Args:
        labels: labels in the files.
        listed: labels that the declaration lists, whose spellings are kept.
    """
    spellings: dict[str, list[str]] = {}
    for label in dict.fromkeys([*listed, *labels]):
        spellings.setdefault(normalise_label(label), []).append(label)
    read_as: dict[str, str] = {}
    for plain, alike in spellings.items():
        if len(alike) > 1:
            label = alike[0] if alike[0] in listed else plain
            read_as |= {s: label for s in alike if s != label and s not in listed}
    return read_as


def describe_spellings(task: str, spellings: Spellings) -> Iterator[str]:
    """Yield a note for each label that has several spellings."""
    by_label: dict[str, list[str]] = {}
    for spelling, label in spellings.items():
        by_label.setdefault(label, []).append(spelling)
    for label, alike in by_label.items():
        yield (
            f"{task}: {list_labels(alike)} {'is' if len(alike) == 1 else 'are'} read as label "
            f"{label!r:.60}: the spelling differs only in invisible characters or in the format "
            "of a value"
        )


@dataclass(slots=True)
class ValueForms:
    """Forms of each label in the files: a text, a text with outer spaces, a number or a boolean.

    Args:
        by_label: label → its values in the files that differ from the label's text.
        plain: labels that occur as their own text.
    """

    by_label: dict[str, set[str]] = field(default_factory=dict)
    plain: set[str] = field(default_factory=set)

    def add(self, label: str, value: object) -> None:
        """Record a value that is read as a label."""
        if value == label:
            self.plain.add(label)
        elif len(forms := self.by_label.setdefault(label, set())) < MAX_FORMS:
            forms.add(f"{value!r:.40}")

    def notes(self, task: str) -> Iterator[str]:
        """Yield a note for each label that occurs in several forms."""
        for label, found in self.by_label.items():
            forms = sorted(found) + ([repr(label)] if label in self.plain else [])
            if len(forms) > 1:
                yield f"{task}: {', '.join(forms)} are read as one label, {label!r:.60}"


def describe_missing(task: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a note for each label that tables use for a missing value."""
    for label, count in counts.items():
        if label.casefold() in MISSING_WORDS:
            yield (
                f"{task}: label {label!r} ({count:,}) may mean a missing answer; if so, set "
                f"missing: skip and missing_values: [{label!r}]"
            )


def list_labels(labels: Collection[str]) -> str:
    """Return the first labels, quoted, and the number of the others."""
    shown = ", ".join(f"{label!r:.60}" for label in list(labels)[:SHOWN])
    more = len(labels) - SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown
