"""DailyDialog++ (Sai et al. 2020): contexts with relevant and irrelevant responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets.disjoint_splits import SplitDialogue, check_disjoint_splits
from tasktransfer.errors import DataError
from tasktransfer.files.data_files import read_json_lines
from tasktransfer.files.fields import Location, Table, get_member, get_texts

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
