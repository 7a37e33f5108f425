"""Utterances of DailyDialog without FETA's annotations, for studies that use dialogues alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.errors import DataError, format_location
from tasktransfer.files.data_files import (
    AGAIN,
    parse_json,
    read_content,
    read_csv_rows,
    read_zip_member,
)
from tasktransfer.files.fields import Location, as_table, collect_texts, get_name, iterate_objects

RELEASE = "TLiDB_DailyDialog"
OFFICIAL_SPLITS = {"train": ("train",), "valid": ("dev",), "test": ("test",), "valid+test": ()}
"""Split in ``split.csv`` → splits of a dialogue. Empty if it is in both official files."""


@dataclass(frozen=True, slots=True)
class RawDialogue:
    """A dialogue without annotations.

    Args:
        name: name of the dialogue.
        split: split in ``split.csv``, a key of ``OFFICIAL_SPLITS``.
        utterances: utterances, without empty ones.
    """

    name: str
    split: str
    utterances: tuple[str, ...]


def read_dialogues(release: Path, split_file: Path) -> Iterator[RawDialogue]:
    """Yield the dialogues of a release's JSON or zip, with splits from ``split.csv``.

    Raises:
        DataError: a file is damaged, or a dialogue has no split. The message names file, dialogue,
            turn and key.
    """
    get_split = _read_splits(split_file)
    for name, utterances in _read_utterances(release):
        if name not in get_split:
            raise DataError(
                f"{split_file}: No line gives the split of dialogue {name}. Add a line for this "
                "dialogue."
            )
        yield RawDialogue(name, get_split[name], utterances)


def _read_utterances(file: Path) -> list[tuple[str, tuple[str, ...]]]:
    packed = file.suffix == ".zip"
    content = read_zip_member(file, f"{RELEASE}.json") if packed else read_content(file)
    location = Location(str(file), remedy=AGAIN)
    dialogues = []
    for table, spot in iterate_objects(
        as_table(parse_json(content, file), location), "data", location
    ):
        name = get_name(table, "dialogue_id", spot)
        here = Location(str(file), dialogue=name, remedy=AGAIN)
        utterances = map(str.strip, collect_texts(table, "dialogue", "utterance", here))
        dialogues.append((name, tuple(text for text in utterances if text)))
    return dialogues


def _read_splits(file: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    for line, (name, split) in read_csv_rows(file, ("dialogue_id", "split")):
        where = format_location(file, line)
        if split not in OFFICIAL_SPLITS:
            raise DataError(
                f"{where}: The value {split!r} is not a split. Write one of "
                f"{', '.join(OFFICIAL_SPLITS)}."
            )
        if name in splits:
            raise DataError(
                f"{where}: The dialogue {name} is already on an earlier line. Remove one of "
                "the two lines."
            )
        splits[name] = split
    return splits
