"""DailyDialog++ (Sai et al. 2020): contexts with responses that fit and that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets.one_split import Said, refuse_shared
from tasktransfer.errors import DataError
from tasktransfer.files.data_files import json_lines
from tasktransfer.files.fields import Location, Table, get_texts, member

FITTING = "positive_responses"
KINDS = (FITTING, "adversarial_negative_responses", "random_negative_responses")
"""Of responses; training has fitting ones alone."""
LEAST_CONTEXTS = 2
"""For training: one of them lends responses to the other."""
SHARED = 0.01
"""Share of a split's contexts that another may have too: one of the 1,028 for dev and one of the
1,142 for test are in training, in other case and punctuation."""


@dataclass(frozen=True, slots=True)
class Context:
    """``responses``: by kind, as the release spells it."""

    group: str
    said: tuple[str, ...]
    responses: Mapping[str, tuple[str, ...]]
    location: Location


def read_contexts(
    files: Mapping[str, Path],
) -> tuple[dict[str, list[Context]], tuple[str, ...]]:
    """The contexts by split, and what a user should know of them.

    Raises:
        DataError: a line is not as it has to be, there are too few, or many are in two splits.
    """
    read = {
        split: [
            _context(row, location, split, KINDS[:1] if split == "train" else KINDS)
            for _, row, location in json_lines(file)
        ]
        for split, file in files.items()
    }
    if len(read["train"]) < LEAST_CONTEXTS:
        raise DataError(
            f"{files['train']}: found {len(read['train'])} contexts, and unfitting responses are "
            "taken from another: copy the whole file again"
        )
    notes = refuse_shared(
        (
            Said(
                context.group,
                split,
                " ".join(context.said),
                f"{context.location.file}, {context.location.row}",
            )
            for split, some in read.items()
            for context in some
        ),
        "copy the three files again",
        allowed=SHARED,
    )
    return read, notes


def _context(row: Table, location: Location, split: str, kinds: Sequence[str]) -> Context:
    utterances = tuple(text.strip() for text in get_texts(row, "context", location) if text.strip())
    responses = {kind: get_texts(row, kind, location) for kind in kinds}
    for key, texts in (("context", utterances), (FITTING, responses[FITTING])):
        if not texts:
            raise location.at(key).error("holds no text")
    name = member(row, "dialog_id" if split == "train" else "id", location)
    return Context(f"dd++{split}-{name}", utterances, responses, location)
