"""Building the record of a stage: the one place where a training's numbers become schema 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasktransfer.core.nodes import Stage
from tasktransfer.results.artefacts import Artefact
from tasktransfer.results.records import (
    SCHEMA_VERSION,
    PredictionsFile,
    Provenance,
    Record,
    Round,
    Sizes,
    StageIdentity,
    TaskResult,
)


def stage_record(
    stage: Stage,
    *,
    rounds: Sequence[Round],
    best_round: int,
    test: Mapping[str, TaskResult],
    sizes: Mapping[str, Sizes],
    synthetic: bool,
    predictions: PredictionsFile | None,
    provenance: Provenance,
    artefacts: Mapping[str, Artefact] | None = None,
) -> Record:
    """What a stage leaves, not yet checked (``records.write_record`` does that).

    Args:
        stage: the stage; kind, data and identity are taken from it.
        rounds: every round in order, from 0 (the untrained model) or 1.
        best_round: number of the round whose model was tested; its selection score is the
            record's ``dev_score``.
        test: tested task → result.
        sizes: task → instances per split.
        synthetic: whether the dialogues are generated.
        predictions: the file beside the record; None where no task is tested.
        provenance: how the numbers came about.
        artefacts: the files of weights that are kept.
    """
    record: Record = {
        "schema": SCHEMA_VERSION,
        "stage": stage_identity(stage),
        "synthetic": synthetic,
        "few_sample": bool(stage.data.settings.get("few_sample", False)),
        "data_revision": stage.data.revision,
        "sizes": dict(sizes),
        "rounds": list(rounds),
        "best_round": best_round,
        "dev_score": next(r["selection_score"] for r in rounds if r["round"] == best_round),
        "test": dict(test),
        "predictions": predictions,
        "provenance": provenance,
    }
    if artefacts:
        record["artefacts"] = dict(artefacts)
    return record


def stage_identity(stage: Stage) -> StageIdentity:
    """What a record says of its stage."""
    return {
        "digest": stage.digest,
        "kind": stage.kind,
        "label": stage.label,
        "dataset": stage.dataset,
        "model": stage.model.name,
        "family": stage.model.family,
        "train_tasks": list(stage.train_tasks),
        "select_on": list(stage.select_on),
        "seed": stage.seed,
        "parents": [parent.digest for parent in stage.parents],
        "identity": stage.identity,
    }
