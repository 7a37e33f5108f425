"""Sizes of new studies: what ``tasktransfer init`` reduces, and in which order, to fit the hours.

The minimum numbers of epochs and updates come from the recipe for the model's size. They are never
reduced to save time, because a model that has not learned its task shows nothing about transfer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from tasktransfer.core.references import CONTRASTIVE
from tasktransfer.datasets import PACKAGE_DATASETS
from tasktransfer.datasets.declared.lengths import DialogueLengths
from tasktransfer.operate.forecast.other_nodes import PROMPT_TOKENS
from tasktransfer.operate.forecast.sizes import TEXT_TO_TEXT_TOKENS

MAX_LENGTH = 256
"""Largest ``max_length`` that is chosen."""
MIN_LENGTH, MIN_PROMPT_LENGTH = 64, 128
"""Smallest ``max_length`` that is chosen, for encoders and for models that read a prompt.

Inputs are not padded to ``max_length``, so a lower value would save no time on short dialogues. It
would only truncate the sources, which are read with the same ``max_length``.
"""
LENGTH_STEP = 32
READ_PERCENT = 95
"""Percentage of the inputs that ``max_length`` does not truncate."""
SHORTER_LENGTHS = (192, 128, 96, 64)
"""Values of ``max_length`` to try if the time budget is too short for the chosen value."""
FEW_SOURCES = (4, 3, 2, 1)
"""Numbers of sources per dataset to try if time is short."""
CLASSIFIED = ("utterance_classification", "dialogue_classification", "multi_label")
"""Kinds of FETA's tasks that are sources."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a study: the values that are reduced if time is short."""

    seeds: int
    limit_train: int | None
    limit_dev: int | None
    limit_test: int | None
    max_length: int = MAX_LENGTH

    @property
    def limits(self) -> dict[str, int]:
        """Maximum number of instances per task, by split; splits without a limit are left out."""
        limits = {"train": self.limit_train, "dev": self.limit_dev, "test": self.limit_test}
        return {split: limit for split, limit in limits.items() if limit is not None}

    def drop_limits(self, instances: Mapping[str, int]) -> Size:
        """Return the size without the limits that no task with these instances by split reaches."""
        used = {split: limit for split, limit in self.limits.items() if limit < instances[split]}
        limits = (used.get("train"), used.get("dev"), used.get("test"))
        return Size(self.seeds, *limits, self.max_length)

    def __str__(self) -> str:
        names = {"train": "training"}
        listed = ", ".join(f"{n:,} {names.get(split, split)}" for split, n in self.limits.items())
        whole = f"at most {listed} instances per task" if listed else "all instances"
        return f"{self.seeds} seeds, {whole}, {self.max_length} tokens"


SIZES = (
    Size(5, None, None, None),
    Size(5, 5000, 500, None),
    Size(5, 5000, 300, 1000),
    Size(4, 5000, 300, 1000),
    Size(3, 5000, 300, 1000),
)
"""Sizes to try, largest first. All have at least three seeds, so that differences are tested.

Sources are left out before any training set is limited to fewer than 5,000 instances, so that as
much of the user's own labelled data as possible is used. Limits below 1,600 instances would save no
training time, because the recipes train for at least 300 updates of 16 instances.
"""
SMALLER_SIZES = (Size(3, 2000, 200, 600), Size(3, 1000, 200, 600))
"""Sizes to try if the time budget is too short for any of ``SIZES`` without sources."""


SourceKinds = Mapping[str, Mapping[str, str]]
"""Dataset → task → kind of this task."""


class StudyProposal(NamedTuple):
    """A study that may fit the time budget: its sources by dataset, size and references."""

    sources: Mapping[str, list[str]]
    size: Size
    references: list[str]


def propose_studies(
    kind: str, own: SourceKinds, references: list[str], lengths: InputLengths
) -> Iterator[StudyProposal]:
    """Yield studies in the order in which they are tried, from the largest to the smallest.

    Sources are left out before contrastive fine-tuning. Both are left out before the target's own
    instances are limited any further, and its inputs are truncated last.

    Args:
        kind: kind of the target task.
        own: the user's dataset and its other tasks, each with its kind.
        references: references of the largest study.
        lengths: chosen maximum sequence length, and the smallest one to try.
    """
    cheap = [name for name in references if name != CONTRASTIVE]
    sizes = [replace(size, max_length=lengths.chosen) for size in SIZES]
    sources = [*_propose_sources(kind, own), {}]
    yield from map(StudyProposal._make, product(sources, sizes, [references]))
    if cheap != references:
        yield from map(StudyProposal._make, product([{}], sizes, [cheap]))
    for size in SMALLER_SIZES:
        yield StudyProposal({}, replace(size, max_length=lengths.chosen), cheap)
    shorter = (n for n in SHORTER_LENGTHS if lengths.least <= n < lengths.chosen)
    for length, size in product(shorter, (SIZES[-1], *SMALLER_SIZES)):
        yield StudyProposal({}, replace(size, max_length=length), cheap)


def _propose_sources(kind: str, own: SourceKinds) -> Iterator[dict[str, list[str]]]:
    """Yield selections of sources by dataset, each smaller than the one before.

    The first has all classification tasks of FETA and all of the user's other tasks. The next ones
    have a few tasks per dataset (``FEW_SOURCES``), of the target's kind if the dataset has this
    kind. The last has no task of the user's own dataset.
    """
    feta = {
        dataset.name: {card.name: card.kind for card in dataset.cards if card.kind in CLASSIFIED}
        for dataset in PACKAGE_DATASETS
    }
    yield {name: [*tasks] for name, tasks in {**own, **feta}.items()}
    alike = {
        name: [task for task in tasks if tasks[task] == kind] or [*tasks]
        for name, tasks in {**own, **feta}.items()
    }
    for few in FEW_SOURCES:
        yield {name: tasks[:few] for name, tasks in alike.items()}
    if any(own.values()):
        yield {name: alike[name][: FEW_SOURCES[-1]] for name in feta}


class InputLengths(NamedTuple):
    """Numbers of tokens per input in a study, from which ``max_length`` is set.

    Attributes:
        needed: tokens that are needed to read 95 % of the inputs whole.
        readable: tokens that all models can read.
        chosen: ``max_length``, unless the time budget is too short.
        least: smallest ``max_length`` if the time budget is too short.
    """

    needed: int
    readable: int
    chosen: int
    least: int


def choose_input_lengths(
    lengths: DialogueLengths, readable: int, *, has_prompts: bool
) -> InputLengths:
    """Choose the maximum sequence length of a study from the lengths of its target's inputs.

    It is the smallest multiple of ``LENGTH_STEP`` that truncates at most 5 % of the inputs, within
    the limits of this module and of the models. All models read the same length.

    Args:
        lengths: lengths of the target's inputs, with special tokens.
        readable: number of tokens that all models can read.
        has_prompts: whether a model reads a prompt (decoders and encoder-decoders).
    """
    needed, least = lengths.compute_percentile(READ_PERCENT), MIN_LENGTH
    if has_prompts:
        needed, least = math.ceil(TEXT_TO_TEXT_TOKENS * needed) + PROMPT_TOKENS, MIN_PROMPT_LENGTH
    rounded = LENGTH_STEP * math.ceil(needed / LENGTH_STEP)
    chosen = min(max(rounded, least), MAX_LENGTH, readable)
    return InputLengths(needed, readable, chosen, least)
