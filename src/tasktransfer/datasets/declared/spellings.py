"""Labels in several spellings: one label in two Unicode forms, or as 1 and 1.0.

A label whose spellings differ in what a reader does not see, or in how a number is written, is one
label. It is read in its listed spelling, or else in its plain one (``plain_label``), and a note
says so. A label with a single spelling stays as it is. Spellings that differ in case, or in blanks
within, may be different labels: they are refused.
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
"""Ways to write a label that are remembered."""
SHOWN = 5
"""Labels that a note lists."""

MISSING_WORDS = frozenset({"nan", "null", "n/a", "#n/a", "<na>"})
"""Texts that tables have for a missing value, in small letters."""

Spellings = Mapping[str, str]
"""Spelling → the label that it is read as, without spellings that are read as they are."""


@lru_cache(maxsize=4096)
def plain_label(label: str) -> str:
    """Return the plain spelling of a label: in composed Unicode, without characters that have no
    width and without blanks around it, whole numbers without a fraction, true and false in small
    letters. Empty if nothing can be seen."""
    composed = unicodedata.normalize("NFC", label)
    plain = unicodedata.normalize("NFC", "".join(map(_plain_character, composed))).strip()
    if number := _WHOLE.fullmatch(plain):
        plain = number[1]
    if plain in ("-0", "+0"):
        return "0"
    return plain.lower() if plain.lower() in ("true", "false") else plain


def _plain_character(character: str) -> str:
    """Return a character in its usual width and form. Numerals such as ² and ① stay: they are not
    the digits 2 and 1."""
    if unicodedata.category(character) == "Cf" or ord(character) in _VARIATION_SELECTORS:
        return ""
    if character.isnumeric() and not character.isdecimal():
        return character
    return unicodedata.normalize("NFKC", character)


def merge_spellings(labels: Iterable[str], listed: Collection[str] = ()) -> dict[str, str]:
    """Return the spellings that are read as another label.

    Args:
        labels: as the files have them.
        listed: labels of the declaration, whose spellings are kept.
    """
    spellings: dict[str, list[str]] = {}
    for label in dict.fromkeys([*listed, *labels]):
        spellings.setdefault(plain_label(label), []).append(label)
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
            f"{label!r:.60}, from which the spelling differs in what cannot be seen or in how a "
            "value is written"
        )


@dataclass(slots=True)
class ValueForms:
    """How files write each label: as a text, with blanks around it, as a number or as yes and no.

    Args:
        by_label: label → its values as written, without those that are the label's own text.
        plain: labels that are written as their own text.
    """

    by_label: dict[str, set[str]] = field(default_factory=dict)
    plain: set[str] = field(default_factory=set)

    def add(self, label: str, value: object) -> None:
        """Note a value that is read as a label."""
        if value == label:
            self.plain.add(label)
        elif len(forms := self.by_label.setdefault(label, set())) < MAX_FORMS:
            forms.add(f"{value!r:.40}")

    def notes(self, task: str) -> Iterator[str]:
        """Yield a note for each label that is written in several ways."""
        for label, found in self.by_label.items():
            forms = sorted(found) + ([repr(label)] if label in self.plain else [])
            if len(forms) > 1:
                yield f"{task}: {', '.join(forms)} are read as one label, {label!r:.60}"


def describe_missing(task: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a note for each label that tables write for a missing value."""
    for label, count in counts.items():
        if label.casefold() in MISSING_WORDS:
            yield (
                f"{task}: label {label!r} ({count:,}) may stand for no answer; if so, set missing: "
                f"skip and missing_values: [{label!r}]"
            )


def list_labels(labels: Collection[str]) -> str:
    """Return the first labels, quoted, and how many more there are."""
    shown = ", ".join(f"{label!r:.60}" for label in list(labels)[:SHOWN])
    more = len(labels) - SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown
