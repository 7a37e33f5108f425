"""Readers of the rated sets in the formats of their releases (fact sheet; PoE, Table II)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tasktransfer.designs.panel.sources.cards import RATED, RatedSet
from tasktransfer.designs.panel.sources.corpora import (
    DSTC7,
    Files,
    read_dstc7_contexts,
    read_dstc7_table,
)
from tasktransfer.errors import DataError, format_quantity
from tasktransfer.files import json_text
from tasktransfer.files.data_files import read_csv_rows, read_json_lines, read_json_objects
from tasktransfer.files.fields import (
    Location,
    get_list,
    get_member,
    get_table,
    get_text,
    get_texts,
    iterate_objects,
)

GRADE, GUPTA = (
    "evaluation/grade/human_judgement.json",
    "evaluation/gupta/mturk_rating_processed_output.csv",
)
FED, CONTURE = "evaluation/fed/fed_data.json", "evaluation/conture/conture.json"
CONTEXT_TURNS = 3
"""Maximum number of utterances of ConTurE's contexts."""
LEAST_CONTEXTS = 2
LEFT_OUT = "TeamEC"
"""A system of DSTC7 whose mean ratings are not in the release."""
_SPEAKER = re.compile(r"^(User|System|Chatbot):\s*")


@dataclass(frozen=True, slots=True)
class Item:
    """A response with its ratings.

    Args:
        context: utterances before the response.
        response: the rated response.
        ratings: ratings of single annotators, or their mean if only that is released.
        group: ID of the context, which several responses share; intervals resample contexts.
        system: system that generated the response.
        place: file and line or row, for messages.
    """

    context: tuple[str, ...]
    response: str
    ratings: tuple[float, ...]
    group: str
    system: str
    place: str

    @property
    def mean(self) -> float:
        return math.fsum(self.ratings) / len(self.ratings)


Read = Callable[[Files, RatedSet], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class Source:
    """File of a rated set and its reader; ``repeats`` keeps rows that the release has twice."""

    file: str
    read: Read
    repeats: bool = False


def _build_usr_source(file: str) -> Source:
    def read(files: Files, of: RatedSet) -> Iterator[Item]:
        for number, (row, location) in enumerate(read_json_objects(files[file])):
            turns = _split_lines(get_text(row, "context", location))
            for at, (response, _) in enumerate(iterate_objects(row, "responses", location)):
                spot = location.locate_row(f"item {number}, response {at}")
                ratings = _parse_ratings(get_list(response, of.criterion, spot), spot)
                text = get_text(response, "response", spot).strip()
                system = get_text(response, "model", spot)
                yield Item(turns, text, ratings, str(number), system, spot.place)

    return Source(file, read)


def _build_grade_source(name: str) -> Source:
    def read(files: Files, of: RatedSet) -> Iterator[Item]:
        for row, location in read_json_objects(files[GRADE]):
            if get_text(row, "Dataset", location) == name:
                spot = location.locate_row(f"ID {get_member(row, 'ID', location)}")
                context, scores = (get_text(row, key, spot) for key in ("Context", "HumanScores"))
                response, system = (get_text(row, key, spot) for key in ("Response", "DialogModel"))
                turns = tuple(t.strip() for t in context.split("|||") if t.strip())
                ratings = _parse_ratings(_parse_list(scores, spot.at("HumanScores")), spot)
                yield Item(turns, response.strip(), ratings, context, system, spot.place)

    return Source(GRADE, read)


def _parse_list(text: str, location: Location) -> list[Any]:
    """Parse a list from text."""
    try:
        values = json_text.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, list):
        raise location.error(
            f"the value {text!r:.60} is not a list of numbers", "write one, such as [3, 4]"
        )
    return values


def _read_gupta(files: Files, of: RatedSet) -> Iterator[Item]:
    columns = ("context", "human_average_rating", "response", "context_id", "model")
    for line, (context, rating, response, group, model) in read_csv_rows(files[GUPTA], columns):
        location = Location(str(files[GUPTA]), line=line)
        turns = tuple(t.strip() for t in context.split("||||") if t.strip())
        yield Item(
            turns,
            response.strip(),
            _parse_ratings([rating], location),
            group,
            model,
            location.place,
        )


