"""Likelihoods of given replies under a prompted language model.

The likelihood of a reply covers its own tokens, but not the end of the reply, because chat
templates end replies in different ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tasktransfer.evaluation.prompting.model import Likelihood
from tasktransfer.evaluation.prompting.prompter import TaskPrompter
from tasktransfer.files.progress import show_progress
from tasktransfer.metrics.bleu import split_words
from tasktransfer.tasks.asking import InstancePrompt
from tasktransfer.tasks.card import Instance
from tasktransfer.tasks.compose import strip_reply_prefix

Floats = npt.NDArray[np.float64]
GROUP_SIZE = 64
"""Number of prompts whose gold replies are scored together."""


def list_replies(prompter: TaskPrompter, instances: Sequence[Instance]) -> list[str]:
    """Return the gold replies, truncated to the card's maximum answer length."""
    most = prompter.task.prompt.max_answer_tokens
    return [
        prompter.model.truncate_text(strip_reply_prefix(instance), most, "beginning")
        for instance in instances
    ]


def score_blocks(
    prompter: TaskPrompter, instances: Sequence[Instance], size: int
) -> Iterator[Floats]:
    """Yield the scores of each block of candidates, shape (contexts, replies).

    The score of a reply is the mean log-probability of its tokens in nats.

    Args:
        instances: instances in blocks of consecutive rows; the last block may be smaller.
        size: number of rows of a block.
    """
    begins = range(0, len(instances), size)
    for begin in show_progress(begins, "scoring replies, blocks"):
        block = instances[begin : begin + size]
        replies = tuple(list_replies(prompter, block))
        scored = _score_replies(prompter, block, [replies] * len(block))
        yield np.array([[reply.mean for reply in row] for row in scored])


def score_gold_replies(
    prompter: TaskPrompter, instances: Sequence[Instance]
) -> tuple[Floats, Floats]:
    """Compute each gold reply's negative log-likelihood (nats) and number of words."""
    losses: list[float] = []
    words: list[float] = []
    begins = range(0, len(instances), GROUP_SIZE)
    for begin in show_progress(begins, f"scoring replies, groups of {GROUP_SIZE}"):
        group = instances[begin : begin + GROUP_SIZE]
        replies = list_replies(prompter, group)
        scored = _score_replies(prompter, group, [(reply,) for reply in replies])
        losses += [-row[0].total for row in scored]
        words += [float(len(split_words(reply))) for reply in replies]
    return np.array(losses), np.array(words)


def _score_replies(
    prompter: TaskPrompter, instances: Sequence[Instance], replies: Sequence[tuple[str, ...]]
) -> list[list[Likelihood]]:
    """Compute the likelihoods of each instance's replies."""
    prompts = [
        InstancePrompt(prompter.build_prompts(instance)[0].prompt, 0, choices)
        for instance, choices in zip(instances, replies, strict=True)
    ]
    scored = prompter.model.compute_likelihoods(prompts)
    return [row for row in scored if isinstance(row, list)]
