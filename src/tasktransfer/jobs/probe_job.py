"""Inputs of a joint fit: instances of all its tasks, and features of each distinct context."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasktransfer.core.nodes import Fit, Stage
from tasktransfer.core.specs import ModelSpec
from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.encoding.word_tokenizer import truncate_to_last_words
from tasktransfer.errors import ConfigError, DataError
from tasktransfer.fits import JointLearner
from tasktransfer.fits.probes import ProbeInputs, ProbeResults
from tasktransfer.jobs import inputs
from tasktransfer.jobs.layer_job import read_layer
from tasktransfer.jobs.needs import list_released_models
from tasktransfer.results.node_folders import LAYER
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import SPLITS, Instance

Instances = Sequence[Instance]


def fit_tasks(
    study: Study, node: Fit, learner: JointLearner, folder: Path, notes: list[str]
) -> ProbeResults:
    """Fit the classifiers for all tasks of a node.

    Raises:
        DataError: training rows come from dialogues that the model was selected or tested on, or
            instances are not suitable for the learner.
        ModelError: a snapshot is missing, damaged, or has another architecture.
        RecordError: a snapshot differs from the one that its stage has recorded.
    """
    cache = inputs.get_cache(study, node.data)
    limit = node.settings.get("limit_train")
    read: dict[str, dict[str, Instances]] = {}
    for task in node.tasks:
        train = select_sample(read_instances(cache, task, "train"), limit)
        read[task] = {"train": train, "test": read_instances(cache, task, "test")}
    if node.on is not None and node.on.stage is not None:
        check_held_out_dialogues(
            read, list_held_out_dialogues(study, node.on.stage, node.data.name), str(cache)
        )
    rows = [row for splits in read.values() for instances in splits.values() for row in instances]
    texts = list(dict.fromkeys(row.context for row in rows))
    position = {text: number for number, text in enumerate(texts)}
    trained = {row.context for splits in read.values() for row in splits["train"]}
    matrix = (
        _compute_representations(study, node, texts)
        if learner.features
        else count_words(
            _truncate_to_encoder_inputs(study, node, texts), [row in trained for row in texts]
        )
    )

    def features(instances: Instances) -> Any:
        return matrix[[position[instance.context] for instance in instances]]

    given = ProbeInputs(read, features, node.settings, node.seed, folder, notes.append)
    return learner.fit(given)


def select_sample(instances: Instances, limit: int | None) -> Instances:
    """Select a random sample of instances, which is equal for all seeds.

    Return all instances if the limit is None or is not exceeded.
    """
    if limit is None or limit >= len(instances):
        return instances
    kept = np.sort(np.random.default_rng(0).permutation(len(instances))[:limit])
    return [instances[index] for index in kept]


def list_held_out_dialogues(study: Study, stage: Stage, dataset: str) -> frozenset[str]:
    """Return the dialogues of a dataset that were used to select or test a stage.

    The set is empty if the stage was trained on another dataset.
    """
    if stage.dataset != dataset:
        return frozenset()
    cache = inputs.get_cache(study, stage.data)
    tasks = read_manifest(cache).tasks
    return frozenset(
        one.dialogue_id
        for task in stage.tasks
        for split in ("dev", "test")
        if tasks[task][split].samples
        for one in read_instances(cache, task, split)
    )


def check_held_out_dialogues(
    read: dict[str, dict[str, Instances]], held: frozenset[str], where: str
) -> None:
    """Raise DataError if probes would be trained on held-out dialogues.

    These are dialogues on which the model was selected or tested, and the dialogues in the probe's
    own test split.
    """
    for task, splits in read.items():
        tested = {split.dialogue_id for split in splits["test"]}
        for split in splits["train"]:
            if split.dialogue_id in held or split.dialogue_id in tested:
                raise DataError(
                    f"{where}: In the task {task}, the dialogue {split.dialogue_id} (instance "
                    f"{split.id}) is both in the training split of the probe and in a held-out "
                    f"split. Use the same division of the dialogues into {', '.join(SPLITS)} for "
                    "the model and for the probe."
                )


def _compute_representations(study: Study, node: Fit, texts: list[str]) -> Any:
    from tasktransfer.core.architecture import check_architecture, is_recipe  # noqa: PLC0415
    from tasktransfer.evaluation.features import compute_features  # noqa: PLC0415  # imports torch

    pooling, revision = node.settings.get("representation", "mean"), None
    if node.on is not None and node.on.stage is not None:
        stage = node.on.stage
        checkpoint = Path(inputs.get_checkpoint(study, node.on))
        if is_recipe(stage.model.weights):
            check_architecture(checkpoint, stage.model.weights)
        tokenizer = Path(study.get_encoded_folder(stage.data, stage.model.name), "tokenizer")
        model = stage.model
    else:
        model = _get_released_model(study, node)
        if LAYER in node.settings:
            return read_layer(study, node, model, texts)
        checkpoint = tokenizer = Path(study.get_checkpoint_source(model.name))
        revision = study.get_hub_revision(model.name)
    hardware = inputs.get_hardware(study)
    return compute_features(checkpoint, tokenizer, model, texts, pooling, hardware, revision)


def _get_released_model(study: Study, node: Fit) -> ModelSpec:
    """Return the first released model that a fit reads. Raises ConfigError without any."""
    models = list_released_models(study, node)
    if not models:
        raise ConfigError(
            f"{node.label}: The learner reads representations, but the fit specifies no model for "
            "them. Set the key `on` to a stage, or the key `model` to a model."
        )
    return models[0]


def _truncate_to_encoder_inputs(study: Study, node: Fit, texts: list[str]) -> list[str]:
    """Truncate each text to the part that encoders read, for a comparison with word counts."""
    reads = node.settings["reads"]
    if "max_length" in reads:
        return [truncate_to_last_words(text, reads["max_length"]) for text in texts]
    from tasktransfer.encoding.tokenizer import load_tokenizer, truncate_texts_left  # noqa: PLC0415

    model = _get_released_model(study, node)
    folder, revision = study.get_checkpoint_source(model.name), study.get_hub_revision(model.name)
    tokenizer = load_tokenizer(folder, revision, model.family)
    return truncate_texts_left(tokenizer, texts, model.max_length)


def count_words(texts: list[str], trained: list[bool]) -> Any:
    """Return sparse counts of words that occur in three or more training contexts."""
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415  # slow to import

    counter = CountVectorizer(min_df=min(3, sum(trained)), token_pattern=r"(?u)\b\w+\b")
    counter.fit([text for text, learnt in zip(texts, trained, strict=True) if learnt])
    return counter.transform(texts).astype(np.float64).tocsr()