def _build_zhao_source(file: str) -> Source:
    def read(files: Files, of: RatedSet) -> Iterator[Item]:
        columns = ("context", "response", "rating")
        for line, (context, response, rating) in read_csv_rows(files[file], columns):
            location = Location(str(files[file]), line=line)
            ratings = _parse_ratings([rating], location)
            yield Item(
                _split_lines(context), response.strip(), ratings, context, "", location.place
            )

    return Source(file, read, repeats=True)


def _read_fed(files: Files, of: RatedSet) -> Iterator[Item]:
    for row, location in read_json_objects(files[FED]):
        if "response" in row:
            annotations = get_table(row, "annotations", location)
            given = get_list(annotations, of.criterion, location.at("annotations"))
            numbers = [rating for rating in given if not isinstance(rating, str)]  # "N/A ..."
            context, response = (get_text(row, key, location) for key in ("context", "response"))
            turns = tuple(_strip_speaker(text) for text in _split_lines(context))
            system = get_text(row, "system", location)
            yield Item(
                turns,
                _strip_speaker(response),
                _parse_ratings(numbers, location),
                context,
                system,
                location.place,
            )


def _read_conture(files: Files, of: RatedSet) -> Iterator[Item]:
    for row, location in read_json_objects(files[CONTURE]):
        name = str(get_member(row, "dialog_id", location))
        before: list[str] = []
        for at, (turn, _) in enumerate(iterate_objects(row, "turns", location)):
            spot = location.locate_row(f"dialogue {name}, turn {at}")
            before.append(_strip_speaker(get_text(turn, "user", spot)))
            response = _strip_speaker(get_text(turn, "chatbot", spot))
            ratings = _parse_ratings([get_member(turn, "overall impression", spot)], spot)
            turns = tuple(before[-CONTEXT_TURNS:])
            # Contexts overlap within a dialogue, so the dialogue is the cluster.
            yield Item(turns, response, ratings, name, "", spot.place)
            before.append(response)


def _read_dstc7(files: Files, of: RatedSet) -> Iterator[Item]:
    """Yield the items of DSTC7, whose contexts are grounding paragraphs.

    The conversations themselves are not released.
    """
    file = files[DSTC7]
    facts = read_dstc7_contexts(file)
    ratings: dict[tuple[str, str], list[float]] = {}
    columns = ("InstanceID", "SystemID", of.criterion)
    for instance, system, rating in read_dstc7_table(file, "human-eval-per-judge", columns):
        if system != LEFT_OUT:
            location = Location(str(file), row=f"{instance} {system}")
            ratings.setdefault((instance, system), []).extend(_parse_ratings([rating], location))
    columns = ("InstanceID", "SystemID", "Response")
    for instance, system, response in read_dstc7_table(file, "system_responses", columns):
        key, place = (instance, system), Location(str(file), row=f"{instance} {system}").place
        if key in ratings and response.strip():
            turns = (facts.get(instance, "").strip(),)
            yield Item(turns, response.strip(), tuple(ratings[key]), instance, system, place)


def make_lines_source(name: str) -> Source:
    """Return the source of a user's file ``ratings/<name>.jsonl``.

    Each line is an object with ``context`` (texts), ``response``, ``ratings`` (numbers) and
    ``context_id``.
    """
    file = f"ratings/{name}.jsonl"

    def read(files: Files, of: RatedSet) -> Iterator[Item]:
        for _, row, location in read_json_lines(files[file], _FORMAT):
            turns = get_texts(row, "context", location)
            response = get_text(row, "response", location)
            ratings = _parse_ratings(get_list(row, "ratings", location), location)
            group, system = get_member(row, "context_id", location), row.get("system") or ""
            if not isinstance(group, str | int):
                raise location.at("context_id").error(
                    f"the value {group!r:.60} is not a context ID", "write a text or a number"
                )
            yield Item(
                tuple(text.strip() for text in turns),
                response.strip(),
                ratings,
                str(group),
                str(system),
                location.place,
            )

    return Source(file, read)


