"""Rated responses, each set as its release has it (the fact sheet's table; PoE, Table II)."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.designs.panel.sources.cards import RATED, RatedSet
from tasktransfer.designs.panel.sources.corpora import (
    DSTC7,
    Files,
    dstc7_table,
)
from tasktransfer.errors import DataError
from tasktransfer.files.json_lines import json_lines

GRADE, GUPTA = (
    "evaluation/grade/human_judgement.json",
    "evaluation/gupta/mturk_rating_processed_output.csv",
)
FED, CONTURE = "evaluation/fed/fed_data.json", "evaluation/conture/conture.json"
CONTEXT_TURNS = 3
"""Utterances of ConTurE's contexts at most."""
LEFT_OUT = "TeamEC"
"""A system of DSTC7 whose mean ratings are not in the release."""
_SPEAKER = re.compile(r"^(User|System|Chatbot):\s*")


@dataclass(frozen=True, slots=True)
class Item:
    """A response with its ratings. ``context``: the utterances before it; ``group``: the context's
    name, which several responses share and intervals resample whole. ``ratings``: those of single
    annotators, or their mean alone where no more is released. ``row``: for messages."""

    context: tuple[str, ...]
    response: str
    ratings: tuple[float, ...]
    group: str
    system: str
    row: str

    @property
    def mean(self) -> float:
        return math.fsum(self.ratings) / len(self.ratings)


