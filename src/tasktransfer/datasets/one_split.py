"""The guard that every reader calls: no dialogue, by its name or by its text, is in two splits.

Texts are compared without case, spaces and punctuation, and count from ``LEAST_WORDS`` on: shorter
ones are said twice by chance ("i like this one"). Some published releases have the same dialogue in
two splits under two names. Such a dataset says so, as the share of a split that it may be; within
it the dialogues are counted and told, above it, as everywhere else, the release is refused.
Generated dialogues, which a grammar draws twice by chance, are compared by name alone.
docs/decisions/0025-no-dialogue-in-two-splits.md gives the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import combinations
from typing import Any, NamedTuple, NoReturn

from tasktransfer.errors import DataError

LEAST_WORDS = 12
"""The longest text that unlike dialogues at hand share by chance has 5 words."""

LEARNT = "else a model is tested on what it has learnt"
_PASSED_OVER = bytes(code for code in range(128) if not chr(code).isalnum())


class Said(NamedTuple):
    """A dialogue: ``text`` is all that is said in it, ``place`` its file, with a line if known."""

    name: str
    split: str
    text: str
    place: str


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
    splits: dict[str, list[Said]] = {}
    for one in dialogues:
        splits.setdefault(one.split, []).append(one)
    names = {split: {one.name for one in some} for split, some in splits.items()}
    texts = {} if generated else {split: set(map(_key, some)) for split, some in splits.items()}
    told = []
    for first, second in combinations(splits, 2):
        if same := names[first] & names[second]:
            _refuse(splits[first], splits[second], same, _name, remedy)
        if generated or not (twice := texts[first] & texts[second]):
            continue
        twice = {_key(one) for one in splits[second] if _counts(one, twice, least_words)}
        sizes = len(splits[first]), len(splits[second])
        if len(twice) > allowed * min(sizes):
            _refuse(splits[first], splits[second], twice, _key, remedy)
        elif twice:
            told.append(
                f"{len(twice):,} dialogues are in {first} and in {second} by their text (of "
                f"{sizes[0]:,} and {sizes[1]:,}), as in the published release"
            )
    return tuple(told)


def _key(one: Said) -> bytes:
    return one.text.lower().encode("utf-8", "replace").translate(None, _PASSED_OVER)


def _name(one: Said) -> str:
    return one.name


def _counts(one: Said, twice: Collection[bytes], least_words: int) -> bool:
    return _key(one) in twice and len(one.text.split()) >= least_words


def _refuse(
    first: Iterable[Said],
    second: Iterable[Said],
    twice: Collection[Any],
    key: Callable[[Said], Any],
    remedy: str,
) -> NoReturn:
    """Name the first pair of what is in two splits."""
    one = next(each for each in first if key(each) in twice)
    other = next(each for each in second if key(each) == key(one))
    place = one.place if one.place == other.place else f"{one.place} and {other.place}"
    if one.name == other.name:
        what = f"dialogue {one.name!r} is in {one.split} and in {other.split}"
    else:
        what = (
            f"dialogues {one.name!r} ({one.split}) and {other.name!r} ({other.split}) say the same"
        )
    count = f" ({len(twice):,} in all)" if len(twice) > 1 else ""
    raise DataError(f"{place}: {what}{count}: {remedy}, {LEARNT}")