_FORMAT = (
    'give one object per line: {"context": [texts], "response": text, "ratings": [numbers], '
    '"context_id": name}'
)

SOURCES: dict[str, Source] = {
    **{name: make_lines_source(name) for name in RATED},
    "Persona_USR": _build_usr_source("evaluation/usr/persona_usr.json"),
    "Topical_USR": _build_usr_source("evaluation/usr/topical_usr.json"),
    "ConvAI2_GRADE": _build_grade_source("convai2"),
    "DailyDialog_GRADE": _build_grade_source("dailydialog_EVAL"),
    "Empathetic_GRADE": _build_grade_source("empatheticdialogues"),
    "DailyDialog_Gupta": Source(GUPTA, _read_gupta),
    "Persona_Zhao": _build_zhao_source("evaluation/zhao/persona-zhao.csv"),
    "DailyDialog_Zhao": _build_zhao_source("evaluation/zhao/dailydialog-zhao.csv"),
    "FED_Turn": Source(FED, _read_fed),
    "ConTurE": Source(CONTURE, _read_conture),
    "Reddit_DSTC7": Source(DSTC7, _read_dstc7),
}


def get_rated_set_file(name: str) -> str:
    """Return the file of a release that contains a rated set."""
    return (SOURCES.get(name) or make_lines_source(name)).file


def read_rated_set(of: RatedSet, files: Files) -> list[Item]:
    """Read all items of a rated set.

    Raises:
        DataError: a response, context or context ID is empty, a rating is not on the scale, a pair
            with the same ratings occurs twice, or all items share one context. The message has
            file, row, value and remedy.
    """
    source = SOURCES.get(of.name) or make_lines_source(of.name)
    file = files[source.file]
    kept: list[Item] = []
    seen: dict[tuple[Any, ...], str] = {}
    for item in source.read(files, of):
        where = item.place
        if not item.response:
            raise DataError(
                f"{where}: The response is empty. Write the response, or remove the row."
            )
        if not any(text.strip() for text in item.context):
            raise DataError(f"{where}: The context is empty. Add utterances, or remove the row.")
        if not item.group.strip():
            raise DataError(
                f"{where}: The context has no ID, but confidence intervals are computed by "
                "resampling contexts. Add a context ID."
            )
        if not item.ratings:
            raise DataError(f"{where}: The row has no rating. Add a rating, or remove the row.")
        for rating in item.ratings:
            if not of.low <= rating <= of.high:
                raise DataError(
                    f"{where}: The rating {rating:g} is not on the scale from {of.low:g} to "
                    f"{of.high:g}. Correct the rating, or remove the row."
                )
        kept.append(item)
        # GRADE has some pairs twice, with ratings by different people, which are not duplicates.
        key = item.context, item.response, item.system, item.group, item.ratings
        if key in seen and not source.repeats:
            raise DataError(
                f"{where}: The row has the same context, response and ratings as {seen[key]}. "
                "Keep one of the two rows."
            )
        seen[key] = where
    contexts = len({item.group for item in kept})
    if contexts < LEAST_CONTEXTS:
        raise DataError(
            f"{file}: The rated set {of.name} has {format_quantity(len(kept), 'item')} of "
            f"{format_quantity(contexts, 'context')}, but the confidence interval of a "
            f"correlation needs at least {LEAST_CONTEXTS} contexts. Use the complete file, or "
            f"remove {of.name} from rated_sets."
        )
    return kept


def _parse_ratings(values: Sequence[object], location: Location) -> tuple[float, ...]:
    numbers = []
    for value in values:
        number = math.nan
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            with suppress(ValueError, OverflowError):
                number = float(value)
        if not math.isfinite(number):
            problem = f"rating {value!r:.60} is not a number"
            raise location.error(problem, "write a number, or remove the row")
        numbers.append(number)
    return tuple(numbers)


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split("\n") if line.strip())


def _strip_speaker(text: str) -> str:
    """Return an utterance without its speaker, or unchanged if it consists of the speaker only."""
    return _SPEAKER.sub("", text.strip()).strip() or text.strip()