Read = Callable[[Files, RatedSet], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class Source:
    """``repeats``: whether the release itself has rows twice, which are then kept."""

    file: str
    read: Read
    repeats: bool = False


def _usr(file: str) -> Source:
    def read(files: Files, of: RatedSet) -> Iterator[Item]:
        for number, one in enumerate(json.loads(files[file].read_bytes())):
            said = _lines(one["context"])
            for place, response in enumerate(one["responses"]):
                yield Item(
                    said,
                    response["response"].strip(),
                    _numbers(
                        response[of.criterion], f"item {number}, response {place}", str(files[file])
                    ),
                    str(number),
                    response["model"],
                    f"item {number}, response {place}",
                )

    return Source(file, read)


def _grade(name: str) -> Source:
    def read(files: Files, of: RatedSet) -> Iterator[Item]:
        for one in json.loads(files[GRADE].read_bytes()):
            if one["Dataset"] == name:
                row = f"ID {one['ID']}"
                ratings = _numbers(json.loads(one["HumanScores"]), row, str(files[GRADE]))
                said = tuple(t.strip() for t in one["Context"].split("|||") if t.strip())
                yield Item(
                    said, one["Response"].strip(), ratings, one["Context"], one["DialogModel"], row
                )

    return Source(GRADE, read)


def _gupta(files: Files, of: RatedSet) -> Iterator[Item]:
    for line, row in _csv(files[GUPTA]):
        said = tuple(t.strip() for t in row["context"].split("||||") if t.strip())
        ratings = _numbers([row["human_average_rating"]], line, str(files[GUPTA]))
        yield Item(said, row["response"].strip(), ratings, row["context_id"], row["model"], line)


def _zhao(file: str) -> Source:
    def read(files: Files, of: RatedSet) -> Iterator[Item]:
        for line, row in _csv(files[file]):
            ratings = _numbers([row["rating"]], line, str(files[file]))
            said, response = _lines(row["context"]), row["response"].strip()
            yield Item(said, response, ratings, row["context"], "", line)

    return Source(file, read, repeats=True)


def _fed(files: Files, of: RatedSet) -> Iterator[Item]:
    for number, one in enumerate(json.loads(files[FED].read_bytes())):
        if "response" in one:
            told = [r for r in one["annotations"][of.criterion] if not isinstance(r, str)]
            said = tuple(_bare(text) for text in _lines(one["context"]))
            row = f"item {number}"
            response = _bare(one["response"])
            yield Item(
                said,
                response,
                _numbers(told, row, str(files[FED])),
                one["context"],
                one["system"],
                row,
            )


def _conture(files: Files, of: RatedSet) -> Iterator[Item]:
    for one in json.loads(files[CONTURE].read_bytes()):
        before: list[str] = []
        for place, turn in enumerate(one["turns"]):
            before.append(_bare(turn["user"]))
            response = _bare(turn["chatbot"])
            row = f"dialogue {one['dialog_id']}, turn {place}"
            ratings = _numbers([turn["overall impression"]], row, str(files[CONTURE]))
            said = tuple(before[-CONTEXT_TURNS:])
            # Contexts overlap within a dialogue: it is resampled whole.
            yield Item(said, response, ratings, str(one["dialog_id"]), "", row)
            before.append(response)


def _dstc7(files: Files, of: RatedSet) -> Iterator[Item]:
    """The conversation is not in the release; the grounding paragraph stands in for it."""
    file = files[DSTC7]
    facts = {row["InstanceID"]: row["Context"] for row in dstc7_table(file, "context")}
    ratings: dict[tuple[str, str], list[float]] = {}
    for row in dstc7_table(file, "human-eval-per-judge"):
        if row["SystemID"] != LEFT_OUT:
            key = row["InstanceID"], row["SystemID"]
            told = _numbers([row[of.criterion]], " ".join(key), str(file))
            ratings.setdefault(key, []).extend(told)
    for row in dstc7_table(file, "system_responses"):
        key = row["InstanceID"], row["SystemID"]
        if key in ratings and row.get("Response", "").strip():
            yield Item(
                (facts[key[0]].strip(),),
                row["Response"].strip(),
                tuple(ratings[key]),
                key[0],
                key[1],
                " ".join(key),
            )


def of_lines(name: str) -> Source:
    """A user's file ``ratings/<name>.jsonl``: an object a line with ``context`` (texts),
    ``response``, ``ratings`` (numbers) and ``context_id``."""
    file = f"ratings/{name}.jsonl"

    def read(files: Files, of: RatedSet) -> Iterator[Item]:
        for line, row in json_lines(files[file]):
            where = f"line {line}"
            for key in ("context", "response", "ratings", "context_id"):
                if key not in row:
                    raise DataError(f"{files[file]}, {where}: no {key!r}; {_FORMAT}")
            context, ratings = row["context"], row["ratings"]
            if not isinstance(context, list) or not all(isinstance(t, str) for t in context):
                raise DataError(f"{files[file]}, {where}: context is {context!r}; {_FORMAT}")
            if not isinstance(ratings, list) or not ratings:
                raise DataError(f"{files[file]}, {where}: ratings is {ratings!r}; {_FORMAT}")
            yield Item(
                tuple(text.strip() for text in context),
                str(row["response"]).strip(),
                _numbers(ratings, where, str(files[file])),
                str(row["context_id"]),
                str(row.get("system", "")),
                where,
            )

    return Source(file, read)


_FORMAT = (
    'give {"context": [texts], "response": text, "ratings": [numbers], "context_id": name} a line'
)

SOURCES: dict[str, Source] = {
    **{name: of_lines(name) for name in RATED},
    "Persona_USR": _usr("evaluation/usr/persona_usr.json"),
    "Topical_USR": _usr("evaluation/usr/topical_usr.json"),
    "ConvAI2_GRADE": _grade("convai2"),
    "DailyDialog_GRADE": _grade("dailydialog_EVAL"),
    "Empathetic_GRADE": _grade("empatheticdialogues"),
    "DailyDialog_Gupta": Source(GUPTA, _gupta),
    "Persona_Zhao": _zhao("evaluation/zhao/persona-zhao.csv"),
    "DailyDialog_Zhao": _zhao("evaluation/zhao/dailydialog-zhao.csv"),
    "FED_Turn": Source(FED, _fed),
    "ConTurE": Source(CONTURE, _conture),
    "Reddit_DSTC7": Source(DSTC7, _dstc7),
}


def read_rated(of: RatedSet, files: Files) -> list[Item]:
    """All items of a set.

    Raises:
        DataError: an empty response, no context, no context id, a rating off the scale, or the
            same pair with the same ratings twice; names file, row, value and remedy.
    """
    source = SOURCES.get(of.name) or of_lines(of.name)
    file = files[source.file]
    kept: list[Item] = []
    seen: dict[tuple[Any, ...], str] = {}
    for item in source.read(files, of):
        where = f"{file}, {item.row}"
        if not item.response:
            raise DataError(f"{where}: the response is empty; give its words, or remove the row")
        if not any(text.strip() for text in item.context):
            raise DataError(f"{where}: the context is empty; give its utterances, or remove it")
        if not item.group.strip():
            raise DataError(
                f"{where}: no context id; name the context, since intervals resample contexts"
            )
        if not item.ratings:
            raise DataError(f"{where}: no rating; give one, or remove the row")
        for rating in item.ratings:
            if not of.low <= rating <= of.high:
                raise DataError(
                    f"{where}: rating {rating:g}, and the scale is {of.low:g} to {of.high:g}; mend "
                    "it, or remove the row"
                )
        kept.append(item)
        # GRADE rates some pairs twice, by other people: that is no duplicate.
        key = item.context, item.response, item.system, item.group, item.ratings
        if key in seen and not source.repeats:
            raise DataError(
                f"{where}: the same context, response and ratings as in {seen[key]}; keep one"
            )
        seen[key] = item.row
    return kept


def _numbers(values: list[Any], row: str, file: str) -> tuple[float, ...]:
    numbers = []
    for value in values:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or isinstance(value, bool):
            raise DataError(
                f"{file}, {row}: rating {value!r} is no number; give one, or remove the row"
            )
        numbers.append(number)
    return tuple(numbers)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split("\n") if line.strip())


def _bare(text: str) -> str:
    """An utterance without its speaker; where nothing else was said, with it."""
    return _SPEAKER.sub("", text.strip()).strip() or text.strip()


def _csv(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with file.open(newline="", encoding="utf-8") as lines:
        for number, row in enumerate(csv.DictReader(lines), start=1):
            yield f"row {number}", row
