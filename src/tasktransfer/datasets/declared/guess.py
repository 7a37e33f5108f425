"""What a declaration may look like, guessed from the rows of a file."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from tasktransfer.datasets.declared.dialogues import ITEMS, LINE
from tasktransfer.errors import DataError
from tasktransfer.files import json_text
from tasktransfer.files.fields import Table

SPEAKERS = ("speaker", "role", "agent", "from", "author", "sender", "name", "user", "who")
IDS = ("id", "dialogue_id", "dialog_id", "conversation_id", "conv_id", "ticket_id", "session_id")
TEXTS = ("text", "content", "utterance", "message", "value", "body", "said", "sentence")
ANSWERS = ("answer", "answers", "gold")
MOST_LABELS = 60
"""Of a field that is taken for one with labels."""
LABEL_WORDS = 4
"""Mean words of a label at most."""
MOST = 0.8
"""Share of the values that have to be what a field is taken for."""
TEXT_WORDS = 2.0
"""Mean words of a turn at least, where no name tells its text."""


@dataclass(frozen=True)
class Guess:
    """``dialogue`` and ``tasks`` as a declaration has them; ``counts``: task → answer → how often;
    ``numbers``: task → what its labels are in the file, where some are numbers: "numbers and
    texts"; ``unused``: fields of rows and turns that neither names."""

    dialogue: dict[str, str]
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


def guess(rows: Sequence[Table], location: str) -> Guess:
    """The declaration that fits some rows best.

    Raises:
        DataError: no field looks like the text of turns; says which fields there are.
    """
    columns = _columns(rows)
    turns = next((name for name in columns if _are_turns(columns[name])), None)
    dialogue = {} if turns is None else {"turns": turns}
    of_turns = _columns(_each(columns[turns])) if turns else columns
    if not (turns and not of_turns):  # turns that are texts name no field
        text = _text(of_turns)
        if text is None:
            raise DataError(
                f"{location}: no field looks like the text of a dialogue; found "
                f"{', '.join(columns) or 'no field'}; write dialogue: {{text: FIELD}} by hand"
            )
        dialogue["text"] = text
        if (speaker := _speaker(of_turns, text)) is not None:
            dialogue["speaker"] = speaker
    name = _id(columns, rows, repeats=turns is None)
    if name is not None:
        dialogue["id"] = name
    taken = set(dialogue.values())
    found: list[Found] = []
    if turns:
        found = [*_of_turns(turns, of_turns, taken), *_beside_turns(turns, rows)]
        taken |= {key for key, _, _ in found}
    found += _of_rows(columns, taken, name if turns is None else None, rows)
    tasks: dict[str, dict[str, Any]] = {}
    counts: dict[str, Counter[str]] = {}
    numbers: dict[str, str] = {}
    for key, section, values in found:
        plain = re.sub(r"\W", "_", key).strip("_") or "task"
        while plain in tasks:
            plain += "_2"
        tasks[plain] = section
        flat = [
            flat_value for v in values for flat_value in (v if isinstance(v, list | tuple) else [v])
        ]
        counts[plain] = Counter(map(_plain, (v for v in flat if not _is_null(v))))
        if "numbers" in (types := _types(flat)):
            numbers[plain] = " and ".join(types)
    named = {*dialogue.values(), *(v for task in tasks.values() for v in task.values())}
    there = [*columns, *(f"{turns}{ITEMS}.{key}" for key in of_turns if turns)]
    told = {f"{turns}{ITEMS}.{key}" for key in taken} | {f"{name}{ITEMS}" for name in columns}
    unused = tuple(key for key in there if key not in named | told and f"{key}{ITEMS}" not in named)
    return Guess(dialogue, tasks, counts, numbers, unused)


Found = tuple[str, dict[str, Any], list[Any]]
"""Name, section and values of a task."""


def _of_turns(turns: str, columns: Mapping[str, list[Any]], taken: set[str]) -> Iterator[Found]:
    """Tasks of the fields of a turn."""
    for key, values in columns.items():
        if key not in taken and _are_labels(values):
            path = f"{turns}{ITEMS}.{key}"
            yield key, {"kind": "utterance_classification", "label": path}, values


