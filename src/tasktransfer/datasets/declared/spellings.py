"""Labels with several spellings, such as two Unicode forms, or 1 and 1.0.

Spellings that differ only in invisible characters, or in the format of a number, are one label. The
spelling that the declaration lists is used, otherwise the plain one (``normalise_label``), and a
note reports it. A label with a single spelling is not changed. Spellings that differ in case or in
inner spaces may be different labels, so they raise an error.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

_WHOLE_NUMBER = re.compile(r"(-?[0-9]+)\.0*")
_VARIATION_SELECTORS = range(0xFE00, 0xFE10)
MAX_FORMS = 4
"""Maximum number of forms recorded per label."""
MAX_SHOWN_LABELS = 5
"""Maximum number of labels that a note lists."""

MISSING_VALUE_WORDS = frozenset({"nan", "null", "n/a", "#n/a", "<na>"})
"""Texts for a missing value in tables, in lower case."""

Spellings = Mapping[str, str]
"""Spelling → label that replaces it, without spellings that do not change."""


@lru_cache(maxsize=4096)
def normalise_label(label: str) -> str:
    """Return a label in plain spelling, or "" if it has no visible character.

    It is composed Unicode without zero-width characters and without outer spaces. Whole numbers
    have no fraction, and true and false are in lower case.
    """
    composed = unicodedata.normalize("NFC", label)
    plain = unicodedata.normalize("NFC", "".join(map(_normalise_character, composed))).strip()
    if number := _WHOLE_NUMBER.fullmatch(plain):
        plain = number[1]
    if plain in ("-0", "+0"):
        return "0"
    return plain.lower() if plain.lower() in ("true", "false") else plain


def _normalise_character(character: str) -> str:
    """Return a character in its usual width and form.

    Numerals such as ² and ① do not change, because they are not the digits 2 and 1.
    """
    if unicodedata.category(character) == "Cf" or ord(character) in _VARIATION_SELECTORS:
        return ""
    if character.isnumeric() and not character.isdecimal():
        return character
    return unicodedata.normalize("NFKC", character)


def merge_spellings(labels: Iterable[str], listed: Collection[str] = ()) -> dict[str, str]:
    """Map each spelling that is replaced to the label that replaces it.

    Args:
        labels: labels in the files.
        listed: labels that the declaration lists, whose spellings are kept.
    """
    spellings: dict[str, list[str]] = {}
    for label in dict.fromkeys([*listed, *labels]):
        spellings.setdefault(normalise_label(label), []).append(label)
    replaced: dict[str, str] = {}
    for plain, alike in spellings.items():
        if len(alike) > 1:
            label = alike[0] if alike[0] in listed else plain
            replaced |= {s: label for s in alike if s != label and s not in listed}
    return replaced


def describe_merged_spellings(task: str, spellings: Spellings) -> Iterator[str]:
    """Yield a note for each label with several spellings."""
    by_label: dict[str, list[str]] = {}
    for spelling, label in spellings.items():
        by_label.setdefault(label, []).append(spelling)
    for label, alike in by_label.items():
        yield (
            f"{task}: {format_labels(alike)} {'is' if len(alike) == 1 else 'are'} read as label "
            f"{label!r:.60}, because the spelling differs only in invisible characters or in the "
            "format of a value"
        )


@dataclass(slots=True)
class ValueForms:
    """The forms of each label in the files: texts, with outer spaces or not, numbers or booleans.

    Args:
        by_label: label → its values in the files that differ from the label's text.
        plain: labels that occur as their own text.
    """

    by_label: dict[str, set[str]] = field(default_factory=dict)
    plain: set[str] = field(default_factory=set)

    def add(self, label: str, value: object) -> None:
        """Record the original value of a label."""
        if value == label:
            self.plain.add(label)
        elif len(forms := self.by_label.setdefault(label, set())) < MAX_FORMS:
            forms.add(f"{value!r:.40}")

    def list_notes(self, task: str) -> Iterator[str]:
        """Yield a note for each label that occurs in different forms."""
        for label, found in self.by_label.items():
            forms = sorted(found) + ([repr(label)] if label in self.plain else [])
            if len(forms) > 1:
                yield f"{task}: {', '.join(forms)} are read as one label, {label!r:.60}"


def describe_missing_words(task: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a note for each label that usually stands for a missing value."""
    for label, count in counts.items():
        if label.casefold() in MISSING_VALUE_WORDS:
            yield (
                f"{task}: The label {label!r} ({count:,}) may mean a missing answer. If so, set "
                f"missing: skip and missing_values: [{label!r}]."
            )


def format_labels(labels: Collection[str]) -> str:
    """Format the first labels in quotes, and count the others."""
    shown = ", ".join(f"{label!r:.60}" for label in list(labels)[:MAX_SHOWN_LABELS])
    more = len(labels) - MAX_SHOWN_LABELS
    return f"{shown} and {more:,} more" if more > 0 else shown
