"""Export of a finished method as a folder that predicts without the study."""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasktransfer import __version__, metrics
from tasktransfer.core.methods import format_method
from tasktransfer.core.nodes import Fit, Stage, Start
from tasktransfer.core.references import (
    CONTRASTIVE,
    NEAREST,
    OF_A_MODEL,
    REGULARISATION,
    STRENGTH,
)
from tasktransfer.data.cache import read_instances
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.declared.inputs import find_scope
from tasktransfer.encoding.encoded import select_instances
from tasktransfer.errors import ConfigError
from tasktransfer.files import replace_folder
from tasktransfer.jobs import inputs
from tasktransfer.jobs.export_calibration import Split, describe_calibration
from tasktransfer.jobs.export_candidates import (
    ExportCandidate,
    describe_labels,
    describe_scores,
    find_recommended,
    group_candidates,
    list_candidates,
    list_other_models,
    read_recommendation,
    select_method,
)
from tasktransfer.jobs.export_card import write_card
from tasktransfer.jobs.export_figure import write_calibration_figure
from tasktransfer.jobs.needs import model_of
from tasktransfer.jobs.recorded_job import Brought
from tasktransfer.jobs.reference_job import tune_encoder
from tasktransfer.jobs.restore import find_encoded, restore_checkpoint
from tasktransfer.results.exported import MAKER, VERSION, Exported, Inputs, Reader, read_exported
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import read_record_rows, select_task_rows
from tasktransfer.results.study import Study
from tasktransfer.stats.calibration import crossfit_confidence, fit_temperature, suggest_threshold
from tasktransfer.tasks.card import Instance

if TYPE_CHECKING:  # imports torch
    from tasktransfer.jobs.predictor import Predictor

TOGETHER = 32


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """A model to export. Values that are None are chosen, see ``export_candidates``.

    Without a method, that is the recommended one of the study's table ``methods``, or else the one
    with the best mean score on dev.
    """

    task: str | None = None
    method: str | None = None
    model: str | None = None
    threads: int = 1


def export_model(study: Study, design: Brought, out: Path, request: ExportRequest) -> Exported:
    """Write a finished method's model into a folder, and return the content of its facts.

    Raises:
        ConfigError: the study has no such task, method or model, or it cannot be exported.
        DataError: instances or token ids are missing, or ``out`` has other files.
        ModelError: the model cannot be loaded or expressed.
        RecordError: no method is finished, or a file differs from its record.
    """
    candidates = list_candidates(study, request.task)
    recommended = _list_recommended(study, candidates, request)
    with replace_folder(out, MAKER) as fresh, tempfile.TemporaryDirectory(dir=out.parent) as temp:
        built: dict[str, Path] = {}

        def build(candidate: ExportCandidate) -> Path:
            digest = candidate.node.digest
            if digest not in built:
                built[digest] = Path(temp, str(len(built)))
                built[digest].mkdir()
                _write_model(candidate, design, built[digest], request.threads)
            return built[digest]

        def score_fit(candidate: ExportCandidate) -> float:
            dev = _predict_split(candidate, build(candidate), "dev")
            return _score(candidate, dev)

        chosen = select_method(recommended or candidates, request.method, request.model, score_fit)
        print(f"exporting {chosen.name}, {_format_seed(chosen)}", file=sys.stderr, flush=True)
        folder = build(chosen)
        rule = "user" if request.method else "recommended" if recommended else "dev"
        exported = _measure(chosen, folder, candidates, rule)
        exported.write(folder)
        write_calibration_figure(folder, exported)
        write_card(folder, chosen, exported)
        shutil.copytree(folder, fresh, dirs_exist_ok=True)
    return exported


def _list_recommended(
    study: Study, candidates: Sequence[ExportCandidate], request: ExportRequest
) -> list[ExportCandidate]:
    """Return the candidates of the recommended method; none if the user or dev chooses a method.

    A note says why the recommended method is not exported, or which models cannot be.
    """
    dataset, task = candidates[0].dataset, candidates[0].task
    if others := list_other_models(study, dataset, task):
        _print_note(f"only encoders can be exported, so {', '.join(others)} cannot be chosen")
    row = read_recommendation(study, dataset, task)
    if request.method is not None or row is None:
        return []
    found = find_recommended(candidates, row)
    if not found or request.model not in (None, "", *(each.model for each in found)):
        model = f" with {row['model']}" if isinstance(row["model"], str) else ""
        _print_note(
            f"the recommended method is {format_method(row['method'])}{model}, which "
            f"{'is not one of --model ' + str(request.model) if found else 'has no model'}; the "
            "method with the best mean score on dev is exported instead"
        )
        return []
    return found