def _beside_turns(turns: str, rows: Sequence[Table]) -> Iterator[Found]:
    """Tasks of lists that have a label for each turn."""
    flat = [dict(_flat(row, "")) for row in rows]
    for key in dict.fromkeys(key for row in flat for key in row):
        lists = [row[key] for row in flat if isinstance(row.get(key), list | tuple)]
        sizes = [len(_each([row[turns]])) for row in flat if isinstance(row.get(key), list | tuple)]
        values = [value for some in lists for value in some]
        fits = [len(some) == size for some, size in zip(lists, sizes, strict=True)]
        if key != turns and len(lists) == len(flat) and all(fits) and _are_labels(values):
            yield key, {"kind": "utterance_classification", "label": f"{key}{ITEMS}"}, values


def _of_rows(
    columns: Mapping[str, list[Any]], taken: set[str], name: str | None, rows: Sequence[Table]
) -> Iterator[Found]:
    """Tasks of the fields of a row; ``name``: of dialogues, where a row is an utterance."""
    free = {key: values for key, values in columns.items() if key not in taken}
    question = next((key for key in free if "question" in key.lower()), None)
    options = next(
        (k for k, v in free.items() if "option" in k.lower() or "choice" in k.lower()), None
    )
    answer = next((key for key in free if key.lower() in (*ANSWERS, "label", "right")), None)
    used = set[str]()
    if options and answer and all(isinstance(v, list | tuple) for v in free[options]):
        asked = {"question": question} if question else {}
        section = {"kind": "multiple_choice", **asked, "options": options, "label": answer}
        used |= {options, answer, question or ""}
        yield "choice", section, free[answer]
    elif question and answer:
        used |= {question, answer}
        section = {"kind": "question_answering", "question": question, "label": answer}
        yield "question_answering", section, []
    for key, values in free.items():
        if key in used or (name and _is_position(key, rows, name)):
            continue
        if _are_labels(values):
            kind = "dialogue_classification"
            if name and _differs_within(key, rows, name):
                kind = "utterance_classification"
            yield key, {"kind": kind, "label": key}, values
        elif all(_are_short_texts(v) for v in values) and any(values):
            yield key, {"kind": "multi_label", "label": key}, values


def _differs_within(key: str, rows: Sequence[Table], name: str) -> bool:
    """Whether a column has several values in a dialogue, where a row is an utterance."""
    seen: dict[Any, Any] = {}
    for row in rows:
        value = row.get(key)
        if not _is_null(value) and seen.setdefault(row.get(name), value) != value:
            return True
    return False


def _is_position(key: str, rows: Sequence[Table], name: str) -> bool:
    """Whether a column counts the rows of each dialogue, from 0 or 1."""
    groups = [[row.get(key) for row in group] for _, group in groupby(rows, lambda r: r.get(name))]
    first = str(groups[0][0])
    if first not in ("0", "1"):
        return False
    counts = [[str(int(first) + n) for n in range(len(group))] for group in groups]
    return [list(map(str, group)) for group in groups] == counts


