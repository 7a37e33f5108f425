"""Lengths of the inputs of a declared dataset's tasks, in tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue
from tasktransfer.datasets.declared.lengths import DialogueLengths
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.datasets.declared.source import open_source

SPECIAL_TOKENS = 2
"""Tokens that an encoder reads in addition to a dialogue: those before and after it."""

TextsCounter = Callable[[Sequence[str]], list[int]]
"""A function from texts to the number of tokens in each, without special tokens."""


def measure_inputs(
    declared: Mapping[str, Any], name: str, count_tokens: TextsCounter
) -> dict[str, DialogueLengths]:
    """Measure the inputs of each task of a declared dataset, with their special tokens.

    The input of a label of a turn is the dialogue up to this turn.

    Args:
        declared: declaration of the dataset.
        name: name of the dataset.

    Returns:
        Task → lengths of its inputs in all splits.

    Raises:
        DataError: a file, a row or an answer cannot be read.
    """
    declaration = Declaration.model_validate(declared)
    source = open_source(declaration, f"datasets.{name}")
    readers = [TaskReader(task, section) for task, section in declaration.tasks.items()]
    lengths = {reader.name: DialogueLengths() for reader in readers}
    for split in source.splits:
        for dialogue in source.read_dialogues(split):
            tokens = count_tokens_by_turn(dialogue, count_tokens)
            for reader in readers:
                of_task = lengths[reader.name]
                for instance in reader.read_instances(dialogue):
                    end = len(instance.context)
                    of_task.add(
                        tokens[end] + SPECIAL_TOKENS,
                        dialogue.location.place,
                        is_whole=end == len(dialogue.context),
                    )
    return lengths


def count_tokens_by_turn(dialogue: DeclaredDialogue, count_tokens: TextsCounter) -> dict[int, int]:
    """Map the end offset of each turn to the number of tokens up to it."""
    ends = [turn.end for turn in dialogue.turns]
    starts = [0, *ends[:-1]]
    counts = count_tokens(
        [dialogue.context[start:end] for start, end in zip(starts, ends, strict=True)]
    )
    total, tokens = 0, {0: 0}
    for end, count in zip(ends, counts, strict=True):
        total += count
        tokens[end] = total
    return tokens
