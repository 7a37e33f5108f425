"""Sizes of new studies: what ``tasktransfer init`` reduces, and in which order, to fit the hours.

The number of updates is never reduced. It comes from the recipe of the model's size, because a
model that has not learned its task shows nothing about transfer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from tasktransfer.core.references import CONTRASTIVE
from tasktransfer.datasets import PACKAGE_DATASETS
from tasktransfer.datasets.dataset import Dataset
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
"""Percentage of the dialogues that ``max_length`` does not truncate."""
SPECIAL_TOKENS = 2
"""Tokens that an encoder reads in addition to a dialogue: those before and after it."""
SHORTER_LENGTHS = (192, 128, 96, 64)
"""Values of ``max_length`` to try if the time budget is too short for the chosen value."""
FEW_SOURCES = 3
"""Number of sources per dataset if time is short."""


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

Sources are left out before a task has fewer than 5,000 training instances. The recipes train for
300 updates of 16 instances, which read about 5,000 instances. A lower limit therefore saves little
time: it repeats the same instances instead of reading others.
"""
SMALLER_SIZES = (Size(3, 2000, 200, 600), Size(3, 1000, 200, 600))
"""Sizes to try if the time budget is too short for any of ``SIZES`` without sources."""


class StudyProposal(NamedTuple):
    """A study that may fit the time budget: its sources by dataset, size and references."""

    sources: Mapping[str, list[str]]
    size: Size
    references: list[str]


def propose_studies(
    kind: str, references: list[str], lengths: InputLengths
) -> Iterator[StudyProposal]:
    """Yield studies in the order in which they are tried, from the largest to the smallest.

    Sources are left out before contrastive fine-tuning. Both are left out before the target's own
    instances are limited any further, and its inputs are truncated last.

    Args:
        kind: kind of the target task.
        references: references of the largest study.
        lengths: chosen maximum sequence length, and the smallest one to try.
    """
    cheap = [name for name in references if name != CONTRASTIVE]
    sizes = [replace(size, max_length=lengths.chosen) for size in SIZES]
    yield from map(StudyProposal._make, product(_propose_sources(kind), sizes, [references]))
    if cheap != references:
        yield from map(StudyProposal._make, product([{}], sizes, [cheap]))
    for size in SMALLER_SIZES:
        yield StudyProposal({}, replace(size, max_length=lengths.chosen), cheap)
    shorter = (n for n in SHORTER_LENGTHS if lengths.least <= n < lengths.chosen)
    for length, size in product(shorter, (SIZES[-1], *SMALLER_SIZES)):
        yield StudyProposal({}, replace(size, max_length=length), cheap)


def _propose_sources(kind: str) -> Iterator[dict[str, list[str]]]:
    """Yield selections of FETA tasks by dataset, each smaller than the one before.

    The first has all classification tasks. The next two have ``FEW_SOURCES`` tasks and one task per
    dataset, which are of the target's kind if the dataset has this kind. The last is empty, which
    leaves only the baseline and the references.
    """
    classified = ("utterance_classification", "dialogue_classification", "multi_label")

    def tasks(dataset: Dataset, kinds: tuple[str, ...]) -> list[str]:
        return [card.name for card in dataset.cards if card.kind in kinds]

    yield {dataset.name: tasks(dataset, classified) for dataset in PACKAGE_DATASETS}
    alike = {dataset.name: tasks(dataset, (kind,)) for dataset in PACKAGE_DATASETS}
    whole = {
        name: some or tasks(d, classified)
        for d, (name, some) in zip(PACKAGE_DATASETS, alike.items(), strict=True)
    }
    yield {name: some[:FEW_SOURCES] for name, some in whole.items()}
    yield {name: some[:1] for name, some in whole.items()}
    yield {}


class InputLengths(NamedTuple):
    """Numbers of tokens per input in a study, from which ``max_length`` is set.

    Attributes:
        needed: tokens that are needed to read 95 % of the dialogues whole.
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
    """Choose the maximum sequence length of a study from the lengths of its dialogues.

    It is the smallest multiple of ``LENGTH_STEP`` that truncates at most 5 % of the dialogues,
    within the limits of this module and of the models. All models read the same length.

    Args:
        lengths: lengths of the target's dialogues. Inputs that end with a labelled turn are at most
            as long.
        readable: number of tokens that all models can read.
        has_prompts: whether a model reads a prompt (decoders and encoder-decoders).
    """
    needed, least = lengths.compute_percentile(READ_PERCENT) + SPECIAL_TOKENS, MIN_LENGTH
    if has_prompts:
        needed, least = math.ceil(TEXT_TO_TEXT_TOKENS * needed) + PROMPT_TOKENS, MIN_PROMPT_LENGTH
    rounded = LENGTH_STEP * math.ceil(needed / LENGTH_STEP)
    chosen = min(max(rounded, least), MAX_LENGTH, readable)
    return InputLengths(needed, readable, chosen, least)
