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
from tasktransfer.core.nodes import Fit, Stage
from tasktransfer.core.references import (
    OF_A_MODEL,
    format_method_label,
)
from tasktransfer.errors import ConfigError
from tasktransfer.files import replace_folder
from tasktransfer.jobs.export_calibration import Split, describe_calibration
from tasktransfer.jobs.export_candidates import (
    ExportCandidate,
    describe_label_scores,
    describe_scores,
    group_candidates,
    list_candidates,
    list_recommended_candidates,
    list_unexported_models,
    read_recommendation,
    select_candidate,
)
from tasktransfer.jobs.export_card import WITH_DEV, write_card
from tasktransfer.jobs.export_figure import write_calibration_figure
from tasktransfer.jobs.export_files import (
    TOGETHER,
    fit_reference,
    read_candidate_instances,
    write_model,
)
from tasktransfer.jobs.needs import get_fit_model
from tasktransfer.jobs.recorded_job import DesignParts
from tasktransfer.results.exported import MAKER, ExportedModel, read_exported_model
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import read_record_rows, select_task_rows
from tasktransfer.results.study import Study
from tasktransfer.stats.calibration import crossfit_confidence, fit_temperature, suggest_threshold

if TYPE_CHECKING:  # imports torch
    from tasktransfer.jobs.predictor import Predictor


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """A model to export.

    Attributes:
        task, model: as in ``list_candidates`` and ``select_candidate``.
        method: as in ``select_candidate``. None for the method that the study's table ``methods``
            recommends or, if it recommends none that can be exported, for the method with the best
            mean score on dev.
        with_dev: True to fit the chosen reference again on train and dev after it has been scored.
    """

    task: str | None = None
    method: str | None = None
    model: str | None = None
    threads: int = 1
    with_dev: bool = False


def export_model(
    study: Study, design: DesignParts, out: Path, request: ExportRequest
) -> ExportedModel:
    """Write the model of a finished method into a folder, and return the facts about it.

    Raises:
        ConfigError: the study has no such task, method or model, or it cannot be exported.
        DataError: instances or token ids are missing, or ``out`` has other files.
        ModelError: the model cannot be loaded, or no layout can represent it.
        RecordError: no method is finished, or a file differs from its record.
    """
    candidates = list_candidates(study, request.task)
    recommended = _select_recommended(study, candidates, request)
    with replace_folder(out, MAKER) as fresh, tempfile.TemporaryDirectory(dir=out.parent) as temp:
        built: dict[str, Path] = {}

        def build(candidate: ExportCandidate) -> Path:
            digest = candidate.node.digest
            if digest not in built:
                built[digest] = Path(temp, str(len(built)))
                built[digest].mkdir()
                write_model(candidate, design, built[digest], request.threads)
            return built[digest]

        def score_fit(candidate: ExportCandidate) -> float:
            dev = _predict_split(candidate, build(candidate), "dev")
            return _compute_score(candidate, dev)

        chosen = select_candidate(
            recommended or candidates, request.method, request.model, score_fit
        )
        if request.with_dev and not isinstance(chosen.node, Fit):
            raise ConfigError(
                f"--train-on train+dev: The method {chosen.method} is a fine-tuned model, whose "
                "epoch is selected on dev. Choose a reference with --method, or omit --train-on."
            )
        print(f"Exporting {chosen.name}, {_format_seed(chosen)}.", file=sys.stderr, flush=True)
        folder = build(chosen)
        rule = "user" if request.method else "recommended" if recommended else "dev"
        exported = _add_scores(chosen, folder, candidates, rule)
        if request.with_dev:
            folder = Path(temp, "with-dev")
            folder.mkdir()
            exported = _fit_reference_with_dev(chosen, exported, folder)
        exported.write(folder)
        write_calibration_figure(folder, exported)
        write_card(folder, chosen, exported)
        shutil.copytree(folder, fresh, dirs_exist_ok=True)
    return exported