def _print_note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr, flush=True)


def _format_seed(candidate: ExportCandidate) -> str:
    return f"seed {candidate.seed}" if candidate.is_trained else "no seed"


# --- writing --------------------------------------------------------------------------------------


def _write_model(candidate: ExportCandidate, design: Brought, folder: Path, threads: int) -> None:
    """Write weights, tokenizer and ``tasktransfer.json`` of a candidate, without its scores."""
    node = candidate.node
    write = _write_stage if isinstance(node, Stage) else _write_fit
    write(candidate, design, folder, threads).write(folder)


def _describe(
    candidate: ExportCandidate, reader: Reader, max_length: int | None, **more: Any
) -> Exported:
    """Return the facts that predictions of a candidate need."""
    card, declaration = candidate.card, DATASETS[candidate.dataset].declaration
    if declaration is None:
        scope: Any = "turn" if card.kind == "utterance_classification" else "dialogue"
        dialogue, fields = None, {}
    else:
        section = declaration.tasks[candidate.task]
        scope = find_scope(section, declaration.dialogue)
        dialogue = declaration.dialogue.model_dump(mode="json", exclude_defaults=True)
        question = {"question": section.question} if section.question else {}
        fields = {**question, **section.fields}
    of = Inputs(scope, card.keeps, max_length, card.query, card.first, dialogue=dialogue)
    facts: dict[str, Any] = {"layout": "tasktransfer", "labels": card.labels, **more}
    return Exported(
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
    candidate: ExportCandidate, design: Brought, folder: Path, threads: int
) -> Exported:
    """Write a fine-tuned encoder from its checkpoint, or train it again if it was not kept."""
    from tasktransfer.models.export import (  # noqa: PLC0415  # imports torch
        load_trained_encoder,
        write_encoder,
    )
    from tasktransfer.models.exported import write_tokenizer  # noqa: PLC0415

    stage, study, card = candidate.node, candidate.study, candidate.card
    assert isinstance(stage, Stage)
    if stage.training.fidelity.inputs != "default" and card.toolkit is not None:
        raise ConfigError(
            "training.fidelity.inputs: A model that reads the toolkit's inputs cannot be "
            "exported. Train with inputs: default."
        )
    checkpoint = restore_checkpoint(study, Start(stage), design, threads)
    encoded, name = find_encoded(study, stage), stage.model.name
    base, revision = study.base_model(name), study.revision(name)
    encoder = load_trained_encoder(stage, card, checkpoint, encoded, base, revision)
    longest = stage.model.max_length
    layout, pooling = write_encoder(encoder, candidate.task, card.labels, longest, folder)
    side = "left" if card.keeps == "end" else "right"
    write_tokenizer(str(encoded / "tokenizer"), None, longest, side, folder)
    return _describe(candidate, "encoder", longest, layout=layout, pooling=pooling)


