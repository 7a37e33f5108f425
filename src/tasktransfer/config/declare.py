"""What a key of a config file may hold, declared once: the same declaration checks a value, and
``json_schema`` makes its JSON schema.

A declaration is a small frozen object (``Text``, ``Whole``, ``Section``, ...). ``check`` takes a
value from YAML, notes every problem that it finds and returns the value made regular: defaults
filled in, numbers as numbers. Standard library only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from typing import Any

MAX_PROBLEMS = 100

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters and halves of surrogate pairs: no path, title or record can hold them."""

REQUIRED = object()
"""The default of a key that must be given."""

ABSENT = object()
"""The default of a key that may be left out and then is not there at all."""


@dataclass(frozen=True, slots=True)
class Text:
    """A string that the pattern matches as a whole; ``remedy`` says how a right one looks."""

    pattern: str = r"\S(.*\S)?"
    remedy: str = "write some text"


@dataclass(frozen=True, slots=True)
class Flag:
    """true or false."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number between two bounds, both allowed."""

    minimum: int
    maximum: int = 10**9


@dataclass(frozen=True, slots=True)
class Real:
    """A finite number above one bound (or on it, where ``inclusive``) and not above the other."""

    above: float
    maximum: float | None = None
    inclusive: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some names. ``hints`` maps likely slips to a remedy (a short name, for example);
    ``false_as`` is what YAML's ``off`` stands for, which it reads as false."""

    names: tuple[str, ...]
    what: str = "value"
    hints: Mapping[str, str] = field(default_factory=dict)
    false_as: str | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """null."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list without repetitions."""

    item: Declaration
    minimum: int = 1
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a section. ``default`` may be ``REQUIRED`` or ``ABSENT``; ``help`` goes into the
    JSON schema and into the message about a missing key."""

    name: str
    value: Declaration
    help: str
    default: Any = REQUIRED


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping with known keys, at least ``minimum`` of them present."""

    keys: tuple[Key, ...]
    what: str = "key"
    minimum: int = 0


@dataclass(frozen=True, slots=True)
class Either:
    """One of several declarations; the first whose YAML type fits is the one that is checked."""

    options: tuple[Declaration, ...]


