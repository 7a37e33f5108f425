"""P@1 of a ranking by shared words, without a model: the baseline for retrieval models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tasktransfer.core.nodes import Evaluation
from tasktransfer.evaluation.linear_models import build_vectorizer
from tasktransfer.jobs.recorded_job import JobOutput
from tasktransfer.metrics.retrieval import compute_block_measures, select_block_rows
from tasktransfer.results.rows import Row
from tasktransfer.tasks.card import Instance
from tasktransfer.tasks.compose import get_gold_answers


def evaluate_word_ranking(
    node: Evaluation, train: Sequence[Instance], test: Sequence[Instance], output: JobOutput
) -> None:
    """Rank the replies of each block by the cosine of TF-IDF vectors, and keep P@1 as rows.

    The words and their weights come from the contexts and replies of the training split.

    Raises:
        DataError: there are fewer rows than a block has.
    """
    settings = node.settings
    kept = select_block_rows(
        len(test),
        settings["block"],
        most=settings.get("blocks"),
        drop_last=bool(settings.get("drop_last_block", False)),
    )
    instances = [test[index] for index in kept]
    contexts, replies = _weight_words(train, instances)

    def compute_scores(rows: Any, columns: Any) -> Any:
        return (contexts[rows] @ replies[columns].T).toarray()

    order = np.arange(len(instances))
    measures, right = compute_block_measures(
        compute_scores, order, settings["block"], settings["shuffles"]
    )
    output.add_result(
        node.task, {name: measures[name] for name in node.measures}, len(instances), node.split
    )
    golds = [get_gold_answers(instance) for instance in instances]
    output.rows = [
        Row(
            *(index, node.task, instance.id, gold[:1], gold, 100 * score, instance.dialogue_id),
            *(node.split, None, None),
        )
        for index, (instance, gold, score) in enumerate(
            zip(instances, golds, right.tolist(), strict=True)
        )
    ]


def _weight_words(train: Sequence[Instance], test: Sequence[Instance]) -> tuple[Any, Any]:
    """Return the TF-IDF vectors of contexts and replies, each (rows, words) with length 1."""
    vectorizer = build_vectorizer(sublinear=False)
    vectorizer.fit([text for row in train for text in (row.context, row.target[0])])
    contexts = vectorizer.transform([row.context for row in test])
    replies = vectorizer.transform([get_gold_answers(row)[0] for row in test])
    return contexts.tocsr(), replies.tocsr()