def _write_fit(candidate: ExportCandidate, design: Brought, folder: Path, threads: int) -> Exported:
    """Fit a reference again, as its job does, and write it."""
    from tasktransfer.evaluation import portable  # noqa: PLC0415  # imports torch
    from tasktransfer.models.export import name_labels  # noqa: PLC0415
    from tasktransfer.models.exported import (  # noqa: PLC0415
        Embedder,
        write_embedder,
        write_regression,
        write_tokenizer,
    )

    fit, study, card = candidate.node, candidate.study, candidate.card
    assert isinstance(fit, Fit)
    train = _read_instances(candidate, "train")
    if fit.learner not in OF_A_MODEL:
        words = portable.WordWeights.fit(card, train)
        found = portable.fit_regression(card, words.compute_features(card, train), train, fit.seed)
        arrays: dict[str, Any] = {**words.write(folder), "weight": found.weight, "bias": found.bias}
        portable.write_arrays(folder, arrays)
        return _describe(candidate, "words", None, labels=found.labels)
    spec = model_of(study, fit)
    base, revision, longest = (
        study.base_model(spec.name),
        study.revision(spec.name),
        spec.max_length,
    )
    known = {instance.target[0] for instance in train}
    labels = tuple(label for label in card.labels if label in known)
    if fit.learner == CONTRASTIVE:
        tune_encoder(study, fit, card, train, fit.seed).save(folder, name_labels(labels))
    else:
        write_embedder(base, revision, labels, folder)
    write_tokenizer(base, revision, longest, "left", folder)
    embedder, parts = Embedder(folder, longest), portable.list_embedded_parts(card, train)
    features = portable.compute_embeddings(
        lambda texts: embedder.embed(texts, TOGETHER), card, parts, train
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
    return _describe(candidate, reader, longest, parts=parts, **facts)


# --- scores ---------------------------------------------------------------------------------------


def _read_instances(candidate: ExportCandidate, split: str) -> list[Instance]:
    """Return the instances of a split that the candidate's node has read."""
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
    cache = inputs.cache(candidate.study, node.data)
    return list(select_instances(read_instances(cache, candidate.task, split), limits.get(split)))


def _predict_split(candidate: ExportCandidate, folder: Path, split: str) -> Split:
    """Predict a split with the model in a folder, exactly as a user of the folder would."""
    from tasktransfer.jobs.predictor import load_predictor  # noqa: PLC0415  # imports torch

    predictor: Predictor = load_predictor(folder)
    instances = _read_instances(candidate, split)
    logits = predictor.compute(instances, TOGETHER)
    places = {label: index for index, label in enumerate(predictor.labels)}
    golds = np.array([places.get(instance.target[0], -1) for instance in instances])
    answers: list[tuple[str, ...]] = [(predictor.labels[index],) for index in logits.argmax(axis=1)]
    return Split(instances, logits, golds, answers)


def _score(candidate: ExportCandidate, split: Split) -> float:
    golds = [instance.target for instance in split.instances]
    values = metrics.evaluate(candidate.card, split.answers, golds, fidelity=candidate.scoring)
    return float(metrics.score(candidate.card, values))


def _measure(
    candidate: ExportCandidate, folder: Path, candidates: Sequence[ExportCandidate], rule: str
) -> Exported:
    """Return the facts of a written model with its temperature, scores and provenance.

    Args:
        candidate: the exported run.
        folder: folder of its model.
        candidates: all finished candidates of the task.
        rule: rule by which its method was chosen: user, recommended or dev.
    """
    dev, test = (_predict_split(candidate, folder, split) for split in ("dev", "test"))
    temperature = float(f"{fit_temperature(dev.logits, dev.golds):.4g}")
    confidence = crossfit_confidence(dev.logits, dev.golds, dev.clusters)
    threshold = suggest_threshold(confidence, dev.is_right)
    if threshold is not None:  # rounded down, so that the lowest kept input is kept
        threshold = math.floor(1e3 * threshold) / 1e3
    recorded = select_task_rows(read_record_rows(candidate.record), candidate.task)
    predictions = [tuple(answer) for answer in recorded["prediction"].to_pylist()]
    equal = sum(a == b for a, b in zip(predictions, test.answers, strict=True))
    if equal < len(predictions):
        _print_note(
            f"{len(predictions) - equal:,} of {len(predictions):,} test predictions differ from "
            "the record, because of rounding or another device"
        )
    return replace(
        read_exported(folder),
        temperature=temperature,
        min_probability=threshold,
        calibration=describe_calibration(dev, test, temperature, threshold),
        scores={
            "method_chosen_by": rule,
            "dev": round(_score(candidate, dev), 2),
            "test": {**describe_scores([candidate]), "instances": len(test.instances)},
            "labels": describe_labels(candidate),
            "recorded_predictions": {"equal": equal, "of": len(predictions)},
            "methods": [
                {"method": method, "model": model, **describe_scores(group)}
                for (method, model), group in group_candidates(candidates).items()
            ],
        },
        provenance=_describe_provenance(candidate),
    )


def _describe_provenance(candidate: ExportCandidate) -> dict[str, Any]:
    node, study = candidate.node, candidate.study
    record = read_record(candidate.record)
    spec = node.model if isinstance(node, Stage) else None
    if isinstance(node, Fit) and node.learner in OF_A_MODEL:
        spec = model_of(study, node)
    return {
        "tasktransfer": __version__,
        "study": study.config.study,
        "node": node.digest,
        "label": node.label,
        "seed": node.seed,
        "model": spec.name if spec else None,
        "weights": spec.weights if spec else None,
        "checkpoint": study.base_model(spec.name) if spec else None,
        "data_revision": node.data.revision,
        "train_tasks": list(node.train_tasks) if isinstance(node, Stage) else [candidate.task],
        "parents": [parent.digest for parent in node.parents] if isinstance(node, Stage) else [],
        "instances": record["sizes"].get(candidate.task, {}),
        "synthetic": record["synthetic"],
        "licence": candidate.card.licence,
    }
