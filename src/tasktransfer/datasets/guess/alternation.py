"""Detection of speakers by their values: a few names that alternate from turn to turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

from tasktransfer.datasets.guess.columns import (
    Columns,
    are_labels,
    compute_mean_words,
    get_last_key,
    is_null,
    split_field_name,
)
from tasktransfer.datasets.guess.order import is_order_field

SHORT_SPEAKER_NAMES = frozenset({"s", "sp", "spk", "spkr", "p", "person", "nick", "nickname"})
"""Names of fields that may be the speaker, if their values alternate."""
LABEL_NAMES = frozenset(
    (
        *("label", "intent", "class", "category", "topic", "emotion", "sentiment", "act", "tag"),
        *("mood", "domain", "move", "strategy", "gold", "target", "l", "y"),
    )
)
"""Words in the names of fields that are labels even if their values alternate."""
MIN_PAIRS = 10
"""Minimum number of consecutive turns from which alternation is judged."""
MIN_CHANGES = 0.9
"""Minimum fraction of consecutive turns with different speakers."""
MAX_CHANCE = 0.75
"""Maximum fraction of different values in random pairs of turns. Above it, the values may alternate
by chance."""
MIN_EXCESS = 0.1
"""Minimum excess over chance for a field with one of ``SHORT_SPEAKER_NAMES``."""
MAX_SPEAKER_WORDS = 3


def find_alternating_field(
    groups: Sequence[Columns], used: Collection[str | None], *, has_label: bool
) -> str | None:
    """Find a field of turns whose values alternate like speakers, or return None.

    Args:
        groups: fields of each dialogue's turns.
        used: fields that have another use.
        has_label: whether a field of the whole dialogue may be a label. Otherwise a field is only
            the speaker if another field of the turns may be a label.
    """
    found = dict.fromkeys(name for group in groups for name in group)
    names = [name for name in found if name not in used]
    labels = [name for name in names if are_labels([v for g in groups for v in g.get(name, ())])]
    for name in names:
        values = [group[name] for group in groups if name in group]
        is_only_label = not has_label and labels == [name]
        if not is_only_label and not is_order_field(name, values) and _is_alternating(name, values):
            return name
    return None


def _is_alternating(name: str, groups: Sequence[Sequence[Any]]) -> bool:
    words = split_field_name(get_last_key(name))
    values = [value for group in groups for value in group]
    if words & LABEL_NAMES or any(is_null(value) for value in values):
        return False
    if not all(isinstance(value, str | int) and not isinstance(value, bool) for value in values):
        return False
    if compute_mean_words([str(value) for value in values]) > MAX_SPEAKER_WORDS:
        return False
    pairs = [before != after for group in groups for before, after in pairwise(group)]
    if len(pairs) < MIN_PAIRS:
        return False
    changes = sum(pairs) / len(pairs)
    chance = 1 - sum((n / len(values)) ** 2 for n in Counter(values).values())
    if get_last_key(name) in SHORT_SPEAKER_NAMES and changes >= chance + MIN_EXCESS:
        return True
    return chance <= MAX_CHANCE and changes >= MIN_CHANGES
