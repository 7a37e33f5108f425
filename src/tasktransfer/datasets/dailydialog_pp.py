"""DailyDialog++ (Sai et al. 2020): contexts with relevant and irrelevant responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets.one_split import Said, refuse_shared
from tasktransfer.errors import DataError
from tasktransfer.files.data_files import read_json_lines
from tasktransfer.files.fields import Location, Table, get_member, get_texts

FITTING = "positive_responses"
KINDS = (FITTING, "adversarial_negative_responses", "random_negative_responses")
"""Kinds of responses. Training contexts have only relevant ones."""
LEAST_CONTEXTS = 2
"""Minimum number of training contexts: irrelevant responses are taken from another context."""
SHARED = 0.01
"""Allowed fraction of a split's contexts that are also in another split. One of the 1,028 dev
contexts and one of the 1,142 test contexts are in train, with other case and punctuation."""


@dataclass(frozen=True, slots=True)
class Context:
    """A context with its responses.

    Args:
        group: name of the context.
        said: utterances of the context.
        responses: kind, as in the release → responses.
        location: location for messages.
    """

    group: str
    said: tuple[str, ...]
    responses: Mapping[str, tuple[str, ...]]
    location: Location


def read_contexts(
    files: Mapping[str, Path],
) -> tuple[dict[str, list[Context]], tuple[str, ...]]:
    """Return the contexts by split, and notes about them for the user.

    Raises:
        DataError: a line is not valid, there are too few contexts, or too many are in two splits.
    """
    read = {
        split: [
            _parse_context(row, location, split, KINDS[:1] if split == "train" else KINDS)
            for _, row, location in read_json_lines(file)
        ]
        for split, file in files.items()
    }
    if len(read["train"]) < LEAST_CONTEXTS:
        raise DataError(
            f"{files['train']}: The file has {len(read['train'])} contexts, but two are "
            "needed, because irrelevant responses are taken from another context. Copy the "
            "complete file again."
        )
    notes = refuse_shared(
        (
            Said(
                context.group,
                split,
                " ".join(context.said),
                context.location.place,
            )
            for split, some in read.items()
            for context in some
        ),
        "Copy the three files again",
        allowed=SHARED,
    )
    return read, notes


def _parse_context(row: Table, location: Location, split: str, kinds: Sequence[str]) -> Context:
    utterances = tuple(text.strip() for text in get_texts(row, "context", location) if text.strip())
    responses = {kind: get_texts(row, kind, location) for kind in kinds}
    for key, texts in (("context", utterances), (FITTING, responses[FITTING])):
        if not texts:
            raise location.at(key).error("the list contains no text")
    name = get_member(row, "dialog_id" if split == "train" else "id", location)
    return Context(f"dd++{split}-{name}", utterances, responses, location)
