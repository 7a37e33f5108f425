"""Search for rows and runs by the words that a user gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from tasktransfer.errors import ConfigError, suggest_name

Item = TypeVar("Item")
Parts = frozenset[str]
"""Names that a + joins, in lower case."""

LISTED = 12
"""Maximum number of known names that a message lists for each key."""


@dataclass(frozen=True, slots=True)
class Named(Generic[Item]):
    """A row or a run with its names: key → name, and further names that a table prints."""

    item: Item
    names: Mapping[str, str]
    printed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Search(Generic[Item]):
    """Items among which words are looked up.

    A word is a name, its short name, its printed form, or parts of names joined by +, in any case.
    Words are in any order, unless each could also be the other's key, such as source and target.

    Args:
        items: the items.
        shorts: name → its short name.
    """

    items: Sequence[Named[Item]]
    shorts: Mapping[str, str] = field(default_factory=dict)

    def find(self, words: Sequence[str]) -> list[Named[Item]]:
        """Return the items that match all words by names or parts of names.

        If any item has all words as whole names, only these items are returned.
        """
        found = [(item, keys) for item in self.items if (keys := self._match_words(words, item))]
        whole = [item for item, keys in found if not any(key.endswith("+") for key in keys)]
        return whole or [item for item, _ in found] or ([] if words else [*self.items])

    def _match_words(self, words: Sequence[str], item: Named[Item]) -> list[str]:
        """Return the key that each word matches, with a + if the word is only a part of a name.

        The key of a printed name is empty. Returns an empty list if the item does not have all
        words, or not in this order.
        """
        names = {key: self._split_name(name) for key, name in item.names.items()}
        keys: list[str] = []
        for word in words:
            wanted = self._split_name(word)
            equal = [key for key, parts in names.items() if parts == wanted and key not in keys]
            printed = [""] if word.casefold() in item.printed else []
            partial = [f"{key}+" for key, parts in names.items() if wanted < parts]
            if not (possible := [*equal, *printed, *partial]):
                return []
            keys.append(possible[0])
        return [] if self._is_swapped(words, keys) else keys

    def _is_swapped(self, words: Sequence[str], keys: Sequence[str]) -> bool:
        """Return whether two words are swapped, so that each matches only the other's key."""
        order = {key: n for n, key in enumerate(self._known_names)}
        named = zip(
            map(self._split_name, words), (key.removesuffix("+") for key in keys), strict=True
        )
        places = [(word, key) for word, key in named if key]
        return any(
            order[early] > order[late]
            and word in self._known_names[late]
            and other in self._known_names[early]
            for n, (word, early) in enumerate(places)
            for other, late in places[n + 1 :]
        )

    def _split_name(self, text: str) -> Parts:
        parts = text.casefold().split("+")
        return frozenset(self._full_names.get(part, part) for part in parts)

    @cached_property
    def _full_names(self) -> dict[str, str]:
        return {short.casefold(): name.casefold() for name, short in self.shorts.items()}

    @cached_property
    def _known_names(self) -> dict[str, set[Parts]]:
        """Names of all items by key, whole and in parts."""
        return {
            key: {
                each
                for n in names
                for p in [self._split_name(n)]
                for each in (p, *map(_wrap_part, p))
            }
            for key, names in self.list_names().items()
        }

    def list_names(self) -> dict[str, list[str]]:
        """Map each key to its distinct names."""
        names: dict[str, dict[str, None]] = {}
        for item in self.items:
            for key, name in item.names.items():
                names.setdefault(key, {})[name] = None
        return {key: list(values) for key, values in names.items()}

    def add_short_name(self, name: str) -> str:
        """Return a name with its short name in parentheses, if it has one."""
        return f"{name} ({self.shorts[name]})" if name in self.shorts else name

    def suggest_words(self, words: Sequence[str]) -> str:
        """Suggest which word to replace or to leave out, or return "" without a suggestion."""
        advice = ""
        for n in reversed(range(len(words))):
            found = self.find([*words[:n], *words[n + 1 :]]) if len(words) > 1 else []
            names = dict.fromkeys(
                self.add_short_name(name)
                for item in found
                for name in item.names.values()
                if self._match_words([*words[:n], name, *words[n + 1 :]], item)
            )
            if names:
                return f"{words[n]!r} could be {_format_names([*names])}"
            if found and not advice:
                advice = f"Leave out {words[n]!r}"
        return advice


def _wrap_part(name: str) -> Parts:
    return frozenset({name})


def build_unknown_words_error(
    file: str, what: str, words: Sequence[str], searches: Sequence[Search[Item]]
) -> ConfigError:
    """Return the error for words that match no item of the searches.

    Args:
        file: the study's config file.
        what: kind of thing that has names, such as ``row of table3``.
        words: the words.
        searches: searches that did not find the words.
    """
    names: dict[str, dict[str, str]] = {}
    for search in searches:
        for key, values in search.list_names().items():
            names.setdefault(key, {}).update(
                {value: search.add_short_name(value) for value in values}
            )
    known = "; ".join(
        f"{key}: {_format_names([*values.values()])}" for key, values in names.items()
    )
    unknown = [word for word in words if not any(search.find([word]) for search in searches)]
    if unknown:
        every = {name for values in names.values() for name in values}
        return ConfigError(
            f"{file}: No {what} is named {unknown[0]!r}.{suggest_name(unknown[0], every)} Choose "
            f"from {known or 'no names'}."
        )
    advice = next(filter(None, (search.suggest_words(words) for search in searches)), "")
    return ConfigError(
        f"{file}: No {what} has all of {' '.join(words)}. {advice or f'Choose from {known}'}."
    )


def _format_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"{', '.join(names[:LISTED])}{more}"