Declaration = Text | Flag | Whole | Real | Choice | Nothing | ListOf | Section | Either


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where (a key path such as ``datasets.Friends.tasks[1]``) and what,
    with the value and the remedy."""

    path: str
    message: str


@dataclass(slots=True)
class Problems:
    """Collects everything that is wrong with a file, so that it is told at once."""

    found: list[Problem] = field(default_factory=list)

    @property
    def enough(self) -> bool:
        """Whether nobody would read more: a file of something else is wrong in every line."""
        return len(self.found) >= MAX_PROBLEMS

    def add(self, path: str, message: str) -> None:
        """Note a problem once."""
        problem = Problem(path, message)
        if problem not in self.found:
            self.found.append(problem)


INVALID = object()
"""What ``check`` returns in the place of a value that has a problem."""


def usable(value: Any) -> bool:
    """Whether a checked value, with all that it holds, has no problem."""
    if isinstance(value, dict):
        return all(usable(item) for item in value.values())
    if isinstance(value, list):
        return all(usable(item) for item in value)
    return value is not INVALID


def nearest(name: str, known: Sequence[str]) -> str:
    """`` (did you mean 'x'?)``, or nothing. Compared without case: "friends" is a likely slip."""
    by_casefold = {item.casefold(): item for item in known}
    found = get_close_matches(name.casefold(), by_casefold, n=1, cutoff=0.5)
    return f" (did you mean {by_casefold[found[0]]!r}?)" if found else ""


def show(value: Any) -> str:
    """A value as it stands in a message, cut to a readable length."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value) if isinstance(value, date) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def at(path: str, key: str | int) -> str:
    """The path of an item (number) or key below ``path``."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def check(declaration: Declaration, value: Any, path: str, problems: Problems) -> Any:
    """The value made regular, or ``INVALID`` where ``problems`` has noted why it cannot be."""
    if value is INVALID or problems.enough:
        return INVALID
    match declaration:
        case Text():
            return _check_text(declaration, value, path, problems)
        case Flag():
            return _typed(value, isinstance(value, bool), "true or false", path, problems)
        case Whole():
            return _check_whole(declaration, value, path, problems)
        case Real():
            return _check_real(declaration, value, path, problems)
        case Choice():
            return _check_choice(declaration, value, path, problems)
        case Nothing():
            return _typed(value, value is None, "null", path, problems)
        case ListOf():
            return _check_list(declaration, value, path, problems)
        case Section():
            return _check_section(declaration, value, path, problems)
        case Either(options):
            for option in options:
                if _fits(option, value):
                    return check(option, value, path, problems)
            expected = " or ".join(dict.fromkeys(_expected(option) for option in options))
            return _typed(value, False, expected, path, problems)


def _typed(value: Any, right: bool, expected: str, path: str, problems: Problems) -> Any:
    if right:
        return value
    problems.add(path, f"found {show(value)}, expected {expected}")
    return INVALID


def _check_text(declaration: Text, value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, str):
        quotes = "; put it in quotes" if isinstance(value, (int, float, date)) else ""
        problems.add(path, f"found {show(value)}, expected text{quotes}")
        return INVALID
    if UNPRINTABLE.search(value):
        problems.add(path, f"{show(value)} holds a character that cannot be printed: remove it")
        return INVALID
    if not re.fullmatch(declaration.pattern, value):
        problems.add(path, f"{show(value)} cannot be used: {declaration.remedy}")
        return INVALID
    return value


def _check_whole(declaration: Whole, value: Any, path: str, problems: Problems) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        return _typed(value, False, _expected(declaration), path, problems)
    low, high = declaration.minimum, declaration.maximum
    return _typed(value, low <= value <= high, _expected(declaration), path, problems)


FLOAT_TEXT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
"""A number that YAML 1.1 reads as text, because it has an exponent and no dot: ``3e-5``."""


def _as_number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and FLOAT_TEXT.fullmatch(value) else value


def _check_real(declaration: Real, value: Any, path: str, problems: Problems) -> Any:
    number = _as_number(value)
    right = not isinstance(number, bool) and isinstance(number, (int, float))
    if right:
        high = declaration.maximum
        low = declaration.above
        right = number > low or (declaration.inclusive and number == low)
        right = right and number <= (sys.float_info.max if high is None else high)
    _typed(value, right, _expected(declaration), path, problems)
    return float(number) if right else INVALID


def _check_choice(declaration: Choice, value: Any, path: str, problems: Problems) -> Any:
    if value is False and declaration.false_as is not None:
        return declaration.false_as
    if not isinstance(value, str):
        return _typed(value, False, _expected(declaration), path, problems)
    if value in declaration.names:
        return value
    hint = declaration.hints.get(value) or declaration.hints.get(value.casefold())
    advice = f" ({hint})" if hint else nearest(value, declaration.names)
    names = ", ".join(declaration.names)
    problems.add(path, f"unknown {declaration.what} {show(value)}{advice}; known: {names}")
    return INVALID


def _check_list(declaration: ListOf, value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, list):
        return _typed(value, False, "a list", path, problems)
    if len(value) < declaration.minimum:
        advice = "name at least one" if declaration.minimum == 1 else "name more"
        problems.add(
            path, f"has {len(value)} items, expected {declaration.minimum} at least: {advice}"
        )
        return INVALID
    if declaration.maximum is not None and len(value) > declaration.maximum:
        problems.add(path, f"has {len(value):,} items, expected {declaration.maximum:,} at most")
        return INVALID
    items = [check(declaration.item, v, at(path, i), problems) for i, v in enumerate(value)]
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        earlier = first.setdefault(repr(item), index)
        if item is not INVALID and earlier != index:
            place = at(path, earlier)
            problems.add(
                at(path, index), f"{show(item)} stands already at {place}: remove one of the two"
            )
    return items


def _check_section(declaration: Section, value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, dict):
        return _typed(value, False, "a mapping (key: value)", path, problems)
    known = {key.name: key for key in declaration.keys}
    for name in value:
        if name not in known and not problems.enough:
            advice = nearest(name, list(known)) if isinstance(name, str) else ""
            problems.add(
                at(path, str(name)),
                f"unknown {declaration.what} {show(name)}{advice}; known: {', '.join(known)}",
            )
    if len(value) < declaration.minimum:
        problems.add(path, f"is empty: name at least one of {', '.join(known)}")
    return {
        name: _check_key(key, value, path, problems)
        for name, key in known.items()
        if name in value or key.default is not ABSENT
    }


def _check_key(key: Key, section: dict[str, Any], path: str, problems: Problems) -> Any:
    if key.name in section:
        return check(key.value, section[key.name], at(path, key.name), problems)
    if key.default is REQUIRED:
        problems.add(at(path, key.name), f"is missing: {key.help}")
        return INVALID
    # A default is checked as if it stood in the file: sections fill in their own defaults so.
    return check(key.value, key.default, at(path, key.name), problems)


def _fits(declaration: Declaration, value: Any) -> bool:
    """Whether the YAML type of a value is the one that a declaration is about."""
    match declaration:
        case Text():
            return isinstance(value, str)
        case Choice():
            return isinstance(value, str) or (value is False and declaration.false_as is not None)
        case Flag():
            return isinstance(value, bool)
        case Whole():
            return isinstance(value, int) and not isinstance(value, bool)
        case Real():
            return isinstance(_as_number(value), (int, float)) and not isinstance(value, bool)
        case Nothing():
            return value is None
        case ListOf():
            return isinstance(value, list)
        case Section():
            return isinstance(value, dict)
        case Either(options):
            return any(_fits(option, value) for option in options)


def _expected(declaration: Declaration) -> str:
    match declaration:
        case Text():
            return "text"
        case Flag():
            return "true or false"
        case Whole(low, high):
            return f"a whole number of {low} or more, {high:,} at most"
        case Real(above, high, inclusive):
            bound = f"of {above:g} or more" if inclusive else f"above {above:g}"
            return f"a number {bound}" + ("" if high is None else f", {high:g} at most")
        case Choice():
            return "one of " + ", ".join(declaration.names)
        case Nothing():
            return "null"
        case ListOf():
            return "a list"
        case Section():
            return "a mapping (key: value)"
        case Either(options):
            return " or ".join(_expected(option) for option in options)
