"""Fields of rows and the types of their values: texts, labels or lists of turns."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasktransfer.datasets.declared import cells
from tasktransfer.datasets.declared.dialogues import TRANSCRIPT_LINE
from tasktransfer.datasets.declared.row_fields import SourceRow
from tasktransfer.files import json_text
from tasktransfer.tasks.compose import count_spaced_words

MAX_LABELS = 60
"""Maximum number of labels in a field that is considered a label."""
MAX_NAMED_LABELS = 1000
"""Maximum number of labels in a field with a name such as intent."""
MAX_LABEL_WORDS = 4
"""Maximum mean number of words per label."""
MAX_REPEATED_LABEL_WORDS = 12
"""Maximum mean number of words per label, if each label occurs often."""
MIN_REPEATS = 10
"""Mean number of occurrences per label from which labels may be long."""
MIN_FRACTION = 0.8
"""Minimum fraction of a field's values that must have the type that is assumed for the field."""
MIN_TEXT_WORDS = 2.0
"""Minimum mean number of words per turn, if the field's name does not suggest text."""
MAX_DEPTH = 8
"""Maximum depth of nested objects that are inspected."""
MAX_COLUMNS = 20_000
"""Maximum number of fields that are inspected."""
MAX_LIST_LENGTH = 4
"""Maximum length of lists whose items are inspected by index."""

Columns = dict[str, list[Any]]
"""Path of a field → its values in the rows that have the field."""
_PATH = re.compile(r"[^\s\[\].][^\[\].]*(\.[^\[\].]+)*")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def collect_columns(rows: Iterable[Any]) -> Columns:
    """Collect the values of each field of rows, with dotted paths for nested fields.

    Fields with names that a path cannot contain, such as ``a[0]``, are left out.
    """
    columns: Columns = {}
    for row in rows:
        for path, value in flatten_object(row):
            if path in columns:
                columns[path].append(value)
            elif len(columns) < MAX_COLUMNS and is_valid_path(path):
                columns[path] = [value]
    return columns


def find_unnameable_fields(rows: Iterable[Any]) -> list[str]:
    """Return the fields that a declaration cannot name.

    Their names have brackets, line ends, or a dot or space at an end.
    """
    found: dict[str, None] = {}
    for row in rows:
        found |= {path: None for path, _ in flatten_object(row) if not is_valid_path(path)}
        if len(found) >= MAX_COLUMNS:
            break
    return list(found)


def is_valid_path(path: str) -> bool:
    """Return whether a declaration can name a field."""
    return _PATH.fullmatch(path) is not None and not _UNPRINTABLE.search(path)


