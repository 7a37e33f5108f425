"""Frames of a user's own human judgements: mean ratings, choices, and the raters' agreement.

They are computed from the files in the config section ``human``. Packs include them, so a study
that was merged from a pack has them without the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasktransfer.designs.empathetic.agreement import build_agreement_table, list_choices
from tasktransfer.designs.empathetic.config import get_config
from tasktransfer.designs.empathetic.frames import HUMAN_AGREEMENT, HUMAN_CHOICES, HUMAN_RATINGS
from tasktransfer.designs.empathetic.human import ANSWERS, as_rows, read_choices, read_ratings
from tasktransfer.results.frame_files import read_earlier_rows
from tasktransfer.results.frames import Columns, Frames

Values = tuple[Any, ...]


def make_ratings(frames: Frames) -> list[Values]:
    """Return the rows of ``human_ratings``, one per rated system.

    Raises:
        DataError: a line of the file is invalid.
        RecordError: neither the file nor an earlier table exists.
    """
    file = _find_file(frames, "ratings")
    if file is None:
        return read_earlier_rows(frames.study, "human_ratings", HUMAN_RATINGS)
    return _select_columns(as_rows(read_ratings(file)), HUMAN_RATINGS)


def make_choices(frames: Frames) -> list[Values]:
    """Return the rows of ``human_choices``, one per pair of systems.

    Raises:
        DataError: a line of the file is invalid.
        RecordError: neither the file nor an earlier table exists.
    """
    file = _find_file(frames, "choices")
    if file is None:
        return read_earlier_rows(frames.study, "human_choices", HUMAN_CHOICES)
    read_choices(file)  # to check the lines
    counts: dict[tuple[str, str], Counter[str]] = {}
    for item, _, _, answer in list_choices(file):
        model, other, _ = item.split("\t")
        counts.setdefault((model, other), Counter())[answer] += 1
    return [(*pair, *(counted[answer] for answer in ANSWERS)) for pair, counted in counts.items()]


def make_agreement(frames: Frames) -> list[Values]:
    """Return the rows of ``human_agreement``, one per question.

    Raises:
        DataError: the package krippendorff is not installed, or a line is invalid.
        RecordError: neither a file nor an earlier table exists.
    """
    section = get_config(frames.study).human
    files = {key: _find_file(frames, key) for key in (section.files if section else ())}
    if None in files.values():
        return read_earlier_rows(frames.study, "human_agreement", HUMAN_AGREEMENT)
    ratings, choices = files.get("ratings"), files.get("choices")
    if ratings is not None:
        read_ratings(ratings)
    if choices is not None:
        read_choices(choices)
    table = build_agreement_table(ratings, choices).rename(columns={"instances": "contexts"})
    return _select_columns(table.to_dict("records"), HUMAN_AGREEMENT)


def _find_file(frames: Frames, key: str) -> Path | None:
    """Return the path of a file of judgements, or None if the file no longer exists."""
    section = get_config(frames.study).human
    file = section.find_file(key) if section else None
    return file if file is not None and file.exists() else None


def _select_columns(rows: Sequence[Any], columns: Columns) -> list[Values]:
    return [tuple(row[name] for name, _, _ in columns) for row in rows]
