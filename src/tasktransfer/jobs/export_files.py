"""Files of an exported model: weights, tokenizer and the facts that predictions need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tasktransfer.core.nodes import Fit, Stage, Start
from tasktransfer.core.references import (
    CONTRASTIVE,
    NEAREST,
    OF_A_MODEL,
    REGULARISATION,
    STRENGTH,
    SVM,
)
from tasktransfer.data.cache import read_instances
from tasktransfer.data.samples import select_instances
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.declared.inputs import get_scope
from tasktransfer.errors import ConfigError
from tasktransfer.jobs import inputs
from tasktransfer.jobs.export_candidates import ExportCandidate
from tasktransfer.jobs.needs import get_fit_model
from tasktransfer.jobs.recorded_job import DesignParts
from tasktransfer.jobs.reference_job import tune_encoder
from tasktransfer.jobs.restore import find_encoded_folder, restore_checkpoint
from tasktransfer.results.exported import VERSION, ExportedModel, Inputs, Reader
from tasktransfer.tasks.card import Instance

TOGETHER = 32
"""Number of inputs that are computed together."""


def write_model(
    candidate: ExportCandidate, design: DesignParts, folder: Path, threads: int
) -> None:
    """Write a candidate's weights, tokenizer and ``tasktransfer.json``, without its scores.

    Raises:
        ConfigError: the model reads the toolkit's inputs.
        DataError: instances or token ids are missing.
        ModelError: the model cannot be loaded, or no layout can represent it.
    """
    node = candidate.node
    write = _write_stage if isinstance(node, Stage) else _write_fit
    write(candidate, design, folder, threads).write(folder)


def _build_facts(
    candidate: ExportCandidate, reader: Reader, max_length: int | None, **more: Any
) -> ExportedModel:
    """Return the facts that are needed to predict with a candidate."""
    card, declaration = candidate.card, DATASETS[candidate.dataset].declaration
    if declaration is None:
        scope: Any = "turn" if card.kind == "utterance_classification" else "dialogue"
        dialogue, fields = None, {}
    else:
        section = declaration.tasks[candidate.task]
        scope = get_scope(section, declaration.dialogue)
        dialogue = declaration.dialogue.model_dump(mode="json", exclude_defaults=True)
        question = {"question": section.question} if section.question else {}
        fields = {**question, **section.fields}
    of = Inputs(scope, card.keeps, max_length, card.query, card.first, dialogue=dialogue)
    facts: dict[str, Any] = {"layout": "tasktransfer", "labels": card.labels, **more}
    return ExportedModel(
        exported=VERSION,
        reader=reader,
        method=candidate.method,
        dataset=candidate.dataset,
        task=candidate.task,
        kind=card.kind,  # type: ignore[arg-type]
        inputs=replace(of, fields=fields),
        **facts,
    )


def _write_stage(
    candidate: ExportCandidate, design: DesignParts, folder: Path, threads: int
) -> ExportedModel:
    """Write a fine-tuned encoder from its checkpoint, which is trained again if it is missing."""
    from tasktransfer.models.export import (  # noqa: PLC0415  # imports torch
        load_trained_encoder,
        write_encoder,
    )
    from tasktransfer.models.exported import write_tokenizer  # noqa: PLC0415

    stage, study, card = candidate.node, candidate.study, candidate.card
    assert isinstance(stage, Stage)
    if stage.training.fidelity.inputs != "default" and card.toolkit is not None:
        raise ConfigError(
            "training.fidelity.inputs: A model trained with `inputs: tlidb` cannot be exported. "
            "Train with `inputs: default`."
        )
    checkpoint = restore_checkpoint(study, Start(stage), design, threads)
    encoded, name = find_encoded_folder(study, stage), stage.model.name
    base, revision = study.get_checkpoint_source(name), study.get_hub_revision(name)
    encoder = load_trained_encoder(stage, card, checkpoint, encoded, base, revision)
    longest = stage.model.max_length
    layout, pooling = write_encoder(encoder, candidate.task, card.labels, longest, folder)
    side = "left" if card.keeps == "end" else "right"
    write_tokenizer(str(encoded / "tokenizer"), None, longest, side, folder)
    return _build_facts(candidate, "encoder", longest, layout=layout, pooling=pooling)


def _write_fit(
    candidate: ExportCandidate, design: DesignParts, folder: Path, threads: int
) -> ExportedModel:
    """Fit a reference again as in its job, and write it."""
    return fit_reference(candidate, folder, ("train",))


def fit_reference(candidate: ExportCandidate, folder: Path, splits: Sequence[str]) -> ExportedModel:
    """Fit a reference on given splits, and write it.

    Raises:
        DataError: instances are missing.
        ModelError: the model cannot be loaded.
    """
    from tasktransfer.evaluation import portable  # noqa: PLC0415  # imports torch
    from tasktransfer.evaluation.linear_models import (  # noqa: PLC0415
        fit_logistic_regression,
        fit_svm,
    )
    from tasktransfer.models.export import build_label_config  # noqa: PLC0415
    from tasktransfer.models.exported import (  # noqa: PLC0415
        Embedder,
        write_embedder,
        write_regression,
        write_tokenizer,
    )

    fit, study, card = candidate.node, candidate.study, candidate.card
    assert isinstance(fit, Fit)
    train = [
        instance for split in splits for instance in read_candidate_instances(candidate, split)
    ]
    if fit.learner not in OF_A_MODEL:
        words = portable.WordWeights.fit(card, train)
        features = words.compute_features(card, train)
        classifier = fit_svm if fit.learner == SVM else fit_logistic_regression
        found = portable.fit_regression(card, features, train, fit.seed, fit=classifier)
        arrays: dict[str, Any] = {**words.write(folder), "weight": found.weight, "bias": found.bias}
        portable.write_arrays(folder, arrays)
        return _build_facts(candidate, "words", None, labels=found.labels)
    spec = get_fit_model(study, fit)
    base, revision, longest = (
        study.get_checkpoint_source(spec.name),
        study.get_hub_revision(spec.name),
        spec.max_length,
    )
    known = {instance.target[0] for instance in train}
    labels = tuple(label for label in card.labels if label in known)
    if fit.learner == CONTRASTIVE:
        tune_encoder(study, fit, card, train, fit.seed).save(folder, build_label_config(labels))
    else:
        write_embedder(base, revision, labels, folder)
    write_tokenizer(base, revision, longest, "left", folder)
    embedder, parts = Embedder(folder, longest), portable.list_embedded_parts(card, train)
    features = portable.compute_embeddings(
        lambda texts: embedder.embed_texts(texts, TOGETHER), card, parts, train
    )
    layout = "tasktransfer"
    if fit.learner == NEAREST:
        answers = np.array([labels.index(instance.target[0]) for instance in train])
        portable.write_arrays(folder, {"embeddings": features, "answers": answers})
    else:
        strength = float(fit.settings.get(STRENGTH, REGULARISATION))
        found = portable.fit_regression(card, features, train, fit.seed, strength)
        if parts == ("before",):
            write_regression(folder, found.weight, found.bias, longest)
            layout = "sentence_transformers"
        else:
            portable.write_arrays(folder, {"weight": found.weight, "bias": found.bias})
    reader: Reader = "neighbours" if fit.learner == NEAREST else "embeddings"
    facts: dict[str, Any] = {"layout": layout, "labels": labels, "pooling": "mean"}
    return _build_facts(candidate, reader, longest, parts=parts, **facts)


def read_candidate_instances(candidate: ExportCandidate, split: str) -> list[Instance]:
    """Read the instances of a split as the candidate's node has read them."""
    node = candidate.node
    if isinstance(node, Stage):
        training = node.training
        limits = {
            "train": training.limit_train,
            "dev": training.limit_dev,
            "test": training.limit_test,
        }
    else:
        limits = {key: node.settings.get(f"limit_{key}") for key in ("train", "test")}
    cache = inputs.get_cache(candidate.study, node.data)
    return list(select_instances(read_instances(cache, candidate.task, split), limits.get(split)))
