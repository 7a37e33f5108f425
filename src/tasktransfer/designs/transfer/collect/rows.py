"""One record as rows of the tables."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from tasktransfer.designs.transfer.collect.planned import Expected, identity
from tasktransfer.results.records import chosen_round, stage_of
from tasktransfer.results.schema import Record
from tasktransfer.results.tallies import fidelity_of

Row = tuple[Any, ...]


def run_row(path: str, record: Record, run: Expected, test_set: str | None) -> Row:
    """The row in ``runs`` of a run that ends with a record's stage. ``test_set``: the digest of
    what its predictions answer."""
    stage, provenance = stage_of(record), record["provenance"]
    course, cost = record["training"], provenance["training"]
    chosen = chosen_round(record, (run.target,))
    size = record["sizes"][run.target]
    return (
        *identity(run.dataset, run.model, run.algorithm, run.sources),
        run.target,
        run.seed,
        stage["family"],
        record["results"][run.target]["score"],
        chosen.dev_score,
        chosen.number,
        len(course["rounds"]),
        size["train"],
        size["dev"],
        size["test"],
        stage["digest"],
        stage["parents"][0] if stage["parents"] else None,
        path,
        record["rows"] is not None,
        _total(provenance["seconds"]),
        cost["tokens"],
        cost["samples_per_second"],
        cost["peak_memory_mb"],
        cost["peak_gpu_memory_mb"],
        provenance["commit"],
        provenance["recipe"],
        record["data_revision"],
        record["synthetic"],
        record["few_sample"],
        _weights(stage["identity"]),
        fidelity_of(stage["identity"]),
        *_predictions(path, record),
        test_set,
    )


def _predictions(path: str, record: Record) -> Row:
    """Path, rows and SHA-256 of the predictions."""
    file = record["rows"]
    if file is None:
        return None, None, None
    return str(PurePosixPath(path).with_name(file["file"])), file["rows"], file["sha256"]


def _weights(named: dict[str, Any]) -> str | None:
    """What the identity of a stage says of the base model's weights, where it does."""
    model = named.get("model")
    weights = model.get("weights") if isinstance(model, dict) else None
    return weights if isinstance(weights, str) else None


def _total(seconds: dict[str, float]) -> float:
    """The trainer's own total where it gives one: it holds what lies between the phases too."""
    return seconds["total"] if "total" in seconds else sum(seconds.values())


def score_rows(record: Record, run: Expected) -> list[Row]:
    """The rows in ``scores`` of a run that ends with a record's stage."""
    key = run.key
    rows: list[Row] = []
    result = record["results"][run.target]
    measures = {**result["measures"], "score": result["score"]}
    rows += [(*key, "test", run.target, name, value) for name, value in measures.items()]
    chosen = chosen_round(record, (run.target,))
    for task, metrics in chosen.dev.items():
        rows += [(*key, "dev", task, name, value) for name, value in metrics.items()]
    rows.append((*key, "dev", run.target, "score", chosen.dev_score))
    return rows
