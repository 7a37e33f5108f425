"""Evaluation of a prompted model's replies: BLEU, P@1 by likelihood, and perplexity per word."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tasktransfer.core.nodes import Evaluation
from tasktransfer.errors import ConfigError
from tasktransfer.jobs.brought_job import add_replies
from tasktransfer.jobs.prompt_job import (
    create_task_prompter,
    describe_unreadable_answers,
    load_prompted_model,
    read_evaluated_instances,
)
from tasktransfer.jobs.recorded_job import JobOutput
from tasktransfer.metrics.retrieval import compute_diagonal_precision
from tasktransfer.results.rows import Row
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance
from tasktransfer.tasks.compose import get_gold_answers

if TYPE_CHECKING:  # imports torch
    from tasktransfer.evaluation.prompting.prompter import TaskPrompter
    from tasktransfer.training.setup import Setup


def evaluate_prompted_replies(
    study: Study, node: Evaluation, threads: int, output: JobOutput
) -> None:
    """Evaluate a prompted model's replies, and store the results as rows.

    Raises:
        ConfigError: the first measure is not a measure of prompted replies.
        DataError, ModelError: an input is missing or damaged.
        EndpointError: the endpoint does not respond, or most of its answers are unreadable.
    """
    measure = node.measures[0]
    if measure not in _EVALUATIONS:
        raise ConfigError(
            f"{node.label}: The measure {measure!r} is not available for a prompted model. "
            f"Choose from {', '.join(_EVALUATIONS)}."
        )
    instances = read_evaluated_instances(study, node)
    prompter = create_task_prompter(study, node, load_prompted_model(study, node, threads))
    counts = _EVALUATIONS[measure](study, node, prompter, instances, output)
    output.report = {"prompting": {**counts, **prompter.model.get_counts()}}
    output.notes += prompter.model.list_notes(chooses=measure != "bleu")
    setup: Setup | None = getattr(prompter.model, "setup", None)
    if setup is not None:
        output.set_host(setup, threads)


def _evaluate_bleu(
    study: Study,
    node: Evaluation,
    prompter: TaskPrompter,
    instances: list[Instance],
    output: JobOutput,
) -> Mapping[str, float]:
    """Add generated replies and their BLEU, where unreadable answers count as empty replies."""
    given = prompter.prompt_model(instances)
    add_replies(node, instances, [texts[0] for texts in given.predictions], output)
    output.notes += describe_unreadable_answers(given, node, study)
    return {"questions": given.questions, "unreadable": given.unreadable}


def _evaluate_p_at_1(
    study: Study,
    node: Evaluation,
    prompter: TaskPrompter,
    instances: list[Instance],
    output: JobOutput,
) -> Mapping[str, float]:
    """Add P@1, ranking the replies of a block by mean log-probability per token.

    ``p_at_1_permuted`` has a random reply of the block as the gold reply, so it is near chance.
    """
    from tasktransfer.evaluation.prompting.replies import score_blocks  # noqa: PLC0415  # imports torch

    chance = np.random.default_rng(0)
    right: list[float] = []
    permuted: list[float] = []
    for scores in score_blocks(prompter, instances, node.settings["block"]):
        right += compute_diagonal_precision(scores).tolist()
        shuffled = scores[:, chance.permutation(len(scores))]
        permuted += compute_diagonal_precision(shuffled).tolist()
    measures = {
        "p_at_1": 100 * float(np.mean(right)),
        "p_at_1_permuted": 100 * float(np.mean(permuted)),
    }
    output.add_result(
        node.task, {name: measures[name] for name in node.measures}, len(instances), node.split
    )
    golds = [get_gold_answers(instance) for instance in instances]
    output.rows = [
        Row(
            *(index, node.task, instance.id, gold[:1], gold, 100 * score, instance.dialogue_id),
            *(node.split, None, None),
        )
        for index, (instance, gold, score) in enumerate(zip(instances, golds, right, strict=True))
    ]
    return {"questions": len(instances), "unreadable": 0}


def _evaluate_perplexity(
    study: Study,
    node: Evaluation,
    prompter: TaskPrompter,
    instances: list[Instance],
    output: JobOutput,
) -> Mapping[str, float]:
    """Add the per-word perplexity of gold replies, without their end-of-reply tokens."""
    from tasktransfer.evaluation.prompting.replies import score_gold_replies  # noqa: PLC0415  # imports torch

    losses, words = score_gold_replies(prompter, instances)
    measures = {"word_perplexity": math.exp(losses.sum() / words.sum())}
    output.add_result(node.task, measures, len(instances), node.split)
    output.rows = [
        Row(
            *(index, node.task, instance.id, ("",), get_gold_answers(instance), None),
            *(instance.dialogue_id, node.split, loss, count),
        )
        for index, (instance, loss, count) in enumerate(
            zip(instances, losses.tolist(), words.tolist(), strict=True)
        )
    ]
    return {"questions": len(instances), "unreadable": 0}


_Evaluate = Callable[
    [Study, Evaluation, "TaskPrompter", list[Instance], JobOutput], Mapping[str, float]
]
_EVALUATIONS: Mapping[str, _Evaluate] = {
    "bleu": _evaluate_bleu,
    "p_at_1": _evaluate_p_at_1,
    "word_perplexity": _evaluate_perplexity,
}
"""First measure → function that adds the results and returns the counts of prompts."""
