"""The job of a reference: predictions of a simple predictor for the test splits of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tasktransfer import metrics
from tasktransfer.core.identity import SHORT, compute_digest
from tasktransfer.core.nodes import Fit
from tasktransfer.core.references import (
    CONTRASTIVE,
    LIMIT_TRAIN,
    MODEL,
    SCORING,
    SPLIT,
    TUNING,
)
from tasktransfer.data.cache import read_instances
from tasktransfer.data.samples import select_instances
from tasktransfer.datasets import get_task
from tasktransfer.evaluation.measures import compute_measures
from tasktransfer.evaluation.reference import Embed, Reference, get_predictor
from tasktransfer.files import replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.jobs import inputs
from tasktransfer.jobs.needs import get_fit_model
from tasktransfer.results.rows import Row
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance, Task

if TYPE_CHECKING:  # imports torch
    from tasktransfer.evaluation.contrastive import ContrastiveEncoder
    from tasktransfer.jobs.recorded_job import JobOutput


def predict_tasks(study: Study, node: Fit, output: JobOutput) -> None:
    """Predict and score a split (by default test) of each task of a node.

    Raises:
        ConfigError: the study does not have the node's model.
        DataError: instances are missing, or scikit-learn is not installed.
        ModelError: the model cannot be loaded.
        TrainingError: the loss of a fine-tuned encoder becomes NaN.
    """
    predict = create_predictor(study, node)
    cache = inputs.get_cache(study, node.data)
    predicted = node.settings.get(SPLIT, "test")
    limits = {LIMIT_TRAIN: "train", f"limit_{predicted}": predicted}
    scoring = node.settings.get(SCORING, "default")
    for name in show_progress(node.tasks, f"predicting with {node.learner}"):
        task = get_task(node.data.name, name)
        train, test = (
            select_instances(read_instances(cache, name, split), node.settings.get(limit))
            for limit, split in limits.items()
        )
        predictions = predict(task, train, test, node.seed)
        golds = [instance.target for instance in test]
        names = [*(metric.key for metric in task.metrics), "score"]
        output.add_result(
            name,
            compute_measures(task, names, predictions, golds, [], scoring),
            len(test),
            predicted,
        )
        output.sizes[name]["train"] = len(train)
        output.rows += _build_prediction_rows(task, test, predictions, predicted)


def create_predictor(
    study: Study, node: Fit, wrap: Callable[[Embed], Embed] = lambda embed: embed
) -> Reference:
    """Return the function that predicts as a reference does.

    Args:
        wrap: applied to the function that embeds texts with a frozen model.
    """
    if node.learner == CONTRASTIVE:
        from tasktransfer.evaluation.embedding_references import predict_by_fine_tuned_regression  # noqa: PLC0415

        def tune(task: Task, train: Sequence[Instance], seed: int) -> Embed:
            return tune_encoder(study, node, task, train, seed).embed_texts

        return partial(predict_by_fine_tuned_regression, tune)
    embed = create_embedder(study, node)
    return get_predictor(node.learner, None if embed is None else wrap(embed))


def tune_encoder(
    study: Study, node: Fit, task: Task, train: Sequence[Instance], seed: int
) -> ContrastiveEncoder:
    """Fine-tune the node's model contrastively on a task's training instances."""
    from tasktransfer.evaluation.contrastive import (  # noqa: PLC0415  # imports torch
        ContrastiveEncoder,
    )

    model = get_fit_model(study, node)
    base, revision = study.get_checkpoint_source(model.name), study.get_hub_revision(model.name)
    encoder = ContrastiveEncoder(base, revision, model.max_length, inputs.get_hardware(study))
    encoder.fine_tune(task, train, node.settings[TUNING], seed)
    return encoder


def create_embedder(study: Study, node: Fit) -> Embed | None:
    """Return a function that embeds texts with the node's model, or None without a model.

    Embeddings are cached in the results folder, because several references read the same texts.
    """
    if MODEL not in node.settings:
        return None
    from tasktransfer.evaluation.features import compute_features  # noqa: PLC0415  # imports torch

    model = get_fit_model(study, node)
    spec, checkpoint = model.as_released, Path(study.get_checkpoint_source(model.name))
    hardware, revision = inputs.get_hardware(study), study.get_hub_revision(model.name)
    cache = Path(study.config.results, "data", "embedded")

    def embed(texts: Sequence[str]) -> npt.NDArray[np.float64]:
        key = compute_digest([spec.identity, [*texts]])
        file = cache / f"{key[:SHORT]}.npy"
        if file.exists():
            known: npt.NDArray[np.float64] = np.load(file, allow_pickle=False)
            return known
        vectors = compute_features(checkpoint, checkpoint, spec, texts, "mean", hardware, revision)
        cache.mkdir(parents=True, exist_ok=True)
        with replace_file(file) as part, part.open("wb") as stream:
            np.save(stream, vectors, allow_pickle=False)
        return vectors

    return embed


def _build_prediction_rows(
    task: Task, test: Sequence[Instance], predictions: Sequence[tuple[str, ...]], split: str
) -> list[Row]:
    golds = [instance.target for instance in test]
    scores = metrics.score_instances(task, predictions, golds)
    return [
        Row(index, task.name, i.id, answer, i.target, score, i.dialogue_id, split)
        for index, (i, answer, score) in enumerate(zip(test, predictions, scores, strict=True))
    ]