def flatten_object(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield (path, value) for the fields of an object and of the objects in it."""
    if not isinstance(value, Mapping):
        return
    for key, inner in value.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(inner, Mapping) and not is_object_of_lists(inner) and depth < MAX_DEPTH:
            yield from flatten_object(inner, name, depth + 1)
        else:
            yield name, inner


def expand_object_lists(columns: Columns, rows: int) -> Columns:
    """Return the columns, and the fields of the objects at each position of lists.

    The lists must have about equal lengths. An example is ``annotations.0.result.0.value``, as
    annotation tools write it.

    Args:
        columns: columns of the rows.
        rows: number of rows.
    """
    expanded: Columns = {}
    waiting = [(path, values, 0) for path, values in columns.items()]
    while waiting and len(expanded) < MAX_COLUMNS:
        path, values, depth = waiting.pop(0)
        expanded[path] = values
        lists = [v for v in values if isinstance(v, list | tuple) and v]
        is_objects = all(isinstance(item, Mapping) for value in lists for item in value)
        if len(lists) < rows / 2 or not is_objects or depth == MAX_DEPTH:
            continue
        length, count = Counter(map(len, lists)).most_common(1)[0]
        if length <= MAX_LIST_LENGTH and count >= MIN_FRACTION * len(lists):
            for place in range(length):
                items = [value[place] for value in lists if len(value) > place]
                inner = collect_columns(items)
                waiting += [(f"{path}.{place}.{key}", v, depth + 1) for key, v in inner.items()]
    return expanded


def expand_lists(columns: Columns, rows: int) -> Columns:
    """Return the columns, and one column per position of list columns that contain labels.

    An example of such a list is ``["a text", "a label"]``.

    Args:
        columns: columns of the rows.
        rows: number of rows.
    """
    expanded = dict(columns)
    for path, values in columns.items():
        lists = [value for value in values if isinstance(value, list | tuple) and value]
        if len(lists) >= rows / 2 and has_label_item(lists):
            for place in range(len(lists[0])):
                expanded[f"{path}.{place}"] = [v[place] for v in lists if len(v) > place]
    return expanded


def has_label_item(lists: Sequence[Sequence[Any]]) -> bool:
    """Return whether equally long lists contain a label at one index and a text at another."""
    length, count = Counter(map(len, lists)).most_common(1)[0] if lists else (0, 0)
    if not 1 < length <= MAX_LIST_LENGTH or count < MIN_FRACTION * len(lists):
        return False
    if any(isinstance(item, list | tuple | Mapping) for value in lists for item in value):
        return False
    places = [[value[place] for value in lists if len(value) > place] for place in range(length)]
    others = [values for values in places if not are_labels(values)]
    has_text = any(
        is_text(v) and compute_mean_words([str(t) for t in v]) >= MIN_TEXT_WORDS for v in others
    )
    return has_text and len(others) < length


def get_last_key(path: str) -> str:
    """Return the last key of a path, in lower case."""
    return path.replace("[]", "").rpartition(".")[2].lower()


def split_field_name(name: str) -> set[str]:
    """Split a field name into lower-case words, such as turn and index for ``turnIndex``."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return set(re.findall(r"[a-z]+", spaced.lower()))


# --- turns ---


def parse_list(value: Any) -> Any:
    """Parse the list in a cell's text, and return other values unchanged.

    The text is JSON, a list as Python prints it, or lines of ``speaker: text``.
    """
    if not isinstance(value, str):
        return value
    if cells.is_like_structure(value):
        try:
            return cells.parse_structure(value)
        except ValueError:
            return value
    lines = [TRANSCRIPT_LINE.fullmatch(line.strip()) for line in value.splitlines() if line.strip()]
    spoken = [{"speaker": line[1], "text": line[2]} for line in lines if line]
    return spoken if len(spoken) == len(lines) > 1 else value


def list_items(value: Any) -> list[Any]:
    """Return the items of a list, of an object of lists or of a cell with a list."""
    value = parse_list(value)
    return [] if isinstance(value, str) else cells.list_items(value) or []


def convert_list_to_object(item: Any) -> Any:
    """Convert a list, such as ``[speaker, text]``, to an object whose keys are indices."""
    if not isinstance(item, list | tuple):
        return item
    return {str(place): value for place, value in enumerate(item)}


def is_object_of_lists(value: Mapping[str, Any]) -> bool:
    """Return whether a value is an object of lists, as ``datasets`` stores a list of objects."""
    lists = [inner for inner in value.values() if isinstance(inner, list | tuple)]
    has_objects = any(isinstance(inner, Mapping) for some in lists for inner in some)
    return len(value) > 1 and len(lists) == len(value) and not has_objects


# --- types of values ---


def are_labels(values: Sequence[Any], most: int = MAX_LABELS) -> bool:
    """Return whether values look like labels: few repeated short texts, numbers or booleans."""
    filled = [value for value in values if not is_null(value)]
    if not is_mostly_true(isinstance(value, str | int | float) for value in filled):
        return False
    filled = [value for value in filled if isinstance(value, str | int | float)]
    counts = Counter(map(format_label, filled))
    few = 2 <= len(counts) <= most and 2 * len(counts) <= len(filled)
    several = sum(count > 1 for count in counts.values()) > 1
    often = len(filled) >= MIN_REPEATS * len(counts)
    most_words = MAX_REPEATED_LABEL_WORDS if often else MAX_LABEL_WORDS
    return few and several and compute_mean_words([str(value) for value in filled]) <= most_words


def are_lists_of_labels(values: Sequence[Any]) -> bool:
    """Return whether values are lists of labels, and not vectors of fractions."""
    lists = [value for value in values if not is_null(value)]
    if not lists or not all(isinstance(value, list | tuple) for value in lists):
        return False
    items = [item for value in lists for item in value]
    return all(isinstance(item, str | int) for item in items) and are_labels(items)


def is_text(values: Sequence[Any]) -> bool:
    """Return whether most values of a field (except null) are texts."""
    return is_mostly_true(isinstance(value, str) for value in values if value is not None)


def is_mostly_true(flags: Iterable[bool]) -> bool:
    """Return whether most flags, and at least one, are true."""
    listed = list(flags)
    return bool(listed) and sum(listed) >= MIN_FRACTION * len(listed)


def is_null(value: Any) -> bool:
    """Return whether a value is null, NaN or blank."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def format_label(value: Any) -> str:
    """Return the label that the reader would read from a value (``answers``)."""
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def list_type_names(values: Iterable[Any]) -> list[str]:
    """Return the sorted names of the values' types, such as numbers and texts."""
    names = [
        "yes and no" if isinstance(v, bool) else "texts" if isinstance(v, str) else "numbers"
        for v in values
        if not is_null(v)
    ]
    return sorted(set(names))


def compute_mean_words(texts: Sequence[str]) -> float:
    """Return the mean number of words per text."""
    return sum(map(count_spaced_words, texts)) / max(len(texts), 1)


@dataclass(frozen=True)
class ParsedCells:
    """Fields with lists or objects as texts, and notes about them.

    Args:
        keys: fields whose texts are lists or objects.
        notes: notes for the user.
    """

    keys: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def parse_cells(rows: Sequence[SourceRow]) -> tuple[list[SourceRow], ParsedCells]:
    """Parse cells whose texts are lists or objects.

    Returns:
        The rows with parsed values, and the parsed fields with notes.
    """
    plain, decoded = [dict(row.values) for row in rows], ParsedCells()
    for key in {key: None for row in plain for key, value in row.items() if isinstance(value, str)}:
        filled = [row for row in plain if not is_null(row.get(key))]
        found = [row for row in filled if _can_be_structure(row[key])]
        if not found or len(found) < MIN_FRACTION * len(filled):
            continue
        values = [_parse_or_none(row[key]) for row in found]
        broken = sum(value is None for value in values)
        if broken > (1 - MIN_FRACTION) * len(found):
            decoded.notes.append(
                f"{key} begins like a list in {len(found):,} of {len(filled):,} rows, but "
                f"{broken:,} are neither JSON nor a Python list. Write lists as JSON (json.dumps)."
            )
            continue
        form = "as JSON" if _is_json(str(found[0][key])) else "in Python's notation"
        decoded.keys.add(key)
        decoded.notes.append(f"{key} has lists or objects as text ({form}), which are decoded.")
        for row, value in zip(found, values, strict=True):
            row[key] = row[key] if value is None else value
    pairs = zip(rows, plain, strict=True)
    return [SourceRow(row.number, values, row.location) for row, values in pairs], decoded


def _can_be_structure(value: Any) -> bool:
    return isinstance(value, str) and cells.is_like_structure(value)


def _parse_or_none(text: Any) -> Any:
    try:
        return cells.parse_structure(text)
    except ValueError:
        return None


def _is_json(text: str) -> bool:
    try:
        json_text.loads(text)
    except ValueError:
        return False
    return True
