"""Candidates for the section ``dialogue`` of a declaration, most likely first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasktransfer.datasets.guess.columns import (
    MAX_DEPTH,
    MAX_LABEL_WORDS,
    MIN_FRACTION,
    MIN_TEXT_WORDS,
    Columns,
    are_labels,
    collect_columns,
    compute_mean_words,
    convert_list_to_object,
    expand_lists,
    get_last_key,
    has_label_item,
    is_mostly_true,
    is_text,
    list_items,
    split_field_name,
)
from tasktransfer.datasets.guess.names import find_dialogue_id
from tasktransfer.tasks.compose import count_spaced_words

SPEAKER_NAMES = (
    *("speaker", "role", "agent", "from", "author", "sender", "name", "user", "who", "speaker_id"),
    *("speaker_idx", "speaker_name", "speakers", "participant", "party", "by", "actor", "side"),
    *("user_id", "author_id", "screen_name", "event", "nick", "nickname", "username"),
    *("user_name", "handle", "spk", "spkr"),
)
TEXT_NAMES = (
    *("text", "content", "utterance", "message", "value", "body", "said", "sentence", "msg"),
    *("transcript", "utt", "line"),
)
PAIR_NAMES = (
    ({"user", "human", "customer"}, {"assistant", "system", "bot", "agent", "gpt", "ai", "model"}),
    ({"question", "query", "q"}, {"answer", "response", "reply", "a"}),
    ({"prompt", "instruction", "input"}, {"response", "completion", "output", "reply", "answer"}),
    ({"text", "utterance"}, {"labels", "label", "eval_labels", "response", "reply"}),
    ({"request", "usr", "post", "0"}, {"response", "reply", "sys", "1"}),
)
"""Names of two texts in an object, the second of which answers the first."""
QUESTION_NAMES = frozenset({"question", "query", "q"})
TURN_WORDS = frozenset(
    (
        *("turns", "turn", "messages", "dialog", "dialogue", "dialogues", "utterances"),
        *("utts", "conversation", "conversations", "log", "chat", "history", "transcript"),
        *("events", "exchanges", "rounds", "talk", "said"),
    )
)
NON_TURN_WORDS = frozenset(
    (
        *("options", "option", "choices", "candidates", "candidate", "spans", "span"),
        *("entities", "entity", "tokens", "token", "persona", "personality", "personas"),
        *("labels", "label", "relations", "annotations", "annotation", "accept", "members"),
        *("tools", "tool", "functions", "knowledge", "facts", "passages", "passage"),
        *("classifications", "parts", "attachments", "tags"),
    )
)
"""Words in the names of lists whose texts are not turns."""
PART_KEYS = ("text", "content", "value")
"""Fields with the text of a part of a text."""
PART_LIST_NAMES = frozenset({"text", "content", "parts", "lines"})
"""Names of lists of texts that form one text."""
MAX_CONSTANT_FRACTION = 0.5
"""Fraction of rows with an identical list above which the list is not the turns."""

Section = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class TurnList:
    """A list that may be the turns of a row.

    Args:
        path: value for ``dialogue.turns``.
        rows: value for ``dialogue.rows``. Empty if a row has one dialogue.
        columns: fields of the turns. Empty if turns are texts.
        words: number of words in all its texts.
        depth: number of lists that contain it.
    """

    path: str
    rows: str
    columns: Columns
    words: int
    depth: int = 0

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key: usual names first, then shallow lists, then lists with many words."""
        named = split_field_name(get_last_key(self.path)) & TURN_WORDS
        return (0 if named else 1, self.depth, -self.words)


def propose_dialogues(rows: Rows) -> Iterator[Section]:
    """Yield candidates for the section ``dialogue``, most likely first.

    Lists of turns come first, then rows that are utterances or dialogues of one turn.
    """
    columns = expand_lists(collect_columns(rows), len(rows))
    lists = sorted(_find_lists(columns, rows), key=lambda turn_list: turn_list.rank)
    for turn_list in lists:
        section: Section = {"rows": turn_list.rows} if turn_list.rows else {}
        section["turns"] = turn_list.path
        inner = _list_inner_rows(rows, turn_list.rows) if turn_list.rows else rows
        named = _propose_id(collect_columns(inner), len(inner), [turn_list.path], repeats=False)
        if not turn_list.columns:
            yield section | named
        for texts in propose_texts(turn_list.columns):
            yield section | texts | named
    name = find_dialogue_id(columns, len(rows), repeats=True)
    for texts in propose_texts(columns, are_rows=name is None):
        paths = texts["text"] if isinstance(texts["text"], list) else [texts["text"]]
        named = _propose_id(columns, len(rows), paths, repeats=True)
        if named and texts.get("speaker") == named["id"]:
            del texts["speaker"]
        yield texts | named