def _columns(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Field → its values in the rows that have it; fields of objects by a path with dots."""
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for key, value in _flat(row, ""):
            columns.setdefault(key, []).append(value)
    return columns


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        return
    for key, inner in value.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(inner, Mapping) and not _is_lists(inner):
            yield from _flat(inner, name)
        else:
            yield name, inner


def _each(turns: Sequence[Any]) -> list[Any]:
    """All turns of some dialogues."""
    found: list[Any] = []
    for some in map(_unpacked, turns):
        if isinstance(some, Mapping):
            found += [dict(zip(some, v, strict=False)) for v in zip(*some.values(), strict=False)]
        elif isinstance(some, list | tuple):
            found += map(_by_place, some)
    return found


def _unpacked(turns: Any) -> Any:
    """The turns of a cell that has them as JSON or as lines of ``speaker: text``; else as it is."""
    if not isinstance(turns, str):
        return turns
    if turns.lstrip().startswith("["):
        try:
            return json_text.loads(turns)
        except ValueError:
            return turns
    lines = [LINE.fullmatch(line.strip()) for line in turns.splitlines() if line.strip()]
    spoken = [{"speaker": line[1], "text": line[2]} for line in lines if line]
    return spoken if len(spoken) == len(lines) > 1 else turns


def _by_place(turn: Any) -> Any:
    """A turn that is a list, ``[speaker, text]``, by the places of what it has."""
    if not isinstance(turn, list | tuple):
        return turn
    return {str(index): value for index, value in enumerate(turn)}


def _is_lists(value: Mapping[str, Any]) -> bool:
    """Whether it is an object of lists of values, as ``datasets`` keeps a list of objects."""
    lists = [inner for inner in value.values() if isinstance(inner, list | tuple)]
    has_objects = any(isinstance(inner, Mapping) for some in lists for inner in some)
    return bool(value) and len(lists) == len(value) and not has_objects


def _are_turns(values: Sequence[Any]) -> bool:
    """Lists of objects with a text, objects of lists, or lists of texts of some words."""
    some = [_unpacked(value) for value in values if value]
    if not some:
        return False
    if all(isinstance(v, Mapping) and _is_lists(v) for v in some):
        return _text(_columns(_each(some))) is not None
    if not _mostly(isinstance(v, list | tuple) for v in some):
        return False
    turns = _each(some)
    if _mostly(isinstance(turn, Mapping) for turn in turns):
        return _text(_columns(turns)) is not None
    texts = [turn for turn in turns if isinstance(turn, str)]
    return _mostly(isinstance(t, str) for t in turns) and _words(texts) > LABEL_WORDS / 2


def _text(columns: Mapping[str, list[Any]]) -> str | None:
    """The field that texts are in: by its name, or the one with the most words."""
    texts = {
        key: [value for value in values if isinstance(value, str)]
        for key, values in columns.items()
        if _mostly(isinstance(value, str) for value in values)
    }
    for name in texts:
        if name.lower() in TEXTS:
            return name
    best = max(texts, key=lambda name: _words(texts[name]), default=None)
    return best if best is not None and _words(texts[best]) >= TEXT_WORDS else None


def _speaker(columns: Mapping[str, list[Any]], text: str) -> str | None:
    others = [name for name in columns if name != text]
    names = [name for name in others if name.lower() in SPEAKERS or name.isdigit()]
    return next((n for n in names if _mostly(isinstance(v, str) for v in columns[n])), None)


def _id(columns: Mapping[str, list[Any]], rows: Sequence[Table], *, repeats: bool) -> str | None:
    """The field that names dialogues: of rows that are utterances one that stays for a while."""
    for name, values in columns.items():
        low = name.lower()
        if not (low in IDS or low.endswith(("_id", "id"))):
            continue
        named = [v for v in values if isinstance(v, str | int) and not isinstance(v, bool)]
        if len(named) < MOST * len(rows):
            continue
        changes = 1 + sum(before != other for before, other in pairwise(named))
        stays = changes < len(named) or len(rows) == 1
        if len(set(named)) >= MOST * changes and (stays or not repeats):
            return name
    # A name that many dialogues have, or whose rows are apart, is wrong and no label.
    known = (name for name in columns if name.lower() in IDS)
    return next((n for n in known if not repeats or _repeats(columns[n])), None)


def _repeats(values: Sequence[Any]) -> bool:
    named = [value for value in values if isinstance(value, str | int) and not _is_null(value)]
    return 2 <= len(set(named)) <= len(named) / 2


def _are_labels(values: Sequence[Any]) -> bool:
    """A few short texts, numbers or yes and no, each several times."""
    given = [value for value in values if not _is_null(value)]
    if not _mostly(isinstance(value, str | int | float) for value in given):
        return False
    given = [value for value in given if isinstance(value, str | int | float)]
    distinct = set(map(_plain, given))
    few = 2 <= len(distinct) <= MOST_LABELS and 2 * len(distinct) <= len(given)
    return few and _words([str(value) for value in given]) <= LABEL_WORDS


def _are_short_texts(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    return is_list and _words(value) <= LABEL_WORDS


def _mostly(is_so: Iterable[bool]) -> bool:
    """Of most values, and of one at least: some may be what is wrong with a file."""
    listed = list(is_so)
    return bool(listed) and sum(listed) >= MOST * len(listed)


def _is_null(value: Any) -> bool:
    """Whether a value is null, NaN or blank."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def _plain(value: Any) -> str:
    """A label as the reader has it (``answers``)."""
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _types(values: Sequence[Any]) -> list[str]:
    """What some values are: numbers, texts, yes and no."""
    of = [
        "yes and no" if isinstance(v, bool) else "texts" if isinstance(v, str) else "numbers"
        for v in values
        if not _is_null(v)
    ]
    return sorted(set(of))


def _words(texts: Sequence[str]) -> float:
    return sum(len(text.split()) for text in texts) / max(len(texts), 1)
