"""Detection of fields with the number or time of a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tasktransfer.datasets.declared.turn_order import build_sort_keys
from tasktransfer.datasets.guess.columns import get_last_key, is_mostly_true, split_field_name

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
