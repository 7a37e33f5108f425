"""Files with structures that no dialogue has, made by damaging valid files."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from annotation_exports import EXPORTS
from public_corpora import CORPORA

FORMATS = CORPORA | EXPORTS

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2.5, 10**30, "", " ", "x", "5", "['a'", "[1 2]", "{'a': 'b'}", "[]", "{}"),
    *([], {}, [[]], [None], [{}], [[1, 2], [3]], ["a", 1, None], {"a": []}, {"": {"": ""}}),
    *({"text": None}, {"text": 5}, [{"text": ["a"]}], "\x1b[31m\u202e", "a" * 5000, [["a"]] * 50),
    *({"content": {"parts": [["a"]]}}, "\u00b2", "--1", "9" * 5000, {"a.b": 1, "a": {"b": 2}}),
)


def nest(depth: int, kind: str) -> Any:
    """Return a value inside ``depth`` lists or objects."""
    value: Any = "deep down there is a text"
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value}
    return value


def many_keys(number: int) -> dict[str, Any]:
    return {f"key {n} [{number % 3}]": "xyz"[(n + number) % 3] for n in range(2000)} | {
        f"k{n}": "xyz"[(n + number) % 3] for n in range(8000)
    }


ODD_LABELS: tuple[Any, ...] = (1, "1", None, True, [1], {"a": 1}, 1.0)
ODD_IDS: tuple[Any, ...] = (1, "1", None, 2.5, [], {}, True)
TEXT = {"text": "a text of some words"}
ODD_ROWS: dict[str, Any] = {
    "turns are null": lambda n: {"turns": None, "label": "xy"[n % 2]},
    "turns are empty": lambda n: {"turns": [], "label": "xy"[n % 2]},
    "turns are numbers": lambda n: {"turns": [n, 1, 2], "label": "xy"[n % 2]},
    "turns are nulls": lambda n: {"turns": [None, None], "label": "xy"[n % 2]},
    "turns are empty objects": lambda n: {"turns": [{}, {}], "label": "xy"[n % 2]},
    "turns are an object of objects": lambda n: {"turns": {"1": TEXT, "2": TEXT}, "label": "a"},
    "turns are lists of lists of lists": lambda n: {"turns": [[[["a text that is said"]]]]},
    "lists of one": lambda n: {"turns": [[["a text"]], [["b text"]]], "label": "xy"[n % 2]},
    "texts are numbers": lambda n: {"text": n, "label": "xy"[n % 2]},
    "texts are lists": lambda n: {"text": ["a", ["b"]], "label": "xy"[n % 2]},
    "texts are objects": lambda n: {"text": {"en": "a text that is said"}, "label": "xy"[n % 2]},
    "no keys": lambda n: {},
    "an empty key": lambda n: {"": "a text that is said", " ": "b", "label": "xy"[n % 2]},
    "keys with brackets": lambda n: {"text[0]": "a text of words", "label[]": "xy"[n % 2]},
    "keys with dots": lambda n: {"a.": "a text of words", ".b": "c", "a..b": "xy"[n % 2]},
    "keys that are paths": lambda n: {
        "m.text": f"a text {n} of words",
        "m": {"label": "xy"[n % 2]},
    },
    "keys with line ends": lambda n: {"text\n": "a text of words", "la\x00bel": "xy"[n % 2]},
    "10,000 keys": many_keys,
    "deep lists": lambda n: {"turns": nest(300, "list"), **TEXT},
    "deep objects": lambda n: {"turns": nest(300, "object"), **TEXT, "label": "xy"[n % 2]},
    "deep text": lambda n: {"turns": "[" * 900, **TEXT, "label": "xy"[n % 2]},
    "objects by name": lambda n: {"d1": {"d2": {"d3": TEXT}}, "label": {"a": {"b": "xy"[n % 2]}}},
    "labels are objects": lambda n: {**TEXT, "label": {"name": ["x", {"y": n % 2}]}},
    "labels of all types": lambda n: {**TEXT, "label": ODD_LABELS[n % 7]},
    "labels are lists of lists": lambda n: {**TEXT, "label": [[0, 5, "LOC"], [6, 9, "PER"]]},
    "labels are empty lists": lambda n: {**TEXT, "label": []},
    "labels are huge numbers": lambda n: {**TEXT, "label": 10 ** (300 + n % 2)},
    "options are objects": lambda n: {
        **TEXT,
        "options": [{"id": 1}],
        "answer": 1,
        "question": "why",
    },
    "accept without options": lambda n: {**TEXT, "accept": [{"id": n % 2}]},
    "one turn is a text": lambda n: {"turns": [TEXT, "a text that is said"], "label": "xy"[n % 2]},
    "one row is another": lambda n: {"turns": [TEXT] if n else "x", "label": "xy"[n % 2]},
    "the same list in all rows": lambda n: {"turns": [TEXT, TEXT], "label": "xy"[n % 2]},
    "lists of different lengths": lambda n: {"turns": {"text": ["a b c"] * 3, "who": ["a"]}},
    "order of all types": lambda n: {
        "turns": [{"turn": v, **TEXT} for v in (None, 1, "a", [], {})],
        "label": "xy"[n % 2],
    },
    "ids of all types": lambda n: {"id": ODD_IDS[n % 7], **TEXT, "label": n % 2},
    "speakers of all types": lambda n: {
        "turns": [{"speaker": v, "text": f"a text {n}"} for v in (None, 1, "a", ["b"], {"c": 1})],
        "label": "xy"[n % 2],
    },
    "parts of all types": lambda n: {
        "turns": [{"content": v} for v in ("a text", ["b"], [{"text": "c"}], [5], {"text": "d"})],
        "label": "xy"[n % 2],
    },
    "rows within rows": lambda n: {
        "scenes": [
            {"scene_id": f"{n}.{s}", "scenes": [{"id": f"{n}.{s}", "turns": [TEXT]}]}
            for s in (1, 2)
        ]
    },
}


def odd_file(name: str, count: int = 30) -> str:
    return "".join(json.dumps(ODD_ROWS[name](number)) + "\n" for number in range(count))


def damage(value: Any, draw: random.Random, share: float) -> Any:
    """Return a value in which some members are odd, missing or repeated."""
    if draw.random() < share:
        return draw.choice(ODD_VALUES)
    if isinstance(value, dict):
        members = [(k, v) for k, v in value.items() if draw.random() > share / 2]
        return {k: damage(v, draw, share) for k, v in members}
    if isinstance(value, list):
        items = [damage(item, draw, share) for item in value]
        return items * 2 if draw.random() < share else items
    return value


def damaged_files(name: str, count: int) -> Iterator[tuple[str, str]]:
    """Yield names and contents of a public format's file with increasing damage."""
    known = FORMATS[name]
    draw = random.Random(name)
    for number in range(count):
        share = 0.02 * 2**number
        if known.file.endswith(".jsonl"):
            rows = [json.loads(line) for line in known.content.splitlines()]
            made = [damage(row, draw, share) for row in rows]
            yield known.file, "".join(json.dumps(row) + "\n" for row in made)
        elif known.file.endswith(".json"):
            value = json.loads(known.content)
            value = [value] if isinstance(value, dict) else value
            made = [damage(row, draw, share) for row in value]
            yield known.file, json.dumps(made)
        else:
            cells = known.content.split(",")
            odd = [str(draw.choice(ODD_VALUES)) if draw.random() < share / 3 else c for c in cells]
            yield known.file, ",".join(odd)
