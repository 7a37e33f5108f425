"""Utterances of DailyDialog without FETA's annotations, for studies that use dialogues alone.

DailyDialog++ (Sai et al. 2020) adds contexts with relevant and irrelevant responses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets.disjoint_splits import SplitDialogue, check_disjoint_splits
from tasktransfer.errors import DataError, format_location
from tasktransfer.files.data_files import (
    AGAIN,
    parse_json,
    read_content,
    read_csv_rows,
    read_json_lines,
    read_zip_member,
)
from tasktransfer.files.fields import (
    Location,
    Table,
    as_table,
    collect_texts,
    get_member,
    get_name,
    get_texts,
    iterate_objects,
)

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


RELEVANT = "positive_responses"
RESPONSE_KINDS = (RELEVANT, "adversarial_negative_responses", "random_negative_responses")
"""Kinds of responses. Training contexts have only relevant ones."""
MIN_CONTEXTS = 2
"""Minimum number of training contexts: irrelevant responses are taken from another context."""
ALLOWED_SHARED = 0.01
"""Allowed fraction of a split's contexts that are also in another split. One of the 1,028 dev
contexts and one of the 1,142 test contexts are in train, with other case and punctuation."""


@dataclass(frozen=True, slots=True)
class Context:
    """A context with its responses.

    Args:
        group: name of the context.
        utterances: utterances of the context.
        responses: kind, as in the release → responses.
        location: location for messages.
    """

    group: str
    utterances: tuple[str, ...]
    responses: Mapping[str, tuple[str, ...]]
    location: Location


def read_contexts(
    files: Mapping[str, Path],
) -> tuple[dict[str, list[Context]], tuple[str, ...]]:
    """Read the contexts by split, with notes for the user.

    Raises:
        DataError: a line is not valid, there are fewer than two training contexts, or too many
            contexts are in two splits.
    """
    read = {
        split: [
            _parse_context(
                row, location, split, RESPONSE_KINDS[:1] if split == "train" else RESPONSE_KINDS
            )
            for _, row, location in read_json_lines(file)
        ]
        for split, file in files.items()
    }
    if len(read["train"]) < MIN_CONTEXTS:
        raise DataError(
            f"{files['train']}: The number of contexts is {len(read['train'])}, but at least two "
            "are needed, because irrelevant responses come from another context. Copy the complete "
            "file again."
        )
    notes = check_disjoint_splits(
        (
            SplitDialogue(
                context.group,
                split,
                " ".join(context.utterances),
                context.location.place,
            )
            for split, contexts in read.items()
            for context in contexts
        ),
        "Copy the three files again",
        allowed=ALLOWED_SHARED,
    )
    return read, notes


def _parse_context(row: Table, location: Location, split: str, kinds: Sequence[str]) -> Context:
    utterances = tuple(text.strip() for text in get_texts(row, "context", location) if text.strip())
    responses = {kind: get_texts(row, kind, location) for kind in kinds}
    for key, texts in (("context", utterances), (RELEVANT, responses[RELEVANT])):
        if not texts:
            raise location.at(key).error("the list contains no text")
    name = get_member(row, "dialog_id" if split == "train" else "id", location)
    return Context(f"dd++{split}-{name}", utterances, responses, location)
