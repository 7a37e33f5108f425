"""Text of turns as the release joins them, and spans in this text."""

from __future__ import annotations

from collections.abc import Sequence

from tasktransfer.datasets.feta.tiny_world.metadata import Json


def format_line(turn: Json) -> str:
    """Return a turn as ``speaker: utterance``, or the utterance of a note without speakers."""
    speakers = " ".join(turn["speakers"])
    return f"{speakers}: {turn['utterance']}" if speakers else str(turn["utterance"])


def join_lines(turns: Sequence[Json]) -> str:
    """Return turns joined by spaces, as in the contexts of the release's span tasks."""
    return " ".join(format_line(turn) for turn in turns)


def find_span(context: str, text: str) -> Json:
    """Return the annotation of the first occurrence of ``text`` in ``context``."""
    return {"text": text, "answer_start": context.index(text)}
