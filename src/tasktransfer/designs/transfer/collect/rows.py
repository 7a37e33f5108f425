"""Conversion of runs and their records to rows of the tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tasktransfer.core.nodes import Stage
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.runs import name_of
from tasktransfer.results.collect import Collected
from tasktransfer.results.records import get_selected_round
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD
from tasktransfer.results.tallies import get_fidelity

Values = tuple[Any, ...]


def identity(dataset: str, model: str, algorithm: str, sources: Iterable[str]) -> Values:
    """Return the first six columns of every table of runs."""
    listed = list(sources)
    return dataset, model, algorithm, listed, "+".join(listed), len(listed)


def split_sources(source: str | None) -> list[str]:
    """Return the tasks that ``source`` joins by ``+``; empty for a baseline."""
    return source.split("+") if source else []


def names(run: Run) -> Values:
    """Return the columns that identify a run in tables: ``identity``, target and seed."""
    dataset, model, method, sources, target, seed = name_of(run)
    return *identity(dataset, model, method, sources), target, seed


def scored(run: Run) -> Stage:
    """Return the stage of a run's test score, with the selection that chose its round."""
    (stage,) = run.results_in
    assert isinstance(stage, Stage)
    return stage


def run_row(collected: Collected, run: Run) -> Values:
    """Return the row of a run in ``runs``."""
    stage, target = scored(run), run.about["target"]
    record = collected.record(stage)
    provenance = record["provenance"]
    cost, size = provenance["training"], record["sizes"][target]
    chosen = get_selected_round(record, stage.selection.tasks)
    return (
        *names(run),
        stage.model.family,
        record["results"][target]["score"],
        chosen.dev_score,
        chosen.number,
        len(record["training"]["rounds"]),
        size["train"],
        size["dev"],
        size["test"],
        stage.digest,
        stage.parents[0].digest if stage.parents else None,
        f"{stage.path}/{RECORD}",
        record["rows"] is not None,
        _sum_seconds(provenance["seconds"]),
        cost["tokens"],
        cost["samples_per_second"],
        cost["peak_memory_mb"],
        cost["peak_gpu_memory_mb"],
        provenance["commit"],
        provenance["recipe"],
        record["data_revision"],
        record["synthetic"],
        record["few_sample"],
        stage.model.weights,
        get_fidelity(record["node"]["identity"]),
        *_summarise_predictions(stage, record),
        collected.test_sets.get(stage.digest, {}).get(target),
    )


def _summarise_predictions(stage: Stage, record: Record) -> Values:
    """Return path, number of rows and SHA-256 of the predictions."""
    file = record["rows"]
    if file is None:
        return None, None, None
    return f"{stage.path}/{file['file']}", file["rows"], file["sha256"]


def _sum_seconds(seconds: dict[str, float]) -> float:
    """Return the trainer's total, which includes time between phases, or the sum of the phases."""
    return seconds["total"] if "total" in seconds else sum(seconds.values())