def _propose_id(columns: Columns, rows: int, used: Sequence[str], *, repeats: bool) -> Section:
    """Return the key ``id`` with the field that names dialogues, or an empty section.

    Args:
        columns: columns of the rows.
        rows: number of rows.
        used: paths of the turns or texts. Their fields do not name dialogues.
        repeats: whether rows are utterances.
    """
    keys = {path.partition("[]")[0] for path in used}
    others = {key: values for key, values in columns.items() if key not in keys}
    name = find_dialogue_id(others, rows, repeats=repeats)
    return {"id": name} if name else {}


def _list_inner_rows(rows: Rows, path: str) -> Rows:
    """Return the items of a list in each row, for the key ``dialogue.rows``."""
    items = [
        item for row in rows for item in list_items(dict(_iterate_first_values(row)).get(path))
    ]
    return [item for item in items if isinstance(item, Mapping)]


def _iterate_first_values(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((path, values[0]) for path, values in collect_columns([row]).items())


# --- lists of turns ---


def _find_lists(columns: Columns, rows: Rows) -> Iterator[TurnList]:
    own = [(path, values) for path, values in columns.items() if get_last_key(path) in TEXT_NAMES]
    text_words = max((_count_words(values) for _, values in own if is_text(values)), default=0)
    for path, values in columns.items():
        filled = [value for value in values if value]
        if len(filled) < len(rows) / 2 or split_field_name(get_last_key(path)) & NON_TURN_WORDS:
            continue
        if len(filled) > 3 and sum(v == filled[0] for v in filled) > MAX_CONSTANT_FRACTION * len(
            filled
        ):
            continue
        lists = [list_items(value) for value in filled]
        if is_mostly_true(bool(items) for items in lists):
            for found in _find_turn_lists(path, lists, 0):
                if 2 * found.words >= text_words:  # A shorter list repeats parts of the row's text.
                    yield found


def _find_turn_lists(path: str, lists: Sequence[list[Any]], depth: int) -> Iterator[TurnList]:
    """Yield the lists of turns in a field: the field itself, or lists in its items."""
    items = [item for some in lists for item in some]
    if is_mostly_true(isinstance(item, str) for item in items):
        texts = [item for item in items if isinstance(item, str)]
        are_turns = bool(split_field_name(get_last_key(path)) & TURN_WORDS)
        if compute_mean_words(texts) > MAX_LABEL_WORDS / 2 and (
            are_turns or not has_label_item(lists)
        ):
            yield TurnList(path, "", {}, _count_words(texts), depth)
    elif is_mostly_true(isinstance(item, list | tuple) for item in items):
        yield from _find_nested_turn_lists(
            path, [i for i in items if isinstance(i, list | tuple)], depth
        )
    elif is_mostly_true(isinstance(item, Mapping) for item in items):
        columns = collect_columns(items)
        if any(True for _ in propose_texts(columns)):
            words = sum(_count_words(values) for values in columns.values())
            yield TurnList(path, "", columns, words, depth)
        yield from _find_inner_lists(path, columns, len(items), depth)


def _find_nested_turn_lists(
    path: str, items: Sequence[Sequence[Any]], depth: int
) -> Iterator[TurnList]:
    """Yield lists of turns that are nested, or whose turns are lists (``["Ann", "hello"]``)."""
    inner = [item for some in items for item in some]
    is_short = len({len(item) for item in items}) == 1 and len(items[0]) <= 3
    if is_short and not any(isinstance(item, Mapping | list | tuple) for item in inner):
        columns = collect_columns(map(convert_list_to_object, items))
        if any(True for _ in propose_texts(columns)):
            words = sum(_count_words(values) for values in columns.values())
            yield TurnList(path, "", columns, words, depth)
    elif depth < MAX_DEPTH:
        yield from _find_turn_lists(f"{path}[]", [list(item) for item in items], depth + 1)


def _find_inner_lists(path: str, columns: Columns, count: int, depth: int) -> Iterator[TurnList]:
    """Yield lists inside the objects of a list.

    They are parts of one dialogue, or separate dialogues if each object has its own name.
    """
    for key, values in columns.items():
        filled = [list_items(value) for value in values if value]
        is_list = len(filled) >= count / 2 and is_mostly_true(bool(items) for items in filled)
        if (
            not is_list
            or split_field_name(get_last_key(key)) & NON_TURN_WORDS
            or depth >= MAX_DEPTH
        ):
            continue
        others = {
            n: column for n, column in columns.items() if not isinstance(column[0], list | tuple)
        }
        name = find_dialogue_id(others, count, repeats=False)
        has_names = name is not None and len({str(v) for v in others[name]}) == len(others[name])
        for found in _find_turn_lists(key, filled, depth + 1):
            if not has_names:
                within = f"{path}[].{found.path}"
                yield TurnList(within, found.rows, found.columns, found.words, found.depth)
            elif not found.rows:
                yield TurnList(found.path, path, found.columns, found.words, found.depth)
            else:
                outer = f"{path}[].{found.rows}"
                yield TurnList(found.path, outer, found.columns, found.words, found.depth)


def _count_words(values: Sequence[Any]) -> int:
    return sum(count_spaced_words(value) for value in values if isinstance(value, str))


# --- texts and speakers ---


def propose_texts(columns: Columns, *, are_rows: bool = False) -> Iterator[Section]:
    """Yield candidates for ``text`` and ``speaker``, by field name, then by number of words.

    Args:
        columns: fields of turns or rows.
        are_rows: whether the fields belong to rows that are dialogues. Questions and answers in
            them are a task.
    """
    texts = {key: path for key, values in columns.items() if (path := _find_text_path(key, values))}
    pair = _find_pair(columns, texts, are_rows=are_rows)
    if pair:
        speaker = find_speaker_field(columns, pair)
        yield {"text": list(pair)} | ({"speaker": speaker} if speaker else {})
    named = [key for key in texts if key.lower() in TEXT_NAMES]
    named += [
        key
        for key in texts
        if key not in named and (get_last_key(key) in TEXT_NAMES or texts[key] == f"{key}[]")
    ]
    others = [
        key
        for key in texts
        if key not in named and _compute_mean_text_words(columns[key]) >= MIN_TEXT_WORDS
    ]
    others.sort(key=lambda key: -_compute_mean_text_words(columns[key]))
    for key in (*named, *others):
        speaker = find_speaker_field(columns, (texts[key],))
        yield {"text": texts[key]} | ({"speaker": speaker} if speaker else {})


def _find_text_path(key: str, values: Sequence[Any]) -> str | None:
    """Return the path of the text (or of its parts) in a field, or None for other fields."""
    given = [value for value in values if value is not None]
    lists = [value for value in given if isinstance(value, list | tuple)]
    if not lists:
        return key if is_text(given) else None
    parts = [part for some in lists for part in some]
    are_parts = all(isinstance(part, str | Mapping) for part in parts)
    if not are_parts or not is_mostly_true(
        isinstance(value, str | list | tuple) for value in given
    ):
        return key if is_text(given) else None
    objects = [part for part in parts if isinstance(part, Mapping)]
    has_text = {name for part in objects for name in PART_KEYS if isinstance(part.get(name), str)}
    part_key = next((name for name in PART_KEYS if name in has_text), None)
    if part_key is not None and not split_field_name(get_last_key(key)) & NON_TURN_WORDS:
        return f"{key}[].{part_key}"
    if not objects and get_last_key(key) in PART_LIST_NAMES:
        return f"{key}[]"
    return key if is_text(given) else None


def _find_pair(columns: Columns, texts: Mapping[str, str], *, are_rows: bool) -> tuple[str, ...]:
    """Find two text fields, of which the second replies to the first, or return ()."""
    short = {key.lower(): key for key in columns}
    for firsts, seconds in PAIR_NAMES:
        if are_rows and firsts & QUESTION_NAMES:
            continue
        first = next((short[name] for name in sorted(firsts) if name in short), None)
        second = next((short[name] for name in sorted(seconds) if name in short), None)
        if first is None or second is None or first not in texts:
            continue
        path, values = texts.get(second, second), columns[second]
        filled = [value for value in values if value]
        if path == second and is_mostly_true(_is_text_list(value) for value in filled):
            path, values = f"{second}.0", [v[0] for v in filled if _is_text_list(v)]
        has_text = (
            is_text(values)
            and _compute_mean_text_words(values) >= MIN_TEXT_WORDS
            and not are_labels(values)
        )
        if (
            has_text
            and 2 * len(filled) >= len(columns[first])
            and _compute_mean_text_words(columns[first]) > 1
        ):
            return texts[first], path
    return ()


def _is_text_list(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and bool(value)
    return is_list and all(isinstance(item, str) for item in value)


def find_speaker_field(columns: Columns, texts: Sequence[str]) -> str | None:
    """Find the field with the speaker's name, or return None."""
    keys = [key for key in columns if key not in {text.partition("[]")[0] for text in texts}]
    named = [key for name in SPEAKER_NAMES for key in keys if key.lower() == name]
    named += [
        key for key in keys if key not in named and split_field_name(key) & {*SPEAKER_NAMES[:9]}
    ]
    named += [key for key in keys if key.isdecimal()]
    named += [key for key in keys if key == "id" and are_labels(columns[key])]
    found = [key for key in named if _has_speaker_names(columns[key], key)]
    most = max(map(len, columns.values()), default=0)
    return next(
        (key for key in found if len(columns[key]) >= MIN_FRACTION * most), next(iter(found), None)
    )


def _has_speaker_names(values: Sequence[Any], key: str) -> bool:
    given = [value for value in values if value is not None]
    if is_mostly_true(_is_text_list(value) for value in given):
        given = [name for value in given if _is_text_list(value) for name in value]
    numbers = get_last_key(key) in SPEAKER_NAMES and is_mostly_true(
        type(value) is int for value in given
    )
    names = [value for value in given if isinstance(value, str)]
    return numbers or (
        is_mostly_true(isinstance(v, str) for v in given) and compute_mean_words(names) <= 3
    )


def _compute_mean_text_words(values: Sequence[Any]) -> float:
    return compute_mean_words([value for value in values if isinstance(value, str)])
