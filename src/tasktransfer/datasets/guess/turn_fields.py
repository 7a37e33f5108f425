"""Detection of fields of turns: their number or time, and speakers who alternate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tasktransfer.datasets.declared.row_fields import build_sort_keys
from tasktransfer.datasets.guess.columns import (
    Columns,
    are_labels,
    compute_mean_words,
    get_last_key,
    is_mostly_true,
    is_null,
    split_field_name,
)

ORDER_WORDS = frozenset(
    (
        *("turn", "turns", "utt", "utterance", "msg", "message", "seq", "sequence", "order"),
        *("index", "idx", "position", "pos", "number", "num", "nr", "step", "round", "rank"),
        *("line", "no"),
    )
)
TIME_WORDS = frozenset((*("time", "timestamp", "date", "datetime", "ts", "created", "unixtime"),))


def is_turn_number(groups: Sequence[Sequence[Any]]) -> bool:
    """Return whether a field numbers the turns of each dialogue, in any order.

    Args:
        groups: values of the field in each dialogue.
    """
    long = [group for group in groups if len(group) > 1]
    if not long:
        return False
    for group in long:
        keys = build_sort_keys(group)
        if keys is None or isinstance(keys[0], tuple) or len(set(map(str, keys))) < len(keys):
            return False
        steps = [after - before for before, after in pairwise(sorted(keys))]
        if any(step != 1 for step in steps):
            return False
    # Dialogues of two turns may have the labels 0 and 1 by chance.
    return max(map(len, long)) > 2 or len({str(group[0]) for group in groups}) == 1


def find_unsorted_order_field(columns: Mapping[str, Sequence[Sequence[Any]]]) -> str | None:
    """Find a field with the number or time of turns that are not sorted by it, or return None.

    Args:
        columns: field → its values in each dialogue, for fields that all turns have.
    """
    for name, groups in columns.items():
        if is_order_field(name, groups) and any(not _is_sorted(group) for group in groups):
            return name
    return None


def is_order_field(name: str, groups: Sequence[Sequence[Any]]) -> bool:
    """Return whether a field contains the number or time of a turn.

    Args:
        name: path of the field.
        groups: values of the field in each dialogue.
    """
    if is_turn_number(groups):
        return True
    words = split_field_name(get_last_key(name))
    long = [keys for group in groups if len(group) > 1 and (keys := build_sort_keys(group))]
    if not long or len(long) < sum(len(group) > 1 for group in groups):
        return False
    if words & TIME_WORDS or get_last_key(name).endswith("_at"):
        return is_mostly_true(len(set(keys)) > 1 for keys in long)
    distinct = all(len(set(keys)) == len(keys) for keys in long)
    return bool(words & ORDER_WORDS) and distinct and sum(map(len, long)) > 2 * len(long)


def _is_sorted(group: Sequence[Any]) -> bool:
    keys = build_sort_keys(group)
    return keys is None or all(before <= after for before, after in pairwise(keys))


def find_restarting_counter(columns: Mapping[str, Sequence[Any]]) -> str | None:
    """Find a field that counts up and restarts, as turn numbers do, or return None."""
    for name, values in columns.items():
        keys = build_sort_keys(values)
        if not keys or not all(isinstance(key, int | float) for key in keys):
            continue
        first, pairs = keys[0], list(pairwise(keys))
        restarts = sum(after == first for _, after in pairs)
        counts = sum(after == before + 1 for before, after in pairs)
        if restarts > 1 and counts >= restarts and counts + restarts == len(pairs):
            return name
    return None


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
