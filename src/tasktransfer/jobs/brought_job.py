"""Evaluation of a user's own system from the file of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tasktransfer.config.places import expand_path
from tasktransfer.core.nodes import Evaluation
from tasktransfer.data.brought import read_ratings, read_replies
from tasktransfer.data.samples import select_instances
from tasktransfer.datasets.file_digests import compute_files_digest
from tasktransfer.errors import DataError
from tasktransfer.evaluation.measures import compute_measures
from tasktransfer.jobs.recorded_job import JobOutput
from tasktransfer.metrics import bleu
from tasktransfer.metrics.answers import encode_answers
from tasktransfer.results.revisions import ANSWERS
from tasktransfer.results.rows import Row
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.tasks.compose import get_gold_answers


def evaluate_answers(
    study: Study, node: Evaluation, task: Task, instances: Sequence[Instance], output: JobOutput
) -> None:
    """Score the answers in the file of a user's own system, and store them as rows.

    Raises:
        DataError: the file is missing, has changed since the study was opened, or does not answer
            exactly the items of the evaluation.
    """
    assert node.brought is not None
    name = node.brought["name"]
    file = Path(expand_path(study.config.brought_files[name]))
    if compute_files_digest({ANSWERS: file}) != node.brought["revision"]:
        raise DataError(
            f"{file}: The file changed after the study had started. Run the study again."
        )
    kept = select_instances(instances, node.settings.get("limit"))
    if task.kind == "reply":
        add_replies(node, kept, read_replies(file, kept), output)
    else:
        _add_ratings(node, task, kept, read_ratings(file, kept), output)


def _add_ratings(
    node: Evaluation,
    task: Task,
    instances: Sequence[Instance],
    values: Sequence[float],
    output: JobOutput,
) -> None:
    """Add the ratings as rows without scores, because their scale may be arbitrary."""
    golds = [instance.target for instance in instances]
    texts = [(f"{value:.12g}",) for value in values]
    measures = compute_measures(task, node.measures, texts, golds, values)
    output.add_result(node.task, measures, len(instances), node.split)
    output.rows = [
        Row(
            *(index, task.name, instance.id, text, instance.target, None, instance.dialogue_id),
            *(node.split, value, float(instance.target[0])),
        )
        for index, (instance, text, value) in enumerate(zip(instances, texts, values, strict=True))
    ]


def add_replies(
    node: Evaluation,
    instances: Sequence[Instance],
    replies: Sequence[str],
    output: JobOutput,
) -> None:
    """Add the replies as rows with their BLEU scores, and the BLEU of all replies together."""
    golds = [get_gold_answers(instance) for instance in instances]
    answers = [(reply,) for reply in replies]
    tally = bleu.tally_ngrams(encode_answers(answers), encode_answers([gold[:1] for gold in golds]))
    measures = {"bleu": 100 * float(bleu.compute_mean_bleu(tally.sum(axis=0)))}
    output.add_result(node.task, measures, len(instances), node.split)
    scores = 100 * np.asarray(bleu.compute_mean_bleu(tally), np.float64)
    output.rows = [
        Row(
            *(index, node.task, instance.id, answer, gold, float(score), instance.dialogue_id),
            *(node.split, None, None),
        )
        for index, (instance, answer, gold, score) in enumerate(
            zip(instances, answers, golds, scores, strict=True)
        )
    ]