def _select_recommended(
    study: Study, candidates: Sequence[ExportCandidate], request: ExportRequest
) -> list[ExportCandidate]:
    """Return the candidates of the task's recommended method.

    The list is empty if the user has chosen a method, or if no recommended method can be exported.
    A note says why the recommended method is not exported, and which models cannot be exported.
    """
    dataset, task = candidates[0].dataset, candidates[0].task
    if others := list_unexported_models(study, dataset, task):
        _print_note(f"Only encoders can be exported, so {', '.join(others)} cannot be chosen.")
    row = read_recommendation(study, dataset, task)
    models = {each.model for each in candidates}
    if request.method is not None or row is None or request.model not in (None, "", *models):
        return []  # ``select_candidate`` raises the error about an unknown model.
    found = list_recommended_candidates(candidates, row)
    if not found or request.model not in (None, "", *(each.model for each in found)):
        model = f" with {row['model']}" if isinstance(row["model"], str) else ""
        _print_note(
            f"The recommended method is {format_method_label(row['method'])}{model}, which "
            f"{'does not use --model ' + str(request.model) if found else 'has no model'}. The "
            "method with the best mean score on dev is exported instead."
        )
        return []
    return found


def _print_note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr, flush=True)


def _format_seed(candidate: ExportCandidate) -> str:
    return f"seed {candidate.seed}" if candidate.is_trained else "no seed"


def _fit_reference_with_dev(
    candidate: ExportCandidate, measured: ExportedModel, folder: Path
) -> ExportedModel:
    """Fit a reference on train and dev, write it, and return the facts about it.

    Scores, temperature and threshold are measured with the model without dev, because no other
    dialogues are left to measure them.
    """
    splits = ("train", "dev")
    fit_reference(candidate, folder, splits).write(folder)
    count = sum(len(read_candidate_instances(candidate, split)) for split in splits)
    return replace(
        read_exported_model(folder),
        temperature=measured.temperature,
        min_probability=measured.min_probability,
        calibration=measured.calibration,
        scores=measured.scores,
        provenance={**measured.provenance, WITH_DEV: count},
    )


# --- scores ---------------------------------------------------------------------------------------


def _predict_split(candidate: ExportCandidate, folder: Path, split: str) -> Split:
    """Predict a split with the exported model in a folder, as a user would."""
    from tasktransfer.jobs.predictor import load_predictor  # noqa: PLC0415  # imports torch

    predictor: Predictor = load_predictor(folder)
    instances = read_candidate_instances(candidate, split)
    logits = predictor.compute(instances, TOGETHER)
    places = {label: index for index, label in enumerate(predictor.labels)}
    golds = np.array([places.get(instance.target[0], -1) for instance in instances])
    answers: list[tuple[str, ...]] = [(predictor.labels[index],) for index in logits.argmax(axis=1)]
    return Split(instances, logits, golds, answers)


def _compute_score(candidate: ExportCandidate, split: Split) -> float:
    golds = [instance.target for instance in split.instances]
    values = metrics.evaluate_predictions(
        candidate.card, split.answers, golds, fidelity=candidate.scoring
    )
    return float(metrics.compute_task_score(candidate.card, values))


def _add_scores(
    candidate: ExportCandidate, folder: Path, candidates: Sequence[ExportCandidate], rule: str
) -> ExportedModel:
    """Add temperature, scores and provenance to the facts about a written model.

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
            "the record, because of rounding or another device."
        )
    return replace(
        read_exported_model(folder),
        temperature=temperature,
        min_probability=threshold,
        calibration=describe_calibration(dev, test, temperature, threshold),
        scores={
            "method_chosen_by": rule,
            "dev": round(_compute_score(candidate, dev), 2),
            "test": {**describe_scores([candidate]), "instances": len(test.instances)},
            "labels": describe_label_scores(candidate),
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
        spec = get_fit_model(study, node)
    return {
        "tasktransfer": __version__,
        "study": study.config.study,
        "node": node.digest,
        "label": node.label,
        "seed": node.seed,
        "model": spec.name if spec else None,
        "weights": spec.weights if spec else None,
        "checkpoint": study.get_checkpoint_source(spec.name) if spec else None,
        "data_revision": node.data.revision,
        "train_tasks": list(node.train_tasks) if isinstance(node, Stage) else [candidate.task],
        "parents": [parent.digest for parent in node.parents] if isinstance(node, Stage) else [],
        "instances": record["sizes"].get(candidate.task, {}),
        "synthetic": record["synthetic"],
        "licence": candidate.card.licence,
    }
