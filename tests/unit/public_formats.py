"""Small files in the formats of public corpora, annotation tools and chat programs.

The dialogues are invented. Each file has the declaration that should be guessed for it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]
TOPICS = ("billing", "login", "shipping")
MOODS = ("calm", "angry", "glad")


def said(number: int, turn: int) -> str:
    """Return a text that no other dialogue has."""
    texts = ("my parcel {} has not come yet", "let me look for number {}", "thank you, it is {}")
    return texts[turn % 3].format(10 * number + turn)


def topic(number: int) -> str:
    return TOPICS[number % 3]


def mood(number: int, turn: int) -> str:
    return MOODS[(number + turn) % 3]


def speaker(turn: int) -> str:
    return ("user", "assistant")[turn % 2]


def turns(number: int, make: Callable[[int, int], Json], count: int = 4) -> list[Json]:
    return [make(number, turn) for turn in range(count)]


def as_lines(row: Callable[[int], Json], count: int = 24) -> str:
    return "".join(json.dumps(row(number)) + "\n" for number in range(count))


def as_list(row: Callable[[int], Json], count: int = 24) -> str:
    return json.dumps([row(number) for number in range(count)], indent=1)


def as_csv(rows: list[Json]) -> str:
    stream = io.StringIO()
    table = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return stream.getvalue()


def utterances(make: Callable[[int, int], Json], count: int = 24) -> list[Json]:
    """Return one row per utterance."""
    return [make(number, turn) for number in range(count) for turn in range(4)]


def as_table(row: Callable[[int], Json]) -> str:
    return as_csv([row(number) for number in range(24)])


def as_turn_table(make: Callable[[int, int], Json]) -> str:
    return as_csv(utterances(make))


class Format(NamedTuple):
    """A public format and its expected guess.

    ``dialogue`` and ``labels`` (task → path, or kind and path) are the guess; ``turns`` are those
    of the first dialogue; ``notes`` are words of the messages.
    """

    file: str
    content: str
    dialogue: Json
    labels: Json
    turns: int = 4
    notes: tuple[str, ...] = ()


def chat(number: int, turn: int) -> Json:
    return {"role": speaker(turn), "content": said(number, turn)}


CHAT = {"turns": "messages", "text": "content", "speaker": "role"}
